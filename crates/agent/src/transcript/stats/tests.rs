use std::{fmt::Write as _, fs};

use serde_json::{Value, json};

use super::*;

fn stats_of(files: &[(&str, String)]) -> SessionStats {
    let folder = tempfile::tempdir().unwrap();
    let mut reader = StatsReader::new();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    for (name, _) in files.iter().filter(|(name, _)| !name.contains('/')) {
        reader.read(&folder.path().join(name)).unwrap();
    }
    reader.finish()
}

fn lines(values: &[Value]) -> String {
    values.iter().fold(String::new(), |mut text, value| {
        let _ = writeln!(text, "{value}");
        text
    })
}

fn at(second: u32) -> String {
    format!("2026-01-31T12:00:{second:02}.000Z")
}

fn said(uuid: &str, request: &str, block: Value, output: u64, second: u32) -> Value {
    json!({"type": "assistant", "uuid": uuid, "requestId": request, "timestamp": at(second),
           "message": {"id": "m", "model": "large", "content": [block],
                       "usage": {"input_tokens": 5, "output_tokens": output}}})
}

fn call(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn answer(uuid: &str, id: &str, is_error: bool, second: u32) -> Value {
    json!({"type": "user", "uuid": uuid, "timestamp": at(second),
           "message": {"role": "user", "content": [
               {"type": "tool_result", "tool_use_id": id, "content": "x", "is_error": is_error}]}})
}

fn started(id: &str, second: u32) -> Value {
    json!({"type": "haft-started", "toolUseId": id, "timestamp": at(second)})
}

fn a_session() -> Vec<Value> {
    let mut refused = answer("f", "t2", true, 20);
    refused["haftRefused"] = json!(true);
    let mut waited = answer("g", "t3", false, 30);
    waited["haftWaitedMs"] = json!(4000);
    vec![
        json!({"type": "user", "uuid": "a", "timestamp": at(0), "message": {"content": "go on"}}),
        said("b", "r1", json!({"type": "text", "text": "well"}), 1, 1),
        said("c", "r1", call("t1", "Read"), 1, 2),
        json!({"type": "haft-reply", "requestId": "r1", "model": "large",
               "usage": {"input_tokens": 5, "output_tokens": 40}}),
        started("t1", 3),
        answer("d", "t1", false, 5),
        said("e", "r2", call("t2", "Bash"), 7, 6),
        refused,
        said("h", "r3", call("t3", "Bash"), 8, 21),
        started("t3", 26),
        waited,
    ]
}

#[test]
fn a_session_is_counted() {
    let stats = stats_of(&[("s.jsonl", lines(&a_session()))]);
    assert_eq!((stats.sessions, stats.prompts, stats.unreadable), (1, 1, 0));
    let model = &stats.models["large"];
    // The last word on each reply counts.
    assert_eq!(
        (model.replies, model.usage.input, model.usage.output),
        (3, 15, 55)
    );
    assert_eq!(
        stats.tools["Read"],
        ToolStats {
            calls: 1,
            time: Duration::from_secs(2),
            ..ToolStats::default()
        }
    );
    assert_eq!(
        stats.tools["Bash"],
        ToolStats {
            calls: 2,
            refusals: 1,
            time: Duration::from_secs(4),
            waited: Duration::from_secs(4),
            ..ToolStats::default()
        }
    );
    assert_eq!(stats.last.unwrap() - stats.first.unwrap(), 30_000);
}

#[test]
fn what_a_fork_copied_counts_once_and_subagents_count_too() {
    let own = said("z", "r9", json!({"type": "text", "text": "more"}), 100, 40);
    let mut fork = a_session();
    fork.push(own);
    let stats = stats_of(&[
        ("a.jsonl", lines(&a_session())),
        ("b.jsonl", lines(&fork)),
        (
            "b/subagents/agent-1.jsonl",
            lines(&[said("y", "r8", call("t1", "Grep"), 3, 1)]),
        ),
        ("b/subagents/agent-1.meta.json", "{}".to_owned()),
    ]);
    assert_eq!(
        (stats.sessions, stats.subagents, stats.prompts),
        (2, 1, 1),
        "{stats:?}"
    );
    let model = &stats.models["large"];
    assert_eq!((model.replies, model.usage.output), (5, 158));
    assert_eq!(stats.tools["Bash"].calls, 2);
    assert_eq!(stats.tools["Grep"].calls, 1);
}

#[test]
fn lines_that_make_no_sense_are_counted_and_the_rest_works() {
    let mut text = lines(&a_session());
    let whole = stats_of(&[("s.jsonl", text.clone())]);
    for bad in [
        "{",
        "[1]",
        "\u{0}\u{1}",
        "{\"type\": 5}",
        "null",
        "{\"type\":\"assistant\",\"requestId\":\"q\",\"message\":{\"usage\":{\"input_tokens\":-1}}}",
        "{\"type\":\"assistant\",\"requestId\":\"q\",\"message\":{\"usage\":{\"input_tokens\":1e300}}}",
    ] {
        text.push_str(bad);
        text.push('\n');
    }
    // Cut off while it was written.
    text.push_str("{\"type\":\"assistant\",\"messa");
    let stats = stats_of(&[("s.jsonl", text)]);
    assert_eq!(stats.unreadable, 8);
    assert_eq!(
        SessionStats {
            unreadable: 0,
            ..stats
        },
        whole
    );
}

#[test]
fn counts_stop_at_their_ends_and_names_are_few() {
    let most = said("a", "r", json!({"type": "text", "text": ""}), u64::MAX, 1);
    let again = said("b", "q", json!({"type": "text", "text": ""}), u64::MAX, 1);
    let mut all = vec![most, again];
    for number in 0..(MAX_NAMES + 500) {
        let id = format!("t{number}");
        let name = format!("{number}{}", "\u{202e}x".repeat(500));
        all.push(said(&id, "r", call(&id, &name), 1, 1));
    }
    let stats = stats_of(&[("s.jsonl", lines(&all))]);
    assert_eq!(stats.tools.len(), MAX_NAMES + 1);
    assert_eq!(stats.tools[OTHERS].calls, 500);
    assert!(stats.tools.keys().all(|name| name.chars().count() <= 100));
    assert_eq!(stats.models["large"].replies, 2);
}

#[test]
fn transcripts_of_other_programs_have_refusals_and_times_too() {
    let mut refused = answer("b", "t", true, 9);
    refused["toolUseResult"] =
        json!("Error: The user doesn't want to proceed with this tool use. …");
    let mut failed = answer("d", "u", true, 12);
    failed["toolUseResult"] = json!("Error: Permission denied");
    let stats = stats_of(&[(
        "s.jsonl",
        lines(&[
            said("a", "r", call("t", "Bash"), 1, 1),
            refused,
            said("c", "q", call("u", "Bash"), 1, 10),
            failed,
        ]),
    )]);
    let bash = &stats.tools["Bash"];
    assert_eq!((bash.calls, bash.refusals, bash.errors), (2, 1, 1));
    assert_eq!(bash.time, Duration::from_secs(2));
}

#[test]
fn what_is_no_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut reader = StatsReader::new();
    assert!(reader.read(folder.path()).is_err());
    assert!(reader.read(&folder.path().join("none.jsonl")).is_err());
    assert_eq!(reader.finish(), SessionStats::default());
}
