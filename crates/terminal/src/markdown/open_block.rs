//! Draws an unfinished block as if it were complete: open marks are closed. A mark at the end is
//! left out, because its meaning is still unknown.

/// Returns the text with its open marks closed.
pub(super) fn closed(text: &str) -> String {
    let mut scan = OpenMarks::default();
    scan.read(text);
    scan.finish(text)
}

/// An open emphasis mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenMark {
    mark: char,
    length: usize,
}

#[derive(Debug, Default)]
struct OpenMarks {
    marks: Vec<OpenMark>,
    /// The positions of open brackets.
    brackets: Vec<usize>,
    /// The number of backticks that opened the current inline code.
    code: Option<usize>,
    /// Everything from this position on is left out.
    end: Option<usize>,
    /// Positions of single characters that are left out.
    dropped: Vec<usize>,
}

impl OpenMarks {
    fn read(&mut self, text: &str) {
        let mut at = 0;
        while let Some(character) = text[at..].chars().next() {
            let length = run_length(&text[at..], character);
            let before = text[..at].chars().next_back();
            let behind = text[at + length..].chars().next();
            match character {
                '\\' => {
                    let escaped = text[at + 1..].chars().next();
                    if escaped.is_none() {
                        self.end = Some(at);
                    }
                    at += 1 + escaped.map_or(0, char::len_utf8);
                    continue;
                }
                '`' => match closing_backticks(&text[at + length..], length) {
                    Some(end) => {
                        at += length + end;
                        continue;
                    }
                    None => {
                        self.open_code(text, at, length);
                        return;
                    }
                },
                '*' | '_' | '~' => self.emphasis(character, length, at, before, behind),
                '[' if behind.is_none() => {
                    self.end = Some(at);
                }
                '[' => self.brackets.push(at),
                ']' if self.close_bracket(text, at) => return,
                _ => {}
            }
            at += match character {
                '*' | '_' | '~' => length,
                _ => character.len_utf8(),
            };
        }
        self.dropped.append(&mut self.brackets);
    }

    fn open_code(&mut self, text: &str, at: usize, length: usize) {
        let inside = text[at + length..].trim_end_matches('`');
        match inside.trim().is_empty() {
            true => self.end = Some(at),
            false => {
                self.end = Some(at + length + inside.len());
                self.code = Some(length);
            }
        }
        self.dropped.append(&mut self.brackets);
    }

    fn emphasis(
        &mut self,
        mark: char,
        length: usize,
        at: usize,
        before: Option<char>,
        behind: Option<char>,
    ) {
        let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        if mark == '_' && is_letter(before) && is_letter(behind) {
            return;
        }
        if mark == '~' && length != 2 && behind.is_some() {
            return;
        }
        let mut left = length;
        if !is_blank(before) {
            while let Some(position) = self
                .marks
                .iter()
                .rposition(|open| open.mark == mark && open.length <= left)
            {
                left -= self.marks[position].length;
                self.marks.truncate(position);
                if left == 0 {
                    return;
                }
            }
        }
        if behind.is_none() {
            // The mark may be incomplete or may open anything.
            self.end = Some(at + length - left);
        } else if !is_blank(behind) {
            // Three marks are one and two.
            let parts = match left {
                0 => &[][..],
                1 => &[1][..],
                2 => &[2],
                _ => &[2, 1],
            };
            let parts = parts.iter().map(|length| OpenMark {
                mark,
                length: *length,
            });
            self.marks.extend(parts);
        }
    }

    /// Closes a bracket. Returns `true` if the rest of the text belongs to an unfinished address.
    fn close_bracket(&mut self, text: &str, at: usize) -> bool {
        let Some(open) = self.brackets.pop() else {
            return false;
        };
        let rest = &text[at + 1..];
        if rest.starts_with('(') && !rest.contains(')') {
            self.dropped.push(open);
            // An image is shown by its name.
            if text[..open].ends_with('!') {
                self.dropped.push(open - 1);
            }
            self.end = Some(at);
            self.dropped.append(&mut self.brackets);
            return true;
        }
        if rest.is_empty() {
            // An address may follow.
            self.dropped.push(open);
            self.end = Some(at);
        }
        false
    }

    fn finish(mut self, text: &str) -> String {
        self.dropped.sort_unstable();
        let end = self.end.unwrap_or(text.len());
        let mut closed = String::with_capacity(end + 8);
        let mut from = 0;
        for place in self.dropped.into_iter().filter(|place| *place < end) {
            closed.push_str(&text[from..place]);
            from = place + 1;
        }
        closed.push_str(&text[from..end]);
        closed.truncate(closed.trim_end().len());
        if let Some(length) = self.code {
            // A backtick inside must not touch the closing ones.
            if closed.ends_with('`') {
                closed.push(' ');
            }
            closed.extend(std::iter::repeat_n('`', length));
        }
        for mark in self.marks.iter().rev() {
            closed.extend(std::iter::repeat_n(mark.mark, mark.length));
        }
        closed
    }
}

fn run_length(text: &str, mark: char) -> usize {
    text.chars().take_while(|c| *c == mark).count() * mark.len_utf8()
}

/// Returns the end of the inline code that is closed by exactly `length` backticks.
fn closing_backticks(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let run = run_length(&text[at + found..], '`');
        at += found + run;
        if run == length {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_marks_are_closed_and_marks_at_the_end_left_out() {
        let cases = [
            ("plain text", "plain text"),
            ("**bo", "**bo**"),
            ("**", ""),
            ("**bo*", "**bo**"),
            ("**bo**", "**bo**"),
            ("*one **two", "*one **two***"),
            ("***both", "***both***"),
            ("a * b", "a * b"),
            ("a *", "a"),
            ("snake_case_name", "snake_case_name"),
            ("_em", "_em_"),
            ("~~gone", "~~gone~~"),
            ("`cod", "`cod`"),
            ("`", ""),
            ("``a`b", "``a`b``"),
            ("``a`", "``a``"),
            ("`a` **b", "`a` **b**"),
            ("**a `b", "**a `b`**"),
            ("[tex", "tex"),
            ("[text]", "text"),
            ("[text](http://exa", "text"),
            ("[text](http://e.x) more", "[text](http://e.x) more"),
            ("see [", "see"),
            ("![pic](a", "pic"),
            ("a[0] = b[1", "a[0] = b1"),
            ("**bold ", "**bold**"),
            ("5 \\", "5"),
            ("\\*not", "\\*not"),
        ];
        for (text, expected) in cases {
            assert_eq!(closed(text), expected, "{text:?}");
        }
    }
}
