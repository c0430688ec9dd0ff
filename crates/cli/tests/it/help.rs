//! `haft help TOPIC`, `haft man`, and what shells offer.

use std::fs;

use serde_json::json;
use tempfile::tempdir;

use crate::binary::{haft, run};

fn says(args: &[&str]) -> String {
    let dir = tempdir().unwrap();
    let ran = run(haft(dir.path()).args(args), b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
    ran.stdout
}

#[test]
fn topics_are_the_pages_of_docs() {
    let listed = says(&["help"]);
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let mut count = 0;
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(listed.contains(&format!("\n  {name} ")), "{name}: {listed}");
        let page = fs::read_to_string(&path).unwrap();
        assert_eq!(says(&["help", name]).trim_end(), page.trim_end());
        count += 1;
    }
    assert!(count >= 6, "{count}");
    assert_eq!(
        says(&["help", "permissions", "trust"]),
        says(&["permissions", "trust", "--help"])
    );
    assert!(says(&["help", "options"]).contains("--permission-mode"));
}

#[test]
fn what_is_neither_command_nor_topic_is_said_so() {
    let dir = tempdir().unwrap();
    let ran = run(haft(dir.path()).args(["help", "setings"]), b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.contains("unknown command or topic \"setings\""),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("settings files"), "{}", ran.stderr);
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let dir = tempdir().unwrap();
    let into = dir.path().join("man1");
    let ran = run(haft(dir.path()).arg("man").arg(&into), b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    for name in [
        "haft",
        "haft-prompt",
        "haft-exec",
        "haft-permissions-explain",
    ] {
        let page = fs::read_to_string(into.join(format!("{name}.1"))).unwrap();
        let shown = page.replace("\\-", "-");
        assert!(
            shown.contains(&format!(".SH NAME\n{name}")),
            "{name}: {shown}"
        );
    }
}

/// What a shell offers for the last of these words.
fn offered(dir: &std::path::Path, words: &[&str]) -> Vec<String> {
    let ran = run(
        haft(dir)
            .env("HAFT_COMPLETE", "bash")
            .env("_CLAP_IFS", "\n")
            .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
            .arg("--")
            .args(words),
        b"",
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
    ran.stdout
        .lines()
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn there_is_a_script_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(
            says(&["completions", shell]).contains("HAFT_COMPLETE"),
            "{shell}"
        );
    }
    let dir = tempdir().unwrap();
    let ran = run(haft(dir.path()).args(["completions", "tcsh"]), b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("bash, elvish"), "{}", ran.stderr);
}

#[test]
fn shells_offer_commands_flags_tools_topics_and_conversations() {
    let dir = tempdir().unwrap();
    let is_offered = |words: &[&str], wanted: &str| {
        let offered = offered(dir.path(), words);
        assert!(
            offered.iter().any(|one| one == wanted),
            "{words:?}: {offered:?}"
        );
    };
    is_offered(&["haft", "und"], "undo");
    is_offered(&["haft", "--output-f"], "--output-format");
    is_offered(&["haft", "-p", "--resu"], "--resume");
    is_offered(&["haft", "--output-format", "str"], "stream-json");
    is_offered(&["haft", "call", "Gre"], "Grep");
    is_offered(&["haft", "tools", "Edi"], "Edit");
    is_offered(&["haft", "help", "ho"], "hooks");
    is_offered(&["haft", "exec", "--permission-mode", "acc"], "acceptEdits");
    let script = json!({"turns": [{"content": [{"type": "text", "text": "hello"}]}]});
    fs::write(dir.path().join("script.json"), script.to_string()).unwrap();
    let ran = run(
        haft(dir.path()).args([
            "-p",
            "--script",
            "script.json",
            "--output-format",
            "json",
            "hi",
        ]),
        b"",
    );
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = said["session_id"].as_str().unwrap();
    is_offered(&["haft", "-p", "--resume", &id[..4]], id);
    is_offered(&["haft", "sessions", "show", ""], id);
}
