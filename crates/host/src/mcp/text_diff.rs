//! A line-by-line difference of two texts, for display.

/// The maximum number of characters of a text that are stored.
const MAX_CHARACTERS: usize = 4_000;
/// The maximum number of lines of a difference that are shown.
const SHOWN: usize = 40;

/// Cuts a text to the length that is stored.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(MAX_CHARACTERS).collect()
}

/// Returns the removed lines, then the added lines, each in their order.
pub(super) fn lines(before: &str, now: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let differing = |text: &str, other: &str, sign: char| -> Vec<String> {
        let mut others: Vec<&str> = other.lines().collect();
        let mut own = Vec::new();
        for line in text.lines() {
            match others.iter().position(|other| *other == line) {
                Some(at) => {
                    others.remove(at);
                }
                None => own.push(format!("{sign} {line}")),
            }
        }
        own
    };
    lines.extend(differing(before, now, '-'));
    lines.extend(differing(now, before, '+'));
    if lines.is_empty() {
        return "(only the order changed, or a part that haft does not store)".to_owned();
    }
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    if more > 0 {
        lines.push(format!("… and {more} lines more"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_came_and_went() {
        assert_eq!(lines("a\nb\nb\nc", "a\nb\nd"), "- b\n- c\n+ d");
        assert!(lines("a\nb", "b\na").starts_with("(only the order changed"));
        let long = (0..100)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join("\n");
        let shown = lines("", &long);
        assert_eq!(shown.lines().count(), SHOWN + 1);
        assert!(shown.ends_with("… and 60 lines more"));
    }
}
