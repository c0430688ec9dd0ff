//! Ways in which a model miscopies: the same change, with a damaged `old_string`.

/// Lines that are replaced, and by what; `None` on a side: only on the other.
#[derive(Debug, Clone)]
pub(crate) struct Hunk {
    /// The first line of the hunk in the file, from 1.
    pub(crate) first_line: usize,
    pub(crate) lines: Vec<HunkLine>,
}

/// With their breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HunkLine {
    Kept(String),
    Removed(String),
    Added(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    None,
    CurlyQuotes,
    StraightQuotes,
    NoBreakSpaces,
    BlanksAdded,
    BlanksLost,
    Indented,
    TabsAsSpaces,
    LineNumbers,
    LineNumbersInOldOnly,
    FinalBreakAdded,
}

impl Damage {
    pub(crate) const ALL: [Self; 11] = [
        Self::None,
        Self::CurlyQuotes,
        Self::StraightQuotes,
        Self::NoBreakSpaces,
        Self::BlanksAdded,
        Self::BlanksLost,
        Self::Indented,
        Self::TabsAsSpaces,
        Self::LineNumbers,
        Self::LineNumbersInOldOnly,
        Self::FinalBreakAdded,
    ];

    /// Does a model that errs like this err in the lines it adds as well?
    fn touches_added_lines(self) -> bool {
        matches!(self, Self::Indented | Self::TabsAsSpaces)
    }

    fn apply(self, line: &str) -> String {
        let (text, end) = match line.strip_suffix('\n') {
            Some(text) => (text, "\n"),
            None => (line, ""),
        };
        let indent = text.len() - text.trim_start_matches([' ', '\t']).len();
        let text = match self {
            Self::CurlyQuotes => text.replace('\'', "’").replace('"', "“"),
            Self::StraightQuotes => text
                .replace(['‘', '’'], "'")
                .replace(['“', '”'], "\"")
                .replace(['–', '—'], "-"),
            Self::NoBreakSpaces => text.replace(' ', "\u{a0}"),
            Self::BlanksAdded => format!("{text} \t"),
            // Without its blanks such a last line would not be there at all.
            Self::BlanksLost if end.is_empty() && text.len() == indent => text.to_owned(),
            Self::BlanksLost => text.trim_end_matches([' ', '\t']).to_owned(),
            // Blanks on a blank line are no indentation.
            Self::Indented | Self::TabsAsSpaces if text.len() == indent => text.to_owned(),
            Self::Indented => format!("  {text}"),
            Self::TabsAsSpaces => format!(
                "{}{}",
                text[..indent].replace('\t', "    "),
                &text[indent..]
            ),
            _ => text.to_owned(),
        };
        text + end
    }
}

impl Hunk {
    /// Old and new text as a model sends them that errs in this way. If there is
    /// nothing to err about in the old text, the new one is right as well.
    pub(crate) fn sides(&self, damage: Damage) -> (String, String) {
        let (clean, damaged) = (self.written(Damage::None), self.written(damage));
        // Where tabs and spaces are mixed, turning one into the other loses what was meant.
        // Nor can a change of indentation be told from a wrong one.
        let lossy = damage == Damage::TabsAsSpaces && self.indents_with_spaces()
            || damage.touches_added_lines() && self.reindents();
        if lossy || clean.0 == damaged.0 {
            clean
        } else {
            damaged
        }
    }

    fn reindents(&self) -> bool {
        let bare = |text: &str| text.trim_matches([' ', '\t', '\n']).to_owned();
        let (old, new) = self.written(Damage::None);
        let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
        new.split_inclusive('\n').any(|line| {
            !bare(line).is_empty()
                && !old_lines.contains(&line)
                && old_lines.iter().any(|old| bare(old) == bare(line))
        })
    }

    fn indents_with_spaces(&self) -> bool {
        self.lines.iter().any(|line| {
            let (HunkLine::Kept(text) | HunkLine::Removed(text) | HunkLine::Added(text)) = line;
            text.trim_start_matches('\t').starts_with(' ')
        })
    }

    fn written(&self, damage: Damage) -> (String, String) {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for line in &self.lines {
            match line {
                HunkLine::Kept(text) => {
                    old.push(damage.apply(text));
                    new.push(damage.apply(text));
                }
                HunkLine::Removed(text) => old.push(damage.apply(text)),
                HunkLine::Added(text) if damage.touches_added_lines() => {
                    new.push(damage.apply(text))
                }
                HunkLine::Added(text) => new.push(text.clone()),
            }
        }
        let numbered = |lines: Vec<String>| -> String {
            (self.first_line..)
                .zip(lines)
                .map(|(number, line)| format!("{number:>6}\t{line}"))
                .collect()
        };
        match damage {
            Damage::LineNumbers => (numbered(old), numbered(new)),
            Damage::LineNumbersInOldOnly => (numbered(old), new.concat()),
            Damage::FinalBreakAdded if unended(&old) && unended(&new) => {
                (old.concat() + "\n", new.concat() + "\n")
            }
            _ => (old.concat(), new.concat()),
        }
    }

    /// The file after the change, undamaged.
    pub(crate) fn applied_to(&self, file: &str) -> String {
        let mut lines: Vec<&str> = file.split_inclusive('\n').collect();
        let (old, new) = self.sides(Damage::None);
        let count = old.split_inclusive('\n').count();
        let start = self.first_line - 1;
        assert_eq!(lines[start..start + count].concat(), old, "the hunk fits");
        lines.splice(start..start + count, [new.as_str()]);
        lines.concat()
    }
}

fn unended(lines: &[String]) -> bool {
    lines
        .last()
        .is_some_and(|line| !line.is_empty() && !line.ends_with('\n'))
}

/// How often `old` occurs if signs, blanks at line ends and indentation do not
/// count: where it is once, an edit can only be right, refused or wrong.
pub(crate) fn tolerant_count(file: &str, old: &str) -> usize {
    let bare = |text: &str| -> String {
        crate::invariants::plain(text)
            .split('\n')
            .map(|line| line.trim_matches([' ', '\t', '\r']).to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (file, old) = (bare(file), bare(old));
    let old = old.trim_end_matches('\n');
    if old.is_empty() {
        return 0;
    }
    file.char_indices()
        .filter(|(at, _)| file[*at..].starts_with(old))
        .count()
}
