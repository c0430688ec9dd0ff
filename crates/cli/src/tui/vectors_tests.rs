//! The vectors of the specification that need no process of their own.

use haft::{ApprovalAnswer, Card, CardPiece};
use haft_agent::AgentEvent;
use haft_models::ModelEvent;
use haft_terminal::{Key, KeyCode};
use serde_json::json;

use super::{
    app::Effect,
    test_bench::{Bench, request},
};

const ENTER: Key = Key::RETURN;

fn bash(command: &str, rules: &[&str]) -> haft::ApprovalRequest {
    let card = Card::new("Bash", command);
    request("Bash", card, json!({"command": command}), rules)
}

/// A command of so many lines, as its tool shows it.
fn long_bash(lines: usize) -> haft::ApprovalRequest {
    let command: Vec<String> = (1..=lines).map(|n| format!("echo {n}")).collect();
    let command = command.join("\n");
    let card = Card::new("Bash", "echo 1…").with(CardPiece::Text(command.clone()));
    request("Bash", card, json!({"command": command}), &[])
}

fn answers(bench: &mut Bench) -> Vec<(u64, ApprovalAnswer)> {
    let effects = bench.take_effects().into_iter();
    let answers = effects.filter_map(|effect| match effect {
        Effect::Answer { id, answer } => Some((id, answer)),
        _ => None,
    });
    answers.collect()
}

#[test]
fn vector_4_typing_goes_on_while_a_reply_streams() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.type_keys("he");
    bench.says("I look at the files, and then ");
    bench.says("I say more.\n\nAnd");
    bench.type_keys("llo");
    assert_eq!(bench.draft(), "hello");
    let rows = bench.rows();
    let row = rows.lines().position(|row| row == "> hello").unwrap();
    assert_eq!(bench.cursor(), Some((7, row)));
}

#[test]
fn vector_5_idle_writes_nothing_and_has_no_timer() {
    let mut bench = Bench::with(80, 24, false, |_| None);
    bench.wait(1);
    bench.bytes.clear();
    assert_eq!(bench.app.due(bench.now), None);
    bench.wait(10_000);
    assert!(bench.bytes.is_empty());
    // Unfocused with a run: only history.
    bench.runs();
    bench.wait(600);
    assert!(bench.app.due(bench.now).is_some());
    bench.read(b"\x1b[O");
    assert_eq!(bench.app.due(bench.now), None);
    bench.bytes.clear();
    bench.wait(10_000);
    assert!(bench.bytes.is_empty());
}

#[test]
fn vector_9_what_is_typed_as_a_question_appears_answers_nothing() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.type_keys("y");
    bench.asks(1, bash("make", &[]));
    bench.type_keys("yy");
    bench.wait(5_000);
    assert_eq!(bench.draft(), "yyy");
    assert!(answers(&mut bench).is_empty());
    assert!(bench.rows().contains("Tab to answer"));
}

#[test]
fn vector_10_a_key_answers_some_time_after_the_question_was_seen() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.wait(2_000);
    bench.asks(1, bash("make", &[]));
    bench.wait(200);
    bench.key(Key::char('y'));
    assert_eq!(bench.draft(), "y");
    assert!(answers(&mut bench).is_empty());

    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.wait(2_000);
    bench.asks(1, bash("make", &[]));
    bench.wait(500);
    bench.key(Key::char('y'));
    assert_eq!(answers(&mut bench), [(1, ApprovalAnswer::Allow)]);
    assert_eq!(bench.draft(), "");
}

#[test]
fn vector_11_enter_answers_nothing_and_one_answer_answers_one_question() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("make", &[]));
    bench.asks(2, bash("make install", &[]));
    bench.wait(2_000);
    bench.key(ENTER);
    assert!(answers(&mut bench).is_empty());
    bench.wait(500);
    bench.key(Key::char('y'));
    bench.wait(250);
    bench.key(Key::char('y'));
    assert_eq!(answers(&mut bench), [(1, ApprovalAnswer::Allow)]);
    assert_eq!(bench.draft(), "y");
}

#[test]
fn a_paste_and_keys_of_one_read_never_answer() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("make", &[]));
    bench.wait(2_000);
    bench.read(b"yy");
    assert!(answers(&mut bench).is_empty());
    assert_eq!(bench.draft(), "yy");
    bench.key(Key::control('u'));
    bench.wait(2_000);
    bench.paste("y");
    assert!(answers(&mut bench).is_empty());
    assert_eq!(bench.draft(), "y");
}

#[test]
fn vector_12_what_is_longer_than_the_region_is_read_to_its_end_first() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.asks(1, long_bash(60));
    bench.wait(2_000);
    bench.key(Key::char('y'));
    assert!(answers(&mut bench).is_empty());
    assert!(bench.rows().contains("v first"), "{}", bench.rows());
    bench.wait(100);
    bench.key(Key::char('v'));
    assert!(bench.app.overlay_rows().is_some());
    bench.wait(100);
    bench.key(Key::plain(KeyCode::End));
    let rows = bench.app.overlay_rows().unwrap();
    assert!(rows.iter().any(|row| row.text().contains("echo 60")));
    bench.wait(100);
    bench.key(Key::char('q'));
    assert!(bench.app.overlay_rows().is_none());
    bench.wait(1_000);
    bench.key(Key::char('y'));
    assert_eq!(answers(&mut bench), [(1, ApprovalAnswer::Allow)]);
}

#[test]
fn vector_14_a_reason_goes_with_a_no() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("npm i", &[]));
    bench.wait(2_000);
    bench.key(Key::char('r'));
    bench.type_keys("no, use yarnx");
    bench.wait(100);
    bench.key(Key::plain(KeyCode::Backspace));
    bench.wait(100);
    bench.key(ENTER);
    let reason = Some("no, use yarn".to_owned());
    assert_eq!(answers(&mut bench), [(1, ApprovalAnswer::Deny { reason })]);
}

#[test]
fn vector_15_a_changed_command_is_judged_again() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("ls", &[]));
    bench.wait(2_000);
    bench.key(Key::char('e'));
    bench.wait(100);
    bench.key(Key::control('u'));
    bench.type_keys("rm -rf /");
    bench.wait(100);
    bench.key(ENTER);
    let input = json!({"command": "rm -rf /"});
    assert_eq!(
        answers(&mut bench),
        [(1, ApprovalAnswer::Changed { input })]
    );
}

#[test]
fn backspace_in_an_empty_line_of_a_question_never_answers() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("ls", &[]));
    bench.wait(2_000);
    bench.key(Key::char('r'));
    for _ in 0..3 {
        bench.wait(100);
        bench.key(Key::plain(KeyCode::Backspace));
    }
    assert!(answers(&mut bench).is_empty());
    assert!(bench.app.questions.has_focus());
}

#[test]
fn vector_16_escape_leaves_a_question_open_and_stops_the_run() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("make", &[]));
    bench.wait(2_000);
    bench.key(Key::ESCAPE);
    assert!(bench.take_effects().is_empty());
    assert!(bench.rows().contains("Tab to answer"));
    bench.wait(5_000);
    assert!(!bench.app.questions.has_focus(), "it stays left");
    bench.key(Key::ESCAPE);
    let effects = bench.take_effects();
    let is_no = |effect: &Effect| {
        matches!(
            effect,
            Effect::Answer {
                id: 1,
                answer: ApprovalAnswer::Deny { .. }
            }
        )
    };
    assert!(effects.iter().any(is_no));
    assert!(matches!(effects.last(), Some(Effect::Interrupt)));
}

#[test]
fn vector_18_up_takes_queued_messages_back_newest_first() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    for text in ["one", "two", "three"] {
        bench.type_keys(text);
        bench.key(ENTER);
    }
    for _ in 0..2 {
        bench.wait(100);
        bench.key(Key::plain(KeyCode::Up));
    }
    assert_eq!(bench.draft(), "two\nthree");
    assert!(bench.rows().contains(" next: one"));
    let effects = bench.take_effects();
    let taken = effects.iter().filter(|e| matches!(e, Effect::TakeBack(_)));
    assert_eq!(taken.count(), 2);
}

#[test]
fn vector_19_stopping_a_run_puts_undelivered_messages_back() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    for text in ["one", "two", "three"] {
        bench.type_keys(text);
        bench.key(ENTER);
    }
    bench.type_keys("draft");
    bench.take_effects();
    bench.key(Key::ESCAPE);
    assert_eq!(bench.draft(), "one\ntwo\nthree\ndraft");
    let effects = bench.take_effects();
    assert!(matches!(effects.last(), Some(Effect::Interrupt)));
    assert!(!effects.iter().any(|e| matches!(e, Effect::Say { .. })));
}

#[test]
fn vector_36_a_reply_cannot_act_on_the_terminal() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.bytes.clear();
    bench.says("before \u{1b}[2J and \u{1b}]52;c;aGk=\u{7} after\n\n");
    bench.agent(AgentEvent::Model(ModelEvent::BlockStop { index: 0 }));
    let bytes = String::from_utf8(bench.bytes.clone()).unwrap();
    assert!(!bytes.contains("\u{1b}[2J") && !bytes.contains("\u{1b}]52"));
    assert!(bench.rows().contains("before ␛[2J and ␛]52;c;aGk=␇ after"));
}

#[test]
fn a_command_cannot_act_on_the_terminal_either() {
    let mut bench = Bench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("echo \u{1b}]52;c;x\u{7} \u{202e}gpj.exe", &[]));
    bench.wait(1_500);
    let bytes = String::from_utf8(bench.bytes.clone()).unwrap();
    assert!(!bytes.contains("\u{1b}]52") && !bytes.contains('\u{202e}'));
}

#[test]
fn ctrl_c_stops_clears_and_leaves_in_this_order() {
    let mut bench = Bench::new(80, 24);
    bench.type_keys("draft");
    bench.runs();
    bench.key(Key::control('c'));
    assert_eq!(bench.draft(), "draft", "the draft is untouched");
    assert!(matches!(
        bench.take_effects().as_slice(),
        [Effect::Interrupt]
    ));
    bench.idle();
    bench.key(Key::control('c'));
    assert_eq!(bench.draft(), "");
    bench.key(Key::control('c'));
    assert!(bench.take_effects().is_empty());
    assert!(bench.rows().contains("Ctrl-C once more leaves"));
    bench.wait(2_500);
    assert!(!bench.rows().contains("Ctrl-C once more leaves"));
    bench.key(Key::control('c'));
    bench.wait(500);
    bench.key(Key::control('c'));
    assert!(matches!(bench.take_effects().as_slice(), [Effect::Leave]));
}

#[test]
fn ctrl_d_leaves_and_during_a_run_only_when_pressed_again() {
    let mut bench = Bench::new(80, 24);
    bench.type_keys("ab");
    bench.key(Key::control('a'));
    bench.key(Key::control('d'));
    assert_eq!(bench.draft(), "b");
    bench.key(Key::control('d'));
    bench.runs();
    bench.key(Key::control('d'));
    assert!(bench.take_effects().is_empty());
    bench.wait(300);
    bench.key(Key::control('d'));
    assert!(matches!(bench.take_effects().as_slice(), [Effect::Leave]));
}
