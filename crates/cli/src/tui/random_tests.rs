//! The front end under random events: whatever comes, it draws, and answers only questions that were asked.

use std::collections::HashSet;

use haft::{ApprovalRequest, Card, CardSection};
use haft_agent::AgentEvent;
use haft_host::{SessionActivity, SessionEvent};
use haft_models::ModelEvent;
use haft_terminal::{Key, KeyCode};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::{
    app::{AppEffect, AppInput, AppSessionState, JobResult},
    test_bench::{UiTestBench, request},
};

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    Key(Key),
    Bytes(Vec<u8>),
    Paste(String),
    Text(String),
    BlockStop,
    Discard,
    Runs,
    Idle,
    Ended,
    Asks(u64, String, bool),
    Over(u64),
    Calls(u8, String),
    Resized(u16, u16),
    Waits(u64),
    Focus(bool),
    KeptDraft(String),
    Vi(bool),
    Answered(String),
}

const KEYS: [KeyCode; 14] = [
    KeyCode::Enter,
    KeyCode::Tab,
    KeyCode::Escape,
    KeyCode::Backspace,
    KeyCode::Delete,
    KeyCode::Up,
    KeyCode::Down,
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::Home,
    KeyCode::End,
    KeyCode::PageUp,
    KeyCode::PageDown,
    KeyCode::Function(5),
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,12}",
        "\\PC{0,40}",
        any::<String>(),
        "(\\*\\*|`|```\n|# |- |\\[|\\]\\(|\\||\n|\u{1b}\\[2J|\u{202e}|\t|漢|👨\u{200d}👩|a){0,40}",
    ]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        (0..KEYS.len()).prop_map(|at| Key::plain(KEYS[at])),
        (0..KEYS.len()).prop_map(|at| Key::plain(KEYS[at]).with_shift()),
        (0..KEYS.len()).prop_map(|at| Key::plain(KEYS[at]).with_alt()),
        proptest::char::range('a', 'z').prop_map(Key::control),
        proptest::char::range('a', 'z').prop_map(|letter| Key::char(letter).with_alt()),
        proptest::char::range(' ', '~').prop_map(Key::char),
        any::<char>().prop_map(Key::char),
        Just(Key::control('_')),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => key().prop_map(Step::Key),
        2 => vec(any::<u8>(), 0..24).prop_map(Step::Bytes),
        2 => text().prop_map(Step::Paste),
        1 => text().prop_map(|text| Step::Paste(text.repeat(200))),
        6 => text().prop_map(Step::Text),
        1 => Just(Step::BlockStop),
        1 => Just(Step::Discard),
        2 => Just(Step::Runs),
        2 => Just(Step::Idle),
        1 => Just(Step::Ended),
        3 => (0..6_u64, text(), any::<bool>()).prop_map(|(id, text, is_plan)| Step::Asks(id, text, is_plan)),
        1 => (0..6_u64).prop_map(Step::Over),
        2 => (0..4_u8, text()).prop_map(|(number, text)| Step::Calls(number, text)),
        2 => (2..140_u16, 2..60_u16).prop_map(|(columns, rows)| Step::Resized(columns, rows)),
        4 => (0..3_000_u64).prop_map(Step::Waits),
        1 => any::<bool>().prop_map(Step::Focus),
        1 => text().prop_map(Step::KeptDraft),
        1 => any::<bool>().prop_map(Step::Vi),
        1 => text().prop_map(Step::Answered),
    ]
}

fn question(command: &str, is_plan: bool) -> ApprovalRequest {
    let card = Card::new("Bash", command).with(CardSection::Text(command.to_owned()));
    let mut request = request("Bash", card, json!({"command": command}), &["Bash(x)"]);
    if is_plan {
        request.kind = haft::ApprovalKind::Plan;
    }
    request
}

fn happens(bench: &mut UiTestBench, step: Step) {
    match step {
        Step::Key(key) => bench.key(key),
        Step::Bytes(bytes) => bench.read(&bytes),
        Step::Paste(text) => bench.paste(&text),
        Step::Text(text) => bench.says(&text),
        Step::BlockStop => bench.agent(AgentEvent::Model(ModelEvent::BlockStop { index: 0 })),
        Step::Discard => bench.agent(AgentEvent::Model(ModelEvent::Discard)),
        Step::Runs => bench.runs(),
        Step::Idle => bench.session(SessionEvent::Activity(SessionActivity::Idle)),
        Step::Ended => bench.update(AppInput::Ended(None)),
        Step::Asks(id, command, is_plan) => bench.asks(id, question(&command, is_plan)),
        Step::Over(id) => bench.session(SessionEvent::QuestionOver { id }),
        Step::Calls(number, subject) => bench.agent(AgentEvent::CallBound {
            call: haft::CallId::new(),
            tool_use_id: format!("toolu_{number}"),
            tool_name: "Bash".to_owned(),
            card: Card::new("Bash", subject),
        }),
        Step::Resized(columns, rows) => bench.resize(columns, rows),
        Step::Waits(ms) => bench.wait(ms),
        Step::Focus(is_focused) => bench.update(AppInput::Focus(is_focused)),
        Step::KeptDraft(text) => bench.update(AppInput::Found(JobResult::RecoveredDraft(text))),
        Step::Vi(is_on) => {
            bench.app.settings.editor_mode = is_on.then(|| "vim".to_owned());
            bench.app.set_editor_mode();
        }
        Step::Answered(text) => bench.session(SessionEvent::CommandAnswered {
            line: "/status".to_owned(),
            answer: Ok(text),
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_is_drawn_and_only_what_was_asked_is_answered(
        steps in vec(step(), 1..80),
        columns in 10..120_u16,
        rows in 4..50_u16,
    ) {
        let mut bench = UiTestBench::new(columns, rows);
        let mut open = HashSet::new();
        let mut asked = 0;
        for mut step in steps {
            match &mut step {
                // No id is used twice.
                Step::Asks(id, ..) => {
                    asked += 1;
                    *id += asked * 10;
                    open.insert(*id);
                }
                Step::Over(id) if asked > 0 => {
                    let mut all: Vec<&u64> = open.iter().collect();
                    all.sort();
                    *id = all.get(*id as usize % all.len().max(1)).map_or(0, |id| **id);
                    open.remove(id);
                }
                Step::Ended => open.clear(),
                _ => {}
            }
            let has_ended = matches!(step, Step::Ended);
            happens(&mut bench, step);
            if let Some(rows) = bench.app.overlay_rows() {
                prop_assert!(rows.len() <= usize::from(bench.app.look.size.rows).max(2));
            }
            for effect in bench.take_effects() {
                if let AppEffect::Answer { id, .. } = effect {
                    prop_assert!(open.remove(&id), "question {} was not open", id);
                }
            }
            if has_ended {
                prop_assert!(bench.app.session == AppSessionState::Over);
                prop_assert!(bench.app.questions.is_empty());
            }
        }
        let bytes = String::from_utf8_lossy(&bench.bytes);
        for forbidden in ["\u{1b}[J", "\u{1b}[2J", "\u{1b}[3J", "\u{1b}[6n", "\u{1b}[?1000h", "\u{1b}]52"] {
            prop_assert!(!bytes.contains(forbidden), "{:?}", forbidden);
        }
    }
}
