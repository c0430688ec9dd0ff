//! What a grep asks for.

use std::path::PathBuf;

use crate::LeaveOut;

/// One search. [`GrepQuery::new`] asks for the matching files; set the fields for anything else.
#[derive(Clone, Debug)]
pub struct GrepQuery {
    /// A regular expression in Rust syntax.
    pub pattern: String,
    /// Absolute path of the file or directory to search. A file is searched even if an ignore file
    /// names it.
    pub path: PathBuf,
    /// Where that path led when the search was permitted, if that was judged: it must lead there.
    pub judged: Option<PathBuf>,
    /// What globs with a `/` are relative to (the session's directory); ripgrep's current
    /// directory.
    pub current_dir: PathBuf,
    /// As ripgrep's `-g`: `!` excludes, the last match wins, and an included file is searched
    /// although ignored.
    pub globs: Vec<String>,
    /// As ripgrep's `-t`.
    pub file_type: Option<String>,
    /// What a row of the answer is.
    pub mode: GrepMode,
    /// Upper and lower case are the same.
    pub case_insensitive: bool,
    /// A match may span lines, and `.` matches a line end.
    pub multiline: bool,
    /// How many rows to give after `offset`; `None` is all.
    pub head_limit: Option<usize>,
    /// How many rows to leave out first.
    pub offset: usize,
    /// What must not be looked at.
    pub leave_out: LeaveOut,
}

/// What a row of the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrepMode {
    /// Lines, with context lines around them and a break between groups; every one of these counts
    /// as a row.
    Content {
        /// At most this many lines before each match.
        before: usize,
        /// At most this many lines after it.
        after: usize,
        /// Only the part of a line that matches.
        only_matching: bool,
    },
    /// Paths, newest first.
    FilesWithMatches,
    /// Paths in order, each with its number of matching lines (of matches, in multiline mode).
    Count,
}

impl GrepQuery {
    /// Lines below `path`, or in it, that the pattern matches.
    pub fn new(pattern: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            pattern: pattern.into(),
            current_dir: path.clone(),
            path,
            judged: None,
            globs: Vec::new(),
            file_type: None,
            mode: GrepMode::FilesWithMatches,
            case_insensitive: false,
            multiline: false,
            head_limit: None,
            offset: 0,
            leave_out: LeaveOut::default(),
        }
    }

    pub(super) fn has_context(&self) -> bool {
        matches!(self.mode, GrepMode::Content { before, after, .. } if before > 0 || after > 0)
    }
}

/// Takes a list of globs apart at blanks and commas. Neither splits inside braces or after a
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
