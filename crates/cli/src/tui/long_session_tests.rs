//! The memory of the front end does not grow with the turns of a session. (`benches/terminal` measures it.)

use haft::{CallId, CallResult, Card, Content, Metadata, ProgressUpdate};
use haft_agent::AgentEvent;
use haft_models::ModelEvent;
use haft_terminal::Key;

use super::test_bench::UiTestBench;

/// A message with something pasted, a call that prints and is answered, a reply.
fn turn(bench: &mut UiTestBench, number: usize) {
    // The same words, as someone who says "go on" many times: what was typed has bounds of its own.
    bench.type_keys("go ");
    bench.paste(&"a pasted line\n".repeat(50));
    bench.key(Key::RETURN);
    bench.runs();
    let id = format!("toolu_{number}");
    let card = Card::new("Bash", format!("echo {number}"));
    let call = CallId::new();
    bench.agent(AgentEvent::CallBound {
        call,
        tool_use_id: id.clone(),
        tool_name: "Bash".to_owned(),
        card: card.clone(),
    });
    bench.agent(AgentEvent::Progress {
        call,
        tool_use_id: id.clone(),
        update: ProgressUpdate::Text {
            text: "a line of output\n".repeat(100),
        },
    });
    let finished = CallResult {
        call,
        id,
        name: "Bash".to_owned(),
        is_error: false,
        content: vec![Content::text("a line of output\n".repeat(100))],
        structured: None,
        messages: Vec::new(),
        patches: Vec::new(),
        metadata: Metadata::default(),
        card,
    };
    bench.agent(AgentEvent::CallFinished {
        uuid: CallId::new().0,
        finished: Box::new(finished),
    });
    bench.says("Some words of an answer.\n\n```rust\nlet a = 1;\n```\n\nAll.");
    bench.agent(AgentEvent::Model(ModelEvent::BlockStop { index: 0 }));
    bench.idle();
    bench.wait(2_000);
    // Performed, not kept.
    drop(bench.take_effects());
    bench.bytes.clear();
}

/// Everything that has a length.
fn kept(bench: &mut UiTestBench) -> Vec<(&'static str, usize)> {
    let app = &mut bench.app;
    let queue = format!("{:?}", app.queue).len();
    vec![
        ("history", app.take_all_history().len()),
        ("queue", queue),
        ("calls", usize::from(!app.calls.is_empty())),
        ("answers", app.reply.answers.iter().map(String::len).sum()),
        ("pictures", app.images.len()),
        (
            "said",
            app.prompt_history.iter().map(|said| said.text.len()).sum(),
        ),
        ("unsent", app.unsent.len()),
        ("keys", app.pending_keys.len()),
        ("memory", app.memory.len()),
        ("status", app.status_rows.len()),
        ("questions", usize::from(!app.questions.is_empty())),
        ("draft", app.editor.text().len()),
    ]
}

#[test]
fn what_the_face_keeps_does_not_grow_with_turns() {
    let mut bench = UiTestBench::new(80, 24);
    for number in 0..30 {
        turn(&mut bench, number);
    }
    let early = kept(&mut bench);
    for number in 30..300 {
        turn(&mut bench, number);
    }
    assert_eq!(kept(&mut bench), early);
}
