//! The words of what people and models read, and of what a library says.

use std::{collections::BTreeSet, fs, path::Path};

use tempfile::tempdir;

use crate::{
    binary::{haft, run},
    sources::SourceFile,
};

/// Words that were common once, or that readers stumble over; and what to say instead.
const OLD: [(&str, &str); 13] = [
    ("given again", "repeatable"),
    ("laid in", "put in"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("nobody", "no one"),
    ("set off by", "separated by"),
    ("somebody", "someone"),
    ("summed up", "compacted"),
    ("tell of", "report"),
    ("tells of", "reports"),
    ("told of", "reported"),
    ("whoever", "the one who"),
    ("written down", "saved"),
];

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

fn old_words(text: &str) -> Vec<(&'static str, &'static str)> {
    let text = text.to_lowercase();
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let mut found = OLD.to_vec();
    found.retain(|(word, _)| {
        text.match_indices(word).any(|(at, _)| {
            !is_letter(text[..at].chars().next_back())
                && !is_letter(text[at + word.len()..].chars().next())
        })
    });
    found
}

#[test]
fn strings_and_documents_are_in_plain_words() {
    let mut problems = Vec::new();
    for file in SourceFile::all("src") {
        for (number, text) in file.strings() {
            // Names of files, users and the like are one word.
            let is_data = !text.trim().contains(' ');
            for (word, better) in old_words(text).iter().filter(|_| !is_data) {
                problems.push(format!("{}:{number}: {word}: say {better}", file.path));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = vec![
        "README.md".to_owned(),
        "ARCHITECTURE.md".to_owned(),
        "SECURITY.md".to_owned(),
    ];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        documents.push(format!("docs/{}", entry.unwrap().file_name().display()));
    }
    for name in documents {
        let text = fs::read_to_string(root.join(&name)).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            for (word, better) in old_words(line) {
                problems.push(format!("{name}:{number}: {word}: say {better}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
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
    for text in texts {
        assert_eq!(old_words(&text), [], "{text}");
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
