//! `haft sessions stats`.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::{Ran, haft, run};

const ONE: &str = "01a1e348-0000-4000-8000-000000000001";
const FORK: &str = "02b2e348-0000-4000-8000-000000000002";
const ELSEWHERE: &str = "03c3e348-0000-4000-8000-000000000003";

fn at(second: u32) -> String {
    format!("2026-01-31T12:00:{second:02}.000Z")
}

fn said(uuid: &str, request: &str, model: &str, block: &Value, second: u32) -> Value {
    json!({"type": "assistant", "uuid": uuid, "requestId": request, "timestamp": at(second),
           "message": {"id": "m", "role": "assistant", "model": model, "content": [block],
                       "usage": {"input_tokens": 1_000, "output_tokens": 200,
                                 "cache_read_input_tokens": 3_000,
                                 "cache_creation_input_tokens": 500}}})
}

fn call(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn answer(uuid: &str, id: &str, is_error: bool, second: u32, more: &Value) -> Value {
    let mut line = json!({"type": "user", "uuid": uuid, "timestamp": at(second),
        "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": "x", "is_error": is_error}]}});
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn a_session() -> Vec<Value> {
    let none = json!({});
    vec![
        json!({"type": "user", "uuid": "a", "timestamp": at(0), "message": {"role": "user", "content": "go"}}),
        said("b", "r1", "claude-sonnet-4-5", &call("t1", "Read"), 1),
        json!({"type": "haft-started", "toolUseId": "t1", "timestamp": at(2)}),
        answer("c", "t1", false, 3, &none),
        said("d", "r2", "claude-sonnet-4-5", &call("t2", "Bash"), 4),
        answer(
            "e",
            "t2",
            true,
            14,
            &json!({"haftRefused": true, "haftWaitedMs": 9000}),
        ),
        said("f", "r3", "claude-sonnet-4-5", &call("t3", "Bash"), 15),
        json!({"type": "haft-started", "toolUseId": "t3", "timestamp": at(16)}),
        answer("g", "t3", true, 20, &none),
        said(
            "h",
            "r4",
            "a-model-of-ours",
            &json!({"type": "text", "text": "done"}),
            22,
        ),
    ]
}

fn write(file: &Path, lines: &[Value]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(file, text.join("\n") + "\n").unwrap();
}

fn projects(home: &Path) -> PathBuf {
    home.join(".claude/projects")
}

/// The folder of the sessions of the directory.
fn here(home: &Path) -> PathBuf {
    let path = home.canonicalize().unwrap();
    let slug: String = path
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    projects(home).join(slug)
}

fn stats(home: &Path, args: &[&str]) -> Ran {
    let home = home.canonicalize().unwrap();
    run(haft(&home).args(["sessions", "stats"]).args(args), b"")
}

fn of_three() -> tempfile::TempDir {
    let home = tempdir().unwrap();
    let own = here(home.path());
    write(&own.join(format!("{ONE}.jsonl")), &a_session());
    let mut fork = a_session();
    fork.push(said(
        "i",
        "r5",
        "claude-sonnet-4-5",
        &call("t4", "Edit"),
        30,
    ));
    write(&own.join(format!("{FORK}.jsonl")), &fork);
    let sub = own.join(FORK).join("subagents/agent-1.jsonl");
    write(
        &sub,
        &[said("j", "r6", "claude-haiku-4-5", &call("t1", "Grep"), 31)],
    );
    let elsewhere = projects(home.path()).join("-elsewhere");
    write(
        &elsewhere.join(format!("{ELSEWHERE}.jsonl")),
        &[said("k", "r7", "claude-haiku-4-5", &call("t1", "Glob"), 40)],
    );
    home
}

#[test]
fn of_one_session_of_a_directory_and_of_all() {
    let home = of_three();
    let mut shown = String::new();
    for args in [&["01a1e348"][..], &[], &["--all"]] {
        let ran = stats(home.path(), args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        shown += &format!("$ haft sessions stats {}\n{}\n", args.join(" "), ran.stdout);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn the_same_for_programs() {
    let home = of_three();
    let ran = stats(home.path(), &["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&told).unwrap());
}

#[test]
fn where_there_is_none_everything_is_nothing_and_a_wrong_name_is_said() {
    let home = tempdir().unwrap();
    let ran = stats(home.path(), &[]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "sessions 0, subagents 0, prompts 0, failed requests 0\n")
    );
    assert_eq!(stats(home.path(), &["--all", "--json"]).code, 0);
    let ran = stats(home.path(), &["0badc0de"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.starts_with("haft: no session 0badc0de"),
        "{}",
        ran.stderr
    );
}

#[test]
fn damaged_transcripts_and_hostile_names_do_no_harm() {
    let home = tempdir().unwrap();
    let own = here(home.path());
    let hostile = "\u{1b}[2J\u{202e}evil\nTOOL  CALLS\r\u{7}";
    write(
        &own.join(format!("{ONE}.jsonl")),
        &[
            said("a", "r1", hostile, &call("t1", hostile), 1),
            said("b", "r2", "", &call("t2", ""), 2),
            json!("a text"),
            json!({"type": "assistant", "message": {"content": {"x": 1}, "usage": null}}),
        ],
    );
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(own.join(format!("{ONE}.jsonl")))
        .unwrap();
    file.write_all(b"\xff\xfe\x00\n{\"type\":\"assistant\"")
        .unwrap();
    // Neither is a transcript, whatever its name says.
    fs::create_dir(own.join(format!("{FORK}.jsonl"))).unwrap();
    fs::write(own.join("notes.jsonl"), "{}").unwrap();
    let ran = stats(home.path(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("left out"), "{}", ran.stderr);
    assert!(ran.stdout.contains("skipped: 3"), "{}", ran.stdout);
    for bad in ['\u{1b}', '\u{202e}', '\u{7}', '\r'] {
        assert!(!ran.stdout.contains(bad), "{:?}", ran.stdout);
    }
    let ran = stats(home.path(), &["--json"]);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told["calls"], 2);
    assert_eq!(told["modelsWithoutPrice"].as_array().unwrap().len(), 2);
}

/// A transcript of 100 MB, half of it in one line, is counted by a process that may have far less.
#[cfg(target_os = "linux")]
#[test]
fn a_large_transcript_takes_little_memory() {
    let home = tempdir().unwrap();
    let own = here(home.path());
    let file = own.join(format!("{ONE}.jsonl"));
    write(&file, &a_session());
    let mut file = fs::OpenOptions::new().append(true).open(file).unwrap();
    let text = "0123456789abcdef".repeat(1 << 16);
    for number in 0..50 {
        let block = json!({"type": "text", "text": text});
        let line = said(&format!("u{number}"), &format!("q{number}"), "m", &block, 1);
        writeln!(file, "{line}").unwrap();
    }
    write!(
        file,
        "{{\"type\":\"assistant\",\"requestId\":\"long\",\"message\":{{\"content\":\""
    )
    .unwrap();
    for _ in 0..50 {
        file.write_all(text.as_bytes()).unwrap();
    }
    writeln!(
        file,
        "\",\"model\":\"m\",\"usage\":{{\"output_tokens\":7}}}}}}"
    )
    .unwrap();
    drop(file);
    let home = home.path().canonicalize().unwrap();
    let haft = haft(&home);
    // A limit on what it can ask for at all; programs map far more than they use.
    let limited = format!(
        "ulimit -v 90000; exec {} sessions stats --json 01a1e348",
        haft.get_program().to_string_lossy()
    );
    let mut command = haft_testkit::command("sh");
    command
        .args(["-c", &limited])
        .current_dir(&home)
        .env_clear()
        .env("HOME", &home)
        .env("PATH", "/usr/bin:/bin");
    let ran = run(&mut command, b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told["replies"], 4 + 50 + 1);
    assert_eq!(told["unreadableLines"], 0);
}
