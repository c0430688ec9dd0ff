//! A preview of a long text: its beginning and end, cut at line ends.

/// The number of characters in each of the two parts.
const EACH: usize = 1_000;

/// Returns the beginning and the end of a text, and the size of the gap between them.
pub(super) fn preview(text: &str) -> String {
    let head = head(text, EACH);
    let tail = tail(&text[head.len()..], EACH);
    let between = &text[head.len()..text.len() - tail.len()];
    let lines = between.matches('\n').count();
    let gap = format!(
        "[… {} characters, {lines} line ends left out …]",
        between.chars().count()
    );
    format!(
        "{}\n{gap}\n{}",
        head.trim_end_matches('\n'),
        tail.trim_start_matches('\n')
    )
}

/// Returns at most `most` characters from the start, in whole lines if possible.
fn head(text: &str, most: usize) -> &str {
    let end = text
        .char_indices()
        .nth(most)
        .map_or(text.len(), |(at, _)| at);
    match text[..end].rfind('\n') {
        Some(line_end) if line_end > 0 => &text[..=line_end],
        _ => &text[..end],
    }
}

/// Returns at most `most` characters up to the end, in whole lines if possible.
fn tail(text: &str, most: usize) -> &str {
    let start = text
        .char_indices()
        .rev()
        .nth(most.saturating_sub(1))
        .map_or(0, |(at, _)| at);
    let within = &text[start..];
    // The text may end with a line end itself; the cut must leave a line after it.
    match within.strip_suffix('\n').unwrap_or(within).find('\n') {
        Some(line_end) if start > 0 => &within[line_end + 1..],
        _ => within,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_line_ends_where_there_are_any_and_never_inside_a_character() {
        let lines: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
        let shown = preview(&lines);
        assert!(shown.starts_with("line 1\n"), "{shown}");
        assert!(shown.ends_with("line 1000\n"), "{shown}");
        assert!(shown.chars().count() < 2 * EACH + 100);
        let gap = shown.find("[…").unwrap();
        assert!(shown[..gap].ends_with('\n') && !shown[..gap].trim_end().ends_with("line"));

        let one_line = "é".repeat(5000);
        let shown = preview(&one_line);
        assert!(
            shown.contains("[… 3000 characters, 0 line ends left out …]"),
            "{shown}"
        );
    }
}
