//! The request of a grep.

use std::path::PathBuf;

use crate::Exclusions;

/// One search. [`GrepQuery::new`] requests the matching files; set the fields for anything else.
#[derive(Clone, Debug)]
pub struct GrepQuery {
    /// A regular expression in Rust syntax.
    pub pattern: String,
    /// The absolute path of the file or directory to search. A file is searched even if an ignore
    /// file excludes it.
    pub path: PathBuf,
    /// The real path that the permission check resolved `path` to, if it did. The search fails if
    /// `path` now resolves to another path.
    pub authorized_path: Option<PathBuf>,
    /// The directory that globs with a `/` are relative to (the session's directory); ripgrep uses
    /// its current directory.
    pub current_dir: PathBuf,
    /// Like ripgrep's `-g`: `!` excludes, the last match wins, and an included file is searched
    /// even if it is ignored.
    pub globs: Vec<String>,
    /// Like ripgrep's `-t`.
    pub file_type: Option<String>,
    /// The kind of rows in the result.
    pub mode: GrepMode,
    /// Upper and lower case are treated as the same.
    pub case_insensitive: bool,
    /// A match may span lines, and `.` matches a line end.
    pub multiline: bool,
    /// The maximum number of rows to return after `offset`; `None` for all.
    pub head_limit: Option<usize>,
    /// The number of rows to skip first.
    pub offset: usize,
    /// Files and directories that the search must not read.
    pub leave_out: Exclusions,
}

/// The kind of rows in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrepMode {
    /// Lines, with context lines around them and a break between groups; each of these is a row.
    Content {
        /// The maximum number of context lines before each match.
        before: usize,
        /// The maximum number of context lines after each match.
        after: usize,
        /// Only the part of a line that matches.
        only_matching: bool,
    },
    /// Paths, newest first.
    FilesWithMatches,
    /// Paths in order, each with the number of matching lines (in multiline mode, of matches).
    Count,
}

impl GrepQuery {
    /// Requests the matching files below `path`, or `path` itself if it is a matching file.
    pub fn new(pattern: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            pattern: pattern.into(),
            current_dir: path.clone(),
            path,
            authorized_path: None,
            globs: Vec::new(),
            file_type: None,
            mode: GrepMode::FilesWithMatches,
            case_insensitive: false,
            multiline: false,
            head_limit: None,
            offset: 0,
            leave_out: Exclusions::default(),
        }
    }

    pub(super) fn has_context(&self) -> bool {
        matches!(self.mode, GrepMode::Content { before, after, .. } if before > 0 || after > 0)
    }
}

/// Splits a list of globs at whitespace and commas. Neither splits inside braces or after a
/// backslash, so `*.{ts,tsx} !my\ file` is two globs.
pub fn split_globs(list: &str) -> Vec<String> {
    let mut globs = vec![String::new()];
    let mut depth = 0_usize;
    let mut characters = list.chars();
    while let Some(character) = characters.next() {
        let splits = depth == 0 && (character == ',' || character.is_whitespace());
        match character {
            _ if splits => globs.push(String::new()),
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let (false, Some(last)) = (splits, globs.last_mut()) {
            last.push(character);
            if character == '\\' {
                last.extend(characters.next());
            }
        }
    }
    globs.retain(|glob| !glob.is_empty());
    globs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_lists_split_at_blanks_and_commas_outside_braces() {
        let cases: [(&str, &[&str]); 9] = [
            ("", &[]),
            (" , ,", &[]),
            ("*.rs", &["*.rs"]),
            ("*.rs *.toml", &["*.rs", "*.toml"]),
            ("*.rs,*.toml", &["*.rs", "*.toml"]),
            ("*.rs,\t!target/** ", &["*.rs", "!target/**"]),
            ("*.{ts,tsx},*.js", &["*.{ts,tsx}", "*.js"]),
            ("{a,{b,c}}/* d", &["{a,{b,c}}/*", "d"]),
            (r"my\ file,x", &[r"my\ file", "x"]),
        ];
        for (list, globs) in cases {
            assert_eq!(split_globs(list), globs, "{list:?}");
        }
    }
}
