//! Whatever comes in: an answer to every line, no harm, and the next line is served.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::binary::{haft, run};

/// Every line gets one answer, and a last good call is still served.
fn answers(lines: &[Vec<u8>], flags: &[&str]) -> (tempfile::TempDir, Vec<Value>) {
    let dir = tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("good.txt"), "good\n").unwrap();
    fs::write(dir.path().join("secret.txt"), "secret\n").unwrap();
    symlink("..", work.join("up")).unwrap();
    symlink("../secret.txt", work.join("link.txt")).unwrap();
    let mut input = lines.join(&b'\n');
    input.extend_from_slice(b"\n{\"name\": \"Read\", \"input\": {\"file_path\": \"good.txt\"}}\n");
    let ran = run(
        haft(&work).env("HOME", dir.path()).args(flags).arg("exec"),
        &input,
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let mut answers: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), lines.len() + 1);
    let last = answers.pop().unwrap();
    assert_eq!(last["content"], "     1\tgood", "the next call is served");
    (dir, answers)
}

fn call(name: &str, input: Value) -> Vec<u8> {
    json!({"name": name, "input": input})
        .to_string()
        .into_bytes()
}

#[test]
fn lines_that_are_no_calls() {
    let lines: Vec<Vec<u8>> = vec![
        b"not json".to_vec(),
        b"{\"name\": ".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"\"text\"".to_vec(),
        b"{\"name\": \"Read\", \"input\": {\"file_path\": \"\xff\xfe\"}}".to_vec(),
        b"{\"id\": 5, \"name\": 7}".to_vec(),
        b"\0\0\0".to_vec(),
        [b"[".repeat(100_000), b"]".repeat(100_000)].concat(),
        b"{\"role\": \"assistant\", \"content\": 5}".to_vec(),
    ];
    let (_dir, answers) = answers(&lines, &[]);
    for (line, answer) in lines.iter().zip(&answers) {
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!(answer["is_error"], true, "{shown}");
        assert!(answer["content"].as_str().unwrap().len() > 10, "{shown}");
    }
    assert_eq!(answers[6]["id"], 5);
}

#[test]
fn calls_that_make_no_sense() {
    let lines = vec![
        call("Raed", json!({})),
        call("", json!({})),
        call("Read", json!({})),
        call("Read", json!([])),
        call("Read", json!({"file_path": {"a": 1}})),
        call("Read", json!({"file_path": "good.txt", "offset": -1})),
        call("Read", json!({"file_path": "good.txt", "limit": 0})),
        call("Read", json!({"file_path": "good.txt", "offset": 1e300})),
        call("Read", json!({"file_path": "go\u{0}od.txt"})),
        call("Read", json!({"file_path": "x".repeat(10_000)})),
        call("Read", json!({"file_path": "."})),
        call("Read", json!({"file_path": "missing.txt"})),
        call("Grep", json!({"pattern": "("})),
        call("Grep", json!({"pattern": "x", "glob": "[a"})),
        call("Grep", json!({"pattern": "x", "type": "klingon"})),
        call("Grep", json!({"pattern": "x\u{0}y"})),
        call("Grep", json!({"pattern": "x", "path": "missing"})),
        call("Glob", json!({"pattern": "{a"})),
        call("Glob", json!({"pattern": "a\u{0}"})),
        call("LS", json!({"path": "good.txt"})),
    ];
    let (_dir, answers) = answers(&lines, &["--permission-mode", "acceptEdits"]);
    let told: Vec<String> = lines
        .iter()
        .zip(&answers)
        .map(|(line, answer)| {
            assert_eq!(
                answer["is_error"],
                true,
                "{}: {answer}",
                String::from_utf8_lossy(line)
            );
            let asked: String = String::from_utf8_lossy(line).chars().take(90).collect();
            format!("{asked}\n{}\n", answer["content"].as_str().unwrap())
        })
        .collect();
    let told = told.join("\n");
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"/[^\s`]*/work", "WORK");
    settings.add_filter(r"x{200,}", "xxx…");
    settings.bind(|| insta::assert_snapshot!(told));
}

#[test]
fn nothing_outside_the_workspace_is_read_or_written() {
    let write = |path: &str| call("Write", json!({"file_path": path, "content": "harm"}));
    let read = |path: &str| call("Read", json!({"file_path": path}));
    let lines = vec![
        write("../new.txt"),
        write("up/new.txt"),
        write("link.txt"),
        write("good.txt/../../new.txt"),
        write("/tmp/../tmp/haft-must-not-exist.txt"),
        write("~/new.txt"),
        write("/proc/self/root/tmp/haft-must-not-exist.txt"),
        write("/proc/self/cwd/../new.txt"),
        read("../secret.txt"),
        read("up/secret.txt"),
        read("link.txt"),
        read("/etc/passwd"),
        call("LS", json!({"path": ".."})),
        call("Glob", json!({"pattern": "../*.txt"})),
        call("Glob", json!({"pattern": "*.txt", "path": "up"})),
        call("Glob", json!({"pattern": "/etc/*"})),
        call("Grep", json!({"pattern": "secret", "path": "up"})),
        call("Grep", json!({"pattern": "secret", "path": ".."})),
    ];
    let flags = ["--permission-mode", "acceptEdits"];
    let (dir, answers) = answers(&lines, &flags);
    for (line, answer) in lines.iter().zip(&answers) {
        let shown = String::from_utf8_lossy(line);
        assert_eq!(answer["is_error"], true, "{shown}: {answer}");
        let content = answer["content"].as_str().unwrap();
        let says_why = content.contains("outside the working directories")
            || content.contains("shows other processes");
        assert!(says_why, "{shown}: {content}");
        assert!(!content.contains("secret\n"), "{shown}: {content}");
    }
    let mut left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["secret.txt", "work"]);
    assert_eq!(
        fs::read_to_string(dir.path().join("secret.txt")).unwrap(),
        "secret\n"
    );
    assert!(!std::path::Path::new("/tmp/haft-must-not-exist.txt").exists());
}

#[test]
fn a_line_of_50_megabytes_is_passed_over() {
    let mut long = call("Write", json!({"file_path": "big.txt", "content": ""}));
    let at = long.len() - 3;
    long.splice(at..at, std::iter::repeat_n(b'x', 50_000_000));
    let (dir, answers) = answers(&[long], &["--permission-mode", "acceptEdits"]);
    assert_eq!(answers[0]["is_error"], true);
    let told = answers[0]["content"].as_str().unwrap();
    assert!(told.contains("the limit is"), "{told}");
    assert!(!dir.path().join("work/big.txt").exists());
}
