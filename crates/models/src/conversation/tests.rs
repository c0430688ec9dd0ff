use proptest::prelude::*;
use serde_json::json;

use super::*;

fn call(id: &str, name: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input: json!({}),
        extra: serde_json::Map::new(),
    }
}

fn asked() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.user([Content::text("go")]);
    conversation
}

/// Who speaks, and each block as a word.
fn outline(conversation: &Conversation) -> Vec<String> {
    let word = |block: &Block| match block {
        Block::Text { text } => format!("text {text}"),
        Block::ToolUse { id, .. } => format!("call {id}"),
        Block::ToolResult(result) => format!(
            "{} {}",
            if result.is_error { "error" } else { "result" },
            result.tool_use_id
        ),
        other => format!("{other:?}"),
    };
    let line = |message: &Message| {
        let words: Vec<String> = message.content.iter().map(word).collect();
        let role = json!(message.role);
        format!("{}: {}", role.as_str().unwrap(), words.join(", "))
    };
    conversation.messages().map(line).collect()
}

#[test]
fn a_call_comes_in_with_its_result_and_results_stand_first_in_the_order_of_the_calls() {
    let mut conversation = asked();
    let reply = Message::assistant(
        vec![Block::text("two"), call("a", "Read"), call("b", "Grep")],
        "m",
    );
    let results = vec![ToolResult::text("b", "2"), ToolResult::text("a", "1")];
    conversation.assistant(reply, results).unwrap();
    conversation.user([Content::text("and then")]);
    assert_eq!(
        outline(&conversation),
        [
            "user: text go",
            "assistant: text two, call a, call b",
            "user: result a, result b, text and then"
        ]
    );
}

#[test]
fn what_cannot_be_sent_is_refused_and_changes_nothing() {
    use ConversationError::*;
    let id = || "a".to_owned();
    let array = Block::ToolUse {
        id: id(),
        name: "Read".to_owned(),
        input: json!([]),
        extra: serde_json::Map::new(),
    };
    let cases = [
        (
            "no result",
            vec![call("a", "Read")],
            vec![],
            Unanswered {
                id: id(),
                name: "Read".to_owned(),
            },
        ),
        (
            "no call",
            vec![Block::text("x")],
            vec![ToolResult::text("a", "1")],
            ResultWithoutCall { id: id() },
        ),
        (
            "two results",
            vec![call("a", "Read")],
            vec![ToolResult::text("a", "1"), ToolResult::text("a", "2")],
            DuplicateId { id: id() },
        ),
        (
            "two calls",
            vec![call("a", "Read"), call("a", "Read")],
            vec![ToolResult::text("a", "1")],
            DuplicateId { id: id() },
        ),
        (
            "no object",
            vec![array],
            vec![ToolResult::text("a", "1")],
            InvalidInput { id: id() },
        ),
        (
            "a result of the model's",
            vec![Block::ToolResult(ToolResult::text("a", "1"))],
            vec![],
            Misplaced("a tool result"),
        ),
    ];
    for (what, content, results, error) in cases {
        let mut conversation = asked();
        let refused = conversation.assistant(Message::assistant(content, "m"), results);
        assert_eq!(refused, Err(error), "{what}");
        assert_eq!(outline(&conversation), ["user: text go"], "{what}");
    }
    let mut empty = Conversation::new();
    let first = Message::assistant(vec![Block::text("hi")], "m");
    assert_eq!(empty.assistant(first, vec![]), Err(NoUserMessage));
}

#[test]
fn an_id_that_was_used_before_is_changed_with_its_result() {
    let mut conversation = asked();
    for text in ["1", "2", "3"] {
        let reply = Message::assistant(vec![call("call_0", "Read")], "m");
        conversation
            .assistant(reply, vec![ToolResult::text("call_0", text)])
            .unwrap();
    }
    assert_eq!(
        outline(&conversation),
        [
            "user: text go",
            "assistant: call call_0",
            "user: result call_0",
            "assistant: call call_0_2",
            "user: result call_0_2",
            "assistant: call call_0_3",
            "user: result call_0_3",
        ]
    );
}

#[test]
fn empty_text_is_not_kept_and_a_paused_reply_goes_on() {
    let mut conversation = asked();
    let say = |text: &str| Message::assistant(vec![Block::text(text), Block::text(" \n")], "m");
    conversation.assistant(say("one"), vec![]).unwrap();
    conversation.assistant(say("two"), vec![]).unwrap();
    conversation.assistant(say(""), vec![]).unwrap();
    assert_eq!(
        outline(&conversation),
        ["user: text go", "assistant: text one, text two"]
    );
}

#[test]
fn loading_repairs_and_says_what_it_repaired() {
    let message = |role: &str, content: Value| -> Message {
        serde_json::from_value(json!({"role": role, "content": content})).unwrap()
    };
    let use_of = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    let (conversation, repairs) = Conversation::load([
        message("assistant", json!("hello")),
        message(
            "user",
            json!([result("lost"), {"type": "text", "text": "go"}]),
        ),
        // A log with a message a block.
        message("assistant", json!([use_of("a")])),
        message("assistant", json!([use_of("b"), use_of("b")])),
        message(
            "user",
            json!([{"type": "text", "text": "meanwhile"}, result("b")]),
        ),
        message(
            "user",
            json!([result("b"), {"type": "thinking", "thinking": "?"}]),
        ),
        message(
            "assistant",
            json!([{"type": "tool_use", "id": "c", "name": "Read", "input": "x"}]),
        ),
        message(
            "assistant",
            json!([{"type": "tool_use", "name": "Read"}, {"type": "web_search_tool_result"}, 7]),
        ),
    ]);
    let repairs: Vec<String> = repairs.iter().map(HistoryRepair::to_string).collect();
    insta::assert_snapshot!(format!(
        "{}\n\n{}",
        outline(&conversation).join("\n"),
        repairs.join("\n")
    ));
}

#[test]
fn a_sound_conversation_is_loaded_as_it_is() {
    let mut conversation = asked();
    let reply = Message::assistant(vec![call("a", "Read"), call("b", "Read")], "m");
    let results = vec![ToolResult::text("a", "1"), ToolResult::error("b", "2")];
    conversation.assistant(reply, results).unwrap();
    conversation.user([Content::text("on")]);
    conversation
        .assistant(Message::assistant(vec![Block::text("done")], "m"), vec![])
        .unwrap();
    let log = serde_json::to_string(&conversation.messages().collect::<Vec<_>>()).unwrap();
    let (loaded, repairs) = Conversation::load(serde_json::from_str::<Vec<Message>>(&log).unwrap());
    assert_eq!(repairs, []);
    assert!(loaded.messages().eq(conversation.messages()));
}

fn any_block() -> impl Strategy<Value = Block> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        prop::sample::select(vec!["", " ", "text"]).prop_map(Block::text),
        id.clone().prop_map(|id| call(id, "Read")),
        id.prop_map(|id| Block::ToolResult(ToolResult::text(id, "ok"))),
        Just(Block::RedactedThinking {
            data: "x".to_owned()
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_is_loaded_can_be_sent(
        messages in prop::collection::vec((any::<bool>(), prop::collection::vec(any_block(), 0..5)), 0..8),
    ) {
        let messages = messages.into_iter().map(|(user, content)| match user {
            true => Message::user(content),
            false => Message::assistant(content, "m"),
        });
        let (conversation, _) = Conversation::load(messages);
        let messages: Vec<&Message> = conversation.messages().collect();
        let mut ids = HashSet::new();
        for (index, message) in messages.iter().enumerate() {
            prop_assert_eq!(message.role == Role::User, index % 2 == 0);
            prop_assert!(!message.content.is_empty());
            prop_assert!(!message.content.iter().any(Block::is_empty_text));
            let calls: Vec<&str> = message.calls().map(|(id, _)| id).collect();
            let next = messages.get(index + 1).map_or(&[][..], |next| &next.content);
            let answers: Vec<&str> = next.iter().filter_map(|block| match block {
                Block::ToolResult(result) => Some(result.tool_use_id.as_str()),
                _ => None,
            }).collect();
            if message.role == Role::Assistant {
                prop_assert_eq!(&calls, &answers);
                prop_assert!(next.iter().take(calls.len()).all(|block| matches!(block, Block::ToolResult(_))));
            }
            for id in calls {
                prop_assert!(ids.insert(id.to_owned()));
            }
        }
        let first = messages.first().map_or(&[][..], |first| &first.content);
        let has_result = first.iter().any(|block| matches!(block, Block::ToolResult(_)));
        prop_assert!(!has_result);
    }
}
