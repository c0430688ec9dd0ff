use serde_json::{Value, json};

use super::Place;
use crate::binary::run;

/// The answers to these lines, each split at its tab.
fn ask(command: &str, lines: &[Vec<u8>]) -> Vec<(String, String)> {
    let place = Place::new(&[]);
    let ran = run(
        place.haft().args(["permissions", command, "--jsonl"]),
        &lines.join(&b'\n'),
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let answers = ran.stdout.lines();
    answers
        .map(|line| {
            let (word, reason) = line.split_once('\t').unwrap();
            assert!(
                !reason.is_empty() && !reason.contains(['\t', '\r']),
                "{line}"
            );
            (word.to_owned(), reason.to_owned())
        })
        .collect()
}

fn words(command: &str, lines: &[Value]) -> Vec<String> {
    let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.to_string().into()).collect();
    let answers = ask(command, &lines).into_iter();
    answers.map(|(word, _)| word).collect()
}

#[test]
fn command_lines_are_judged_in_order() {
    let lines: Vec<Value> = (0..300)
        .map(|at| match at % 3 {
            0 => json!({"cmd": "git log -3"}),
            1 => json!({"cmd": "rm -rf x", "cwd": "/elsewhere"}),
            _ => json!({"command": "frobnicate"}),
        })
        .collect();
    let said = words("classify", &lines);
    assert_eq!(said.len(), 300);
    for three in said.chunks(3) {
        assert_eq!(three, ["readonly", "mutating", "unknown"]);
    }
}

#[test]
fn a_line_that_makes_no_sense_gets_the_cautious_answer_and_the_next_is_served() {
    let echo = |count| json!({"cmd": format!("echo {}", "a".repeat(count))}).to_string();
    let (long, too_long) = (echo(100_000), echo(1 << 20));
    let deep = json!({"cmd": "$(".repeat(100_000)}).to_string();
    let lines: Vec<(Vec<u8>, &str)> = vec![
        (b"not json".to_vec(), "unknown"),
        (b"{\"cmd\": ".to_vec(), "unknown"),
        (b"{\"cmd\": 5}".to_vec(), "unknown"),
        (b"{}".to_vec(), "unknown"),
        (b"[]".to_vec(), "unknown"),
        (b"null".to_vec(), "unknown"),
        (b"{\"cmd\": \"cat \xff\"}".to_vec(), "unknown"),
        (b"{\"cmd\": \"cat a\\u0000b\"}".to_vec(), "unknown"),
        (b"{\"cmd\": \"cat a\0b\"}".to_vec(), "unknown"),
        (b"\0".to_vec(), "unknown"),
        (b"{\"cmd\": \"ls\\nrm x\"}".to_vec(), "mutating"),
        (b"{\"cmd\": \"echo 'unclosed\"}".to_vec(), "unknown"),
        (long.into_bytes(), "readonly"),
        (too_long.into_bytes(), "unknown"),
        (deep.into_bytes(), "unknown"),
        (b"{\"cmd\": \"ls\"}\r".to_vec(), "readonly"),
        (b"{\"cmd\": \"ls\", \"more\": [1]}".to_vec(), "readonly"),
        (b"{\"cmd\": \"ls\"}".to_vec(), "readonly"),
    ];
    let given: Vec<Vec<u8>> = lines.iter().map(|(line, _)| line.clone()).collect();
    let said = ask("classify", &given);
    assert_eq!(said.len(), lines.len());
    for ((line, expected), (word, reason)) in lines.iter().zip(said) {
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!(word, *expected, "{shown}: {reason}");
    }
    // For decisions the cautious answer is no.
    let said = ask("check", &given[..6]);
    assert!(said.iter().all(|(word, _)| word == "deny"), "{said:?}");
}

#[test]
fn empty_lines_are_passed_over_and_the_last_needs_no_end() {
    let lines = ["", "{\"cmd\": \"ls\"}", "", "  \t ", "{\"cmd\": \"ls\"}"];
    let lines = lines.map(|line| line.as_bytes().to_vec());
    assert_eq!(ask("classify", &lines).len(), 2);
    assert_eq!(ask("classify", &[]), []);
}

#[test]
fn an_answer_comes_before_the_next_question() {
    use std::{
        io::{BufRead, BufReader, Write},
        process::Stdio,
    };
    let place = Place::new(&[]);
    let mut child = place
        .haft()
        .args(["permissions", "classify", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        stdin.write_all(b"{\"cmd\": \"ls\"}\n").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.starts_with("readonly\t"), "{line}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn calls_are_decided_by_the_rules_that_come_with_them() {
    let bash = |command: &str| json!({"tool": "Bash", "input": {"command": command}, "cwd": "/p"});
    let with = |mut call: Value, key: &str, value: Value| {
        call[key] = value;
        call
    };
    let fetch = |simulate: Value| {
        json!({
            "tool": "WebFetch", "input": {"url": "https://a.com/x"}, "cwd": "/p",
            "rules": {"allow": ["WebFetch(domain:a.com)"]}, "simulate": simulate,
        })
    };
    let read = |path: &str| json!({"tool": "Read", "input": {"file_path": path}, "cwd": "/p"});
    let cases = [
        (bash("ls"), "allow"),
        (bash("make"), "ask"),
        (with(bash("make"), "mode", json!("dontAsk")), "deny"),
        (
            with(bash("make"), "mode", json!("bypassPermissions")),
            "allow",
        ),
        (with(bash("mkdir x"), "mode", json!("acceptEdits")), "allow"),
        (with(bash("make"), "mode", json!("yolo")), "deny"),
        (
            with(bash("make"), "rules", json!({"allow": ["Bash(make)"]})),
            "allow",
        ),
        (
            with(bash("ls"), "rules", json!({"deny": ["Bash(ls *)"]})),
            "deny",
        ),
        (with(bash("ls"), "rules", json!({"ask": ["Bash"]})), "ask"),
        (with(bash("ls"), "rules", json!({"deny": "Bash"})), "deny"),
        (with(bash("make"), "hook", json!("allow")), "allow"),
        (with(bash("ls"), "hook", json!("deny")), "deny"),
        (read("/p/a"), "allow"),
        (read("a"), "allow"),
        (read("/q/a"), "ask"),
        (
            with(read("/q/a"), "additional_dirs", json!(["/q"])),
            "allow",
        ),
        (with(read("~/.ssh/id"), "home", json!("/p")), "ask"),
        (with(read("~/notes"), "home", json!("/p/me")), "allow"),
        (with(read("a"), "cwd", json!("p")), "deny"),
        (json!({"tool": "Read", "input": {"file_path": "a"}}), "deny"),
        (fetch(json!(null)), "allow"),
        (fetch(json!({"redirect": "https://a.com/login"})), "allow"),
        (fetch(json!({"redirect": "/login"})), "allow"),
        (fetch(json!({"redirect": "https://b.com"})), "ask"),
        (fetch(json!({"redirect": "//b.com"})), "ask"),
        (fetch(json!({"redirect": "file:///etc/passwd"})), "ask"),
        (
            fetch(json!({"redirect": ["https://a.com/1", "https://b.com"]})),
            "ask",
        ),
        (fetch(json!({"address": "93.184.216.34"})), "allow"),
        (fetch(json!({"address": "127.0.0.1"})), "ask"),
        (fetch(json!({"address": "::ffff:10.0.0.1"})), "ask"),
        (
            fetch(json!({"addresses": ["93.184.216.34", "169.254.169.254"]})),
            "ask",
        ),
    ];
    let calls: Vec<Value> = cases.iter().map(|(call, _)| call.clone()).collect();
    let said = words("check", &calls);
    assert_eq!(said.len(), cases.len());
    for ((call, expected), word) in cases.iter().zip(said) {
        assert_eq!(word, *expected, "{call}");
    }
}

#[test]
fn a_rule_that_is_left_out_is_told_with_the_answer() {
    let call = json!({
        "tool": "Bash", "input": {"command": "ls"}, "cwd": "/p", "rules": {"deny": ["Bash(ls"]},
    });
    let said = ask("check", &[call.to_string().into_bytes()]);
    assert_eq!(
        said,
        [(
            "allow".to_owned(),
            "it only reads (rule \"Bash(ls\": the parenthesis is not closed at its end)".to_owned()
        )]
    );
}
