//! The sources of the workspace, for tests that hold them to a rule.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A source file.
pub(crate) struct SourceFile {
    /// From the root of the workspace: `crates/cli/src/main.rs`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    /// Every file below a folder of each crate, such as `src`.
    pub(crate) fn all(folder: &str) -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = fs::canonicalize(root).unwrap();
        let mut files = Vec::new();
        for package in fs::read_dir(root.join("crates")).unwrap() {
            let mut folders = vec![package.unwrap().path().join(folder)];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).into_iter().flatten() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        folders.push(path);
                    } else if path.extension().is_some_and(|end| end == "rs") {
                        files.push(Self::read(&root, &path));
                    }
                }
            }
        }
        assert!(files.len() > 100, "the sources were not found: {root:?}");
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files
    }

    fn read(root: &Path, path: &PathBuf) -> Self {
        Self {
            path: path.strip_prefix(root).unwrap().display().to_string(),
            text: fs::read_to_string(path).unwrap(),
        }
    }

    /// Which crate it belongs to.
    pub(crate) fn package(&self) -> &str {
        self.path.split('/').nth(1).unwrap()
    }

    /// Is it nothing but tests?
    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("tests.rs")
    }

    /// Does it name words of other languages, which mean nothing here?
    fn is_of_other_languages(&self) -> bool {
        self.path.contains("/second_languages/")
    }

    /// Where the tests beside the code begin; they come last in a file.
    fn tests_at(&self) -> usize {
        let at = self.text.find("#[cfg(test)]\nmod tests {");
        at.unwrap_or(self.text.len())
    }

    /// The tests in it.
    pub(crate) fn tests(&self) -> &str {
        match self.is_test() {
            true => &self.text,
            false => &self.text[self.tests_at()..],
        }
    }

    /// The string literals of the code with the numbers of their lines, without those of tests.
    pub(crate) fn strings(&self) -> Vec<(usize, &str)> {
        let end = if self.is_test() { 0 } else { self.tests_at() };
        strings_and_comments(&self.text[..end]).0
    }

    /// The comments outside of tests, one per line.
    pub(crate) fn comments(&self) -> Vec<&str> {
        let end = if self.is_test() { 0 } else { self.tests_at() };
        strings_and_comments(&self.text[..end]).1
    }

    /// The lines of code with their numbers, without tests and comments; none of a file of tests.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let has_none = self.is_test() || self.is_of_other_languages();
        let end = if has_none { 0 } else { self.tests_at() };
        let lines = (1..).zip(self.text[..end].lines());
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

/// The string literals of a source, as written between their quotes, with the numbers of their first lines; and
/// its line comments.
fn strings_and_comments(source: &str) -> (Vec<(usize, &str)>, Vec<&str>) {
    let (mut found, mut comments) = (Vec::new(), Vec::new());
    let (mut at, mut line) = (0, 1);
    while let Some(letter) = source[at..].chars().next() {
        let rest = &source[at..];
        let hashes = raw_string(rest);
        let end = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            comments.push(&rest[..end]);
            end
        } else if let Some(hashes) = hashes {
            let start = hashes + 2;
            let close = format!("\"{}", "#".repeat(hashes));
            let length = rest[start..].find(&close).unwrap_or(rest.len() - start);
            found.push((line, &rest[start..start + length]));
            start + length + close.len()
        } else if letter == '"' {
            let length = string_length(&rest[1..]);
            found.push((line, &rest[1..=length]));
            length + 2
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            // A quote that begins nothing.
            rest[1..].find('\'').map_or(1, |end| end + 2)
        } else {
            letter.len_utf8()
        };
        let end = end.min(rest.len());
        line += rest[..end].matches('\n').count();
        at += end;
    }
    (found, comments)
}

/// The number of hashes of the raw string that begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// How long a string is whose opening quote is behind us.
fn string_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    rest.len()
}

#[test]
fn strings_and_comments_are_found() {
    let source = concat!(
        "let a = \"one \\\" two\"; // \"no\"\n",
        "let b = ('\"', \"three\n four\", r#\"five \" six\"#);\n",
        "let for_ever = \"seven\";"
    );
    let (strings, comments) = strings_and_comments(source);
    assert_eq!(
        strings,
        [
            (1, "one \\\" two"),
            (2, "three\n four"),
            (3, "five \" six"),
            (4, "seven")
        ]
    );
    assert_eq!(comments, ["// \"no\""]);
}
