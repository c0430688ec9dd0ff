//! When scheduled prompts are said, by a clock of our own: between turns, and in sessions that go on.

use std::{fs, process::Command};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use super::{Talk, call, scripted, text};
use crate::test_clock::TestClock;

struct Desk {
    project: TempDir,
    home: TempDir,
    clock: TestClock,
}

impl Desk {
    fn new() -> Self {
        Self {
            project: tempdir().unwrap(),
            home: tempdir().unwrap(),
            clock: TestClock::new(),
        }
    }

    fn haft(&self, turns: &Value) -> Command {
        let mut command = scripted(self.project.path(), turns);
        command
            .env("HOME", self.home.path())
            .env("TZ", "UTC0")
            .env("HAFT_TEST_CLOCK", self.clock.file());
        command
    }
}

fn cron(durable: bool, prompt: &str) -> Value {
    let input = json!({"cron": "7 * * * *", "prompt": prompt, "durable": durable});
    call("CronCreate", input)
}

fn listed(heard: &[Value]) -> Vec<(String, bool)> {
    let jobs = heard
        .iter()
        .find_map(|one| one["tool_use_result"]["jobs"].as_array());
    let job = |job: &Value| {
        let prompt = job["prompt"].as_str().unwrap().to_owned();
        (prompt, job["durable"] == true)
    };
    let mut jobs: Vec<(String, bool)> = jobs.unwrap().iter().map(job).collect();
    jobs.sort();
    jobs
}

/// What is said by itself in the next turns, and how the model answers.
fn scheduled(talk: &mut Talk, turns: usize) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for _ in 0..turns {
        let heard = talk.hear_until("result");
        let result = heard.last().unwrap();
        assert_eq!(result["origin"]["kind"], "schedule", "{result}");
        let said = heard.iter().find(|one| one["type"] == "user").unwrap();
        let said = said["message"]["content"].to_string();
        let last = said.rsplit("\\n").next().unwrap_or_default();
        let words: String = last.chars().take_while(|one| *one != '"').collect();
        all.push((words, result["result"].as_str().unwrap().to_owned()));
    }
    all.sort();
    all
}

#[test]
fn a_session_that_goes_on_lists_and_says_its_own_and_any_other_only_the_durable_ones() {
    let desk = Desk::new();
    let turns = json!([[cron(true, "durable"), cron(false, "own")], [text("made")]]);
    let mut talk = Talk::new(&mut desk.haft(&turns));
    talk.user("go");
    talk.hear_until("result");
    assert_eq!(talk.end().1, 0);

    // Another session of the directory.
    let list = [call("CronList", json!({}))];
    let turns = json!([list, [text("listed")], [text("said")]]);
    let mut talk = Talk::new(&mut desk.haft(&turns));
    talk.user("list");
    assert_eq!(
        listed(&talk.hear_until("result")),
        [("durable".to_owned(), true)]
    );
    desk.clock.set_minutes(2 * 60);
    let said = scheduled(&mut talk, 1);
    assert_eq!(said, [("durable".to_owned(), "said".to_owned())]);
    assert_eq!(talk.end().1, 0);

    // The same session, which goes on: by its id, as it is not the newest any more.
    let transcripts = fs::read_dir(desk.home.path().join(".claude/projects")).unwrap();
    let folder = transcripts.flatten().next().unwrap().path();
    let own = fs::read_dir(folder).unwrap().flatten().find_map(|entry| {
        let is_own = entry.path().join("schedules.json").exists();
        is_own.then(|| entry.file_name().into_string().unwrap())
    });
    let own = own.unwrap();
    let turns = json!([list, [text("listed")], [text("one")], [text("two")]]);
    let mut talk = Talk::new(desk.haft(&turns).args(["--resume", &own]));
    talk.user("list");
    assert_eq!(
        listed(&talk.hear_until("result")),
        [("durable".to_owned(), true), ("own".to_owned(), false)]
    );
    desk.clock.set_minutes(3 * 60);
    let said = scheduled(&mut talk, 2);
    let words: Vec<&str> = said.iter().map(|(words, _)| &**words).collect();
    assert_eq!(words, ["durable", "own"]);
    assert_eq!(talk.end().1, 0);
}

#[test]
fn what_was_scheduled_is_said_before_anything_else_is_and_also_after_a_kill() {
    let desk = Desk::new();
    let turns = json!([[cron(false, "own")], [text("made")]]);
    let mut talk = Talk::new(&mut desk.haft(&turns));
    talk.user("go");
    talk.hear_until("result");
    talk.signal("KILL");
    talk.gone();
    let mut talk = Talk::new(desk.haft(&json!([[text("said")]])).arg("-c"));
    // When this is answered, the session is open.
    talk.request("1", &json!({"subtype": "initialize"}));
    talk.hear_until("control_response");
    desk.clock.set_minutes(2 * 60);
    let said = scheduled(&mut talk, 1);
    assert_eq!(said, [("own".to_owned(), "said".to_owned())]);
    assert_eq!(talk.end().1, 0);
}

#[test]
fn a_session_that_was_cleared_and_left_without_a_word_loses_nothing() {
    let desk = Desk::new();
    let turns = json!([[cron(false, "own")], [text("made")]]);
    let mut talk = Talk::new(&mut desk.haft(&turns));
    talk.user("go");
    talk.hear_until("result");
    talk.user("/clear");
    talk.hear_until("result");
    assert_eq!(talk.end().1, 0);
    let turns = json!([[call("CronList", json!({}))], [text("listed")]]);
    let mut talk = Talk::new(desk.haft(&turns).arg("-c"));
    talk.user("list");
    assert_eq!(
        listed(&talk.hear_until("result")),
        [("own".to_owned(), false)]
    );
    assert_eq!(talk.end().1, 0);
}

#[test]
fn vector_29_what_is_no_time_is_refused_before_any_hook() {
    let desk = Desk::new();
    let long = format!("{} * * * *", "1,".repeat(600));
    let hostile = [
        "60 * * * *",
        "* * * *",
        "* * * * * *",
        "@daily",
        "*/0 * * * *",
        "5-1 * * * *",
        "1-99999999999999999999 * * * *",
        "* * L * *",
        "* * * JAN MON",
        "0 0 30 2 *",
        "\u{661} * * * *",
        "* * * * *\u{0}",
        "-1 * * * *",
        "1,, * * * *",
        "",
        long.as_str(),
    ];
    let calls: Vec<Value> = hostile
        .iter()
        .map(|cron| call("CronCreate", json!({"cron": cron, "prompt": "look"})))
        .collect();
    let list = call("CronList", json!({}));
    let hook = json!({"type": "command", "command": "echo x >> fired"});
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "CronCreate", "hooks": [hook]}]}});
    let turns = json!([calls, [list], [text("done")]]);
    let mut command = desk.haft(&turns);
    let mut talk = Talk::new(command.args(["--settings", &hooks.to_string()]));
    talk.user("go");
    let heard = talk.hear_until("result");
    assert_eq!(talk.end().1, 0);
    let blocks = heard
        .iter()
        .filter(|one| one["type"] == "user")
        .filter_map(|one| one["message"]["content"].as_array())
        .flatten();
    let refused: Vec<&Value> = blocks.filter(|block| block["is_error"] == true).collect();
    assert_eq!(refused.len(), hostile.len(), "{refused:#?}");
    for one in refused {
        let text = one["content"].as_str().unwrap();
        assert!(text.starts_with("<tool_use_error>"), "{text}");
    }
    assert!(listed(&heard).is_empty());
    assert!(!desk.project.path().join("fired").exists());
}

/// What programs receive of the calls of one turn, in their order.
fn structured(desk: &Desk, calls: &[Value]) -> Vec<Value> {
    let mut talk = Talk::new(&mut desk.haft(&json!([calls, [text("done")]])));
    talk.user("go");
    let heard = talk.hear_until("result");
    assert_eq!(talk.end().1, 0);
    let results = heard.iter().filter(|one| one["type"] == "user");
    let received: Vec<Value> = results.map(|one| one["tool_use_result"].clone()).collect();
    assert_eq!(received.len(), calls.len(), "{heard:#?}");
    received
}

#[test]
fn what_programs_receive_of_schedules() {
    let desk = Desk::new();
    let once =
        json!({"cron": "9  12 * * *", "prompt": "once", "recurring": false, "durable": true});
    let received = structured(
        &desk,
        &[
            cron(false, "own"),
            call("CronCreate", once),
            call("CronList", json!({})),
        ],
    );
    let (own, once) = (&received[0], &received[1]);
    for made in [own, once] {
        let id = made["id"].as_str().unwrap();
        assert!(id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
    let at = own["nextFireAt"].as_str().unwrap();
    assert!(
        at.starts_with("2026-11-16T1") && at.ends_with("+00:00"),
        "{at}"
    );
    let expected = json!({
        "id": own["id"], "humanSchedule": "every hour at minute 7", "recurring": true, "nextFireAt": at,
    });
    assert_eq!(own, &expected);
    let expected = json!({
        "id": once["id"],
        "humanSchedule": "once, at the next time of \"9 12 * * *\"",
        "recurring": false,
        "durable": true,
        "nextFireAt": "2026-11-16T12:09:00+00:00",
    });
    assert_eq!(once, &expected);
    let jobs = received[2]["jobs"].as_array().unwrap();
    let mut listed = own.clone();
    listed["cron"] = json!("7 * * * *");
    listed["prompt"] = json!("own");
    assert_eq!(jobs.len(), 2);
    assert_eq!(
        jobs.iter().find(|job| job["id"] == own["id"]),
        Some(&listed)
    );
    // It is there for the next session, which ends it.
    let delete = call("CronDelete", json!({"id": once["id"]}));
    let received = structured(&desk, &[delete, call("CronList", json!({}))]);
    assert_eq!(received[0], json!({"id": once["id"]}));
    assert_eq!(received[1], json!({"jobs": []}));
}

#[test]
fn a_wakeup_is_held_to_its_bounds_and_all_are_forgotten_at_once() {
    let desk = Desk::new();
    let wake = |seconds: Value| {
        let input = json!({"delaySeconds": seconds, "reason": "the build", "prompt": "look"});
        call("ScheduleWakeup", input)
    };
    let asked = [
        (json!(-5), 60, true),
        (json!(0), 60, true),
        (json!(59.9), 60, true),
        (json!(60), 60, false),
        (json!("90"), 90, false),
        (json!(90.4), 90, false),
        (json!(3600), 3600, false),
        (json!(3601), 3600, true),
        (json!(1e300), 3600, true),
    ];
    let mut calls: Vec<Value> = asked
        .iter()
        .map(|(given, ..)| wake(given.clone()))
        .collect();
    calls.push(call("ScheduleWakeup", json!({"stop": true, "noop": true})));
    calls.push(call("ScheduleWakeup", json!({"stop": true})));
    let received = structured(&desk, &calls);
    const MONDAY: u64 = 1_794_823_210;
    for ((given, seconds, was_clamped), received) in asked.iter().zip(&received) {
        let expected = json!({
            "scheduledFor": (MONDAY + seconds) * 1000,
            "clampedDelaySeconds": seconds,
            "wasClamped": was_clamped,
        });
        assert_eq!(received, &expected, "{given}");
    }
    let stopped = |count: usize| json!({"stopped": true, "cancelledWakeups": count});
    assert_eq!(received[asked.len()..], [stopped(asked.len()), stopped(0)]);
}

#[test]
fn a_clock_that_jumps_neither_repeats_nor_forgets() {
    const HOUR: i64 = 60;
    const DAY: i64 = 24 * HOUR;
    let desk = Desk::new();
    let said = |count: usize| json!([text(&format!("answer {count}"))]);
    // A call that looks at the clock, and leaves nothing.
    let looks = json!([
        call(
            "ScheduleWakeup",
            json!({"delaySeconds": 3600, "prompt": "x"})
        ),
        call("ScheduleWakeup", json!({"stop": true})),
    ]);
    let looked = json!([text("looked")]);
    let turns = json!([
        [cron(false, "own")],
        [text("made")],
        said(1),
        looks,
        looked,
        said(2),
        looks,
        looked,
        said(3),
        said(4),
        looked
    ]);
    let mut talk = Talk::new(&mut desk.haft(&turns));
    talk.user("go");
    talk.hear_until("result");
    let back = |talk: &mut Talk, minutes: i64| {
        desk.clock.set_minutes(minutes);
        talk.user("look at the clock");
        let heard = talk.hear_until("result");
        assert_eq!(heard.last().unwrap()["result"], "looked");
    };
    let next = |talk: &mut Talk, minutes: i64| {
        desk.clock.set_minutes(minutes);
        let said = scheduled(talk, 1);
        let (words, answer) = said.into_iter().next().unwrap();
        assert_eq!(words, "own");
        answer
    };
    // Three days ahead: once, however often it was due.
    assert_eq!(next(&mut talk, 3 * DAY), "answer 1");
    // Two days back: it does not wait until the time that was shown before comes again.
    back(&mut talk, DAY);
    assert_eq!(next(&mut talk, DAY + 2 * HOUR), "answer 2");
    // Before the session began.
    back(&mut talk, -DAY);
    assert_eq!(next(&mut talk, 2 * HOUR - DAY), "answer 3");
    // A year ahead: its seven days are over, and it comes once more.
    assert_eq!(next(&mut talk, 365 * DAY), "answer 4");
    desk.clock.set_minutes(366 * DAY);
    talk.user("anything?");
    let heard = talk.hear_until("result");
    let result = heard.last().unwrap();
    assert_eq!(result["result"], "looked", "{result}");
    assert_ne!(result["origin"]["kind"], "schedule", "{result}");
    assert_eq!(talk.end().1, 0);
}
