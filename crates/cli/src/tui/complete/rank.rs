//! Ranks names by how well they match the typed text.

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{AtomKind, CaseMatching, Normalization, Pattern},
};

/// Returns the indexes of the best matches. For an empty query, returns the first names.
pub(super) fn best<'a>(
    names: impl Iterator<Item = &'a str>,
    query: &str,
    is_path: bool,
    most: usize,
) -> Vec<usize> {
    if query.is_empty() {
        return (0..names.take(most).count()).collect();
    }
    let config = match is_path {
        true => Config::DEFAULT.match_paths(),
        false => Config::DEFAULT,
    };
    let mut matcher = Matcher::new(config);
    let pattern = Pattern::new(
        query,
        CaseMatching::Smart,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let lower = query.to_lowercase();
    let mut letters = Vec::new();
    let mut found: Vec<(MatchRank, usize)> = Vec::new();
    for (place, name) in names.enumerate() {
        let Some(score) = pattern.score(Utf32Str::new(name, &mut letters), &mut matcher) else {
            continue;
        };
        let begins = !is_path && name.to_lowercase().starts_with(&lower);
        let fit = MatchRank {
            worse: (!begins, u32::MAX - score, name.len()),
        };
        found.push((fit, place));
    }
    // Names that match equally well keep their order.
    found.sort_unstable();
    found.truncate(most);
    found.into_iter().map(|(_, place)| place).collect()
}

/// The quality of a match; smaller is better.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MatchRank {
    /// Whether the name lacks the query as its prefix, the distance from the best score, and the
    /// length.
    worse: (bool, u32, usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked<'a>(names: &[&'a str], query: &str, is_path: bool) -> Vec<&'a str> {
        let best = best(names.iter().copied(), query, is_path, 3);
        best.into_iter().map(|place| names[place]).collect()
    }

    #[test]
    fn names_that_begin_like_that_are_before_those_that_only_contain_it() {
        let names = ["add-dir", "decompose", "compact", "context", "cost"];
        assert_eq!(ranked(&names, "comp", false), ["compact", "decompose"]);
        assert_eq!(ranked(&names, "co", false), ["cost", "compact", "context"]);
        assert_eq!(ranked(&names, "zz", false), [""; 0]);
        assert_eq!(
            ranked(&names, "", false),
            ["add-dir", "decompose", "compact"]
        );
    }

    #[test]
    fn a_file_is_found_by_letters_of_its_path() {
        let names = ["docs/private.md", "src/price.rs", "src/basket.rs"];
        assert_eq!(ranked(&names, "srcpri", true), ["src/price.rs"]);
        assert_eq!(ranked(&names, "bas", true), ["src/basket.rs"]);
    }
}
