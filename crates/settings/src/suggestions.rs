//! "Did you mean …": finds names similar to an unknown one.

/// The minimum similarity of a suggestion.
const ALIKE: f64 = 0.7;

/// Returns up to `max` names similar to `unknown`, the most similar first.
pub fn similar_names<'a>(
    unknown: &str,
    names: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    let unknown = unknown.to_lowercase();
    let mut similar: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (similarity(&unknown, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= ALIKE)
        .collect();
    similar.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    similar.truncate(max);
    similar.into_iter().map(|(_, name)| name).collect()
}

/// Returns the similarity: detects typing errors, and names that contain each other (`ReadFile` for
/// `Read`).
fn similarity(unknown: &str, name: &str) -> f64 {
    let contains =
        unknown.len() >= 3 && name.len() >= 3 && (unknown.contains(name) || name.contains(unknown));
    strsim::jaro_winkler(unknown, name).max(if contains { 0.9 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_probably_meant() {
        let all = [
            "Read",
            "Write",
            "Edit",
            "Glob",
            "Grep",
            "LS",
            "ReplaceInFiles",
        ];
        let cases = [
            ("read", vec!["Read"]),
            ("ReadFile", vec!["Read"]),
            ("Gerp", vec!["Grep"]),
            ("Teleport", vec![]),
        ];
        for (wanted, expected) in cases {
            let found = similar_names(wanted, all, 1);
            assert_eq!(found, expected, "{wanted}");
        }
    }
}
