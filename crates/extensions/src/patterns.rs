//! Which files a rule or a skill is for.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// No more patterns than this of one file, and none longer.
const MOST: usize = 200;
const LONGEST: usize = 1000;

/// Patterns of paths, below a directory.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    set: GlobSet,
    base: std::path::PathBuf,
}

impl Patterns {
    /// What cannot be read as a pattern fits nothing.
    pub(crate) fn new(patterns: &[String], base: &Path) -> Self {
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns.iter().take(MOST) {
            let pattern = pattern.trim().trim_start_matches("./");
            if pattern.is_empty() || pattern.len() > LONGEST {
                continue;
            }
            // `docs/` means what is in it.
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

    /// Is this file one of them?
    pub(crate) fn fit(&self, file: &Path) -> bool {
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
            Patterns::new(&list, Path::new("/p"))
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
                patterns(&[pattern]).fit(Path::new(file)),
                fits,
                "{pattern} {file}"
            );
        }
        assert!(patterns(&["[", "*.c"]).fit(Path::new("/p/x.c")));
    }
}
