//! A session that a person follows: the vectors that need a real terminal and the real binary.

use std::{fs, thread, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::tmux::{Tmux, call, from, is_idle, text};

#[test]
fn a_message_is_answered_with_cards_and_words() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    fs::write(tmux.project().join("price.rs"), "let limit = 5000;\n").unwrap();
    tmux.haft(
        "",
        &[
            call(
                "Grep",
                json!({"pattern": "limit", "output_mode": "content"}),
            ),
            text("It is **5000**.\n\n```rust\nlet limit = 5000;\n```\n"),
        ],
    );
    tmux.say("How high?");
    let screen = tmux.wait_until("the answer", |screen| {
        screen.contains("It is 5000.") && is_idle(screen)
    });
    insta::assert_snapshot!(from(&screen, "› How"));
    tmux.press("C-d");
    let screen = tmux.wait_until("the end", |screen| screen.contains("haft -r "));
    assert!(!screen.contains("scripted"), "{screen}");
    let modes = tmux.shell("stty -a");
    assert!(
        modes.contains(" icanon") && modes.contains(" echo "),
        "{modes}"
    );
    // Vector 3, of all that was written.
    let bytes = String::from_utf8_lossy(&tmux.bytes()).into_owned();
    for forbidden in ["\x1b[J", "\x1b[2J", "\x1b[3J", "\x1b[6n", "\x1b[?1000h"] {
        assert!(!bytes.contains(forbidden), "{forbidden:?}");
    }
}

#[test]
fn a_prompt_on_the_command_line_is_sent_at_once_and_the_session_taken_up() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("'first words'", &[text("First answer.")]);
    tmux.wait_until("the answer", |screen| {
        screen.contains("› first words") && screen.contains("First answer.") && is_idle(screen)
    });
    tmux.press("C-d");
    tmux.wait_until("the end", |screen| screen.contains("haft -r "));
    tmux.run("clear");
    tmux.wait_until("an empty screen", |screen| !screen.contains("First"));
    tmux.haft("-c", &[text("Second answer.")]);
    tmux.wait_until("what was said", |screen| {
        screen.contains("› first words") && screen.contains("First answer.")
    });
    tmux.say("go on");
    tmux.wait_until("the next answer", |screen| {
        screen.contains("Second answer.") && is_idle(screen)
    });
}

#[test]
fn a_session_that_is_chosen_from_the_list_is_continued() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("'first words'", &[text("First answer.")]);
    tmux.answered("First answer.");
    tmux.press("C-d");
    tmux.wait_until("the end", |screen| screen.contains("haft -r "));
    tmux.run("clear");
    tmux.wait_until("an empty screen", |screen| !screen.contains("First"));
    tmux.haft("", &[text("Second answer.")]);
    tmux.say("/resume");
    tmux.wait_until("the list", |screen| screen.contains("first words"));
    tmux.press("Enter");
    tmux.answered("First answer.");
    tmux.say("go on");
    tmux.answered("Second answer.");
}

#[test]
fn a_question_is_answered_by_one_key() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let file = tmux.project().join("a.txt");
    let write = json!({"file_path": file, "content": "one\n"});
    tmux.haft("", &[call("Write", write), text("Written.")]);
    tmux.say("write it");
    tmux.wait_until("the question", |screen| screen.contains("[y] once"));
    assert!(!file.exists());
    // Quiet, then armed: its options are not faint any more, though nothing else happens.
    tmux.wait_until("the question is armed", |_| {
        let coloured = tmux.tmux(&["capture-pane", "-e", "-p"]).stdout;
        let coloured = String::from_utf8(coloured).unwrap();
        let options = coloured.lines().find(|line| line.contains("[y] once"));
        options.is_some_and(|line| !line.contains("\x1b[2m"))
    });
    tmux.type_text("y");
    tmux.wait_until("the answer", |screen| {
        screen.contains("Written.") && is_idle(screen)
    });
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
    tmux.press("C-d");
    tmux.wait_until("the end", |screen| {
        screen.contains("haft -r ") && screen.contains("1 changed file: a.txt")
    });
}

#[test]
fn vector_22_escape_alone_stops_the_run() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft(
        "",
        &[json!({"content": [{"type": "text", "text": "I think "}], "hangs": true})],
    );
    tmux.say("go");
    tmux.wait_until("the run", |screen| screen.contains("I think"));
    tmux.press("Escape");
    tmux.wait_until("the end of the run", |screen| {
        screen.contains("interrupted") && is_idle(screen)
    });
}

#[test]
fn vector_22_over_a_network_escape_and_return_are_a_new_line() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.run("export SSH_TTY=/dev/pts/0");
    tmux.haft(
        "",
        &[json!({"content": [{"type": "text", "text": "I think "}], "hangs": true})],
    );
    tmux.say("go");
    tmux.wait_until("the run", |screen| screen.contains("I think"));
    tmux.type_text("one");
    tmux.wait_until("the draft", |screen| screen.contains("› one"));
    tmux.tmux(&["send-keys", "Escape", "Enter"]);
    tmux.type_text("two");
    let screen = tmux.wait_until("two lines", |screen| {
        screen.lines().any(|line| line == "› one") && screen.lines().any(|line| line == "  two")
    });
    assert!(screen.contains("Esc to stop"), "{screen}");
}

#[test]
fn ctrl_l_leaves_what_was_said_in_the_scrollback() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("Only once.")]);
    tmux.say("go");
    tmux.wait_until("the answer", |screen| {
        screen.contains("Only once.") && is_idle(screen)
    });
    tmux.press("C-l");
    tmux.wait_until("an empty screen", |screen| {
        !screen.contains("Only once.") && is_idle(screen)
    });
    let all = tmux.tmux(&["capture-pane", "-p", "-S", "-"]).stdout;
    let all = String::from_utf8(all).unwrap();
    assert_eq!(all.matches("Only once.").count(), 1, "{all}");
}

#[test]
fn vector_26_a_file_is_completed() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    fs::create_dir(tmux.project().join("src")).unwrap();
    fs::write(tmux.project().join("src/price.rs"), "").unwrap();
    fs::write(tmux.project().join("private.log"), "").unwrap();
    fs::write(tmux.project().join(".gitignore"), "*.log\n").unwrap();
    tmux.shell("git init -q");
    tmux.haft("", &[text("ok")]);
    tmux.type_text("@pri");
    let screen = tmux.wait_until("the completions", |screen| screen.contains("src/price.rs"));
    assert!(!screen.contains("private.log"), "{screen}");
    tmux.press("Tab");
    tmux.type_text("x");
    tmux.wait_until("the draft", |screen| screen.contains("› @src/price.rs x"));
}

#[test]
fn vector_27_a_typed_command_line_is_not_asked_about_but_denied_by_rules() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("Seen."), text("Seen too.")]);
    tmux.say("!touch made; echo ran it");
    tmux.wait_until("the command", |screen| {
        screen.contains("ran it") && is_idle(screen)
    });
    assert!(tmux.project().join("made").exists());
    tmux.press("C-d");
    tmux.wait_until("the end", |screen| screen.contains("haft -r "));
    tmux.run("clear");
    tmux.haft(
        "--disallowed-tools 'Bash(touch *)'",
        &[text("Seen."), text("Seen too.")],
    );
    tmux.say("!touch other");
    tmux.wait_until("the refusal", |screen| {
        screen.lines().any(|line| line.starts_with('✗')) && is_idle(screen)
    });
    assert!(!tmux.project().join("other").exists());
}

#[test]
fn vector_28_ctrl_z_and_fg_keep_the_draft_and_its_undo() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("ok")]);
    tmux.type_text("draft words");
    tmux.wait_until("the draft", |screen| screen.contains("› draft words"));
    tmux.press("C-z");
    tmux.wait_until("the shell", |screen| screen.contains("Stopped"));
    let modes = tmux.shell("stty -a");
    assert!(
        modes.contains(" icanon") && modes.contains(" echo "),
        "{modes}"
    );
    tmux.run("fg");
    tmux.wait_until("the draft", |screen| {
        screen
            .lines()
            .filter(|line| *line == "› draft words")
            .count()
            == 1
    });
    tmux.press("C-_");
    tmux.wait_until("the undo", |screen| {
        !screen.lines().any(|line| line == "› draft words")
    });
}

#[test]
fn vector_29_the_terminal_is_restored_however_it_ends() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let before = tmux.shell("stty -g");
    for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
        tmux.run("clear");
        tmux.haft("", &[text("ok")]);
        tmux.type_text("half a draft");
        tmux.wait_until("the draft", |screen| screen.contains("half a draft"));
        let pid = Pid::from_raw(tmux.pid()).unwrap();
        kill_process(pid, signal).unwrap();
        tmux.wait_until("the shell", |_| {
            fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).is_err()
        });
        // A guard may still be at it.
        let mut after = String::new();
        for _ in 0..50 {
            after = tmux.shell("stty -g");
            if after == before {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(after, before, "{signal:?}");
        let bytes = String::from_utf8_lossy(&tmux.bytes()).into_owned();
        let last = |sequence: &str| bytes.rfind(sequence).unwrap_or_default();
        assert!(last("\x1b[<u") > last("\x1b[>1u"), "{signal:?}");
        assert!(last("\x1b[?25h") > last("\x1b[?25l"), "{signal:?}");
    }
}

#[test]
fn vector_29_a_panic_is_shown_on_a_terminal_that_works() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let before = tmux.shell("stty -g");
    tmux.run("export HAFT_TEST_PANIC=boom");
    tmux.haft("", &[text("ok")]);
    tmux.type_text("boom");
    let screen = tmux.wait_until("the panic", |screen| {
        screen.contains("as HAFT_TEST_PANIC asks")
    });
    assert!(screen.contains("haft: panicked at"), "{screen}");
    // What is typed before it has ended is discarded with the terminal's answers.
    tmux.wait_until("the shell", |screen| screen.trim_end().ends_with("\n$"));
    assert_eq!(tmux.shell("stty -g"), before);
    let screen = tmux.screen();
    assert!(!screen.contains("scripted"), "{screen}");
    let bytes = String::from_utf8_lossy(&tmux.bytes()).into_owned();
    let text = bytes.rfind("as HAFT_TEST_PANIC asks").unwrap();
    let last = |sequence: &str| bytes[..text].rfind(sequence).unwrap_or_default();
    for (restored, changed) in [
        ("\x1b[<u", "\x1b[>1u"),
        ("\x1b[?25h", "\x1b[?25l"),
        ("\x1b[?2004l", "\x1b[?2004h"),
    ] {
        let is_restored = last(restored) > last(changed);
        assert!(is_restored, "{restored:?} comes before the text");
    }
}

#[test]
fn vector_34_the_draft_of_a_process_that_was_killed_is_offered() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("ok")]);
    tmux.type_text("precious words");
    tmux.wait_until("the draft", |screen| screen.contains("precious words"));
    let drafts = tmux.home().join(".claude/haft");
    let is_kept = || {
        let found = haft_testkit::command("grep")
            .args(["-rq", "precious words"])
            .arg(&drafts)
            .status();
        found.unwrap().success()
    };
    tmux.wait_until("the draft on disk", |_| is_kept());
    let pid = Pid::from_raw(tmux.pid()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    tmux.wait_until("the shell", |screen| screen.contains("Killed"));
    tmux.run("clear");
    tmux.haft("-c", &[text("ok")]);
    tmux.wait_until("the offer", |screen| {
        screen.contains("an earlier draft was saved")
    });
    tmux.press("C-s");
    tmux.wait_until("the draft", |screen| screen.contains("› precious words"));
}

#[test]
fn trust_is_asked_before_anything_of_the_folder_counts() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    fs::create_dir(tmux.project().join(".claude")).unwrap();
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [
        {"type": "command", "command": format!("touch {}", tmux.project().join("ran").display())}]}]}});
    let settings = tmux.project().join(".claude/settings.json");
    fs::write(settings, hook.to_string()).unwrap();
    tmux.begin("'good morning'", &[text("Hi.")]);
    tmux.wait_until("the question", |screen| screen.contains("? Trust "));
    thread::sleep(Duration::from_millis(2000));
    tmux.type_text("n");
    tmux.wait_until("the answer", |screen| {
        screen.contains("Hi.") && is_idle(screen)
    });
    assert!(!tmux.project().join("ran").exists());
}

#[test]
fn a_model_and_an_effort_that_a_person_chooses_are_saved() {
    let Some(tmux) = Tmux::start(100, 24) else {
        return;
    };
    tmux.haft("", &[text("An answer.")]);
    tmux.say("/model small-one");
    tmux.answered("small-one is asked; saved in");
    tmux.say("/effort high");
    tmux.answered("effort is high; saved in");
    let file = tmux.home().join(".claude/settings.json");
    let saved: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(saved, json!({"model": "small-one", "effortLevel": "high"}));
    tmux.leave();
}

#[test]
fn the_transcript_says_why_a_call_ran_and_what_hooks_did() {
    let Some(tmux) = Tmux::start(100, 40) else {
        return;
    };
    let hook = |words: &str| json!([{"hooks": [{"type": "command", "command": format!("echo {words} >&2")}]}]);
    let settings = json!({
        "hooks": {"SessionStart": hook("began"), "PreToolUse": hook("looked")},
        "permissions": {"allow": ["Bash(touch *)"], "deny": ["Bash(rm *)"]},
    });
    let folder = tmux.home().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    tmux.haft(
        "",
        &[
            call("Bash", json!({"command": "touch a"})),
            call("Bash", json!({"command": "rm a"})),
            text("All."),
        ],
    );
    tmux.say("go");
    tmux.answered("All.");
    tmux.press("C-o");
    tmux.press("g");
    let screen = tmux.wait_until("the transcript", |screen| {
        screen.contains(" refused because ") && screen.contains(" hook SessionStart")
    });
    for wanted in [
        "hook PreToolUse:Bash",
        "  looked",
        "  began",
        "Bash was allowed and starts",
        "  why: allow rule Bash(touch *)",
        "  refused because deny rule Bash(rm *)",
    ] {
        assert!(screen.contains(wanted), "{wanted}: {screen}");
    }
}
