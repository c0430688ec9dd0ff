//! Sessions in one process share it: below the binary, nothing changes it or goes by its directory.

use crate::sources::SourceFile;

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

#[test]
fn only_the_binary_owns_the_process() {
    let files = SourceFile::all("src");
    let mut problems = Vec::new();
    for file in &files {
        for (number, line) in file.code() {
            for word in FORBIDDEN {
                let is_fine = FINE.iter().any(|(place, what, _)| {
                    file.path.starts_with(place) && (what.is_empty() || *what == word)
                });
                if line.contains(word) && !is_fine {
                    problems.push(format!("{}:{number}: {word}", file.path));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
