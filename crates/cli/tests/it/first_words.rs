//! What people type first, and what a script holds open.

use std::{
    io::Read,
    process::{Command, Stdio},
};

use serde_json::json;
use tempfile::tempdir;

use crate::binary::{haft, run};

/// One that would ask a model if it took what is typed for a prompt.
fn typed(args: &[&str]) -> (i32, String) {
    let dir = tempdir().unwrap();
    let mut command = haft(dir.path());
    command
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_MODEL", "m-1")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let ran = run(command.args(args), b"");
    (ran.code, ran.stdout + &ran.stderr)
}

#[test]
fn words_of_other_programs_say_what_to_do_instead() {
    let words = [
        "update", "config", "resume", "init", "agents", "serve", "worker", "fleet",
    ];
    let mut told = String::new();
    for word in words {
        for args in [
            &[word][..],
            &[word, "add", "--json", "x"],
            &["--cwd", ".", word],
        ] {
            let (code, said) = typed(args);
            assert_eq!(code, 1, "{args:?}");
            assert!(
                said.starts_with(&format!("haft: unknown command {word}: ")),
                "{said}"
            );
        }
        told += &typed(&[word]).1;
    }
    told += &typed(&["updates"]).1;
    told += &typed(&["fix", "the", "bug"]).1;
    told += &typed(&["-p", "don't", "stop"]).1;
    told += &typed(&["-p", "--max-turns", "0", "hi"]).1;
    // An option with several values takes the prompt for one of them.
    told += &typed(&["-p", "--allowed-tools", "Bash(ls *)", "fix the bug"]).1;
    told += &typed(&["-p", "--disallowedTools", "fix the bug"]).1;
    told += &typed(&["-p", "--add-dir", ".", "fix the bug"]).1;
    told += &typed(&["-p", "--allowed-tools", "Bash(ls *)"]).1;
    told += &typed(&["--cwd", "/nope", "tools"]).1;
    insta::assert_snapshot!(told);
}

#[test]
fn a_reserved_word_is_no_prompt_but_behind_two_dashes() {
    let dir = tempdir().unwrap();
    let script = dir.path().join("script.json");
    let turns = json!({"turns": [{"content": [{"type": "text", "text": "Done."}]}]});
    std::fs::write(&script, turns.to_string()).unwrap();
    let script = script.to_str().unwrap();
    let reserved = [
        "update", "config", "login", "logout", "version", "models", "resume", "init", "agents",
        "mcp", "acp", "serve", "worker", "fleet", "doctor", "help", "tools", "undo",
    ];
    for word in reserved {
        for args in [
            &["-p", word][..],
            &["-p", "--output-format", "json", word],
            &["--print", "--continue", word],
        ] {
            let ran = run(haft(dir.path()).args(["--script", script]).args(args), b"");
            assert_eq!(ran.code, 1, "{args:?}");
            let refused = format!("haft: {word} is not sent to a model: ");
            assert!(ran.stderr.starts_with(&refused), "{}", ran.stderr);
            assert!(
                ran.stderr
                    .ends_with(&format!(" As a prompt: haft -p -- {word}\n")),
                "{}",
                ran.stderr
            );
        }
        // As SDKs and careful scripts pass text.
        let ran = run(
            haft(dir.path()).args(["--script", script, "-p", "--", word]),
            b"",
        );
        assert_eq!(ran.stdout, "Done.\n", "{word}: {}", ran.stderr);
        // In a sentence it is a word like any other.
        let sentence = format!("{word} please");
        let ran = run(
            haft(dir.path()).args(["--script", script, "-p", &sentence]),
            b"",
        );
        assert_eq!(ran.stdout, "Done.\n", "{word}: {}", ran.stderr);
    }
    let said = |word| run(haft(dir.path()).args(["-p", word]), b"").stderr;
    insta::assert_snapshot!(said("update") + &said("models"), @"
    haft: update is not sent to a model: haft does not update itself: install the new version as you installed this one. As a prompt: haft -p -- update
    haft: models is not sent to a model: `haft models` is the command. As a prompt: haft -p -- models
    ");
}

#[test]
fn a_version_for_people_and_a_line_for_sdks() {
    let own = concat!("haft ", env!("CARGO_PKG_VERSION"), "\n");
    for args in [["--version"], ["-V"], ["version"]] {
        assert_eq!(typed(&args), (0, own.to_owned()), "{args:?}");
    }
    let line = format!("2.1.240 ({})\n", own.trim_end());
    assert_eq!(typed(&["-v"]), (0, line));
}

#[test]
fn a_stdin_that_is_held_open_and_says_nothing_is_not_waited_for() {
    let dir = tempdir().unwrap();
    let script = dir.path().join("script.json");
    let turns = json!({"turns": [{"content": [{"type": "text", "text": "Done."}]}]});
    std::fs::write(&script, turns.to_string()).unwrap();
    let mut command: Command = haft(dir.path());
    command.args(["-p", "hi", "--script"]).arg(script);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Held until the end.
    let stdin = child.stdin.take();
    let (mut said, mut warned) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut warned)
        .unwrap();
    assert!(child.wait().unwrap().success());
    drop(stdin);
    assert_eq!(said, "Done.\n");
    assert_eq!(
        warned,
        "haft: no data on stdin for 3 s; continuing without it (close it with < /dev/null)\n"
    );
}
