//! Prompts that are said later, by a clock that stands still until it is set.

use std::{
    fs,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use haft_host::{
    AgentSession, Environment, ManualClock, SessionConfig, SessionEvent, SessionInput, SessionParts,
};
use haft_testkit::{TempProject, until};
use serde_json::{Value, json};

use crate::rig::{Recorded, call, config, in_time, says, scripted};

const MONDAY: u64 = 1_794_823_210;
const HOUR: u64 = 3_600;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(at(0)))
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(MONDAY + seconds)
}

fn config_in(project: &TempProject) -> SessionConfig {
    let mut config = config(project);
    let home = project.path("home");
    let home = home.to_str().unwrap();
    config.environment = Environment::from_variables([("HOME", home), ("TZ", "UTC0")]);
    config
}

fn session(
    config: SessionConfig,
    clock: &Arc<ManualClock>,
    recorded: &Recorded,
    turns: Value,
) -> AgentSession {
    let parts = recorded.parts().clock(Arc::clone(clock) as _);
    AgentSession::open(config, parts.model(Arc::new(scripted(turns)))).unwrap()
}

fn asks(name: &str, input: Value) -> Value {
    json!({"content": [call(name, input)]})
}

fn scheduled(recorded: &Recorded) -> Vec<String> {
    let all = recorded.all();
    let scheduled = all.iter().filter_map(|event| match event {
        SessionEvent::Scheduled { prompt, .. } => Some(prompt.prompt.clone()),
        _ => None,
    });
    scheduled.collect()
}

fn hourly(durable: bool) -> Value {
    asks(
        "CronCreate",
        json!({"cron": "7 * * * *", "prompt": "/clear and look", "durable": durable}),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_said_between_turns_while_the_session_is_open() {
    let project = TempProject::new([]);
    let (clock, recorded) = (clock(), Recorded::default());
    let turns = json!([
        hourly(false),
        says("made"),
        says("looked"),
        says("looked again"),
        asks(
            "ScheduleWakeup",
            json!({"delaySeconds": 5, "reason": "soon", "prompt": "wake"})
        ),
        says("waits"),
        says("woken"),
    ]);
    let session = session(config_in(&project), &clock, &recorded, turns);
    let input = session.input();
    input.prompt("every hour");
    let running = tokio::spawn(session.run());
    let answers = |count: usize| {
        let recorded = recorded.clone();
        move || recorded.answers().len() == count
    };
    until("the first answer", answers(1)).await;
    assert!(
        input
            .tasks()
            .iter()
            .any(|task| task.description.contains("every hour at minute 7"))
    );
    clock.set(at(2 * HOUR));
    until("the schedule is said", answers(2)).await;
    clock.set(at(3 * HOUR));
    until("and again", answers(3)).await;
    // It is no command that a person typed: the conversation goes on.
    assert_eq!(scheduled(&recorded), ["/clear and look", "/clear and look"]);
    let id = input.tasks()[0].id.clone();
    input.stop_task(&id).unwrap();
    input.prompt("wake me");
    until("a wake-up is made", answers(4)).await;
    clock.set(at(3 * HOUR + 59));
    assert_eq!(recorded.answers().len(), 4, "a minute is the least");
    clock.set(at(3 * HOUR + 60));
    until("it is woken", answers(5)).await;
    input.close();
    in_time(running).await.unwrap().unwrap();
    assert_eq!(
        recorded.answers(),
        ["made", "looked", "looked again", "waits", "woken"]
    );
    let origins = recorded.all().into_iter().filter_map(|event| match event {
        SessionEvent::Result(result) => Some(result.origin),
        _ => None,
    });
    let kinds: Vec<Value> = origins
        .map(|origin| origin.unwrap_or_default()["kind"].clone())
        .collect();
    assert_eq!(
        kinds,
        [
            json!(null),
            json!("schedule"),
            json!("schedule"),
            json!(null),
            json!("schedule")
        ]
    );
    // Nothing is kept of it but what belongs to the conversation.
    assert!(!project.path("work/.claude").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_schedule_begins_the_next_session_by_itself() {
    let project = TempProject::new([]);
    let (clock, recorded) = (clock(), Recorded::default());
    let first = session(
        config_in(&project),
        &clock,
        &recorded,
        json!([hourly(true), says("made")]),
    );
    in_time(first.answer("every hour")).await.unwrap();
    assert!(project.path("work/.claude/scheduled_tasks.json").is_file());
    clock.set(at(5 * HOUR));
    let recorded = Recorded::default();
    let second = session(
        config_in(&project),
        &clock,
        &recorded,
        json!([says("looked")]),
    );
    let input = second.input();
    let running = tokio::spawn(second.run());
    assert_eq!(input.tasks().len(), 1);
    assert!(
        recorded.answers().is_empty(),
        "what was due meanwhile is not said"
    );
    clock.set(at(6 * HOUR + HOUR / 2));
    until("it is said, though no one else said anything", || {
        recorded.answers() == ["looked"]
    })
    .await;
    assert_eq!(scheduled(&recorded), ["/clear and look"]);
    input.close();
    in_time(running).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_interrupted_from_the_moment_it_is_said() {
    let project = TempProject::new([]);
    let (clock, recorded) = (clock(), Recorded::default());
    let input = Arc::new(OnceLock::<SessionInput>::new());
    let (to, known) = (recorded.clone(), Arc::clone(&input));
    let parts = SessionParts::new(move |event: &SessionEvent| {
        to.push(event);
        // Its run has not begun yet.
        if matches!(event, SessionEvent::Scheduled { .. }) {
            known.get().unwrap().interrupt();
        }
    });
    let hangs = json!({"content": [{"type": "text", "text": "hm"}], "hangs": true});
    let model = scripted(json!([hourly(false), says("made"), hangs]));
    let parts = parts.clock(Arc::clone(&clock) as _).model(Arc::new(model));
    let session = AgentSession::open(config_in(&project), parts).unwrap();
    let input = input.get_or_init(|| session.input());
    input.prompt("every hour");
    let running = tokio::spawn(session.run());
    until("the first answer", || recorded.answers() == ["made"]).await;
    clock.set(at(2 * HOUR));
    until("the schedule is over", || recorded.answers().len() == 2).await;
    assert_eq!(scheduled(&recorded), ["/clear and look"]);
    input.close();
    in_time(running).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_of_a_session_comes_back_when_it_is_gone_on_with() {
    let project = TempProject::new([]);
    let (clock, recorded) = (clock(), Recorded::default());
    let first = session(
        config_in(&project),
        &clock,
        &recorded,
        json!([hourly(false), says("made")]),
    );
    in_time(first.answer("every hour")).await.unwrap();
    let mut again = config_in(&project);
    again.conversation.from = Some(haft_host::EarlierConversation::Newest);
    let recorded = Recorded::default();
    let second = session(
        again,
        &clock,
        &recorded,
        json!([says("back"), says("looked")]),
    );
    let input = second.input();
    input.prompt("go on");
    let running = tokio::spawn(second.run());
    until("it is back", || recorded.answers() == ["back"]).await;
    clock.set(at(2 * HOUR));
    until("it is said", || recorded.answers() == ["back", "looked"]).await;
    input.close();
    in_time(running).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_input_waits_for_no_schedule() {
    let project = TempProject::new([]);
    let (clock, recorded) = (clock(), Recorded::default());
    let turns = json!([hourly(false), says("made"), says("never said")]);
    let mut config = config_in(&project);
    config.conversation.forget = true;
    let session = session(config, &clock, &recorded, turns);
    clock.set(at(1));
    in_time(session.answer("every hour")).await.unwrap();
    assert_eq!(recorded.answers(), ["made"]);
    let left = fs::read_dir(project.path("home/.claude/projects"));
    let left = left.map_or(0, |folders| {
        folders
            .flatten()
            .map(|one| fs::read_dir(one.path()).unwrap().count())
            .sum()
    });
    assert_eq!(left, 0, "nothing is left of a session that is not kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_schedules_are_off_there_is_no_tool_for_them() {
    let project = TempProject::new([]);
    let (clock, recorded) = (clock(), Recorded::default());
    let mut config = config_in(&project);
    let home = project.path("home");
    config.environment = Environment::from_variables([
        ("HOME", home.to_str().unwrap()),
        ("CLAUDE_CODE_DISABLE_CRON", "1"),
    ]);
    let turns = json!([hourly(false), says("no")]);
    let session = session(config, &clock, &recorded, turns);
    in_time(session.answer("every hour")).await.unwrap();
    let results = recorded.results();
    assert!(
        results[0].contains("Unknown tool: CronCreate"),
        "{results:?}"
    );
}

/// The files of schedules that sessions keep, each with how many there are in it.
fn kept(project: &TempProject) -> Vec<usize> {
    let folders = fs::read_dir(project.path("home/.claude/projects")).unwrap();
    let sessions = folders
        .flatten()
        .flat_map(|folder| fs::read_dir(folder.path()).unwrap());
    let files = sessions
        .flatten()
        .map(|session| session.path().join("schedules.json"));
    let mut counts: Vec<usize> = files
        .filter_map(|file| fs::read_to_string(file).ok())
        .map(|text| text.matches("7 * * * *").count())
        .collect();
    counts.retain(|count| *count > 0);
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_follow_into_the_conversation_that_goes_on() {
    let project = TempProject::new([]);
    let (clock, recorded) = (clock(), Recorded::default());
    let turns = json!([hourly(false), says("made"), says("new"), says("looked")]);
    let first = session(config_in(&project), &clock, &recorded, turns);
    let input = first.input();
    let running = tokio::spawn(first.run());
    input.prompt("every hour");
    until("it is made", || recorded.answers().len() == 1).await;
    assert_eq!(kept(&project), [1]);
    input.prompt("/clear");
    until("it is cleared", || recorded.answers().len() == 2).await;
    assert_eq!(kept(&project), [1], "it is kept once");
    input.prompt("go on");
    until("the new conversation is there", || {
        recorded.answers().len() == 3
    })
    .await;
    clock.set(at(2 * HOUR));
    until("it is said", || recorded.answers().len() == 4).await;
    input.close();
    in_time(running).await.unwrap().unwrap();
    // Its conversation is in use as long as there is an input.
    drop(input);
    // The next session says it though nothing else is said.
    let recorded = Recorded::default();
    let mut opened = None;
    // A task that the first one leaves behind may hold its conversation a moment longer.
    until("the conversation is free", || {
        let mut again = config_in(&project);
        again.conversation.from = Some(haft_host::EarlierConversation::Newest);
        let second = session(again, &clock, &recorded, json!([says("looked again")]));
        let has_taken_over = second.input().tasks().len() == 1;
        opened = has_taken_over.then_some(second);
        has_taken_over
    })
    .await;
    let second = opened.unwrap();
    let input = second.input();
    let running = tokio::spawn(second.run());
    clock.set(at(4 * HOUR));
    until("it is said again", || {
        recorded.answers() == ["looked again"]
    })
    .await;
    assert_eq!(kept(&project), [1]);
    input.close();
    in_time(running).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_learn_that_nothing_is_said_for_a_minute() {
    let project = TempProject::new([]);
    let command = "cat > told.tmp; mv told.tmp told.json; echo >> times";
    let settings = json!({"hooks": {"Notification": [
        {"matcher": "idle_prompt", "hooks": [{"type": "command", "command": command}]},
    ]}});
    project.write("home/.claude/settings.json", settings.to_string());
    let times = || {
        let times = fs::read_to_string(project.path("work/times"));
        times.unwrap_or_default().lines().count()
    };
    let (clock, recorded) = (clock(), Recorded::default());
    let mut config = config_in(&project);
    config.reports_idle = true;
    let turns = json!([says("done"), says("again")]);
    let session = session(config, &clock, &recorded, turns);
    let input = session.input();
    let running = tokio::spawn(session.run());
    input.prompt("go");
    until("it is done", || recorded.answers().len() == 1).await;
    until("it is idle", || {
        let idle = |event: &SessionEvent| {
            matches!(
                event,
                SessionEvent::Activity(haft_host::SessionActivity::Idle)
            )
        };
        recorded.all().iter().any(idle)
    })
    .await;
    clock.advance(Duration::from_secs(59));
    clock.advance(Duration::from_secs(1));
    until("hooks learn it", || times() == 1).await;
    let told: Value = serde_json::from_str(&project.read("work/told.json")).unwrap();
    assert_eq!(told["notification_type"], "idle_prompt");
    // Once, until something is said.
    clock.advance(Duration::from_secs(3_600));
    input.prompt("again");
    until("it answers", || recorded.answers().len() == 2).await;
    assert_eq!(times(), 1);
    input.close();
    in_time(running).await.unwrap().unwrap();
}
