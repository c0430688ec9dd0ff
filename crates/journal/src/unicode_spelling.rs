//! Names that look equal but differ: composed and decomposed letters (macOS writes the latter), and
//! the no-break space that macOS puts into the names of screenshots.
//!
//! A model cannot see the difference and writes the usual characters.

use std::fs;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

const MAX_ENTRIES: usize = 20_000;
/// The maximum number of candidates. With more it is unclear which one was meant.
const MAX_BRANCHES: usize = 8;

/// Returns the one existing path that looks like a missing one but has other characters of this
/// kind.
///
/// `None` if no path or more than one matches. Every part of the path may differ; a part that
/// exists as given is used unchanged.
pub fn respelt(missing: &Path) -> Option<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in missing.components() {
        found = found
            .iter()
            .flat_map(|base| candidates(base, part))
            .collect();
        if found.len() > MAX_BRANCHES {
            return None;
        }
    }
    match <[PathBuf; 1]>::try_from(found) {
        Ok([only]) if only != missing => Some(only),
        _ => None,
    }
}

/// Returns whether two paths are equal apart from these characters.
pub fn looks_like(left: &Path, right: &Path) -> bool {
    match (left.to_str(), right.to_str()) {
        (Some(left), Some(right)) => usual(left) == usual(right),
        _ => false,
    }
}

fn candidates(base: &Path, part: Component<'_>) -> Vec<PathBuf> {
    let exact = base.join(part);
    let Component::Normal(name) = part else {
        return vec![exact];
    };
    if fs::symlink_metadata(&exact).is_ok() {
        return vec![exact];
    }
    let (Some(name), Ok(entries)) = (name.to_str(), fs::read_dir(base)) else {
        return Vec::new();
    };
    let wanted = usual(name);
    let names = entries
        .take(MAX_ENTRIES)
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let alike = names.filter(|other| usual(other) == wanted);
    alike.map(|other| base.join(other)).collect()
}

/// Replaces these characters of a name by the usual ones.
fn usual(name: &str) -> String {
    let spaced = name.chars().map(|character| match character {
        '\u{a0}' | '\u{202f}' => ' ',
        other => other,
    });
    spaced.nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_look_alike_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let put = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        put("cafe\u{301}.txt");
        put("Shot at 10.30\u{202f}AM.png");
        put("re\u{301}sume\u{301}/na\u{ef}ve.txt");
        put("two\u{a0}words");
        put("two\u{202f}words");
        put("plain.txt");
        let cases = [
            // (what it shows, missing, found)
            ("NFC for NFD", "caf\u{e9}.txt", Some("cafe\u{301}.txt")),
            (
                "space for a no-break space",
                "Shot at 10.30 AM.png",
                Some("Shot at 10.30\u{202f}AM.png"),
            ),
            (
                "in a directory, and NFD for NFC",
                "r\u{e9}sum\u{e9}/nai\u{308}ve.txt",
                Some("re\u{301}sume\u{301}/na\u{ef}ve.txt"),
            ),
            ("two of them", "two words", None),
            ("exists", "plain.txt", None),
            ("another letter", "cafe.txt", None),
            ("another case", "Plain.txt", None),
            ("below a file", "cafe\u{301}.txt/x", None),
        ];
        for (what, missing, found) in cases {
            let expected = found.map(|name| root.join(name));
            assert_eq!(respelt(&root.join(missing)), expected, "{what}");
        }
        assert!(looks_like(
            Path::new("/a/two\u{a0}words"),
            Path::new("/a/two words")
        ));
        assert!(!looks_like(Path::new("/a"), Path::new("/b")));
    }
}
