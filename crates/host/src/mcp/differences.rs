//! How a text differs from what it was, line by line, for people.

/// At most this much of a text is kept, in characters.
const KEPT: usize = 4_000;
/// At most this many lines of a difference are shown.
const SHOWN: usize = 40;

/// As much of a text as is kept.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(KEPT).collect()
}

/// Lines that are gone, then lines that came; each kind in its order.
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
        return "(what changed lies beyond what is kept of it, or is its order)".to_owned();
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
        assert!(lines("a\nb", "b\na").starts_with("(what changed"));
        let long = (0..100)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join("\n");
        let shown = lines("", &long);
        assert_eq!(shown.lines().count(), SHOWN + 1);
        assert!(shown.ends_with("… and 60 lines more"));
    }
}
