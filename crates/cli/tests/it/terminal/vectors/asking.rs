//! Questions: nothing is answered by accident.

use std::{fs, path::PathBuf, thread, time::Duration};

use serde_json::{Value, json};

use super::super::tmux::{Tmux, call, from, hanging, is_idle, pause, text};

fn write(tmux: &Tmux, name: &str) -> (PathBuf, Value) {
    let file = tmux.project().join(name);
    let input = json!({"file_path": file, "content": "one\n"});
    (
        file,
        json!({"type": "tool_use", "name": "Write", "input": input}),
    )
}

fn turn(calls: &[&Value]) -> Value {
    json!({"content": calls})
}

/// Longer than keys that come together, far shorter than a question takes to be armed.
fn a_moment() {
    thread::sleep(Duration::from_millis(100));
}

#[test]
fn vector_9_what_is_typed_as_a_question_appears_answers_nothing() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let (file, call) = write(&tmux, "a.txt");
    tmux.haft(
        "--allowed-tools Bash",
        &[pause(), turn(&[&call]), text("Written.")],
    );
    tmux.say("write it");
    tmux.wait_until("the call", |screen| screen.contains("Bash sleep 1"));
    tmux.type_text("yyy");
    tmux.wait_until("the draft", |screen| {
        screen.lines().any(|line| line == "› yyy")
    });
    let screen = tmux.wait_until("the question", |screen| screen.contains("Tab to answer"));
    insta::assert_snapshot!(from(&screen, "? Write"));
    assert!(!file.exists());
}

#[test]
fn vector_10_a_key_before_the_question_is_armed_goes_to_the_draft() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let (file, call) = write(&tmux, "a.txt");
    tmux.haft("", &[turn(&[&call]), text("Written.")]);
    tmux.say("write it");
    tmux.wait_until("the question", |screen| screen.contains("[y] once"));
    tmux.type_text("y");
    tmux.wait_until("the draft", |screen| {
        screen.lines().any(|line| line == "› y")
    });
    assert!(!file.exists());
    tmux.press("BSpace");
    tmux.armed("[y] once");
    tmux.type_text("y");
    tmux.answered("Written.");
    assert!(file.exists());
}

#[test]
fn vector_11_one_answer_answers_one_question() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let ((first, one), (second, two)) = (write(&tmux, "a.txt"), write(&tmux, "b.txt"));
    tmux.haft("", &[turn(&[&one, &two]), text("Written.")]);
    tmux.say("write both");
    tmux.wait_until("both questions", |screen| screen.contains("1 of 2"));
    tmux.armed("[y] once");
    tmux.press("Enter");
    a_moment();
    assert!(tmux.screen().contains("1 of 2"), "Enter does nothing");
    tmux.type_text("y");
    a_moment();
    tmux.type_text("y");
    // The calls run side by side: either may ask first.
    let count = || usize::from(first.exists()) + usize::from(second.exists());
    tmux.wait_until("the first answer", |_| count() > 0);
    let screen = tmux.wait_until("the second question", |screen| {
        screen.contains("? Write ") && screen.lines().any(|line| line == "› y")
    });
    assert!(screen.contains("Tab to answer"), "{screen}");
    assert!(!screen.contains("1 of 2"), "{screen}");
    assert_eq!(count(), 1);
}

#[test]
fn vector_12_a_long_command_is_seen_whole_before_it_is_allowed() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let lines: Vec<String> = (1..=60).map(|n| format!("echo {n} >> made.txt")).collect();
    let command = json!({"command": lines.join("\n")});
    tmux.haft("", &[call("Bash", command), text("Ran.")]);
    tmux.say("go");
    tmux.armed("[y] once");
    tmux.type_text("y");
    tmux.wait_until("the refusal", |screen| screen.contains("v first"));
    a_moment();
    tmux.type_text("v");
    tmux.wait_until("the whole", |screen| {
        screen.contains("echo 1 ") && !screen.contains("[y] once")
    });
    tmux.press("End");
    tmux.wait_until("its end", |screen| screen.contains("why: "));
    tmux.type_text("q");
    tmux.armed("[y] once");
    a_moment();
    tmux.type_text("y");
    tmux.answered("Ran.");
    let made = fs::read_to_string(tmux.project().join("made.txt")).unwrap();
    assert_eq!(made.lines().count(), 60);
}

#[test]
fn vector_13_a_rule_is_edited_and_kept_where_it_is_wanted() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let touch = |name: &str| call("Bash", json!({"command": format!("touch {name}")}));
    tmux.haft("", &[touch("one"), touch("two"), text("Touched.")]);
    tmux.say("go");
    tmux.armed("[y] once");
    tmux.type_text("a");
    tmux.wait_until("the rule", |screen| {
        screen.contains("rule: Bash(touch one)")
    });
    tmux.press("C-u");
    tmux.type_text("Bash(touch *)");
    let before = tmux.wait_until("the new rule", |screen| {
        screen.contains("rule: Bash(touch *)")
    });
    tmux.press("Tab");
    let place = |screen: &str| {
        let row = screen.lines().find(|line| line.contains("(Tab: how long)"));
        row.map(|row| row.trim().to_owned())
    };
    tmux.wait_until("another place", |screen| place(screen) != place(&before));
    // An edited rule is tried on past questions before it is saved.
    tmux.press("Enter");
    tmux.wait_until("the trial", |screen| screen.contains("no past question"));
    tmux.press("Enter");
    tmux.answered("Touched.");
    let made = |name: &str| tmux.project().join(name).exists();
    assert!(made("one") && made("two"), "the second is not asked about");
    let kept = tmux
        .lines()
        .iter()
        .any(|line| line.starts_with("- saved in "));
    assert!(kept, "the file is named");
    let found = haft_testkit::command("grep")
        .args(["-rlF", "--include=settings*.json", "Bash(touch *)"])
        .arg(tmux.home())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap().lines().count(), 1);
}

#[test]
fn vector_14_a_reason_goes_with_a_no() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let (file, call) = write(&tmux, "a.txt");
    tmux.haft("", &[turn(&[&call]), text("As you like.")]);
    tmux.say("go");
    tmux.armed("[y] once");
    tmux.type_text("r");
    tmux.wait_until("the line", |screen| screen.contains("because:"));
    tmux.type_text("no, use yarn");
    tmux.wait_until("the reason", |screen| {
        screen.contains("because: no, use yarn")
    });
    tmux.press("Enter");
    tmux.answered("As you like.");
    assert!(!file.exists());
    assert!(
        tmux.transcript().contains("no, use yarn"),
        "the model reads it"
    );
}

#[test]
fn vector_15_a_changed_command_is_judged_again() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let precious = tmux.project().join("precious");
    fs::write(&precious, "").unwrap();
    tmux.haft(
        "--disallowed-tools 'Bash(rm *)'",
        &[
            call("Bash", json!({"command": "touch made"})),
            text("Refused."),
        ],
    );
    tmux.say("go");
    tmux.armed("[y] once");
    tmux.type_text("e");
    tmux.wait_until("the line", |screen| screen.contains("instead: touch made"));
    tmux.press("C-u");
    tmux.type_text("rm -rf precious");
    tmux.wait_until("the change", |screen| {
        screen.contains("instead: rm -rf precious")
    });
    tmux.press("Enter");
    let screen = tmux.answered("Refused.");
    assert!(screen.lines().any(|line| line.starts_with('✗')), "{screen}");
    assert!(precious.exists() && !tmux.project().join("made").exists());
}

#[test]
fn vector_16_escape_leaves_a_question_open_and_then_stops_the_run() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let (file, call) = write(&tmux, "a.txt");
    tmux.haft("", &[turn(&[&call]), text("Not reached.")]);
    tmux.say("go");
    tmux.armed("[y] once");
    tmux.press("Escape");
    let screen = tmux.wait_until("the draft", |screen| screen.contains("Tab to answer"));
    assert!(screen.contains("? Write a.txt"), "it is open: {screen}");
    tmux.press("Escape");
    let screen = tmux.wait_until("the end of the run", |screen| {
        screen.contains("interrupted") && is_idle(screen)
    });
    assert!(
        !screen.contains("? Write") && !screen.contains("Not reached."),
        "{screen}"
    );
    assert!(!file.exists());
}

#[test]
fn vector_17_over_a_view_a_question_is_a_banner_and_a_bell() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let (file, call) = write(&tmux, "a.txt");
    tmux.haft(
        "--allowed-tools Bash",
        &[pause(), turn(&[&call]), hanging("Written.")],
    );
    tmux.say("go");
    tmux.wait_until("the call", |screen| screen.contains("Bash sleep 1"));
    tmux.press("C-o");
    let screen = tmux.wait_until("the banner", |screen| {
        screen.contains("? Write a.txt waits")
    });
    assert!(!screen.contains("[y] once"), "the view stays: {screen}");
    let written = tmux.written();
    let view = written.rfind("\x1b[?1049h").unwrap();
    assert!(written[view..].contains('\x07'), "the bell");
    tmux.type_text("q");
    tmux.armed("[y] once");
    a_moment();
    tmux.type_text("y");
    tmux.wait_until("the answer", |_| file.exists());
}
