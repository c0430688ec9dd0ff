//! No other way out in the code.

use std::{fs, path::Path};

/// What would write to a terminal past `show/screen.rs`, or let another program do it.
const FORBIDDEN: [&str; 16] = [
    " stdout()",
    " stderr()",
    "print!(",
    "println!(",
    "eprint!(",
    "eprintln!(",
    "dbg!(",
    "\"/dev/tty\"",
    "/proc/self/fd/1\"",
    "/proc/self/fd/2\"",
    "Stdio::inherit",
    "io::stderr",
    "io::stdout",
    "error.print()",
    "error.exit()",
    "get_matches()",
];

/// Where such a word stands for something else: the file, the word, and why.
const FINE: [(&str, &str, &str); 9] = [
    ("crates/cli/src/show/screen.rs", "", "it is the way out"),
    (
        "crates/cli/src/line_input.rs",
        "\"/dev/tty\"",
        "answers are read from there, and nothing is written",
    ),
    (
        "crates/pdf/src/child.rs",
        "io::stdout",
        "a process of its own, whose stdout is a pipe to us",
    ),
    (
        "crates/sandbox/src/child/keeper.rs",
        "/proc/self/fd/1\"",
        "it reads there what was laid out for it",
    ),
    (
        "crates/sandbox/src/child/mounts.rs",
        "/proc/self/fd/1\"",
        "links in the command's own /dev",
    ),
    (
        "crates/sandbox/src/child/mounts.rs",
        "/proc/self/fd/2\"",
        "links in the command's own /dev",
    ),
    (
        "crates/sandbox/src/child/confine.rs",
        "\"/dev/tty\"",
        "a list of devices that are hidden",
    ),
    (
        "crates/shell/src/walk/redirects.rs",
        "\"/dev/tty\"",
        "a list of what lines write to",
    ),
    (
        "crates/haft/src/lib.rs",
        "println!(",
        "an example in the documentation",
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
fn nothing_writes_to_a_terminal_but_the_screen() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = fs::canonicalize(root).unwrap();
    let mut files = Vec::new();
    for folder in fs::read_dir(root.join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        let is_product = !folder.ends_with("testkit");
        if is_product && folder.join("src").is_dir() {
            walk(&folder.join("src"), &mut files);
        }
    }
    assert!(files.len() > 100);
    let prefix = format!("{}/", root.display());
    let mut problems = Vec::new();
    for (path, text) in &files {
        let path = path.strip_prefix(&prefix).unwrap();
        // Tests beside the code come last in a file; documentation shows other programs.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        if path.ends_with("_tests.rs") || path.contains("/second_languages/") {
            continue;
        }
        for (number, line) in (1..).zip(code.lines()) {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for word in FORBIDDEN {
                let is_fine = FINE
                    .iter()
                    .any(|(file, what, _)| *file == path && (what.is_empty() || *what == word));
                if line.contains(word) && !is_fine {
                    problems.push(format!("{path}:{number}: {word}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
