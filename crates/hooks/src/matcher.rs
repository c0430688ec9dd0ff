//! Matchers: which occurrences of an event a handler runs for.

use fancy_regex::Regex;

use super::HookEventKind;

/// The matcher of a handler.
#[derive(Debug, Clone)]
pub enum HookMatcher {
    /// Matches everything.
    All,
    /// Matches exactly these names.
    Names(Vec<String>),
    /// Matches names that contain a match of this pattern.
    Pattern(Box<Regex>),
    /// Matches nothing: the pattern is invalid.
    Nothing,
}

impl HookMatcher {
    /// Parses a matcher. The error is for the user who wrote it; the handler then never runs.
    pub fn new(event: HookEventKind, text: &str) -> (Self, Option<String>) {
        if text.is_empty() || text == "*" || !event.has_matcher() {
            return (Self::All, None);
        }
        let plain = event.has_plain_matcher();
        let separators: &[char] = if plain { &['|'] } else { &['|', ','] };
        let is_name = |byte: u8| {
            byte.is_ascii_alphanumeric()
                || byte == b'_'
                || byte == b'|'
                || (!plain && b" ,-".contains(&byte))
        };
        if text.bytes().all(is_name) {
            let names = text.split(separators).map(|name| name.trim().to_owned());
            return (Self::Names(names.collect()), None);
        }
        match Regex::new(text) {
            Ok(regex) => (Self::Pattern(Box::new(regex)), None),
            Err(error) => (
                Self::Nothing,
                Some(format!(
                    "the matcher {text:?} is not a valid pattern: {error}"
                )),
            ),
        }
    }

    /// Returns the names in its text, separated by `|`.
    pub(super) fn written_names(&self) -> Vec<String> {
        match self {
            Self::All | Self::Nothing => Vec::new(),
            Self::Names(names) => names.clone(),
            Self::Pattern(regex) => regex.as_str().split('|').map(str::to_owned).collect(),
        }
    }

    /// Returns whether it matches any of these names of one thing.
    pub fn matches(&self, names: &[&str]) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Names(wanted) => names
                .iter()
                .any(|name| wanted.iter().any(|one| one == name)),
            Self::Pattern(regex) => names
                .iter()
                .any(|name| regex.is_match(name).unwrap_or(false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_exact_and_patterns_are_not_anchored() {
        let cases = [
            ("Bash", "Bash", true),
            ("Bash", "BashX", false),
            ("Edit|Write", "Write", true),
            ("Edit, Write", "Edit", true),
            ("Edit.*", "NotebookEdit", true),
            ("^Edit$", "NotebookEdit", false),
            ("mcp__memory", "mcp__memory__x", false),
            ("mcp__memory__.*", "mcp__memory__x", true),
            ("code-reviewer", "senior-code-reviewer", false),
            ("", "anything", true),
            ("*", "anything", true),
            ("^(?!Bash).*", "Read", true),
            ("[", "[", false),
        ];
        for (pattern, value, expected) in cases {
            let (matcher, _) = HookMatcher::new(HookEventKind::PRE_TOOL_USE, pattern);
            assert_eq!(matcher.matches(&[value]), expected, "{pattern} {value}");
        }
        assert!(
            HookMatcher::new(HookEventKind::PRE_TOOL_USE, "[")
                .1
                .is_some()
        );
    }
}
