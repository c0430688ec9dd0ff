//! Commands whose argument is a program, compared with the real commands.
//!
//! `executed` runs lines of a table. `properties` generates programs, and runs those that the
//! analysis calls read-only. Commands that are not installed are skipped.

mod executed;
mod pieces;
mod properties;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::{evaluate_command, testing::argv};
use crate::{arg::Arg, ast::Span, effect::CommandFinding};

/// A small project that a program may spoil.
fn project() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("a.txt", "alpha 1\nbeta 2\ngamma/x 3\n"),
        ("b.txt", "one\ntwo\n"),
        ("sub/c.txt", "alpha\n"),
        ("data.json", "{\"a\": [1, 2], \"b\": \"x\"}\n"),
        ("f.xml", "<a><b>x</b></a>\n"),
        ("write.sed", "w out\n"),
        ("write.awk", "{print > \"out\"}\n"),
        ("pre.sh", "#!/bin/sh\ntouch out\ncat\n"),
    ];
    fs::create_dir(dir.path().join("sub")).unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let mut mode = fs::metadata(dir.path().join("pre.sh"))
        .unwrap()
        .permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(dir.path().join("pre.sh"), mode).unwrap();
    dir
}

/// Every file below, with its content.
fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            found.extend(tree(&path));
            found.insert(name, Vec::new());
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs a command in a directory; one that would never end is killed.
fn run(dir: &Path, argv: &[&str]) {
    let status = Command::new("timeout")
        .args(["-s", "KILL", "10"])
        .args(argv)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "{argv:?}: {status:?}");
}

/// Returns the finding for literal arguments.
fn find(words: &[&str]) -> CommandFinding {
    let span = Span { start: 0, end: 0 };
    let argv: Vec<Arg> = words.iter().map(|word| Arg::literal(*word, span)).collect();
    evaluate_command(words[0], &argv)
}

/// Returns the arguments of a line without expansions.
fn literal_words(line: &str) -> Vec<String> {
    let argv = argv(line);
    let texts = argv.iter().map(|arg| arg.text().map(str::to_owned));
    texts
        .collect::<Option<_>>()
        .unwrap_or_else(|| panic!("{line} has an expansion"))
}
