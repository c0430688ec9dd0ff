//! No other way out in the code.

use crate::sources::SourceFile;

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
const FINE: [(&str, &str, &str); 17] = [
    ("crates/cli/src/show/screen.rs", "", "it is the way out"),
    (
        "crates/cli/src/line_input.rs",
        "\"/dev/tty\"",
        "answers are read from there, and nothing is written",
    ),
    (
        "crates/cli/src/tui/guard.rs",
        "io::stdout",
        "a process of its own that restores the terminal",
    ),
    (
        "crates/cli/src/tui/mod.rs",
        "\"/dev/tty\"",
        "the terminal of a session; only lines that are clean are painted on it",
    ),
    (
        "crates/cli/src/modes/acp.rs",
        " stdout()",
        "messages to an editor; a terminal is refused",
    ),
    (
        "crates/cli/src/modes/acp.rs",
        "io::stdout",
        "messages to an editor; a terminal is refused",
    ),
    (
        "crates/cli/src/stdio.rs",
        "io::stdout",
        "messages to a program: only a pipe is taken",
    ),
    (
        "crates/cli/src/modes/mcp/serve.rs",
        " stdout()",
        "messages to a client; a terminal is refused",
    ),
    (
        "crates/cli/src/modes/mcp/serve.rs",
        "io::stdout",
        "messages to a client; a terminal is refused",
    ),
    (
        "crates/sandbox/src/child/server_guard.rs",
        "io::stderr",
        "a process of its own, whose stderr is a pipe to us",
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

#[test]
fn nothing_writes_to_a_terminal_but_the_screen() {
    let files = SourceFile::all("src");
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.package() != "testkit") {
        for (number, line) in file.code() {
            for word in FORBIDDEN {
                let is_fine = FINE.iter().any(|(path, what, _)| {
                    *path == file.path && (what.is_empty() || *what == word)
                });
                if line.contains(word) && !is_fine {
                    problems.push(format!("{}:{number}: {word}", file.path));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
