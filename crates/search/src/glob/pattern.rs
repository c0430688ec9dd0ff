//! The meaning of a glob pattern, and the directory its search starts in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::SearchError;

const SPECIAL: [char; 5] = ['*', '?', '[', '{', '\\'];

/// On macOS and Windows, `README` and `readme` are the same file.
const CASE_INSENSITIVE: bool = cfg!(any(target_os = "macos", windows));

/// Splits a pattern into the directory to search and the rest. For an absolute pattern the
/// directory is its longest prefix without a wildcard; every leading `../` removes one directory
/// from `base`. The rest is a pattern for [`GlobQuery`](crate::GlobQuery), relative to the returned
/// base. A caller that checks which directories may be read must check the returned one.
pub fn split_pattern(pattern: &str, base: &Path) -> (PathBuf, String) {
    if Path::new(pattern).is_absolute() {
        let plain = pattern.find(SPECIAL).unwrap_or(pattern.len());
        let cut = pattern[..plain].rfind('/').map_or(0, |slash| slash + 1);
        // `./` keeps `/a/*.rs` from meaning `*.rs` at any depth below `/a`.
        return (
            PathBuf::from(&pattern[..cut]),
            format!("./{}", &pattern[cut..]),
        );
    }
    let (mut base, mut rest) = (base.to_path_buf(), pattern);
    let mut moved = false;
    loop {
        if let Some(after) = rest.strip_prefix("../") {
            base.pop();
            (rest, moved) = (after, true);
        } else if let (Some(after), true) =
            (rest.strip_prefix("./"), rest.starts_with("./../") || moved)
        {
            rest = after;
        } else {
            break;
        }
    }
    if moved {
        (base, format!("./{rest}"))
    } else {
        (base, pattern.to_owned())
    }
}

/// A pattern relative to the base of a walk.
#[derive(Clone, Debug)]
pub(super) struct GlobPattern {
    set: GlobSet,
    /// The directory names that every matching path starts with.
    fixed: Arc<[String]>,
}

impl GlobPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, SearchError> {
        let glob = whole_path_glob(pattern);
        let invalid = |error: globset::Error| SearchError::InvalidGlob {
            glob: pattern.to_owned(),
            diagnostic: error.kind().to_string(),
        };
        let compiled = GlobBuilder::new(&glob)
            .literal_separator(true)
            .case_insensitive(CASE_INSENSITIVE)
            .build()
            .map_err(invalid)?;
        let set = GlobSetBuilder::new()
            .add(compiled)
            .build()
            .map_err(invalid)?;
        let plain = &glob[..glob.find(SPECIAL).unwrap_or(glob.len())];
        let directories = plain.rfind('/').map_or("", |slash| &plain[..slash]);
        let fixed = directories
            .split('/')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        Ok(Self { set, fixed })
    }

    /// Returns whether the pattern matches `path`, which is relative to the base.
    pub(super) fn fits(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }

    /// Returns false for an entry outside the pattern's fixed directory prefix, so `src/a/**` never
    /// lists the rest of the tree.
    ///
    /// `depth` is 1 for entries directly in the base.
    pub(super) fn may_lead_to(&self, depth: usize, name: &OsStr) -> bool {
        CASE_INSENSITIVE
            || depth
                .checked_sub(1)
                .and_then(|level| self.fixed.get(level))
                .is_none_or(|fixed| name == fixed.as_str())
    }
}

/// Rewrites a pattern so that it matches the whole path below the base.
fn whole_path_glob(pattern: &str) -> String {
    let mut rest = pattern;
    while let Some(after) = rest.strip_prefix("./") {
        rest = after.trim_start_matches('/');
    }
    let mut glob = if pattern.contains('/') {
        rest.to_owned()
    } else {
        format!("**/{rest}")
    };
    if glob.is_empty() || glob.ends_with('/') {
        // A directory is not a file; the pattern means the files in it.
        glob.push_str("**");
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_paths_below_the_base() {
        let cases = [
            // (pattern, path, fits)
            ("*.log", "a.log", true),
            ("*.log", "deep/down/a.log", true),
            ("./*.log", "a.log", true),
            ("./*.log", "deep/a.log", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/*.rs", "other/src/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/x/y/a.rs", true),
            ("**/*.rs", "a.rs", true),
            ("**/*", ".hidden", true),
            ("**", "x/y", true),
            ("src/**", "src/x/y", true),
            ("src/", "src/x/y", true),
            ("./src", "src", true),
            ("*.{rs,toml}", "x/Cargo.toml", true),
            ("{src,tests}/*.rs", "tests/a.rs", true),
            ("[ab]?.txt", "b1.txt", true),
            ("[!ab].txt", "a.txt", false),
            ("a b.txt", "x/a b.txt", true),
            (r"\*.txt", "*.txt", true),
            (r"\*.txt", "a.txt", false),
            ("*.RS", "a.rs", CASE_INSENSITIVE),
        ];
        for (pattern, path, fits) in cases {
            assert_eq!(
                GlobPattern::new(pattern).unwrap().fits(Path::new(path)),
                fits,
                "{pattern} on {path}"
            );
        }
    }

    #[test]
    fn the_fixed_directories_of_a_pattern_are_known() {
        let cases: [(&str, &[&str]); 6] = [
            ("*.rs", &[]),
            ("src/*.rs", &["src"]),
            ("./src/a/b.rs", &["src", "a"]),
            ("src/a*/b.rs", &["src"]),
            ("{src,tests}/x", &[]),
            ("src/", &["src"]),
        ];
        for (pattern, fixed) in cases {
            assert_eq!(
                GlobPattern::new(pattern).unwrap().fixed.as_ref(),
                fixed,
                "{pattern}"
            );
        }
    }

    #[test]
    fn the_place_to_look_is_split_off() {
        let cases = [
            // (pattern, base, rest), all from /home/repo
            ("*.rs", "/home/repo", "*.rs"),
            ("./a/*.rs", "/home/repo", "./a/*.rs"),
            ("/etc/*.conf", "/etc", "./*.conf"),
            ("/etc/ssh/**/*.conf", "/etc/ssh", "./**/*.conf"),
            ("/etc/hosts", "/etc", "./hosts"),
            ("/etc/", "/etc", "./"),
            ("/*.txt", "/", "./*.txt"),
            ("/et{c,x}/a", "/", "./et{c,x}/a"),
            ("../other/*.rs", "/home", "./other/*.rs"),
            ("../../*.rs", "/", "./*.rs"),
            ("./../x", "/home", "./x"),
        ];
        for (pattern, base, rest) in cases {
            let split = split_pattern(pattern, Path::new("/home/repo"));
            assert_eq!(split, (PathBuf::from(base), rest.to_owned()), "{pattern}");
        }
    }
}
