//! "Did you mean …": finds names similar to an unknown one.

/// The minimum similarity of a suggestion.
const ALIKE: f64 = 0.7;

/// Returns up to `most` names similar to `wanted`, the most similar first.
pub fn names<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut near: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    near.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    near.truncate(most);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Returns the similarity: detects typing errors, and names that contain each other (`ReadFile` for
/// `Read`).
fn likeness(wanted: &str, name: &str) -> f64 {
    let part =
        wanted.len() >= 3 && name.len() >= 3 && (wanted.contains(name) || name.contains(wanted));
    strsim::jaro_winkler(wanted, name).max(if part { 0.9 } else { 0.0 })
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
            let found = names(wanted, all, 1);
            assert_eq!(found, expected, "{wanted}");
        }
    }
}
