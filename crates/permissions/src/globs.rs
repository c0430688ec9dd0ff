//! Resolves patterns of file names on disk, as bash does before it starts a command.
//!
//! A quoted bracket or star cannot be distinguished from an unquoted one, so both meanings apply. A
//! pattern that needs more than a bounded scan is unknown.

use std::{ffi::OsStr, fs, path::PathBuf};

use super::TouchedPath;
use haft_settings::real_path;

/// The maximum number of files that a pattern may match.
const MAX_MATCHES: usize = 1_000;

/// The maximum number of directory entries that are read for a pattern.
const MAX_VISITED: usize = 20_000;

/// Returns the files that a pattern matches in these directories; empty if it matches none. Returns
/// `None` if they are unknown.
pub(super) fn expand_on_disk(pattern: &str, cwd: Option<&[PathBuf]>) -> Option<Vec<TouchedPath>> {
    // With the shell option `globstar`, `**` matches at any depth.
    if pattern.contains("**") {
        return None;
    }
    let starts: Vec<PathBuf> = if pattern.starts_with('/') {
        vec![PathBuf::from("/")]
    } else {
        cwd?.to_vec()
    };
    let mut found: Vec<TouchedPath> = starts.iter().map(|start| TouchedPath::new(start)).collect();
    let mut seen = 0;
    for part in pattern
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        let mut next = Vec::new();
        for place in found {
            if is_pattern(part) {
                for entry in fs::read_dir(&place.real).into_iter().flatten() {
                    seen += 1;
                    let entry = entry.ok()?;
                    if seen > MAX_VISITED || next.len() > MAX_MATCHES {
                        return None;
                    }
                    let name = entry.file_name();
                    let is_link = entry.file_type().ok()?.is_symlink();
                    // With the shell option `dotglob`, a star also matches names with a leading
                    // dot. Links with such names are included, because they may lead anywhere.
                    if !fits(part, &name) || (!is_link && is_dotted(&name) && !means_dots(part)) {
                        continue;
                    }
                    next.push(below(&place, &name, is_link));
                }
            } else {
                let name = OsStr::new(part);
                let there = fs::symlink_metadata(place.real.join(name));
                // A file that cannot be inspected may still exist.
                let is_link = there.map_or(true, |there| there.is_symlink());
                next.push(below(&place, name, is_link || part == ".."));
            }
        }
        found = next;
    }
    found.retain(|touched| fs::symlink_metadata(&touched.real).is_ok());
    Some(found)
}

fn below(place: &TouchedPath, name: &OsStr, is_link: bool) -> TouchedPath {
    let real = place.real.join(name);
    TouchedPath {
        given: real_path::normalize(&place.given.join(name)),
        real: if is_link {
            real_path::resolve_links(&real)
        } else {
            real
        },
        controls_repository: false,
    }
}

fn is_pattern(part: &str) -> bool {
    part.contains(['*', '?', '['])
}

/// Returns whether the name begins with a dot. Usually only a pattern with a leading dot matches
/// it.
fn is_dotted(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.')
}

fn means_dots(pattern: &str) -> bool {
    pattern.starts_with(['.', '[', '\\'])
}

/// Returns whether a name matches a pattern.
fn fits(pattern: &str, name: &OsStr) -> bool {
    let name: Vec<char> = name.to_string_lossy().chars().collect();
    matches(&pieces(pattern, true), &name) || matches(&pieces(pattern, false), &name)
}

/// A token of a pattern.
enum GlobToken {
    /// Any text.
    Star,
    /// Any character.
    One,
    /// This character.
    Plain(char),
    /// A character in these ranges, or outside them. Matches both cases of a letter, as in some
    /// locales.
    Set {
        ranges: Vec<(char, char)>,
        none: bool,
    },
}

impl GlobToken {
    fn fits(&self, letter: char) -> bool {
        match self {
            Self::Star => false,
            Self::One => true,
            Self::Plain(own) => *own == letter,
            Self::Set { ranges, none } => {
                let cases = [
                    letter,
                    letter.to_ascii_lowercase(),
                    letter.to_ascii_uppercase(),
                ];
                let holds = |letter: &char| {
                    ranges
                        .iter()
                        .any(|(from, to)| (from..=to).contains(&letter))
                };
                if *none {
                    !holds(&letter)
                } else {
                    cases.iter().any(holds)
                }
            }
        }
    }
}

fn pieces(pattern: &str, brackets: bool) -> Vec<GlobToken> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        if brackets
            && letter == '['
            && let Some((set, behind)) = set(&rest[1..])
        {
            pieces.push(set);
            rest = behind;
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        pieces.push(match letter {
            '*' => GlobToken::Star,
            '?' => GlobToken::One,
            letter => GlobToken::Plain(letter),
        });
    }
    pieces
}

/// Parses a set after its opening bracket. Returns it and the text after the closing bracket.
fn set(text: &str) -> Option<(GlobToken, &str)> {
    let inner = text.strip_prefix(['!', '^']);
    let (none, inner) = (inner.is_some(), inner.unwrap_or(text));
    // A closing bracket at the beginning is one of the characters.
    let first = inner.chars().next()?.len_utf8();
    let end = first + inner.get(first..)?.find(']')?;
    let behind = &inner[end + 1..];
    // A class such as `[[:alpha:]]` matches any character.
    if inner[..end].contains("[:") {
        return Some((GlobToken::One, behind.strip_prefix(']').unwrap_or(behind)));
    }
    let letters: Vec<char> = inner[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        if letters.get(at + 1) == Some(&'-') && at + 2 < letters.len() {
            ranges.push((letters[at], letters[at + 2]));
            at += 3;
        } else {
            ranges.push((letters[at], letters[at]));
            at += 1;
        }
    }
    Some((GlobToken::Set { ranges, none }, behind))
}

fn matches(pattern: &[GlobToken], name: &[char]) -> bool {
    // Only the last star ever needs to match more.
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < name.len() {
        match pattern.get(at) {
            Some(GlobToken::Star) => {
                star = Some((at, from));
                at += 1;
            }
            Some(piece) if piece.fits(name[from]) => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((back, began)) => {
                    star = Some((back, began + 1));
                    at = back + 1;
                    from = began + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..]
        .iter()
        .all(|piece| matches!(piece, GlobToken::Star))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, path::Path};

    use super::*;

    /// As pairs of names below a directory.
    fn names(found: Option<Vec<TouchedPath>>, root: &Path) -> Option<Vec<(String, String)>> {
        let shown = |path: &Path| match path.strip_prefix(root) {
            Ok(inside) => inside.display().to_string(),
            Err(_) => path.display().to_string(),
        };
        let mut names: Vec<_> = found?
            .iter()
            .map(|touched| (shown(&touched.given), shown(&touched.real)))
            .collect();
        names.sort_unstable();
        Some(names)
    }

    #[test]
    fn patterns_become_the_files_that_are_there_links_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for file in [
            "w/a.md",
            "w/b.md",
            "w/.c.md",
            "w/sub/x.rs",
            "keys/id_rsa",
            "w/[1].txt",
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        symlink(root.join("keys"), root.join("w/link")).unwrap();
        symlink("../keys/id_rsa", root.join("w/note.md")).unwrap();
        let cwd = [root.join("w")];
        let found = |pattern: &str| {
            let found = names(expand_on_disk(pattern, Some(&cwd)), &root).unwrap();
            let texts = found.iter().map(|(given, real)| match given == real {
                true => given.clone(),
                false => format!("{given} > {real}"),
            });
            texts.collect::<Vec<_>>().join(", ")
        };
        let cases = [
            ("*.md", "w/a.md, w/b.md, w/note.md > keys/id_rsa"),
            (".*.md", "w/.c.md"),
            ("[!a].md", "w/b.md"),
            ("[[:alpha:]].md", "w/a.md, w/b.md"),
            ("[a-b].md", "w/a.md, w/b.md"),
            ("[ab].md", "w/a.md, w/b.md"),
            ("l*/id_rsa", "w/link/id_rsa > keys/id_rsa"),
            ("link/*", "w/link/id_rsa > keys/id_rsa"),
            ("./link/id?rsa", "w/link/id_rsa > keys/id_rsa"),
            ("sub/../*/id_rsa", "w/link/id_rsa > keys/id_rsa"),
            ("l*/../keys/*", "w/keys/id_rsa > keys/id_rsa"),
            ("*.none", ""),
            ("a.md/*", ""),
            ("[1].t*", "w/[1].txt"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(found(pattern), expected, "{pattern}");
        }
        let absolute = format!("{}/k*/id*", root.display());
        assert_eq!(found(&absolute), "keys/id_rsa");
        assert_eq!(expand_on_disk("**/x", Some(&cwd)), None);
        assert_eq!(expand_on_disk("*", None), None);
    }

    #[test]
    fn too_many_files_cannot_be_told() {
        let dir = tempfile::tempdir().unwrap();
        for at in 0..=MAX_MATCHES + 1 {
            fs::write(dir.path().join(format!("{at}")), "").unwrap();
        }
        assert_eq!(expand_on_disk("*", Some(&[dir.path().to_path_buf()])), None);
    }
}
