//! What is typed, pasted and queued.

use std::fs;

use super::super::tmux::{Tmux, from, hanging, text};

/// A run that does not end, with these messages behind it.
fn queued(tmux: &Tmux, messages: &[&str]) {
    tmux.haft("", &[hanging("I think "), text("Answered.")]);
    tmux.say("go");
    tmux.wait_until("the run", |screen| screen.contains("I think"));
    for message in messages {
        tmux.type_text(message);
        tmux.wait_until("the draft", |screen| {
            screen.contains(&format!("› {message}"))
        });
        tmux.press("Tab");
        tmux.wait_until("the queue", |screen| {
            screen.contains(&format!("later: {message}"))
        });
    }
}

#[test]
fn vector_18_up_takes_queued_messages_back_newest_first() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    queued(&tmux, &["one", "two", "three"]);
    tmux.press("Up");
    tmux.wait_until("the newest", |screen| {
        screen.lines().any(|line| line == "› three")
    });
    tmux.press("Up");
    let screen = tmux.wait_until("the one before", |screen| {
        screen.lines().any(|line| line == "› two") && screen.lines().any(|line| line == "  three")
    });
    insta::assert_snapshot!(from(&screen, "I think"));
}

#[test]
fn vector_19_stopping_a_run_puts_undelivered_messages_back() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    queued(&tmux, &["one", "two", "three"]);
    tmux.press("Escape");
    let screen = tmux.wait_until("the end of the run", |screen| {
        screen.contains("interrupted") && screen.lines().any(|line| line == "  three")
    });
    insta::assert_snapshot!(from(&screen, "I think"));
    let transcript = tmux.transcript();
    assert!(
        !transcript.contains("two"),
        "none of them is sent: {transcript}"
    );
}

#[test]
fn vector_20_a_long_paste_is_a_chip_and_is_sent_whole() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("Read.")]);
    let lines: String = (1..=500)
        .map(|n| format!("line {n}\u{1b}[2J\r\n"))
        .collect();
    let file = tmux.home().join("paste");
    fs::write(&file, lines).unwrap();
    tmux.tmux(&["load-buffer", file.to_str().unwrap()]);
    tmux.tmux(&["paste-buffer", "-p", "-r"]);
    let screen = tmux.wait_until("the chip", |screen| screen.contains("[Pasted 1:"));
    insta::assert_snapshot!(from(&screen, "›"));
    tmux.press("Enter");
    tmux.answered("Read.");
    let transcript = tmux.transcript();
    let said: serde_json::Value = transcript
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .find(|line: &serde_json::Value| line["type"] == "user")
        .unwrap();
    let content = &said["message"]["content"];
    let said = content
        .as_str()
        .or_else(|| content[0]["text"].as_str())
        .unwrap();
    let expected: String = (1..=500).map(|n| format!("line {n}␛[2J\n")).collect();
    assert_eq!(said.trim_end(), expected.trim_end());
}

#[test]
fn vector_21_several_lines_in_one_read_are_one_message() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("Read.")]);
    tmux.raw(b"a\rb\r");
    let screen = tmux.answered("Read.");
    insta::assert_snapshot!(from(&screen, "› a"));
}

#[test]
fn vector_23_every_spelling_of_a_new_line_is_one() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("Read.")]);
    let spellings: [&[u8]; 4] = [b"\x1b[13;2u", b"\x1b[27;2;13~", b"\x1b\r", b"\n"];
    for (number, bytes) in spellings.into_iter().enumerate() {
        tmux.type_text(&format!("line{number}"));
        tmux.wait_until("the line", |screen| {
            screen.contains(&format!("line{number}"))
        });
        tmux.raw(bytes);
    }
    tmux.type_text("end");
    let screen = tmux.wait_until("five lines", |screen| {
        screen.lines().any(|line| line == "  end")
    });
    insta::assert_snapshot!(from(&screen, "› line0"));
}

#[test]
fn vector_24_answers_of_the_terminal_are_no_keys() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("Read.")]);
    let mut bytes = b"a".to_vec();
    for answer in [
        &b"\x1b_Gi=31;OK\x1b\\"[..],
        b"\x1b]11;rgb:1111/2222/3333\x1b\\",
        b"\x1b[?62;4;22c",
        b"\x1bP>|XTerm(380)\x1b\\",
    ] {
        bytes.extend(answer);
        bytes.push(b'b');
    }
    tmux.raw(&bytes);
    tmux.type_text("c");
    tmux.wait_until("the draft", |screen| {
        screen.lines().any(|line| line == "› abbbbc")
    });
}
