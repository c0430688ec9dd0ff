//! The screens of the specification.

use haft::{Card, CardSection, DiffHunk, TaskEvent, TaskKind, TaskNotice, TaskStatus};
use haft_agent::AgentEvent;
use haft_host::{ScheduledPrompt, SessionEvent};
use haft_models::ModelEvent;
use haft_terminal::Key;
use serde_json::json;

use super::{
    app::AppInput,
    cards::{self, CardMark},
    test_bench::{UiTestBench, request},
};

fn edit() -> Card {
    Card::new("Edit", "/home/me/src/shop/src/price.rs")
        .with_summary("1 place (+1 -1)")
        .with(CardSection::Diff(vec![DiffHunk {
            old_start: 41,
            old_lines: 2,
            new_start: 41,
            new_lines: 2,
            lines: vec![
                " fn discount(total: u32) -> u32 {".to_owned(),
                "-    if total > 5000 {".to_owned(),
                "+    if total >= 5000 {".to_owned(),
            ],
        }]))
}

fn print(bench: &mut UiTestBench, card: &Card, mark: CardMark) {
    let items = cards::history(card, mark, &bench.app.cwd.clone(), &bench.app.look);
    bench.app.print(items);
    bench.update(AppInput::Tick);
}

/// A turn with everything that is drawn of it.
fn turn(columns: u16, rows: u16) -> UiTestBench {
    let mut bench = UiTestBench::new(columns, rows);
    bench.type_keys("Why does the basket test fail?");
    bench.key(Key::RETURN);
    bench.runs();
    bench.says("The discount starts above 5000, the test wants it at 5000.\n");
    bench.agent(AgentEvent::Model(ModelEvent::BlockStop { index: 0 }));
    let grep = Card::new("Grep", "\"discount\" in src").with_summary("7 matches in 3 files");
    print(&mut bench, &grep, CardMark::Worked);
    print(&mut bench, &edit(), CardMark::Worked);
    let bash = Card::new("Bash", "cargo test -p shop")
        .with_summary("exit 101, 9s, 214 lines")
        .with(CardSection::Text("test price::exact ... FAILED".to_owned()));
    print(&mut bench, &bash, CardMark::Failed);
    bench.says("I run the tests ag");
    let read = Card::new("Read", "src/basket.rs");
    bench.app.calls.begin("r", read, bench.now);
    let bash = Card::new("Bash", "cargo test -p shop");
    bench.app.calls.begin("b", bash, bench.now);
    let text = "test price::small ... ok\ntest price::large ... ok\n".to_owned();
    let update = haft::ProgressUpdate::Text { text };
    bench.app.calls.progress("b", &update);
    let agent = Card::new("Agent", "Explore \"find callers\"");
    bench.app.calls.begin("a", agent, bench.now);
    for _ in 0..9 {
        let grep = Card::new("Grep", "\"discount(\" in crates");
        bench.app.calls.agent_calls("a", grep);
    }
    bench.app.calls.agent_spent("a", 18_000);
    bench.app.run.as_mut().unwrap().tokens = 2_100;
    bench.type_keys("also fix the README");
    bench.key(Key::RETURN);
    bench.type_keys("and keep the old na");
    bench.app.status.context = Some((68_000, 200_000));
    bench.app.status.cost = 0.42;
    bench.update(AppInput::Tick);
    bench
}

#[test]
fn a_turn_at_80_columns() {
    insta::assert_snapshot!(turn(80, 30).rows());
}

#[test]
fn a_turn_at_40_columns() {
    insta::assert_snapshot!(turn(40, 34).rows());
}

fn asked(columns: u16, request: haft::ApprovalRequest) -> UiTestBench {
    let mut bench = UiTestBench::new(columns, 24);
    bench.runs();
    bench.asks(1, request);
    bench.wait(2_000);
    bench
}

#[test]
fn an_edit_is_asked_about_with_its_diff() {
    let input = json!({"file_path": "/home/me/src/shop/src/price.rs"});
    for columns in [80, 40] {
        let bench = asked(
            columns,
            request("Edit", edit(), input.clone(), &["Edit(src/**)"]),
        );
        insta::assert_snapshot!(format!("edit_{columns}"), bench.rows());
    }
}

#[test]
fn a_command_is_asked_about_and_its_rule_edited() {
    let command = "npm run build";
    for columns in [80, 40] {
        let card = Card::new("Bash", command);
        let input = json!({"command": command});
        let mut bench = asked(
            columns,
            request("Bash", card, input, &["Bash(npm run build)"]),
        );
        bench.key(Key::char('a'));
        insta::assert_snapshot!(format!("command_{columns}"), bench.rows());
    }
}

#[test]
fn a_command_line_is_asked_about_by_its_parts() {
    let command = "cd web && npm run build > out.log && git push origin main";
    let part = |text: &str, meaning: &str, asks| haft::ApprovalPart {
        text: text.to_owned(),
        meaning: meaning.to_owned(),
        depth: 0,
        asks,
    };
    for columns in [80, 40] {
        let card = Card::new("Bash", command);
        let input = json!({"command": command});
        let mut asked_for = request("Bash", card, input, &["Bash(npm run build)"]);
        asked_for.agent = Some("Explore".to_owned());
        asked_for.parts = vec![
            part("cd web", "harmless", false),
            part("npm run build", "runs what the workspace says", true),
            part("> out.log", "writes ~/src/shop/web/out.log", false),
            part("git push origin main", "contacts github.com", true),
        ];
        asked_for.reasons = vec![
            "no rule for npm run build".to_owned(),
            ".claude/settings.json:12 asks for git push".to_owned(),
        ];
        asked_for.confinement = Some("profile workspace, network open".to_owned());
        asked_for.destinations = vec![haft::RuleDestination {
            scope: haft::RuleScope::Local,
            file: Some(".claude/settings.local.json".into()),
        }];
        let mut bench = UiTestBench::new(columns, 30);
        bench.runs();
        bench.asks(1, asked_for.clone());
        bench.asks(2, asked_for.clone());
        bench.asks(3, asked_for);
        bench.wait(2_000);
        bench.key(Key::char('a'));
        insta::assert_snapshot!(format!("parts_{columns}"), bench.rows());
    }
}

#[test]
fn addresses_and_servers_are_asked_about() {
    let fetch = Card::new("WebFetch", "https://docs.rs/similar")
        .with_summary("GET, public address, \"API of TextDiff\"");
    let fetch = request(
        "WebFetch",
        fetch,
        json!({"url": "https://docs.rs/similar"}),
        &[],
    );
    let server = Card::new("mcp__gh__create_issue", "")
        .with_summary("server gh (stdio)  title \"Basket\", body 14 lines");
    let server = request(
        "mcp__gh__create_issue",
        server,
        json!({"title": "Basket"}),
        &[],
    );
    let rows = [fetch, server].map(|request| asked(80, request).rows());
    insta::assert_snapshot!(rows.join("\n\n"));
}

#[test]
fn trust_is_asked_about_with_what_would_run() {
    let mut bench = UiTestBench::new(80, 24);
    let facts = super::ask::TrustFacts {
        purpose: super::ask::TrustPurpose::Start,
        directory: "/home/me/src/shop".to_owned(),
        things: vec![
            ".claude/settings.json hooks".to_owned(),
            ".mcp.json gh".to_owned(),
        ],
        contents: vec![("hooks".to_owned(), "{\"SessionStart\": []}".to_owned())],
    };
    bench.update(AppInput::Found(super::app::JobResult::Untrusted(facts)));
    bench.wait(2_000);
    insta::assert_snapshot!(bench.rows());
    bench.key(Key::char('n'));
    let effects = bench.deeds();
    assert!(matches!(
        effects.as_slice(),
        [super::app::AppEffect::Trust(false)]
    ));
}

#[test]
fn a_plan_is_asked_about() {
    let card = Card::new("Plan", "").with(CardSection::Text(
        "1. change the comparison\n2. run the tests – all of them".to_owned(),
    ));
    let mut plan = request("ExitPlanMode", card, json!({}), &[]);
    plan.kind = haft::ApprovalKind::Plan;
    insta::assert_snapshot!(asked(80, plan).rows());
}

#[test]
fn a_question_of_the_models_own() {
    let input = json!({"questions": [
        {"question": "Which database?", "header": "Storage", "multiSelect": false, "options": [
            {"label": "SQLite", "description": "one file"},
            {"label": "Postgres", "description": "a server"}]},
        {"question": "Which tests?", "header": "Tests", "multiSelect": true, "options": [
            {"label": "unit", "description": ""}, {"label": "end to end", "description": ""}]},
    ]});
    let mut ask = request("AskUserQuestion", Card::new("Question", ""), input, &[]);
    ask.kind = haft::ApprovalKind::Question;
    let mut bench = asked(80, ask);
    let first = bench.rows();
    bench.key(Key::char('1'));
    bench.wait(100);
    bench.key(Key::char('2'));
    insta::assert_snapshot!(format!("{first}\n\n{}", bench.rows()));
}

#[test]
fn what_comes_by_itself_is_shown_and_cannot_act_on_the_terminal() {
    let mut bench = UiTestBench::new(72, 16);
    bench.session(SessionEvent::Scheduled {
        prompt: Box::new(ScheduledPrompt {
            id: "6678540b".to_owned(),
            words: "every 10 minutes".to_owned(),
            prompt: "look at the build\n\u{1b}[2Jand say \u{7}what fails".to_owned(),
            is_last: false,
        }),
        uuid: uuid::Uuid::nil(),
    });
    let lines: Vec<String> = (1..9)
        .map(|number| format!("\u{1b}[31merror {number}"))
        .collect();
    bench.session(SessionEvent::Task(TaskEvent::Reported(TaskNotice {
        id: "monitor_1".to_owned(),
        kind: TaskKind::Monitor,
        status: TaskStatus::Running,
        summary: "Monitor \"Errors\"".to_owned(),
        result: lines.join("\n"),
        notes: Vec::new(),
        output_file: None,
        tool_use_id: None,
        usage: None,
    })));
    bench.update(AppInput::Tick);
    insta::assert_snapshot!(bench.rows());
}

#[test]
fn a_directory_is_asked_about_before_it_is_added() {
    let mut bench = UiTestBench::new(80, 24);
    bench.type_keys("/add-dir ../lib");
    bench.key(Key::RETURN);
    let effects = bench.deeds();
    assert!(
        matches!(&effects[..], [super::app::AppEffect::AskDirectory(words)] if words == "../lib"),
        "it is not added yet"
    );
    let facts = haft_host::DirectoryFacts {
        path: "/home/me/src/lib".into(),
        uncounted: vec![".claude/settings.json hooks".to_owned()],
    };
    let facts = super::first_run::directory_facts(&facts);
    bench.update(AppInput::Found(super::app::JobResult::Untrusted(facts)));
    bench.wait(2_000);
    insta::assert_snapshot!(bench.rows());
    bench.key(Key::char('y'));
    let effects = bench.deeds();
    assert!(
        matches!(&effects[..], [super::app::AppEffect::Command(line)] if line == "/add-dir /home/me/src/lib")
    );
}

#[test]
fn sentences_that_nothing_enforces_are_shown_before_auto_is_used() {
    let mut bench = UiTestBench::new(80, 24);
    let sentences = [
        "never touch billing".to_owned(),
        "no \u{202e}mail".to_owned(),
    ];
    let facts = super::first_run::sentence_facts(&sentences);
    bench.update(AppInput::Found(super::app::JobResult::Untrusted(facts)));
    bench.wait(2_000);
    insta::assert_snapshot!(bench.rows());
    bench.key(Key::char('y'));
    assert!(matches!(
        &bench.deeds()[..],
        [super::app::AppEffect::Trust(true)]
    ));
}

#[test]
fn parts_of_a_command_line_stand_under_each_other() {
    let part = |text: &str, meaning: &str| haft::ApprovalPart {
        text: text.to_owned(),
        meaning: meaning.to_owned(),
        depth: 0,
        asks: false,
    };
    let long =
        "docker run --rm -v /home/me/src:/src -w /src registry.example/build:latest make all";
    let mut bash = request("Bash", Card::new("Bash", "cd 漢字 && make"), json!({}), &[]);
    bash.parts = vec![
        part("cd 漢字", "harmless"),
        part("make", "runs what the workspace says"),
        part(long, "not known"),
    ];
    insta::assert_snapshot!(asked(80, bash).rows());
}
