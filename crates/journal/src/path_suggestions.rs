//! Suggestions for a path that does not exist.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::unicode_spelling::looks_like;

const SUGGESTED: usize = 3;
const MAX_ENTRIES: usize = 20_000;
const MAX_DEPTH: usize = 8;
const NEVER_SEARCHED: &[&str] = &[".git", "node_modules", "target"];

/// Returns up to three existing paths similar to a missing one. Searches the same directory for
/// names with a different case, extension or a typing error, and otherwise everything below `root`
/// for files with the same name.
pub fn nearby(missing: &Path, root: Option<&Path>) -> Vec<PathBuf> {
    let Some(name) = missing.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let parent = match missing.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut found = in_directory(parent, name);
    if let Some(root) = root.filter(|_| found.is_empty()) {
        found = below(root, name);
    }
    // A dangling link exists, but its target is missing.
    found.retain(|path| path != missing);
    found
}

fn in_directory(directory: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut ranked: Vec<(usize, String)> = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|other| other != name)
        .filter_map(|other| Some((rank(name, &other)?, other)))
        .collect();
    ranked.sort_unstable();
    ranked
        .into_iter()
        .take(SUGGESTED)
        .map(|(_, name)| directory.join(name))
        .collect()
}

/// Returns a rank; smaller is more similar. `None` if the name is not similar.
fn rank(wanted: &str, other: &str) -> Option<usize> {
    if looks_like(wanted.as_ref(), other.as_ref()) {
        return Some(0);
    }
    let (wanted, other) = (wanted.to_lowercase(), other.to_lowercase());
    if wanted == other {
        return Some(0);
    }
    let stem = |name: &str| Path::new(name).file_stem().map(|stem| stem.to_os_string());
    if stem(&wanted) == stem(&other) {
        return Some(1);
    }
    let allowed = (wanted.chars().count() / 4).clamp(1, 4);
    distance(&wanted, &other, allowed).map(|distance| 1 + distance)
}

fn below(root: &Path, name: &str) -> Vec<PathBuf> {
    let wanted = name.to_lowercase();
    let mut found = Vec::new();
    let mut queue = VecDeque::from([(root.to_path_buf(), 0)]);
    let mut seen = 0;
    while let Some((directory, depth)) = queue.pop_front()
        && seen < MAX_ENTRIES
    {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.take(MAX_ENTRIES - seen).flatten() {
            seen += 1;
            let Ok(other) = entry.file_name().into_string() else {
                continue;
            };
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory {
                if depth < MAX_DEPTH && !NEVER_SEARCHED.contains(&other.as_str()) {
                    queue.push_back((entry.path(), depth + 1));
                }
            } else if other.to_lowercase() == wanted {
                found.push(entry.path());
            }
        }
    }
    found.sort_by_key(|path| (path.components().count(), path.clone()));
    found.truncate(SUGGESTED);
    found
}

/// Returns the number of insertions, deletions, replacements and swaps of adjacent characters
/// between two names; `None` if there are more than `limit`.
fn distance(left: &str, right: &str, limit: usize) -> Option<usize> {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if left.len().abs_diff(right.len()) > limit {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let differ = usize::from(left[i - 1] != right[j - 1]);
            let mut best = (last[j - 1] + differ).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        if row.iter().min().is_none_or(|&least| least > limit) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|&distance| distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_typing_errors() {
        let cases = [
            ("main.rs", "main.rs", 2, Some(0)),
            ("main.rs", "mian.rs", 2, Some(1)),
            ("config.toml", "conf.toml", 2, Some(2)),
            ("abc", "xyz", 2, None),
            ("short", "much longer", 2, None),
        ];
        for (left, right, limit, expected) in cases {
            assert_eq!(distance(left, right, limit), expected, "{left} {right}");
        }
    }

    #[test]
    fn the_same_directory_comes_first_then_the_same_name_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in ["src/deep", "node_modules", "docs"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in [
            "src/deep/parse.rs",
            "node_modules/parse.rs",
            "docs/README.md",
            "docs/guide.txt",
        ] {
            fs::write(root.join(path), "").unwrap();
        }
        std::os::unix::fs::symlink("gone", root.join("docs/stdin")).unwrap();
        let cases = [
            // (what it shows, missing, suggested)
            ("other case", "docs/readme.md", vec!["docs/README.md"]),
            ("other extension", "docs/guide.md", vec!["docs/guide.txt"]),
            ("typo", "docs/guied.txt", vec!["docs/guide.txt"]),
            (
                "elsewhere, not in node_modules",
                "lib/parse.rs",
                vec!["src/deep/parse.rs"],
            ),
            ("nothing alike", "docs/zebra", vec![]),
            ("a link that leads nowhere", "docs/stdin", vec![]),
        ];
        for (what, missing, suggested) in cases {
            let expected: Vec<_> = suggested.iter().map(|path| root.join(path)).collect();
            assert_eq!(nearby(&root.join(missing), Some(root)), expected, "{what}");
        }
    }
}
