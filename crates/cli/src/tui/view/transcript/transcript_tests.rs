use std::{fs, io::Write, path::Path};

use serde_json::{Value, json};

use super::*;
use crate::tui::view::test_screen::{key, keys, run_jobs, shown, test_style};

fn line(kind: &str, minute: usize, message: Value) -> Value {
    let timestamp = format!("2026-01-31T12:{minute:02}:05.000Z");
    json!({"type": kind, "timestamp": timestamp, "message": message})
}

fn write(path: &Path, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path, text).unwrap();
}

fn opened(path: &Path) -> TranscriptView {
    let (mut view, effects) = TranscriptView::open(path.to_path_buf());
    assert!(run_jobs(&mut view, effects).is_empty());
    view
}

fn conversation(outputs: &Path) -> Vec<Value> {
    let saved = format!(
        "Result too long to show: 9 characters, 3000 lines. The whole text is in {} (Read it in parts).\nBeginning and end:",
        outputs.join("x.txt").display()
    );
    let result = |text: &str, is_error: bool| {
        json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "is_error": is_error, "content": [{"type": "text", "text": text}]}]})
    };
    vec![
        json!({"type": "custom-title", "customTitle": "t"}),
        line(
            "user",
            0,
            json!({"role": "user", "content": "Why does it fail?"}),
        ),
        line(
            "assistant",
            1,
            json!({"content": [{"type": "thinking", "thinking": "Let me\nlook."}]}),
        ),
        line(
            "assistant",
            1,
            json!({"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "a\nb", "timeout": 5}}]}),
        ),
        line("user", 2, result(&saved, false)),
        line("user", 3, result("no such \u{1b}[2Jfile", true)),
        line(
            "assistant",
            4,
            json!({"content": [{"type": "text", "text": "Because of **this**."}]}),
        ),
        line(
            "user",
            5,
            json!({"role": "user", "content": [{"type": "text", "text": "Then fix it."}]}),
        ),
    ]
}

fn session() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let outputs = dir.path().join("s/tool-results");
    fs::create_dir_all(&outputs).unwrap();
    let output: String = (1..=3000).map(|n| format!("output {n}\n")).collect();
    fs::write(outputs.join("x.txt"), output).unwrap();
    write(&path, &conversation(&outputs));
    (dir, path)
}

fn without_place(text: &str, dir: &Path) -> String {
    text.replace(&dir.display().to_string(), "DIR")
}

#[test]
fn everything_is_there_at_two_widths() {
    let (dir, path) = session();
    let mut view = opened(&path);
    let (wide, narrow) = (test_style(80, 24), test_style(40, 16));
    shown(&mut view, &wide);
    keys(&mut view, "g");
    let first = without_place(&shown(&mut view, &wide), dir.path());
    keys(&mut view, "G");
    let last = without_place(&shown(&mut view, &wide), dir.path());
    keys(&mut view, "g");
    let small = without_place(&shown(&mut view, &narrow), dir.path());
    insta::assert_snapshot!(format!("{first}\n=====\n{last}\n=====\n{small}"));
}

#[test]
fn why_a_call_ran_or_did_not_and_what_hooks_did_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let of = |kind: &str, more: Value| {
        let mut line = line(kind, 7, Value::Null);
        let all = line.as_object_mut().unwrap();
        all.extend(more.as_object().unwrap().clone());
        line
    };
    let refused = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "Permission denied."}]});
    write(
        &path,
        &[
            of(
                "haft-hook",
                json!({"name": "PreToolUse:Bash", "outcome": "success", "code": 0, "stdout": "looked\nat it\n", "stderr": ""}),
            ),
            of(
                "haft-started",
                json!({"toolName": "Bash", "because": "allow rule Bash(ls *) (user) covers it"}),
            ),
            of(
                "haft-hook",
                json!({"name": "PostToolUse:Bash", "outcome": "error", "code": 2, "stdout": "", "stderr": "no \u{1b}[2J"}),
            ),
            of(
                "haft-hook",
                json!({"name": "Stop", "outcome": "cancelled", "code": null, "stdout": "", "stderr": ""}),
            ),
            of(
                "user",
                json!({"message": refused, "haftRefusedBecause": "deny rule Edit (project) covers it",
                    "haftNotices": ["The hook says so."]}),
            ),
        ],
    );
    let mut view = opened(&path);
    let text = shown(&mut view, &test_style(80, 13));
    insta::assert_snapshot!(text, @r"
    12:07:05 hook PreToolUse:Bash
      looked
      at it
    12:07:05 Bash was allowed and starts
      why: allow rule Bash(ls *) (user) covers it
    12:07:05 hook PostToolUse:Bash  exit 2
      no ␛[2J
    12:07:05 hook Stop  cancelled
    12:07:05 error
      Permission denied.
      refused because deny rule Edit (project) covers it
      hook: The hook says so.
     Transcript  j k Space b g G  / n N  { } prompt  Enter fold  y copy  v edit  q
    ");
}

#[test]
fn a_whole_output_is_paged_from_its_file() {
    let (_dir, path) = session();
    let mut view = opened(&path);
    let look = test_style(80, 10);
    shown(&mut view, &look);
    keys(&mut view, "g/output 2500");
    key(&mut view, Key::RETURN);
    assert!(shown(&mut view, &look).starts_with("  output 2500\n  output 2501\n"));
    assert!(view.text.blocks.len() < 20, "{}", view.text.blocks.len());
    keys(&mut view, "k");
    assert!(shown(&mut view, &look).starts_with("  output 2499\n"));
    keys(&mut view, "/nowhere");
    key(&mut view, Key::RETURN);
    assert!(shown(&mut view, &look).ends_with(" no more nowhere"));
}

#[test]
fn prompts_are_jumped_to_and_entries_folded() {
    let (_dir, path) = session();
    let mut view = opened(&path);
    let look = test_style(80, 10);
    shown(&mut view, &look);
    keys(&mut view, "g}");
    keys(&mut view, "k");
    keys(&mut view, "{");
    assert!(shown(&mut view, &look).starts_with("12:00:05 you\n  Why does it fail?\n"));
    keys(&mut view, "jj");
    key(&mut view, Key::RETURN);
    let folded = shown(&mut view, &look);
    assert!(
        folded.starts_with("12:01:05 thinking  ... 3 lines\n12:01:05 call Bash\n"),
        "{folded}"
    );
    let before = view.text.len();
    key(&mut view, Key::RETURN);
    assert_eq!(view.text.len(), before + 2);
    let effects = keys(&mut view, "y");
    assert!(
        matches!(&effects[..], [ViewEffect::Copy(text)] if text == "12:01:05 thinking\nLet me\nlook.\n")
    );
}

#[test]
fn what_is_written_meanwhile_comes_with_the_next_key() {
    let (_dir, path) = session();
    let mut view = opened(&path);
    let look = test_style(80, 10);
    shown(&mut view, &look);
    let before = view.text.len();
    let more = line(
        "assistant",
        6,
        json!({"content": [{"type": "text", "text": "Done."}]}),
    );
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    write!(file, "{more}\n{{\"type\": \"half").unwrap();
    view.is_stale = true;
    keys(&mut view, "G");
    assert_eq!(view.text.len(), before + 2);
    keys(&mut view, "G");
    assert!(shown(&mut view, &look).contains("  Done.\n"));
}

#[test]
fn a_file_elsewhere_is_never_taken_for_an_output() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let secret = dir.path().join("secret.txt");
    fs::write(&secret, "secret\n").unwrap();
    let text = format!(
        "The whole text is in {} (Read it in parts).",
        secret.display()
    );
    let result = json!({"role": "user", "content": [{"type": "tool_result", "content": text}]});
    write(&path, &[line("user", 0, result)]);
    let mut view = opened(&path);
    let text = shown(&mut view, &test_style(200, 10));
    assert!(
        text.contains("The whole text is in") && !text.contains("\n  secret"),
        "{text}"
    );
}

/// A key costs the same in a conversation of 5,000 turns: only what is shown is read.
#[test]
fn of_a_long_conversation_only_what_is_shown_is_at_hand() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let lines: Vec<Value> = (0..5_000)
        .flat_map(|n| {
            let asked = json!({"role": "user", "content": format!("prompt {n}")});
            let text = format!("answer {n}\n{}", "word ".repeat(50));
            let said = json!({"content": [{"type": "text", "text": text}]});
            [line("user", 0, asked), line("assistant", 0, said)]
        })
        .collect();
    write(&path, &lines);
    let mut view = opened(&path);
    let look = test_style(80, 24);
    let end = shown(&mut view, &look);
    assert!(end.contains("  answer 4999\n"), "{end}");
    for letter in ["g", "}", " ", "G", "{", "b"] {
        keys(&mut view, letter);
        let text = shown(&mut view, &look);
        assert!(!text.contains(" ~"), "{letter}: {text}");
    }
    assert!(view.text.blocks.len() <= MAX_BLOCKS);
}
