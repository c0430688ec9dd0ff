use haft_models::{Block, BlockStart, ModelEvent, ReplyAssembler, StopReason};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// What one block is made of, with its JSON or text cut into pieces.
#[derive(Debug, Clone)]
struct Plan {
    is_call: bool,
    pieces: Vec<String>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let text = "[a-z\"\\\\{}\\[\\],:é€🙂 ]{0,12}";
    (
        any::<bool>(),
        text,
        prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    )
        .prop_map(|(is_call, text, cuts)| {
            let whole = if is_call {
                json!({"x": text}).to_string()
            } else {
                text
            };
            let ends: Vec<usize> = whole
                .char_indices()
                .map(|(at, _)| at)
                .chain([whole.len()])
                .collect();
            let mut at: Vec<usize> = cuts.iter().map(|cut| ends[cut.index(ends.len())]).collect();
            at.extend([0, whole.len()]);
            at.sort_unstable();
            let pieces = at
                .windows(2)
                .map(|pair| whole[pair[0]..pair[1]].to_owned())
                .collect();
            Plan { is_call, pieces }
        })
}

fn events(index: usize, plan: &Plan) -> Vec<ModelEvent> {
    let block = match plan.is_call {
        true => BlockStart::ToolUse {
            id: format!("id{index}"),
            name: "R".to_owned(),
            extra: Map::new(),
        },
        false => BlockStart::Text,
    };
    let piece = |text: &String| match plan.is_call {
        true => ModelEvent::Input {
            index,
            json: text.clone(),
        },
        false => ModelEvent::Text {
            index,
            text: text.clone(),
        },
    };
    let mut events = vec![ModelEvent::BlockStart { index, block }];
    events.extend(plan.pieces.iter().map(piece));
    events.push(ModelEvent::BlockStop { index });
    events
}

proptest! {
    #[test]
    fn blocks_are_the_same_however_they_interleave(
        plans in prop::collection::vec(plan(), 1..5),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..80),
    ) {
        let mut queues: Vec<Vec<ModelEvent>> = plans.iter().enumerate()
            .map(|(index, plan)| events(index, plan).into_iter().rev().collect()).collect();
        let mut assembler = ReplyAssembler::new("m");
        // Blocks begin in order, as every provider promises; the rest comes anyhow.
        let mut begun = Vec::new();
        for queue in &mut queues {
            begun.extend(queue.pop());
        }
        let rest = picks.iter().map(|pick| pick.index(plans.len())).chain((0..plans.len()).flat_map(|index| vec![index; 20]));
        let mut handed_out = Vec::new();
        for event in begun {
            handed_out.extend(assembler.push(&event));
        }
        for index in rest {
            if let Some(event) = queues[index].pop() {
                handed_out.extend(assembler.push(&event));
            }
        }
        handed_out.extend(assembler.push(&ModelEvent::Stop { reason: StopReason::EndTurn }));
        let reply = assembler.finish();
        prop_assert!(!reply.incomplete);
        prop_assert_eq!(reply.message.content.len(), plans.len());
        for (plan, block) in plans.iter().zip(&reply.message.content) {
            let whole = plan.pieces.concat();
            match block {
                Block::Text { text } => prop_assert_eq!(text, &whole),
                Block::ToolUse { input, .. } => prop_assert_eq!(input, &serde_json::from_str::<Value>(&whole).unwrap()),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        // Each call once, whether told by the way or in the end.
        let mut by_the_way: Vec<String> = handed_out.iter().map(|call| call.id.clone()).collect();
        by_the_way.sort();
        let mut in_the_end: Vec<String> = reply.calls.iter().map(|call| call.id.clone()).collect();
        in_the_end.sort();
        prop_assert_eq!(by_the_way, in_the_end);
    }

    #[test]
    fn nothing_that_a_stream_says_makes_it_panic(
        order in prop::collection::vec((0..6usize, 0..3usize, "[{}\"a:1,]{0,4}"), 0..30),
    ) {
        let mut assembler = ReplyAssembler::new("m");
        let mut calls = 0;
        for (kind, index, text) in order {
            let block = match text.len() % 3 {
                0 => BlockStart::Text,
                1 => BlockStart::Thinking,
                _ => BlockStart::ToolUse { id: "same".to_owned(), name: "R".to_owned(), extra: Map::new() },
            };
            let event = match kind {
                0 => ModelEvent::BlockStart { index, block },
                1 => ModelEvent::Text { index, text },
                2 => ModelEvent::Input { index, json: text },
                3 => ModelEvent::Thinking { index, text },
                4 => ModelEvent::BlockStop { index },
                _ => ModelEvent::Signature { index, signature: text },
            };
            calls += usize::from(assembler.push(&event).is_some());
        }
        calls += usize::from(assembler.push(&ModelEvent::Stop { reason: StopReason::EndTurn }).is_some());
        let reply = assembler.finish();
        prop_assert_eq!(calls, reply.calls.len());
        let mut ids: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), reply.calls.len());
        // Whatever came of it can be answered and sent.
        let mut conversation = haft_models::Conversation::new();
        conversation.user([haft_contract::Content::text("go")]);
        let results = reply.calls.iter().map(|call| haft_models::ToolResult::text(&call.id, "ok")).collect();
        prop_assert_eq!(conversation.assistant(reply.message, results), Ok(()));
    }
}

#[test]
fn inputs_that_cannot_be_used() {
    let cases = [
        r#"{"a": 1,}"#,
        r#"{"a": "b"#,
        "[1]",
        "\"text\"",
        "{} {}",
        "<tool>",
    ];
    let mut lines = Vec::new();
    for json in cases {
        let mut assembler = ReplyAssembler::new("m");
        let plan = Plan {
            is_call: true,
            pieces: vec![json.to_owned()],
        };
        let calls: Vec<_> = events(0, &plan)
            .iter()
            .filter_map(|event| assembler.push(event))
            .collect();
        lines.push(calls[0].input.clone().unwrap_err().to_string());
    }
    insta::assert_snapshot!(lines.join("\n"));
}
