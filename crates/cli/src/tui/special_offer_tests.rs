//! Choices that are no plain allow rules, in the questions of the terminal.

use haft::{ApprovalAnswer, ApprovalRequest, Card, RuleOffer, RuleScope};
use haft_terminal::{Key, KeyCode};
use serde_json::json;

use super::{
    app::AppEffect,
    test_bench::{UiTestBench, request},
};

const OFFLINE: [&str; 2] = ["OfflineCommand(go test *)", "OfflineCommand(go vet *)"];

fn asked() -> ApprovalRequest {
    let input = json!({"command": "go test ./..."});
    let mut asked = request("Bash", Card::new("Bash", "go test ./..."), input, &OFFLINE);
    asked.offers.push(RuleOffer {
        rules: vec!["Bash(go test *)".to_owned()],
        asks_again: Vec::new(),
    });
    asked
}

fn answer(scope: Option<RuleScope>) -> ApprovalAnswer {
    ApprovalAnswer::Updated {
        input: None,
        patches: Vec::new(),
        keep: OFFLINE.map(str::to_owned).to_vec(),
        scope,
    }
}

#[test]
fn the_choice_to_run_without_network_is_the_first_and_cannot_be_edited() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.asks(1, asked());
    bench.wait(2_000);
    let rows = bench.rows();
    assert!(
        rows.contains("[o] without network from now on.. [y] once"),
        "{rows}"
    );
    assert!(rows.contains("[a] always.."), "{rows}");
    bench.key(Key::char('o'));
    for key in [Key::char('x'), Key::plain(KeyCode::Backspace)] {
        bench.wait(100);
        bench.key(key);
    }
    let rows = bench.rows();
    assert!(
        rows.contains("this and similar commands in the sandbox"),
        "{rows}"
    );
    bench.wait(100);
    bench.key(Key::RETURN);
    let effects = bench.take_effects().into_iter();
    let answers: Vec<ApprovalAnswer> = effects
        .filter_map(|effect| match effect {
            AppEffect::Answer { answer, .. } => Some(answer),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [answer(Some(RuleScope::Session))]);
}

#[test]
fn the_always_key_begins_with_the_allow_rules() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.asks(1, asked());
    bench.wait(2_000);
    bench.key(Key::char('a'));
    let rows = bench.rows();
    assert!(rows.contains("rule: Bash(go test *)"), "{rows}");
}
