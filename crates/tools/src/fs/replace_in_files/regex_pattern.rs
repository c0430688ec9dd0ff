//! A regular expression applied to one file: matches like Grep, and splices like Edit.
//!
//! Grep's lines end at the line feed, so in a CRLF file `.` and `\s` match the CR before it. But
//! the CR is half of a line break: if a match begins or ends between CR and LF, the break stays
//! whole, unless the pattern contains the CR itself.

use std::ops::Range;

use haft_journal::{
    Encoding,
    edit::{self, EditError, EditableText, NewText, TextChange},
};
use haft_search::{SearchError, TemplatePart, TextMatcher};

use super::rewrite::ReplacedFile;

#[derive(Debug, Clone)]
pub(super) struct RegexPattern {
    pub(super) source: String,
    pub(super) multiline: bool,
    matcher: TextMatcher,
    names_cr: bool,
}

impl RegexPattern {
    pub(super) fn new(pattern: &str, multiline: bool) -> Result<Self, SearchError> {
        Ok(Self {
            source: pattern.to_owned(),
            multiline,
            matcher: TextMatcher::new(pattern, multiline)?,
            names_cr: names_carriage_return(pattern),
        })
    }

    /// Rewrites a file: `None` if nothing changes; the error is the reason why it cannot be
    /// rewritten.
    pub(super) fn apply(
        &self,
        bytes: &[u8],
        replacement: &str,
    ) -> Result<Option<ReplacedFile>, String> {
        let file = EditableText::parse(bytes).map_err(|error| error.to_string())?;
        self.require_searchable(&file, bytes)?;
        let template = self.matcher.template(replacement);
        let changes = self.changes(file.text(), &template);
        let plan = file.plan(&changes).map_err(|error| match error {
            EditError::InsideCharacter { line } => {
                format!("a match on line {line} could split a character: use Edit")
            }
            error => error.to_string(),
        })?;
        Ok(plan.map(|plan| ReplacedFile {
            bytes: edit::apply(bytes, &plan),
            places: plan.places.len(),
        }))
    }

    /// Checks that Grep's matches, which it finds in the bytes, are the same in the text that is
    /// changed.
    fn require_searchable(&self, file: &EditableText<'_>, bytes: &[u8]) -> Result<(), String> {
        let text = file.text();
        if text.contains(&0) {
            return Err("binary (it has NUL bytes)".to_owned());
        }
        match file.encoding() {
            Encoding::Utf8 | Encoding::BrokenUtf8 => Ok(()),
            Encoding::Utf16Le | Encoding::Utf16Be if std::str::from_utf8(text).is_ok() => Ok(()),
            // Grep searches the bytes; the text is equivalent only if both have the same matches.
            Encoding::CodePage(_) if self.ranges_in(bytes) == self.ranges_of(file) => Ok(()),
            Encoding::CodePage(page) => Err(format!(
                "in {}, where this pattern could split a character: use Edit",
                page.name()
            )),
            encoding => Err(format!(
                "{encoding}: a regular expression could split a character"
            )),
        }
    }

    fn ranges_in(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        self.matcher
            .each(text, |groups| ranges.extend(groups[0].clone()));
        ranges
    }

    fn ranges_of(&self, file: &EditableText<'_>) -> Vec<Range<usize>> {
        let ranges = self.ranges_in(file.text());
        ranges
            .iter()
            .filter(|range| !is_inside_character(file.text(), range))
            .map(|range| file.source_range(range))
            .collect()
    }

    fn changes(&self, text: &[u8], template: &[TemplatePart]) -> Vec<TextChange> {
        let mut changes = Vec::<TextChange>::new();
        self.matcher.each(text, |groups| {
            let group = |number: usize| {
                let range = groups.get(number)?.as_ref()?;
                Some(self.whole_breaks(text, range))
            };
            let Some(range) = group(0).filter(|range| !is_inside_character(text, range)) else {
                return;
            };
            // Two empty matches before and after the CR of a break are one place.
            if changes.last().is_some_and(|last| {
                range.start < last.range.end || range == last.range && range.is_empty()
            }) {
                return;
            }
            let part = |part: &TemplatePart| match part {
                TemplatePart::Text(text) => Some(NewText::Typed(text.clone())),
                TemplatePart::Group(number) => group(*number).map(NewText::Kept),
            };
            let new = template.iter().filter_map(part).collect();
            changes.push(TextChange { range, new });
        });
        changes
    }

    /// Returns the range with its ends moved so that they do not split a CRLF.
    fn whole_breaks(&self, text: &[u8], range: &Range<usize>) -> Range<usize> {
        let splits = |at: usize| at > 0 && text[at - 1] == b'\r' && text.get(at) == Some(&b'\n');
        let Range { mut start, mut end } = *range;
        if !self.names_cr {
            // A matched line feed means the complete line break.
            start -= usize::from(splits(start));
            end = (end - usize::from(splits(end))).max(start);
        }
        start..end
    }
}

/// Returns whether this is an empty match inside a character. Grep counts bytes; this match never
/// decides whether a line matches, because an empty pattern also matches at the start of the line.
fn is_inside_character(text: &[u8], range: &Range<usize>) -> bool {
    let continues = |byte: &u8| (0x80..0xc0).contains(byte);
    range.is_empty() && text.get(range.start).is_some_and(continues)
}

/// Returns whether the pattern contains CR explicitly, not only a class that includes it.
fn names_carriage_return(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(at) = rest.find(['\\', '\r']) {
        let Some(escape) = rest[at..].strip_prefix('\\') else {
            return true;
        };
        let code = escape
            .strip_prefix(['x', 'u', 'U'])
            .map(|code| code.trim_start_matches(['{', '0']));
        if escape.starts_with('r') || code.is_some_and(|code| code.starts_with(['d', 'D'])) {
            return true;
        }
        rest = &escape[escape.chars().next().map_or(0, char::len_utf8)..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_the_carriage_return_or_does_not() {
        for pattern in [
            r"\r", "a\r", r"a\x0D", r"[\r\n]", r"\x{d}", r"\\\r", r"\u000d",
        ] {
            assert!(names_carriage_return(pattern), "{pattern:?}");
        }
        for pattern in [r"\\r", ".", r"\s+", "r", r"\d", r"\n", "\\", r"\\x0d"] {
            assert!(!names_carriage_return(pattern), "{pattern:?}");
        }
    }
}
