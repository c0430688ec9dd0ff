use serde_json::json;

use super::*;

fn lines(values: &[Value]) -> Vec<String> {
    values.iter().map(Value::to_string).collect()
}

fn user(uuid: &str, parent: Option<&str>, content: Value) -> Value {
    json!({"type": "user", "uuid": uuid, "parentUuid": parent,
           "message": {"role": "user", "content": content}})
}

fn said(uuid: &str, parent: &str, id: &str, block: Value) -> Value {
    json!({"type": "assistant", "uuid": uuid, "parentUuid": parent,
           "message": {"id": id, "role": "assistant", "model": "m", "content": [block]}})
}

fn called(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

fn answer(id: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": format!("of {id}")}])
}

fn shown(loaded: &LoadedTranscript) -> Vec<String> {
    let blocks = loaded.conversation.messages().flat_map(|message| {
        let who = if message.role == Role::User {
            "user"
        } else {
            "model"
        };
        message.content.iter().map(move |block| match block {
            Block::Text { text } => format!("{who}: {text}"),
            Block::ToolUse { id, .. } => format!("{who}: calls {id}"),
            Block::ToolResult(result) => format!("{who}: answers {}", result.tool_use_id),
            other => format!("{who}: {other:?}"),
        })
    });
    blocks.collect()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn answers_on_branches_of_their_own_are_found() {
    // Each answer hangs on its call, so the chain from the last line misses the first answer.
    let loaded = load(
        &lines(&[
            user("u1", None, json!("go")),
            said("a1", "u1", "msg_1", called("x")),
            user("r1", Some("a1"), answer("x")),
            said("a2", "a1", "msg_1", called("y")),
            user("r2", Some("a2"), answer("y")),
            said("a3", "r2", "msg_2", text("done")),
        ]),
        None,
    );
    let loaded = loaded.unwrap();
    assert_eq!(
        shown(&loaded),
        [
            "user: go",
            "model: calls x",
            "model: calls y",
            "user: answers x",
            "user: answers y",
            "model: done"
        ]
    );
    assert_eq!(loaded.repairs, Vec::<String>::new());
}

#[test]
fn branches_that_were_left_and_sidechains_do_not_count() {
    let mut side = user("s1", Some("a1"), json!("a subagent's prompt"));
    side["isSidechain"] = json!(true);
    let mut failed = said("e1", "a1", "msg_e", text("API Error"));
    failed["isApiErrorMessage"] = json!(true);
    let loaded = load(
        &lines(&[
            json!({"type": "summary", "summary": "a title", "leafUuid": "a1"}),
            user("u1", None, json!("go")),
            said("a1", "u1", "msg_1", text("one")),
            user("u2", Some("a1"), json!("wrong")),
            said("a2", "u2", "msg_2", text("left")),
            failed,
            user("u3", Some("e1"), json!([text("right")])),
            side,
        ]),
        None,
    );
    let loaded = loaded.unwrap();
    assert_eq!(shown(&loaded), ["user: go", "model: one", "user: right"]);
    assert_eq!(loaded.repairs, Vec::<String>::new());
}

#[test]
fn what_is_known_of_a_call_is_told() {
    let started = |id: &str, repeat: &str| json!({"type": STARTED, "toolUseId": id, "repeat": repeat, "files": {"reads": ["/a"]}});
    let loaded = load(
        &lines(&[
            user("u1", None, json!("go")),
            said("a1", "u1", "msg_1", called("never begun")),
            said("a2", "a1", "msg_1", called("reads")),
            said("a3", "a2", "msg_1", called("writes")),
            said("a4", "a3", "msg_1", called("runs")),
            started("reads", "harmless"),
            started("writes", "checkable"),
            started("runs", "never"),
        ]),
        None,
    );
    let loaded = loaded.unwrap();
    let told: Vec<(&str, &str)> = loaded
        .synthesized_results
        .iter()
        .map(|result| {
            (
                result.tool_use_id.as_str(),
                result.content[0].as_text().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("never begun", NOT_BEGUN),
        ("reads", ONLY_READS),
        ("writes", LOOK_FIRST),
        ("runs", UNKNOWN),
    ];
    assert_eq!(told, expected);
    assert!(loaded.files.reads.contains(std::path::Path::new("/a")));
    assert_eq!(loaded.repairs.len(), 4);
}

#[test]
fn only_what_follows_a_summary_counts() {
    let loaded = load(
        &lines(&[
            user("u1", None, json!("go")),
            said("a1", "u1", "msg_1", text("one")),
            json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
                   "logicalParentUuid": "a1"}),
            user("u2", Some("b"), json!("in short")),
            said("a2", "u2", "msg_2", text("two")),
        ]),
        None,
    );
    assert_eq!(shown(&loaded.unwrap()), ["user: in short", "model: two"]);
}

#[test]
fn circles_and_nonsense_end() {
    let nonsense = ["", "null", "[]", "{", "{\"type\": 3}", "\u{fffd}"].map(str::to_owned);
    assert_eq!(shown(&load(&nonsense, None).unwrap()), Vec::<String>::new());
    let loaded = load(
        &lines(&[
            user("u1", Some("u2"), json!("one")),
            user("u2", Some("u1"), json!("two")),
            user("u3", Some("u2"), json!({"odd": 1})),
        ]),
        None,
    );
    let loaded = loaded.unwrap();
    assert_eq!(shown(&loaded), ["user: one", "user: two"]);
    assert_eq!(loaded.repairs.len(), 1);
    assert!(load(&[], Some("nowhere")).is_none());
}

#[test]
fn the_first_line_of_a_subagent_without_a_name_is_no_trouble() {
    let first = json!({"type": "haft-agent", "agentId": "a", "agentType": "t", "name": null});
    let loaded = load(&lines(&[first, user("a", None, json!("said"))]), None).unwrap();
    assert_eq!(loaded.repairs, Vec::<String>::new());
}
