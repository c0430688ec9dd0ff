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
