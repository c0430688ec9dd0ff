//! The reading order of Hebrew and Arabic, which are drawn from left to right but read from right
//! to left.

/// Converts the parts of a line from their visual order (left to right) to the reading order.
pub(super) fn in_reading_order(parts: Vec<String>) -> String {
    let to_left = parts.iter().filter(|part| is_to_left(part)).count();
    let to_right = parts.iter().filter(|part| is_to_right(part)).count();
    if to_left <= to_right {
        return with_runs_turned(parts);
    }
    // The line runs from right to left, but words and numbers in other scripts do not.
    let mut parts = parts;
    parts.reverse();
    turn_runs(
        &mut parts,
        |part| is_to_right(part) || is_number(part),
        |part| !is_to_left(part),
    );
    parts.concat()
}

/// Joins the parts of a line that runs from left to right. Reverses the runs in it that are read
/// from right to left.
fn with_runs_turned(mut parts: Vec<String>) -> String {
    if parts.iter().any(|part| is_to_left(part)) {
        turn_runs(&mut parts, is_to_left, |part| part.trim().is_empty());
    }
    parts.concat()
}

/// Reverses each run of parts that satisfy `belongs`, including the parts between them that satisfy
/// `joins`.
fn turn_runs(parts: &mut [String], belongs: impl Fn(&str) -> bool, joins: impl Fn(&str) -> bool) {
    let mut start = 0;
    while start < parts.len() {
        if !belongs(&parts[start]) {
            start += 1;
            continue;
        }
        let mut end = start + 1;
        let mut next = end;
        while next < parts.len() && (belongs(&parts[next]) || joins(&parts[next])) {
            next += 1;
            if belongs(&parts[next - 1]) {
                end = next;
            }
        }
        parts[start..end].reverse();
        start = end;
    }
}

fn is_to_left(part: &str) -> bool {
    part.chars().next().is_some_and(|character| {
        matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}')
            && !character.is_numeric()
    })
}

fn is_to_right(part: &str) -> bool {
    part.chars()
        .next()
        .is_some_and(|character| character.is_alphabetic() && !is_to_left(part))
}

fn is_number(part: &str) -> bool {
    part.chars().next().is_some_and(char::is_numeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(visible: &str) -> String {
        in_reading_order(visible.chars().map(String::from).collect())
    }

    #[test]
    fn lines_are_put_into_the_order_they_are_read() {
        assert_eq!(read("plain text, 12."), "plain text, 12.");
        // "shalom olam", as drawn: the last letter first.
        assert_eq!(read("םלוע םולש"), "שלום עולם");
        assert_eq!(read("12 ןכ"), "כן 12");
        assert_eq!(read("abc ןכ def"), "abc כן def");
    }
}
