//! What the documents show on a console is what the binary does: every `console` block of README.md and docs/ is
//! run, without a key and without a network, and compared with what it shows.
//!
//! A block is a session of one shell in an empty directory. `$ ` begins a command. What follows is its output; for
//! `haft exec` lines that begin with `{"name": ` are typed. `…` stands for anything: alone for any lines, in a
//! line for any text.

use std::{fs, path::Path};

use serde_json::json;
use tempfile::tempdir;

use crate::binary::{haft, run};

/// Lines of `sh` blocks, and commands in the text, that need what a test has not.
const NOT_RUN: [(&str, &str); 5] = [
    ("cargo ", "builds"),
    ("haft models", "asks a provider"),
    ("haft doctor", "its exit code is about the machine"),
    ("haft man ", "writes into the home"),
    ("haft mcp serve --http", "serves until it is stopped"),
];

/// A command and what it shows.
#[derive(Debug, PartialEq)]
struct Shown<'a> {
    command: &'a str,
    typed: Vec<&'a str>,
    output: Vec<&'a str>,
}

/// A document of the repository.
fn document(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// README.md and the pages of docs/, with their names.
fn documents() -> Vec<(String, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut names = vec!["README.md".to_owned()];
    for entry in fs::read_dir(docs).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        names.push(format!("docs/{name}"));
    }
    names.sort();
    let read = |name: String| {
        let text = document(&name);
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// The blocks of a language.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let parts = document.split(fence.as_str()).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap())
        .collect()
}

fn commands(block: &str) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown<'_>> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Shown {
                command,
                typed: Vec::new(),
                output: Vec::new(),
            });
            continue;
        }
        let last = all.last_mut().expect("a block begins with a command");
        let is_typed = last.command.starts_with("haft exec") && line.starts_with("{\"name\": ");
        match is_typed {
            true => last.typed.push(line),
            false => last.output.push(line),
        }
    }
    all
}

/// Runs a line of bash with `haft` on its path; stdout and stderr as a console shows them.
fn bash(line: &str, typed: &[&str], here: &Path, home: &Path) -> (i32, String) {
    let folder = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    let program = haft(here);
    let mut command = haft_testkit::command("bash");
    command.current_dir(here).env_clear();
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap());
    }
    command
        .env("HOME", home)
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
        .args(["-c", &format!("exec 2>&1; {line}")]);
    let mut stdin = typed.join("\n");
    stdin.push('\n');
    let ran = run(&mut command, stdin.as_bytes());
    (ran.code, ran.stdout)
}

/// Is the text what is shown, where `…` stands for anything?
fn is_shown(shown: &[&str], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((&"…", rest)) => (0..=lines.len()).any(|skipped| is_shown(rest, &lines[skipped..])),
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| is_line(first, line) && is_shown(rest, others)),
    }
}

fn is_line(shown: &str, line: &str) -> bool {
    let mut parts = shown.trim_end().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.trim_end().strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn what_the_documents_show_is_what_happens() {
    let mut count = 0;
    for (name, text) in documents() {
        for block in blocks(&text, "console") {
            let (here, home) = (tempdir().unwrap(), tempdir().unwrap());
            for shown in commands(block) {
                let line = shown.command.replace("cargo run --release -- ", "haft ");
                let (_, output) = bash(&line, &shown.typed, here.path(), home.path());
                let lines: Vec<&str> = output.lines().collect();
                assert!(
                    is_shown(&shown.output, &lines),
                    "{name}: `{}` shows\n{output}\nand not\n{}",
                    shown.command,
                    shown.output.join("\n")
                );
                count += 1;
            }
        }
    }
    assert!(count >= 7, "only {count} commands were found");
}

/// The same line, answered by a script where a model would be asked.
fn with_script(line: &str, script: &Path) -> String {
    let flag = format!("haft --script {} -p", script.display());
    line.replace("haft -p", &flag)
}

#[test]
fn the_commands_they_name_can_be_typed() {
    let mut count = 0;
    for (name, text) in documents() {
        let typed = blocks(&text, "sh").into_iter().flat_map(str::lines);
        // Commands in the text, but for those that leave something to be filled in.
        let named = text.split('`').skip(1).step_by(2).filter(|word| {
            let is_open = |word: &str| {
                let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
                word.len() > 1
                    && word
                        .chars()
                        .all(|letter| letter.is_ascii_uppercase() || letter == '-')
            };
            word.starts_with("haft ")
                && !word.contains(['…', '|', '\n'])
                && !word.split([' ', '\'']).any(is_open)
        });
        let (here, home) = (tempdir().unwrap(), tempdir().unwrap());
        let script = here.path().join("script.json");
        let turn = json!({"content": [{"type": "text", "text": "Done."}]});
        fs::write(&script, json!({"turns": [turn]}).to_string()).unwrap();
        for line in typed.chain(named) {
            if NOT_RUN.iter().any(|(start, _)| line.starts_with(start)) {
                continue;
            }
            let line = with_script(line, &script);
            let (_, output) = bash(&line, &[], here.path(), home.path());
            // A command may be named without what it takes.
            if output.contains("required arguments were not provided") {
                continue;
            }
            // What is wrong in a command line, and not in this empty directory.
            for wrong in [
                "Usage: ",
                "For more information, try",
                "is no command",
                "no topic",
            ] {
                assert!(!output.contains(wrong), "{name}: {line}\n{output}");
            }
            let is_prompt = line.contains(" -p \"") && !line.contains(" -p \"/");
            if is_prompt {
                assert!(output.contains("Done."), "{name}: {line}\n{output}");
            }
            count += 1;
        }
    }
    assert!(count >= 15, "only {count} commands were found");
}

#[test]
fn an_ellipsis_stands_for_anything() {
    let lines = ["one", "two and more", "three"];
    assert!(is_shown(&["one", "two …", "three"], &lines));
    assert!(is_shown(&["…"], &lines));
    assert!(is_shown(&["…", "… more", "…"], &lines));
    assert!(is_shown(&["one", "t… and …e", "three", "…"], &lines));
    assert!(!is_shown(&["one", "two", "three"], &lines));
    assert!(!is_shown(&["one", "…", "four"], &lines));
    assert!(!is_shown(&["one"], &lines));
    let block = "$ haft exec\n{\"name\": \"LS\"}\n{\"id\":null}\n$ ls\n";
    let found = commands(block);
    assert_eq!(found[0].typed, ["{\"name\": \"LS\"}"]);
    assert_eq!(found[0].output, ["{\"id\":null}"]);
    assert_eq!(found[1].command, "ls");
}
