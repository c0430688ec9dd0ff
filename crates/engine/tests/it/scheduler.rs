use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext, Effects, PermissionMode,
    Tool, ToolError, ToolOutput, ToolPermission,
};
use haft_engine::{
    CallObserver, CallResult, Engine, SessionContext,
    pipeline::{AdmittedCall, INTERRUPTED},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::rig::{Rig, only, services, tool_use};

/// Runs until told to end, and says when it begins and ends.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What it touches: `r PATH`, `w PATH`, `anything`, `alone` or `nothing`.
    touches: String,
    /// Its letter in the log.
    letter: String,
}

struct Logged {
    log: Arc<Mutex<Vec<String>>>,
}

impl Tool for Logged {
    type Input = Input;
    const NAME: &'static str = "Logged";
    fn permission(&self, _: &Input, _: &CallContext) -> ToolPermission {
        ToolPermission::Allow
    }
    fn effects(&self, input: &Input) -> Effects {
        match input.touches.split_at_checked(2) {
            Some(("r ", path)) => Effects::reading([path.into()]),
            Some(("w ", path)) => Effects::writing([path.into()]),
            _ if input.touches == "anything" => Effects::READS,
            _ if input.touches == "alone" => Effects::EXCLUSIVE,
            _ => Effects::NONE,
        }
    }
    async fn call(&self, input: &Input, _: &CallContext) -> Result<ToolOutput, ToolError> {
        self.log.lock().unwrap().push(input.letter.clone());
        // Long enough that everything that may start beside it has started, on a paused clock.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.log.lock().unwrap().push(input.letter.to_lowercase());
        Ok(ToolOutput::text(&input.letter))
    }
}

/// Which calls ran together, group by group: `AB C` is A beside B, then C.
async fn groups(calls: &[&str]) -> String {
    let log = Arc::new(Mutex::new(Vec::new()));
    let registry = only(Logged { log: log.clone() });
    let (engine, _) = Engine::builder(registry, "/nonexistent").build().await;
    let mut scheduler =
        engine.scheduler(SessionContext::new("/").with_mode(PermissionMode::BypassPermissions));
    let mut turn = scheduler.start_batch().await;
    let letters: Vec<String> = ('A'..).take(calls.len()).map(String::from).collect();
    for (touches, letter) in calls.iter().zip(&letters) {
        turn.push(tool_use(
            "Logged",
            json!({"touches": touches, "letter": letter}),
        ));
    }
    let mut order = Vec::new();
    while let Some(finished) = turn.next().await {
        order.push(finished.text());
    }
    assert_eq!(order, letters, "results come in the order of the calls");

    let log = log.lock().unwrap().clone();
    let mut groups = String::new();
    let mut running = Vec::new();
    let mut group = Vec::new();
    for event in log {
        if event == event.to_uppercase() {
            running.push(event.to_lowercase());
            group.push(event);
        } else {
            running.retain(|letter| *letter != event);
            if running.is_empty() {
                group.sort();
                groups += &format!("{} ", group.concat());
                group.clear();
            }
        }
    }
    groups.trim_end().to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_classic_examples_of_what_runs_together() {
    let cases = [
        ("reads run together", &["r /a", "r /a", "r /b"][..], "ABC"),
        (
            "edits of two files and a read of a third",
            &["w /a", "w /b", "r /c"],
            "ABC",
        ),
        ("two edits of one file", &["w /a", "w /a"], "A B"),
        (
            "a shell command in the middle",
            &["r /a", "r /b", "alone", "r /c"],
            "AB C D",
        ),
        (
            "a read waits for the write of its file",
            &["w /a", "r /a", "r /b"],
            "AC B",
        ),
        (
            "a write waits for the read of its file",
            &["r /a", "w /a"],
            "A B",
        ),
        (
            "a search of a folder waits for a write in it",
            &["w /d/x", "r /d"],
            "A B",
        ),
        (
            "what reads anything waits for any write",
            &["w /a", "anything"],
            "A B",
        ),
        (
            "what touches nothing waits for nobody",
            &["w /a", "nothing", "w /a"],
            "AB C",
        ),
        ("alone, then alone", &["alone", "alone"], "A B"),
        (
            "nothing slips past what runs alone",
            &["w /a", "alone", "nothing"],
            "A B C",
        ),
    ];
    for (what, calls, expected) in cases {
        assert_eq!(groups(calls).await, expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_run_at_once_than_allowed() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let registry = only(Logged { log: log.clone() });
    let (engine, _) = Engine::builder(registry, "/nonexistent")
        .concurrency(3)
        .build()
        .await;
    let mut scheduler = engine.scheduler(SessionContext::new("/"));
    let mut turn = scheduler.start_batch().await;
    for _ in 0..10 {
        turn.push(tool_use(
            "Logged",
            json!({"touches": "nothing", "letter": "X"}),
        ));
    }
    while turn.next().await.is_some() {}
    let (mut now, mut most) = (0, 0);
    for event in log.lock().unwrap().iter() {
        now += if event == "X" { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!(most, 3);
}

/// Says yes once something else has run.
struct AfterSomethingElse(Arc<Notify>);

impl Approver for AfterSomethingElse {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async {
            self.0.notified().await;
            ApprovalAnswer::Allow
        })
    }
}

/// Tells that it ran.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Signal(Arc<Notify>);

impl Tool for Signal {
    type Input = Nothing;
    const NAME: &'static str = "Signal";
    fn effects(&self, _: &Nothing) -> Effects {
        Effects::NONE
    }
    async fn call(&self, _: &Nothing, _: &CallContext) -> Result<ToolOutput, ToolError> {
        self.0.notify_one();
        Ok(ToolOutput::text("ran"))
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_holds_no_slot() {
    let ran = Arc::new(Notify::new());
    let approver = AfterSomethingElse(Arc::clone(&ran));
    let mut rig = Rig::with(PermissionMode::Default, |builder| {
        builder
            .concurrency(1)
            .services(services(approver))
            .tool(Signal(ran))
            .unwrap()
    })
    .await;
    let mut turn = rig.scheduler.start_batch().await;
    turn.push(tool_use("Append", json!({"path": "a.txt", "line": "x"})));
    turn.push(tool_use("Signal", json!({})));
    // Were the only slot held, neither would ever end; the paused clock then runs out at once.
    let both = async { (turn.next().await.unwrap(), turn.next().await.unwrap()) };
    let (asked, other) = tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .unwrap();
    assert!(!asked.is_error, "{}", asked.text());
    assert_eq!(other.text(), "ran");
}

#[tokio::test]
async fn a_call_starts_while_later_ones_are_still_being_pushed() {
    let mut rig = Rig::new().await;
    let mut turn = rig.scheduler.start_batch().await;
    turn.push(tool_use("Append", json!({"path": "a.txt", "line": "1"})));
    assert_eq!(turn.next().await.unwrap().text(), "was 6 bytes");
    assert!(turn.next().await.is_none());
    turn.push(tool_use("Peek", json!({"path": "a.txt"})));
    assert_eq!(turn.next().await.unwrap().text(), "alpha\n1\n");
}

#[tokio::test]
async fn later_calls_see_the_patches_of_earlier_ones() {
    let mut rig = Rig::new().await;
    let mut turn = rig.scheduler.start_batch().await;
    for (name, input) in [
        ("Move", json!({"path": "one", "pauses": 9})),
        ("Append", json!({"path": "x.txt", "line": "in one"})),
        ("Move", json!({"path": "../two"})),
        ("Append", json!({"path": "x.txt", "line": "in two"})),
    ] {
        turn.push(tool_use(name, input));
    }
    while let Some(finished) = turn.next().await {
        assert!(!finished.is_error, "{finished:?}");
    }
    drop(turn);
    assert_eq!(rig.project.read("work/one/x.txt"), "in one\n");
    assert_eq!(rig.project.read("work/two/x.txt"), "in two\n");
}

#[tokio::test]
async fn after_an_interrupt_every_call_has_exactly_one_result_and_what_ended_keeps_its_own() {
    let mut rig = Rig::new().await;
    let mut turn = rig.scheduler.start_batch().await;
    let calls: [(&str, Value); 5] = [
        ("Peek", json!({"path": "a.txt"})),
        ("Hang", json!({"polite": true})),
        ("Append", json!({"path": "a.txt", "line": "never"})),
        ("Teleport", json!({})),
        ("Peek", json!({"path": "b.txt"})),
    ];
    for (name, input) in calls {
        turn.push(tool_use(name, input));
    }
    assert_eq!(turn.next().await.unwrap().text(), "alpha\n");
    turn.cancel_token().cancel();
    let mut rest = Vec::new();
    while let Some(finished) = turn.next().await {
        assert!(finished.is_error);
        rest.push(finished.text());
    }
    assert_eq!(rest, [INTERRUPTED; 4]);
    drop(turn);
    assert_eq!(rig.project.read("work/a.txt"), "alpha\n");
    // The next turn is not touched by it.
    assert_eq!(rig.answer("Peek", json!({"path": "b.txt"})).await, "beta\n");
}

#[tokio::test]
async fn a_failing_or_panicking_sibling_stops_nobody() {
    let mut rig = Rig::new().await;
    let mut turn = rig.scheduler.start_batch().await;
    turn.push(tool_use("Boom", json!({"place": "call"})));
    turn.push(tool_use("Peek", json!({"path": "missing"})));
    turn.push(tool_use("Peek", json!({"path": "a.txt"})));
    assert!(
        turn.next()
            .await
            .unwrap()
            .text()
            .contains("panicked (boom in call)")
    );
    assert!(turn.next().await.unwrap().is_error);
    assert_eq!(turn.next().await.unwrap().text(), "alpha\n");
}

#[tokio::test]
async fn an_abandoned_turn_changes_no_context_and_leaves_no_call_behind() {
    let mut rig = Rig::new().await;
    let before = rig.scheduler.context();
    {
        let mut turn = rig.scheduler.start_batch().await;
        turn.push(tool_use("Move", json!({"path": "sub", "pauses": 20})));
    }
    assert_eq!(
        rig.answer("Peek", json!({"path": "a.txt"})).await,
        "alpha\n"
    );
    assert_eq!(rig.scheduler.context(), before);
}

#[tokio::test]
async fn cancelling_the_session_ends_its_turns() {
    let mut rig = Rig::new().await;
    let session = rig.scheduler.cancel_token();
    let mut turn = rig.scheduler.start_batch().await;
    turn.push(tool_use("Hang", json!({"polite": true})));
    session.cancel();
    assert_eq!(turn.next().await.unwrap().text(), INTERRUPTED);
}

/// Writes down what it hears.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl CallObserver for Notes {
    fn on_started(&self, call: &AdmittedCall) {
        let (_, id) = call.call().ids();
        self.0.lock().unwrap().push(format!("started {id}"));
    }

    fn on_ended(&self, finished: &CallResult) {
        let denied = if finished.metadata.denied.is_some() {
            " denied"
        } else {
            ""
        };
        self.0
            .lock()
            .unwrap()
            .push(format!("ended {}{denied}", finished.id));
    }
}

/// Keeps the results it is offered.
#[derive(Default)]
struct Taker(Mutex<Vec<String>>);

impl CallObserver for Taker {
    fn on_started(&self, _: &AdmittedCall) {}

    fn on_ended(&self, _: &CallResult) {}

    fn take_result(&self, finished: CallResult) -> Option<CallResult> {
        self.0.lock().unwrap().push(finished.id);
        None
    }
}

#[tokio::test]
async fn a_witness_may_keep_what_changes_nothing_of_the_session() {
    let mut rig = Rig::new().await;
    let taker = Arc::new(Taker::default());
    let mut turn = rig.scheduler.start_batch().await;
    turn.set_observer(taker.clone());
    for (name, input) in [
        ("Peek", json!({"path": "a.txt", "pauses": 3})),
        ("Move", json!({"path": "one", "pauses": 9})),
        ("Append", json!({"path": "x.txt", "line": "in one"})),
        ("Echo", json!({"text": "hi"})),
        ("Missing", json!({})),
    ] {
        turn.push(tool_use(name, input));
    }
    let mut handed_out = Vec::new();
    while let Some(finished) = turn.next_ended().await {
        handed_out.push(finished.id);
    }
    assert!(turn.next_ended().await.is_none());
    turn.push(tool_use("Echo", json!({"text": "once more"})));
    assert!(turn.next_ended().await.is_none());
    drop(turn);
    handed_out.sort();
    // What is wrong from the start is over before a witness hears of it.
    assert_eq!(handed_out, ["use-Missing", "use-Move"]);
    let mut taken = taker.0.lock().unwrap().clone();
    taken.sort();
    assert_eq!(taken, ["use-Append", "use-Echo", "use-Echo", "use-Peek"]);
    assert_eq!(rig.project.read("work/one/x.txt"), "in one\n");
}

#[tokio::test]
async fn a_witness_hears_of_calls_before_they_run_and_when_they_are_over() {
    let mut rig = Rig::with(PermissionMode::Default, |builder| builder).await;
    let notes = Arc::new(Notes::default());
    let mut turn = rig.scheduler.start_batch().await;
    turn.set_observer(notes.clone());
    turn.push(tool_use("Peek", json!({"path": "a.txt", "pauses": 3})));
    turn.push(tool_use("Echo", json!({"text": "hi"})));
    // Needs a person, and there is none.
    turn.push(tool_use("Move", json!({"path": "elsewhere"})));
    while turn.next().await.is_some() {}
    drop(turn);
    let mut heard = notes.0.lock().unwrap().clone();
    assert_eq!(heard.pop().as_deref(), Some("ended use-Move denied"));
    // Whatever ends first, and not in the order in which results are handed back.
    let at = |what: &str| heard.iter().position(|heard| heard == what).unwrap();
    assert!(at("started use-Peek") < at("ended use-Peek"));
    assert!(at("started use-Echo") < at("ended use-Echo"));
    assert!(at("ended use-Echo") < at("ended use-Peek"));
    assert_eq!(heard.len(), 4);
}
