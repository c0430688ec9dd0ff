//! Path patterns of rules and skills.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The maximum number of patterns; `MAX_LENGTH` is the maximum length of one.
const MAX_COUNT: usize = 200;
const MAX_LENGTH: usize = 1000;

/// Path patterns relative to a directory.
#[derive(Debug, Clone)]
pub(crate) struct PathPatterns {
    set: GlobSet,
    base: std::path::PathBuf,
}

impl PathPatterns {
    /// Compiles patterns; invalid ones match nothing.
    pub(crate) fn new(patterns: &[String], base: &Path) -> Self {
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns.iter().take(MAX_COUNT) {
            let pattern = pattern.trim().trim_start_matches("./");
            if pattern.is_empty() || pattern.len() > MAX_LENGTH {
                continue;
            }
            // `docs/` means everything inside it.
            let pattern = match pattern.strip_suffix('/') {
                Some(folder) => format!("{folder}/**"),
                None => pattern.to_owned(),
            };
            let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
            if let Ok(glob) = glob {
                builder.add(glob);
            }
        }
        Self {
            set: builder.build().unwrap_or_else(|_| GlobSet::empty()),
            base: base.to_path_buf(),
        }
    }

    /// Returns whether a file matches one of the patterns.
    pub(crate) fn is_match(&self, file: &Path) -> bool {
        match file.strip_prefix(&self.base) {
            Ok(below) => self.set.is_match(below) || self.set.is_match(file),
            Err(_) => self.set.is_match(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_start_at_their_base() {
        let patterns = |text: &[&str]| {
            let list: Vec<String> = text.iter().map(|text| (*text).to_owned()).collect();
            PathPatterns::new(&list, Path::new("/p"))
        };
        for (pattern, file, fits) in [
            ("src/**/*.ts", "/p/src/a/b.ts", true),
            ("src/**/*.ts", "/p/src/b.ts", true),
            ("src/**/*.ts", "/other/src/b.ts", false),
            ("*.md", "/p/a.md", true),
            ("*.md", "/p/docs/a.md", false),
            ("**/*.{ts,tsx}", "/p/x/a.tsx", true),
            ("docs/", "/p/docs/x/y", true),
            ("./a.rs", "/p/a.rs", true),
            ("/abs/*.c", "/abs/x.c", true),
            ("[", "/p/[", false),
        ] {
            assert_eq!(
                patterns(&[pattern]).is_match(Path::new(file)),
                fits,
                "{pattern} {file}"
            );
        }
        assert!(patterns(&["[", "*.c"]).is_match(Path::new("/p/x.c")));
    }
}
