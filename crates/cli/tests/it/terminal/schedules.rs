//! Prompts that are said later, at a terminal.

use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    pty::{Input, Screen},
    script_in,
    tmux::{Tmux, call, is_idle, text},
};
use crate::{binary::haft, test_clock::TestClock};

fn hourly(durable: bool) -> Value {
    json!({"cron": "7 * * * *", "prompt": "look at the build", "durable": durable})
}

fn start(clock: &TestClock) -> Option<Tmux> {
    let tmux = Tmux::start(80, 24)?;
    tmux.run(&format!(
        "export TZ=UTC0 HAFT_TEST_CLOCK={}",
        clock.file().display()
    ));
    Some(tmux)
}

#[test]
fn a_schedule_fires_between_turns_and_leaves_the_draft_alone() {
    let clock = TestClock::new();
    let Some(tmux) = start(&clock) else {
        return;
    };
    tmux.haft(
        "",
        &[
            call("CronCreate", hourly(false)),
            text("Made."),
            text("All green."),
            text("Still green."),
        ],
    );
    tmux.say("watch it");
    tmux.answered("Made.");
    clock.set_minutes(2 * 60);
    let screen = tmux.answered("All green.");
    assert!(
        screen.contains("- scheduled ") && screen.contains("look at the build"),
        "{screen}"
    );
    // What is being typed stays.
    tmux.type_text("half a wo");
    tmux.wait_until("the draft", |screen| screen.contains("› half a wo"));
    clock.set_minutes(3 * 60);
    let screen = tmux.wait_until("the next time", |screen| {
        screen.contains("Still green.") && !screen.contains("Esc to stop")
    });
    assert!(screen.contains("› half a wo"), "{screen}");
    tmux.press("C-c");
    tmux.wait_until("an empty draft", is_idle);
    tmux.leave();
}

#[test]
fn what_a_session_had_scheduled_fires_when_it_is_taken_up_though_nothing_is_typed() {
    let clock = TestClock::new();
    let Some(tmux) = start(&clock) else {
        return;
    };
    tmux.haft("", &[call("CronCreate", hourly(false)), text("Made.")]);
    tmux.say("watch it");
    tmux.answered("Made.");
    tmux.leave();
    tmux.run("clear");
    tmux.haft("-c", &[text("All green.")]);
    clock.set_minutes(2 * 60);
    tmux.answered("All green.");
    tmux.leave();
}

#[test]
fn a_session_in_lines_says_what_was_scheduled_and_who_reports() {
    let (dir, clock) = (tempdir().unwrap(), TestClock::new());
    let made = json!({"type": "tool_use", "name": "CronCreate", "input": hourly(false)});
    let script = script_in(
        dir.path(),
        &[
            made,
            json!({"type": "text", "text": "Made."}),
            json!({"type": "text", "text": "All green."}),
        ],
    );
    let mut command = haft(dir.path());
    command
        .envs([("TERM", "xterm"), ("TZ", "UTC0")])
        .env("HAFT_TEST_CLOCK", clock.file())
        .args(["--plain", "--script"])
        .arg(script);
    let mut running = Screen::new().run(&mut command, Input::Terminal);
    running.until("you: ");
    running.types("watch it\n");
    running.until("agent: Made.");
    clock.set_minutes(2 * 60);
    let shown = running.until("agent: All green.");
    assert!(shown.contains("scheduled: look at the build"), "{shown}");
    running.types("/exit\n");
    assert_eq!(running.end().1, 0);
}
