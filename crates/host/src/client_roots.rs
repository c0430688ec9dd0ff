//! The directories that an MCP client reports as its roots. They narrow the directories that the
//! user who started haft permitted, and never widen them.

use std::path::{Path, PathBuf};

/// The directories in which a session works.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NarrowedRoots {
    /// The directories, in the order of the client's roots; empty if all of them are refused.
    pub(crate) directories: Vec<PathBuf>,
    /// Roots that are not permitted.
    pub(crate) refused: Vec<PathBuf>,
}

/// Returns the part of the permitted directories that the client's roots cover. If a root is inside
/// a permitted directory, the root is used; if it contains a permitted directory, that directory is
/// used. Symlinks are resolved before the comparison.
pub(crate) fn narrow_roots(permitted: &[PathBuf], roots: &[PathBuf]) -> NarrowedRoots {
    let permitted: Vec<(&PathBuf, PathBuf)> = permitted
        .iter()
        .filter_map(|directory| Some((directory, real_directory(directory)?)))
        .collect();
    let mut narrowed = NarrowedRoots {
        directories: Vec::new(),
        refused: Vec::new(),
    };
    for root in roots {
        let Some(real) = real_directory(root) else {
            narrowed.refused.push(root.clone());
            continue;
        };
        let mut found = Vec::new();
        for (given, permitted) in &permitted {
            if real == *permitted || permitted.starts_with(&real) {
                found.push((*given).clone());
            } else if real.starts_with(permitted) {
                found.push(real.clone());
            }
        }
        if found.is_empty() {
            narrowed.refused.push(root.clone());
        }
        for directory in found {
            if !narrowed.directories.contains(&directory) {
                narrowed.directories.push(directory);
            }
        }
    }
    narrowed
}

fn real_directory(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    (path.is_absolute() && real.is_dir()).then_some(real)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn roots_narrow_and_never_widen() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for name in ["p/a/deep", "p/b", "more", "other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("p/file"), "").unwrap();
        symlink(at("other"), at("p/out")).unwrap();
        symlink(at("p/a"), at("in")).unwrap();
        let permitted = [at("p"), at("more")];
        type Names = &'static [&'static str];
        let cases: [(&str, Names, Names, Names); 11] = [
            ("the same", &["p"], &["p"], &[]),
            ("one below", &["p/a"], &["p/a"], &[]),
            ("two", &["p/b", "p/a/deep"], &["p/b", "p/a/deep"], &[]),
            ("the other one", &["more"], &["more"], &[]),
            ("around both", &[""], &["p", "more"], &[]),
            ("elsewhere", &["other"], &[], &["other"]),
            ("some elsewhere", &["other", "p/b"], &["p/b"], &["other"]),
            ("a link that leads out", &["p/out"], &[], &["p/out"]),
            ("a link that leads in", &["in"], &["p/a"], &[]),
            (
                "no directory",
                &["p/file", "p/gone"],
                &[],
                &["p/file", "p/gone"],
            ),
            ("with dots", &["p/../other"], &[], &["p/../other"]),
        ];
        let paths = |names: &[&str]| -> Vec<PathBuf> {
            let joined = names.iter().map(|name| match *name {
                "" => root.clone(),
                name => at(name),
            });
            joined.collect()
        };
        for (what, roots, directories, refused) in cases {
            let expected = NarrowedRoots {
                directories: paths(directories),
                refused: paths(refused),
            };
            assert_eq!(narrow_roots(&permitted, &paths(roots)), expected, "{what}");
        }
        assert!(
            narrow_roots(&permitted, &["p".into()])
                .directories
                .is_empty()
        );
    }
}
