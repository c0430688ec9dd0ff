//! The words of what people and models read, and of what a library says.

use std::{collections::BTreeSet, fs, path::Path};

use regex::{Regex, RegexSet};
use tempfile::tempdir;

use crate::{
    binary::{haft, run},
    sources::SourceFile,
};

/// Phrases that readers stumble over: a regular expression and the plain words, separated by a tab.
const DIALECT: &str = include_str!("dialect.tsv");

/// The places where such a phrase is right: a path and the phrase, separated by a tab.
const ALLOWED: &str = include_str!("dialect_allowed.tsv");

/// Flags of ours that other programs have, too.
const COMMON: [&str; 4] = ["--help", "--version", "--verbose", "--debug"];

/// Where a library may name a flag: the beginning of a path, and why.
const MAY_NAME_FLAGS: [(&str, &str); 11] = [
    ("crates/cli/", "flags are its own"),
    ("crates/testkit/", "for tests only"),
    ("crates/shell/", "flags of other programs"),
    ("crates/tools/src/worktree/", "flags of git"),
    (
        "crates/sandbox/src/child/bubblewrap.rs",
        "flags of another program",
    ),
    (
        "crates/engine/src/pipeline/denial.rs",
        "only where the session was made from flags",
    ),
    (
        "crates/host/src/model_names.rs",
        "only where the session was made from flags",
    ),
    (
        "crates/host/src/session.rs",
        "only where the session was made from flags",
    ),
    (
        "crates/hooks/src/reference.rs",
        "a page of the binary's help",
    ),
    (
        "crates/settings/src/reference.rs",
        "a page of the binary's help",
    ),
    (
        "crates/agent/src/transcript/sessions.rs",
        "SDKs look for this text",
    ),
];

/// Finds dialect in comments, texts and documents.
struct DialectChecker {
    any: RegexSet,
    each: Vec<(Regex, &'static str)>,
    allowed: BTreeSet<(&'static str, String)>,
}

impl DialectChecker {
    fn new() -> Self {
        let rows = DIALECT.lines().map(|row| row.split_once('\t').unwrap());
        let each: Vec<_> = rows
            .map(|(pattern, plain)| (Regex::new(pattern).unwrap(), plain))
            .collect();
        let allowed = ALLOWED.lines().map(|row| {
            let (path, phrase) = row.split_once('\t').unwrap();
            (path, phrase.to_lowercase())
        });
        Self {
            any: RegexSet::new(each.iter().map(|(pattern, _)| pattern.as_str())).unwrap(),
            allowed: allowed.collect(),
            each,
        }
    }

    /// Returns the phrases in `text` that are not allowed at `path`, each with its plain words.
    fn problems(&self, path: &str, text: &str) -> Vec<String> {
        let found = self.any.matches(text);
        let mut problems = Vec::new();
        for (pattern, plain) in found.iter().map(|index| &self.each[index]) {
            for found in pattern.find_iter(text) {
                let phrase = found.as_str();
                let lower = phrase.to_lowercase();
                // "It is no longer there", "there is no file".
                let is_plain = [
                    "is no longer",
                    "is no more",
                    "are no longer",
                    "was no longer",
                ]
                .contains(&lower.as_str())
                    || text[..found.start()].to_lowercase().ends_with("there ");
                if !is_plain && !self.allowed.contains(&(path, lower)) {
                    problems.push(format!("{path}: \"{phrase}\": say {plain}"));
                }
            }
        }
        problems
    }
}

#[test]
fn comments_texts_and_documents_are_in_plain_words() {
    let checker = DialectChecker::new();
    let mut problems = Vec::new();
    for file in SourceFile::all("src") {
        let strings = file.strings().into_iter().map(|(_, text)| text);
        // Names of files, users and the like are one word.
        let texts = strings.filter(|text| text.trim().contains(' '));
        for text in texts.chain(file.comments()) {
            problems.extend(checker.problems(&file.path, text));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ];
    let mut documents: Vec<_> = names.map(str::to_owned).into();
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        documents.push(format!("docs/{}", entry.unwrap().file_name().display()));
    }
    for name in documents {
        let text = fs::read_to_string(root.join(&name)).unwrap();
        // Every second part is code.
        for prose in text.split("\n```").step_by(2) {
            problems.extend(checker.problems(&name, prose));
        }
    }
    let help = "Where a phrase is right, add the path and the phrase to dialect_allowed.tsv.";
    assert!(problems.is_empty(), "{}\n{help}", problems.join("\n"));
}

#[test]
fn dialect_is_found() {
    let checker = DialectChecker::new();
    let found = |text| checker.problems("crates/cli/src/main.rs", text).len();
    assert_eq!(found("/// What was said."), 2);
    assert_eq!(found("A person is told of it."), 2);
    assert_eq!(found("The user is notified. It is no longer there."), 0);
}

/// What the binary prints for these words.
fn says(args: &[&str]) -> String {
    let dir = tempdir().unwrap();
    let ran = run(haft(dir.path()).args(args), b"");
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    ran.stdout
}

#[test]
fn help_and_descriptions_of_tools_are_in_plain_words() {
    let mut texts = vec![
        says(&["--help"]),
        says(&["-p", "--help"]),
        says(&["help", "options"]),
        says(&["tools", "--format", "anthropic"]),
        says(&["tools"]),
    ];
    let dir = tempdir().unwrap();
    let pages = dir.path().join("pages");
    says(&["man", pages.to_str().unwrap()]);
    for page in fs::read_dir(pages).unwrap() {
        texts.push(fs::read_to_string(page.unwrap().path()).unwrap());
    }
    let checker = DialectChecker::new();
    for text in texts {
        assert_eq!(checker.problems("help", &text), [""; 0], "{text}");
    }
}

#[test]
fn a_library_names_no_flag_of_the_command_line() {
    let help = says(&["-p", "--help"]) + &says(&["help", "options"]);
    let words = help.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
    let flags: BTreeSet<&str> = words
        .filter(|word| word.len() > 3 && word.starts_with("--") && !COMMON.contains(word))
        .collect();
    assert!(flags.contains("--permission-mode"), "{flags:?}");
    let mut problems = Vec::new();
    for file in SourceFile::all("src") {
        if MAY_NAME_FLAGS
            .iter()
            .any(|(place, _)| file.path.starts_with(place))
        {
            continue;
        }
        for (number, text) in file.strings() {
            let mut words =
                text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
            if let Some(flag) = words.find(|word| flags.contains(word)) {
                problems.push(format!("{}:{number}: {flag}", file.path));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
