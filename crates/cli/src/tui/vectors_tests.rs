//! The vectors of the specification that need no process of their own.

use haft::{ApprovalAnswer, Card, CardSection};
use haft_agent::AgentEvent;
use haft_models::ModelEvent;
use haft_terminal::{Key, KeyCode, TextLine, paint::TerminalControl};
use serde_json::json;

use super::{
    app::{AppEffect, AppInput, AppOverlay, JobResult},
    overlay::{FullScreenView, ViewOutcome},
    test_bench::{UiTestBench, request},
    ui_style::UiStyle,
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
    let card = Card::new("Bash", "echo 1…").with(CardSection::Text(command.clone()));
    request("Bash", card, json!({"command": command}), &[])
}

fn answers(bench: &mut UiTestBench) -> Vec<(u64, ApprovalAnswer)> {
    let effects = bench.take_effects().into_iter();
    let answers = effects.filter_map(|effect| match effect {
        AppEffect::Answer { id, answer } => Some((id, answer)),
        _ => None,
    });
    answers.collect()
}

#[test]
fn vector_4_typing_goes_on_while_a_reply_streams() {
    let mut bench = UiTestBench::new(80, 24);
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
    let mut bench = UiTestBench::with(80, 24, false, |_| None);
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
    let mut bench = UiTestBench::new(80, 24);
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
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.wait(2_000);
    bench.asks(1, bash("make", &[]));
    bench.wait(200);
    bench.key(Key::char('y'));
    assert_eq!(bench.draft(), "y");
    assert!(answers(&mut bench).is_empty());

    let mut bench = UiTestBench::new(80, 24);
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
    let mut bench = UiTestBench::new(80, 24);
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
    let mut bench = UiTestBench::new(80, 24);
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
    let mut bench = UiTestBench::new(80, 24);
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
fn beside_a_draft_a_question_is_short_and_with_the_focus_there_is_no_caret() {
    let mut bench = UiTestBench::new(80, 40);
    bench.runs();
    bench.type_keys("draft");
    bench.asks(1, long_bash(20));
    bench.wait(2_000);
    let rows = bench.rows();
    assert!(rows.contains("15 more rows (Tab)"), "{rows}");
    assert!(!rows.contains("echo 6"), "{rows}");
    assert_eq!(bench.cursor().map(|(column, _)| column), Some(7));
    bench.key(Key::plain(KeyCode::Tab));
    bench.wait(500);
    let rows = bench.rows();
    assert!(rows.contains("echo 20"), "{rows}");
    assert_eq!(bench.cursor(), None, "it is hidden");
}

#[test]
fn what_a_tool_leaves_out_is_counted_in_letters_that_all_know() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    let card = Card::new("Write", "a.txt")
        .with(CardSection::Text("one".to_owned()))
        .with(CardSection::Muted("… 40 more".to_owned()));
    bench.asks(1, request("Write", card, json!({"content": "one"}), &[]));
    bench.wait(2_000);
    assert!(bench.rows().contains("  ... 40 more"), "{}", bench.rows());
}

#[test]
fn vector_13_a_rule_is_edited_and_its_place_chosen() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    let place = |scope, file: &str| haft::RuleDestination {
        scope,
        file: Some(file.into()),
    };
    let mut asked = bash("npm run build", &["Bash(npm run build)"]);
    asked.destinations = vec![
        place(haft::RuleScope::Local, ".claude/settings.local.json"),
        place(haft::RuleScope::User, "~/.claude/settings.json"),
    ];
    bench.asks(1, asked);
    bench.wait(2_000);
    bench.key(Key::char('a'));
    assert!(bench.rows().contains("rule: Bash(npm run build)"));
    assert!(
        bench
            .rows()
            .contains("in .claude/settings.local.json (Tab: how long)")
    );
    bench.wait(100);
    bench.key(Key::control('u'));
    bench.type_keys("Bash(npm *)");
    bench.wait(100);
    bench.key(Key::plain(KeyCode::Tab));
    assert!(bench.rows().contains("in ~/.claude/settings.json"));
    bench.wait(100);
    bench.key(ENTER);
    // The edited rule was not tried on past questions yet.
    assert_eq!(answers(&mut bench), []);
    assert!(bench.rows().contains("tried on past questions first"));
    bench.wait(100);
    bench.key(ENTER);
    let answer = ApprovalAnswer::Updated {
        input: None,
        patches: Vec::new(),
        keep: vec!["Bash(npm *)".to_owned()],
        scope: Some(haft::RuleScope::User),
    };
    assert_eq!(answers(&mut bench), [(1, answer)]);
    let file = "/home/me/.claude/settings.json".into();
    bench.session(haft_host::SessionEvent::RulesKept {
        file,
        problem: None,
    });
    assert!(
        bench
            .rows()
            .contains("- saved in /home/me/.claude/settings.json")
    );
}

/// Vector R4: the sentence is shown, and the rule is not the answer of the first Enter.
#[test]
fn a_rule_is_saved_after_its_trial_and_not_at_once_if_a_denied_call_matches() {
    for allows_denied in [false, true] {
        let mut bench = UiTestBench::new(80, 24);
        bench.runs();
        let mut asked = bash("npm run build", &["Bash(npm run *)"]);
        asked.destinations = vec![haft::RuleDestination {
            scope: haft::RuleScope::Local,
            file: Some(".claude/settings.local.json".into()),
        }];
        bench.asks(1, asked);
        bench.wait(2_000);
        bench.key(Key::char('a'));
        let rules = vec!["Bash(npm run *)".to_owned()];
        let wanted = bench
            .take_effects()
            .into_iter()
            .find_map(|effect| match effect {
                AppEffect::TryRules { id, rules } => Some((id, rules)),
                _ => None,
            });
        assert_eq!(wanted, Some((1, rules.clone())));
        let sentence = "would have answered 41 of 52 questions".to_owned();
        let outcome = super::ask::TrialOutcome {
            sentence: sentence.clone(),
            allows_denied,
        };
        let id = 1;
        bench.update(AppInput::Found(JobResult::RuleTrial { id, rules, outcome }));
        assert!(bench.rows().contains(&sentence), "{}", bench.rows());
        bench.wait(100);
        bench.key(ENTER);
        if allows_denied {
            assert_eq!(answers(&mut bench), []);
            assert!(
                bench.rows().contains("a call that you denied"),
                "{}",
                bench.rows()
            );
            bench.wait(100);
            bench.key(ENTER);
        }
        assert_eq!(answers(&mut bench).len(), 1);
    }
}

/// Vector R5: each time is reached by `t` and Tab.
#[test]
fn a_rule_may_end_with_the_task_after_30_minutes_or_with_the_session() {
    let rules = || vec!["Bash(npm run *)".to_owned()];
    let ends = [
        (
            "until the result of this prompt",
            ApprovalAnswer::allow_until(rules(), haft::GrantEnd::Task),
        ),
        (
            "for 30 minutes",
            ApprovalAnswer::allow_until(rules(), haft::GrantEnd::HALF_HOUR),
        ),
        (
            "for this session",
            ApprovalAnswer::allow_in_session(rules()),
        ),
    ];
    for (tabs, (shown, answer)) in ends.into_iter().enumerate() {
        let mut bench = UiTestBench::new(80, 24);
        bench.runs();
        let mut asked = bash("npm run build", &["Bash(npm run *)"]);
        asked.destinations = vec![haft::RuleDestination {
            scope: haft::RuleScope::Local,
            file: Some(".claude/settings.local.json".into()),
        }];
        bench.asks(1, asked);
        bench.wait(2_000);
        bench.key(Key::char('t'));
        for _ in 0..tabs {
            bench.wait(100);
            bench.key(Key::plain(KeyCode::Tab));
        }
        assert!(bench.rows().contains(shown), "{}", bench.rows());
        bench.wait(100);
        bench.key(ENTER);
        assert_eq!(answers(&mut bench), [(1, answer)]);
    }
}

#[test]
fn the_choices_of_rules_are_reached_by_up_and_down() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    let mut asked = bash("bd sync && python3 -c 1", &["Bash(bd sync *)"]);
    asked.offers[0].asks_again = vec!["python3 -c 1".to_owned()];
    asked.offers.push(haft::RuleOffer {
        rules: vec!["Bash(bd sync)".to_owned(), "Bash(x)".to_owned()],
        asks_again: Vec::new(),
    });
    bench.asks(1, asked);
    bench.wait(2_000);
    let again = "\"always\" asks again for python3 -c 1";
    assert!(bench.rows().contains(again), "{}", bench.rows());
    bench.key(Key::char('a'));
    assert!(bench.rows().contains("rule: Bash(bd sync *)"));
    assert!(bench.rows().contains("choice 1 of 2 (Up, Down)"));
    for key in [KeyCode::Down, KeyCode::Down, KeyCode::Up] {
        bench.wait(100);
        bench.key(Key::plain(key));
    }
    assert!(bench.rows().contains("rule: Bash(bd sync), Bash(x)"));
    assert!(bench.rows().contains("choice 2 of 2 (Up, Down)"));
    bench.wait(100);
    bench.key(ENTER);
    let answer = ApprovalAnswer::Updated {
        input: None,
        patches: Vec::new(),
        keep: vec!["Bash(bd sync)".to_owned(), "Bash(x)".to_owned()],
        scope: Some(haft::RuleScope::Session),
    };
    assert_eq!(answers(&mut bench), [(1, answer)]);
}

#[test]
fn vector_14_a_reason_goes_with_a_no() {
    let mut bench = UiTestBench::new(80, 24);
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
    let mut bench = UiTestBench::new(80, 24);
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
        [(1, ApprovalAnswer::InputEdited { input })]
    );
}

#[test]
fn backspace_in_an_empty_line_of_a_question_never_answers() {
    let mut bench = UiTestBench::new(80, 24);
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
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("make", &[]));
    bench.wait(2_000);
    bench.key(Key::ESCAPE);
    assert!(bench.deeds().is_empty());
    assert!(bench.rows().contains("Tab to answer"));
    bench.wait(5_000);
    assert!(!bench.app.questions.has_focus(), "it stays left");
    bench.key(Key::ESCAPE);
    let effects = bench.take_effects();
    let is_no = |effect: &AppEffect| {
        matches!(
            effect,
            AppEffect::Answer {
                id: 1,
                answer: ApprovalAnswer::Deny { .. }
            }
        )
    };
    let stopped = |effect: &AppEffect| matches!(effect, AppEffect::Interrupt);
    let stopped = effects.iter().position(stopped).unwrap();
    assert!(
        effects[stopped..].iter().any(is_no),
        "the model is asked nothing in between"
    );
}

/// A view that does nothing.
struct Still;

impl FullScreenView for Still {
    fn rows(&mut self, _: &UiStyle) -> Vec<TextLine> {
        vec![TextLine::plain("transcript"), TextLine::plain("more")]
    }

    fn key(&mut self, _: Key) -> ViewOutcome {
        ViewOutcome::Stay(Vec::new())
    }
}

#[test]
fn vector_17_over_a_view_a_question_is_a_banner_and_a_bell() {
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.app.overlay = Some(AppOverlay::Other(Box::new(Still)));
    bench.take_effects();
    bench.asks(1, bash("make", &[]));
    let effects = bench.take_effects();
    let bell = |effect: &AppEffect| matches!(effect, AppEffect::Terminal(controls) if controls.contains(&TerminalControl::Bell));
    assert!(effects.iter().any(bell));
    bench.wait(5_000);
    let rows = bench.app.overlay_rows().unwrap();
    assert!(rows[0].text().starts_with("? Bash make waits"), "{rows:?}");
    assert_eq!(rows[1].text(), "more");
    bench.key(Key::char('y'));
    assert!(answers(&mut bench).is_empty());
}

#[test]
fn vector_18_up_takes_queued_messages_back_newest_first() {
    let mut bench = UiTestBench::new(80, 24);
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
    let taken = effects
        .iter()
        .filter(|e| matches!(e, AppEffect::Withdraw(_)));
    assert_eq!(taken.count(), 2);
}

#[test]
fn vector_19_stopping_a_run_puts_undelivered_messages_back() {
    let mut bench = UiTestBench::new(80, 24);
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
    assert!(matches!(effects.last(), Some(AppEffect::Interrupt)));
    assert!(
        !effects
            .iter()
            .any(|e| matches!(e, AppEffect::SendPrompt { .. }))
    );
}

#[test]
fn vector_30_the_theme_follows_the_terminal() {
    let mut bench = UiTestBench::with(80, 24, true, |name| {
        (name == "TERM").then(|| "xterm-256color".to_owned())
    });
    bench.read(b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\");
    assert!(bench.app.look.theme.is_light);
    bench.read(b"\x1b[?997;1n");
    assert!(!bench.app.look.theme.is_light);
    let mut bench = UiTestBench::with(80, 24, true, |name| {
        (name == "NO_COLOR").then(|| "1".to_owned())
    });
    bench.runs();
    bench.says("A **reply** with `code`\n\n```rust\nlet a = 1;\n```\n");
    bench.asks(1, bash("make", &[]));
    bench.wait(1_500);
    let bytes = String::from_utf8(bench.bytes.clone()).unwrap();
    for sequence in bytes.split("\x1b[").skip(1) {
        let Some((numbers, _)) = sequence.split_once('m') else {
            continue;
        };
        if numbers.chars().all(|c| c.is_ascii_digit() || c == ';') {
            let is_colour =
                |number: &str| matches!(number.as_bytes(), [b'3' | b'4', _] | [b'9', _]);
            assert!(!numbers.split(';').any(is_colour), "{numbers}");
        }
    }
}

#[test]
fn vector_35_a_long_conversation_is_taken_up_by_its_end() {
    let mut bench = UiTestBench::new(80, 24);
    let long = (0..300)
        .map(|line| format!("line {line}\n\n"))
        .collect::<String>();
    let exchange = |prompt: &str, text: &str| haft_host::PromptExchange {
        prompt: prompt.to_owned(),
        parts: vec![haft_host::ExchangePart::Text(text.to_owned())],
        ..haft_host::PromptExchange::default()
    };
    let exchanges = haft_host::RecentExchanges {
        earlier: 4_997,
        shown: vec![
            exchange("one", &long),
            exchange("two", "Second."),
            exchange("three", "Third."),
        ],
    };
    bench.update(AppInput::Found(JobResult::Exchanges(exchanges)));
    let lines = bench.lines();
    let lines: Vec<&String> = lines.iter().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() <= 205, "{}", lines.len());
    assert!(lines[0].starts_with("... 4,997 earlier"), "{}", lines[0]);
    assert!(lines.iter().any(|line| *line == "> three"));
}

#[test]
fn a_shell_line_a_memory_and_commands_are_told_apart() {
    let mut bench = UiTestBench::new(80, 24);
    bench.type_keys("!ls -la");
    bench.key(ENTER);
    let is_shell = |effect: &AppEffect| matches!(effect, AppEffect::Shell { command, .. } if command == "ls -la");
    assert!(bench.take_effects().iter().any(is_shell));
    bench.idle();
    bench.type_keys("/compact now");
    bench.key(ENTER);
    let is_command =
        |effect: &AppEffect| matches!(effect, AppEffect::Command(line) if line == "/compact now");
    assert!(bench.take_effects().iter().any(is_command));
    bench.type_keys("/usr/bin is full");
    bench.key(ENTER);
    let is_said = |effect: &AppEffect| matches!(effect, AppEffect::SendPrompt { .. });
    assert!(bench.take_effects().iter().any(is_said));
    bench.idle();
    bench.type_keys("/exit");
    bench.key(ENTER);
    assert!(
        bench
            .take_effects()
            .iter()
            .any(|e| matches!(e, AppEffect::Leave))
    );
}

#[test]
fn a_draft_is_put_aside_and_kept_on_disk() {
    let mut bench = UiTestBench::new(80, 24);
    bench.type_keys("half a thought");
    bench.wait(1_100);
    let is_kept = |effect: &AppEffect| matches!(effect, AppEffect::SaveDraft(text) if text == "half a thought");
    assert!(bench.take_effects().iter().any(is_kept));
    assert_eq!(bench.app.due(bench.now), None);
    bench.key(Key::control('s'));
    assert_eq!(bench.draft(), "");
    bench.type_keys("x");
    bench.key(Key::plain(KeyCode::Backspace));
    bench.key(Key::control('s'));
    assert_eq!(bench.draft(), "half a thought");
}

#[test]
fn vector_36_a_reply_cannot_act_on_the_terminal() {
    let mut bench = UiTestBench::new(80, 24);
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
    let mut bench = UiTestBench::new(80, 24);
    bench.runs();
    bench.asks(1, bash("echo \u{1b}]52;c;x\u{7} \u{202e}gpj.exe", &[]));
    bench.wait(1_500);
    let bytes = String::from_utf8(bench.bytes.clone()).unwrap();
    assert!(!bytes.contains("\u{1b}]52") && !bytes.contains('\u{202e}'));
}

#[test]
fn ctrl_c_stops_clears_and_leaves_in_this_order() {
    let mut bench = UiTestBench::new(80, 24);
    bench.type_keys("draft");
    bench.runs();
    bench.deeds();
    bench.key(Key::control('c'));
    assert_eq!(bench.draft(), "draft", "the draft is untouched");
    assert!(matches!(
        bench.take_effects().as_slice(),
        [AppEffect::Interrupt]
    ));
    bench.idle();
    bench.key(Key::control('c'));
    assert_eq!(bench.draft(), "");
    bench.deeds();
    bench.key(Key::control('c'));
    assert!(bench.deeds().is_empty());
    assert!(bench.rows().contains("Ctrl-C again exits"));
    bench.wait(2_500);
    assert!(!bench.rows().contains("Ctrl-C again exits"));
    bench.key(Key::control('c'));
    bench.wait(500);
    bench.key(Key::control('c'));
    assert!(matches!(bench.deeds().as_slice(), [AppEffect::Leave]));
}

#[test]
fn ctrl_d_leaves_and_during_a_run_only_when_pressed_again() {
    let mut bench = UiTestBench::new(80, 24);
    bench.type_keys("ab");
    bench.key(Key::control('a'));
    bench.key(Key::control('d'));
    assert_eq!(bench.draft(), "b");
    bench.key(Key::control('d'));
    bench.runs();
    bench.deeds();
    bench.key(Key::control('d'));
    assert!(bench.deeds().is_empty());
    bench.wait(300);
    bench.key(Key::control('d'));
    assert!(matches!(bench.deeds().as_slice(), [AppEffect::Leave]));
}
