//! Sessions in one process share it: below the binary, nothing changes it or goes by its directory.

use std::{fs, path::Path};

/// What belongs to the process as a whole.
const FORBIDDEN: [&str; 9] = [
    "set_current_dir",
    "env::current_dir(",
    "env::set_var",
    "env::remove_var",
    "env::current_exe(",
    "signal::ctrl_c",
    "signal::unix",
    "panic::set_hook",
    "process::exit(",
];

/// Where such a word is right: the beginning of a path, the word, and why.
const FINE: [(&str, &str, &str); 7] = [
    ("crates/cli/", "", "the binary owns its process"),
    ("crates/testkit/", "", "for tests only"),
    ("crates/sandbox/src/child/", "", "a process of its own"),
    ("crates/pdf/src/child.rs", "", "a process of its own"),
    (
        "crates/sandbox/src/fork.rs",
        "env::remove_var",
        "for the beginning of `main`, which calls it",
    ),
    (
        "crates/sandbox/src/bin/",
        "process::exit(",
        "a process of its own",
    ),
    (
        "crates/sandbox/src/instance.rs",
        "signal::unix",
        "waits for children of its own, by the runtime's one handler",
    ),
];

fn walk(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn only_the_binary_owns_the_process() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = fs::canonicalize(root).unwrap();
    let mut files = Vec::new();
    for folder in fs::read_dir(root.join("crates")).unwrap() {
        let sources = folder.unwrap().path().join("src");
        if sources.is_dir() {
            walk(&sources, &mut files);
        }
    }
    assert!(files.len() > 100);
    let prefix = format!("{}/", root.display());
    let mut problems = Vec::new();
    for (path, text) in &files {
        let path = path.strip_prefix(&prefix).unwrap();
        // Tests beside the code come last in a file.
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        if path.ends_with("tests.rs") || path.contains("/second_languages/") {
            continue;
        }
        for (number, line) in (1..).zip(code.lines()) {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for word in FORBIDDEN {
                let is_fine = FINE.iter().any(|(place, what, _)| {
                    path.starts_with(place) && (what.is_empty() || *what == word)
                });
                if line.contains(word) && !is_fine {
                    problems.push(format!("{path}:{number}: {word}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
