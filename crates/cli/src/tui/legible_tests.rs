//! What a person could misread: rows that are cut or broken, a call that seems to run, answers without an end.

use haft::{Card, ProgressUpdate};
use haft_host::SessionEvent;
use haft_terminal::Key;
use serde_json::json;

use super::{
    app::AppInput,
    cards::{self, CardMark},
    test_bench::{UiTestBench, request},
};

const COMMAND: &str = "cd web && npm run build > out.log && git push origin main";

fn bash() -> haft::ApprovalRequest {
    let card = Card::new("Bash", COMMAND);
    request("Bash", card, json!({"command": COMMAND}), &[])
}

#[test]
fn a_call_that_waits_for_an_answer_is_not_shown_as_running() {
    let mut bench = UiTestBench::with(100, 24, false, |_| None);
    bench.runs();
    let card = Card::new("Bash", COMMAND);
    bench.app.calls.begin("toolu_1", card, bench.now);
    let grep = Card::new("Grep", "limit");
    bench.app.calls.begin("toolu_2", grep, bench.now);
    bench.asks(1, bash());
    bench.wait(10_000);
    let rows = bench.rows();
    assert_eq!(rows.matches("git push").count(), 1, "{rows}");
    assert!(rows.contains("Grep limit  10s"), "others run: {rows}");
    bench.key(Key::char('y'));
    bench.wait(3_000);
    let rows = bench.rows();
    let running = rows.lines().find(|row| row.contains("git push"));
    let running = running.unwrap_or_else(|| panic!("it runs now: {rows}"));
    assert!(running.contains("  3s"), "its time begins now: {running}");
}

#[test]
fn a_call_that_asks_on_its_way_keeps_its_output_and_its_time() {
    let mut bench = UiTestBench::with(100, 24, false, |_| None);
    bench.runs();
    let card = Card::new("Bash", COMMAND);
    bench.app.calls.begin("toolu_1", card, bench.now);
    let text = "half of it\n".to_owned();
    bench
        .app
        .calls
        .progress("toolu_1", &ProgressUpdate::Text { text });
    bench.wait(5_000);
    bench.asks(1, bash());
    bench.wait(5_000);
    let rows = bench.rows();
    assert!(rows.contains("  10s, 11 B"), "{rows}");
    assert!(rows.contains("    half of it"), "{rows}");
}

#[test]
fn what_is_cut_says_so() {
    let mut bench = UiTestBench::new(40, 24);
    bench.runs();
    let card = Card::new("Bash", COMMAND);
    bench.app.calls.begin("b", card.clone(), bench.now);
    let look = &bench.app.look;
    let cwd = bench.app.cwd.clone();
    let short = card.clone().with_summary("not permitted");
    let mut items = cards::history(&short, CardMark::Failed, &cwd, look);
    let long = card.with_summary("exit code 101, 9s, 214 lines, 31 KB");
    items.extend(cards::history(&long, CardMark::Failed, &cwd, look));
    bench.app.print(items);
    bench.update(AppInput::Tick);
    let rows = bench.rows();
    let expected = [
        "x Bash cd web && npm...  not permitted",
        "x Bash cd web && npm run build > out...",
        "| Bash cd web && npm run build >...  0s",
    ];
    for expected in expected {
        assert!(
            rows.lines().any(|row| row == expected),
            "{expected}: {rows}"
        );
    }
}

#[test]
fn at_40_columns_rows_of_a_question_go_on_where_they_began() {
    let mut bench = UiTestBench::new(40, 30);
    bench.runs();
    let part = |text: &str, meaning: &str| haft::ApprovalPart {
        text: text.to_owned(),
        meaning: meaning.to_owned(),
        depth: 0,
        asks: true,
    };
    let mut asked = bash();
    asked.parts = vec![part(
        "./a/program/with/a/long/path --and-a-long-flag",
        "a program of which nothing is known, so that it may do anything",
    )];
    bench.asks(1, asked);
    bench.wait(2_000);
    let rows = bench.rows();
    let question: Vec<&str> = rows
        .lines()
        .skip_while(|row| !row.starts_with("? Bash"))
        .skip(1)
        .take_while(|row| !row.starts_with('|'))
        .collect();
    let is_indented = |row: &&str| row.starts_with("  ");
    assert!(question.iter().all(is_indented), "{rows}");
    let input = json!({"questions": [{
        "question": "Which database should keep the baskets of the shop?", "header": "Storage", "multiSelect": false,
        "options": [{"label": "SQLite", "description": "one file, no server, and no one to look after it"}],
    }]});
    let mut asked = request("AskUserQuestion", Card::new("Question", ""), input, &[]);
    asked.kind = haft::ApprovalKind::Question;
    let mut bench = UiTestBench::new(40, 30);
    bench.runs();
    bench.asks(1, asked);
    bench.wait(2_000);
    insta::assert_snapshot!(bench.rows());
}

#[test]
fn words_of_a_list_go_on_below_themselves() {
    let mut bench = UiTestBench::new(60, 24);
    let answer = "/hooks          List the hooks, with their files and whether they are trusted\n\
                  /permissions [try COMMAND | allow|ask|deny RULE]  List the permission rules, try a command\n\
                  /home/me/one/path/that/is/longer/than/a/row/and/must/stay/as/it/is/so/that/it/can/be/copied"
        .to_owned();
    let line = "/help".to_owned();
    let answer = Ok(answer);
    bench.session(SessionEvent::CommandAnswered { line, answer });
    insta::assert_snapshot!(bench.rows());
}

#[test]
fn a_long_answer_does_not_push_the_scrollback_away() {
    let mut bench = UiTestBench::new(80, 24);
    let text: String = (1..=5_000).map(|n| format!("row {n}\n")).collect();
    let line = "/export".to_owned();
    let answer = Ok(text);
    bench.session(SessionEvent::CommandAnswered { line, answer });
    let lines = bench.lines();
    let rows = lines.iter().filter(|line| line.starts_with("row "));
    assert_eq!(rows.count(), 200);
    let more = "... 4800 more lines are not printed; /export FILE writes";
    assert!(lines.iter().any(|line| line.starts_with(more)), "{lines:?}");
}
