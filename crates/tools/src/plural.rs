//! Numbers with their nouns.

/// Returns the number with its noun: `1 line`, `2 lines`, `3 entries`, `4 matches`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let (stem, ending) = match noun {
        _ if number == 1 => (noun, ""),
        _ if noun.ends_with("ch") => (noun, "es"),
        _ => match noun.strip_suffix('y') {
            Some(stem) => (stem, "ies"),
            None => (noun, "s"),
        },
    };
    format!("{number} {stem}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_follow_their_number() {
        let cases = [
            (0, "line", "0 lines"),
            (1, "entry", "1 entry"),
            (2, "entry", "2 entries"),
            (3, "match", "3 matches"),
        ];
        for (number, noun, expected) in cases {
            assert_eq!(counted(number, noun), expected);
        }
    }
}
