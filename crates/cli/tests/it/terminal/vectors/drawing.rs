//! What is on the screen, and in the scrollback.

use std::{thread, time::Duration};

use serde_json::json;

use super::super::tmux::{Tmux, call, from, hanging, is_idle, text};

/// How often each of so many numbered lines is there, in their order.
fn assert_once_in_order(tmux: &Tmux, count: usize) {
    let numbered: Vec<String> = tmux
        .lines()
        .into_iter()
        .filter(|line| line.starts_with("number "))
        .collect();
    let expected: Vec<String> = (1..=count).map(|n| format!("number {n}")).collect();
    assert_eq!(numbered, expected);
}

#[test]
fn vector_1_every_line_is_there_once_whatever_the_size() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.run("clear; for n in $(seq 40); do echo number $n; done");
    tmux.wait_until("the lines", |screen| screen.contains("number 40"));
    let lines: String = (41..=80).map(|n| format!("number {n}\n")).collect();
    tmux.haft("", &[text(&format!("```\n{lines}```\n\nAll."))]);
    tmux.say("go");
    tmux.answered("All.");
    let drag = (0..48).map(|step| (80 - step.min(48 - step), 24));
    let sizes = [(118, 24), (90, 24), (60, 24), (40, 24), (80, 12), (80, 40)];
    for (columns, rows) in sizes.into_iter().chain(drag) {
        tmux.resize(columns, rows);
        if rows != 24 || columns == 80 {
            tmux.wait_until("the status", |screen| screen.contains("default"));
        }
    }
    tmux.resize(80, 24);
    // The last frame of a resize comes a moment after it.
    tmux.type_text("x");
    tmux.wait_until("one live region", |screen| {
        screen.matches("context 0%").count() == 1 && screen.lines().any(|line| line == "› x")
    });
    assert_once_in_order(&tmux, 80);
    let drafts = tmux.lines();
    assert_eq!(drafts.iter().filter(|line| *line == "› x").count(), 1);
}

#[test]
fn a_window_that_becomes_lower_than_a_question_leaves_no_copy_of_it() {
    let Some(tmux) = Tmux::start(80, 30) else {
        return;
    };
    tmux.run("clear; for n in $(seq 40); do echo number $n; done");
    tmux.wait_until("the lines", |screen| screen.contains("number 40"));
    let command: String = (1..=14)
        .map(|n| format!("echo part {n} > out.txt\n"))
        .collect();
    tmux.haft(
        "",
        &[call("Bash", json!({"command": command})), text("All.")],
    );
    tmux.say("go");
    tmux.armed("[y] once");
    for rows in [20, 10, 6, 30, 8, 24, 5, 30] {
        tmux.resize(80, rows);
        // What is below the cursor goes, and comes back with the frame of the new size.
        tmux.wait_until("the status", |screen| screen.contains("scripted"));
    }
    tmux.wait_until("the whole question", |screen| {
        screen.contains("? Bash") && screen.contains("[y] once")
    });
    let lines = tmux.lines();
    let count = |wanted: &str| lines.iter().filter(|line| line.starts_with(wanted)).count();
    assert_eq!(count("? Bash"), 1, "{lines:#?}");
    assert_eq!(count("› go"), 1, "{lines:#?}");
    assert_once_in_order(&tmux, 40);
    tmux.armed("[y] once");
    tmux.type_text("n");
    tmux.answered("All.");
}

#[test]
fn vector_2_a_paragraph_and_a_line_of_code_are_copied_as_one_line() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let paragraph = "whole words of a paragraph ".repeat(12);
    let code = format!("let code = \"{}\";", "x".repeat(186));
    tmux.haft(
        "",
        &[text(&format!(
            "{paragraph}\n\n```rust\n{code}\n```\n\nEnd."
        ))],
    );
    tmux.say("go");
    tmux.answered("End.");
    let lines = tmux.lines();
    let line = lines.iter().find(|line| line.starts_with("whole words"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    let expected: Vec<&str> = paragraph.split_whitespace().collect();
    assert_eq!(words, expected, "one line, words whole and not glued");
    assert!(lines.contains(&code), "{lines:?}");
}

#[test]
fn vector_4_what_is_typed_while_a_reply_streams_stays_together() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let command = json!({"command": "for n in 1 2 3; do echo line $n; sleep 0.3; done"});
    tmux.haft(
        "--allowed-tools Bash",
        &[call("Bash", command), text("A **reply** that streams.")],
    );
    tmux.say("go");
    tmux.wait_until("the call", |screen| screen.contains("line 1"));
    tmux.type_text("he");
    tmux.wait_until("the reply", |screen| {
        screen.contains("A reply that streams.")
    });
    tmux.type_text("llo");
    tmux.wait_until("the draft", |screen| {
        screen.lines().any(|line| line == "› hello") && !screen.contains("Esc to stop")
    });
    assert_eq!(tmux.column(), 7, "the cursor is behind it");
}

#[test]
fn vector_5_nothing_is_written_when_nothing_happens() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft("", &[text("Said.")]);
    tmux.say("go");
    tmux.answered("Said.");
    // The draft is kept a second after the last key; then there is nothing left to do.
    thread::sleep(Duration::from_millis(1500));
    let before = tmux.bytes().len();
    thread::sleep(Duration::from_secs(3));
    assert_eq!(tmux.bytes().len(), before);
}

#[test]
fn vector_6_bold_is_bold_before_it_is_closed() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let reply = "**bold** x, ".repeat(20);
    tmux.haft(
        "",
        &[json!({"content": [{"type": "text", "text": reply}], "pieces": 1})],
    );
    tmux.say("go");
    tmux.answered("bold x, bold x");
    let coloured = tmux.text(&["capture-pane", "-e", "-p"]);
    let is_bold = coloured.lines().any(|line| line.contains("\x1b[1mbold"));
    assert!(is_bold, "{coloured}");
    let written = tmux.written();
    assert!(
        !written.replace("\x1b]2;* go", "").contains('*'),
        "{written}"
    );
}

#[test]
fn vector_7_a_long_block_of_code_is_in_the_scrollback_line_by_line() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    let mut lines: Vec<String> = (1..=400).map(|n| format!("number {n}")).collect();
    lines.insert(0, "let text = \"begins".to_owned());
    lines.push("ends\";".to_owned());
    let block = format!("```rust\n{}\n", lines.join("\n"));
    // It never ends: every line that has ended is committed all the same.
    tmux.haft("", &[hanging(&format!("{block}open"))]);
    tmux.say("go");
    tmux.wait_until("the last line", |screen| screen.contains("ends\";"));
    assert_once_in_order(&tmux, 400);
    let coloured = tmux.text(&["capture-pane", "-e", "-p", "-S", "-"]);
    // A style holds over the ends of lines until another is set.
    let style = |wanted: &str| {
        let before = &coloured[..coloured.find(wanted).unwrap()];
        let style = &before[before.rfind("\x1b[").unwrap()..];
        style[..=style.find('m').unwrap()].to_owned()
    };
    let string = style("\"begins");
    assert!(string.starts_with("\x1b[3"), "it has a colour: {string:?}");
    assert_eq!(style("number 200"), string, "a string over many lines");
}

#[test]
fn vector_8_a_table_that_is_too_wide_becomes_lines() {
    let Some(tmux) = Tmux::start(40, 24) else {
        return;
    };
    let heads: Vec<String> = (1..=9).map(|n| format!("head{n}")).collect();
    let cells: Vec<String> = (1..=9).map(|n| format!("value{n}")).collect();
    let table = format!(
        "|{}|\n|{}\n|{}|\n",
        heads.join("|"),
        "---|".repeat(9),
        cells.join("|")
    );
    // The status has no room for the model.
    tmux.begin("", &[text(&format!("{table}\nEnd."))]);
    tmux.wait_until("the session", is_idle);
    tmux.say("go");
    let screen = tmux.answered("End.");
    insta::assert_snapshot!(from(&screen, "› go"));
}

#[test]
fn vector_25_the_cursor_is_where_the_terminal_draws_the_end() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    for what in [
        "\u{2764}\u{fe0f}",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "漢字",
    ] {
        tmux.run("clear");
        // The shell's own idea of widths does not count: cat echoes what the terminal got.
        tmux.run(&format!("printf '%s' '{what}'; sleep 1"));
        let first = what.chars().next().unwrap();
        tmux.wait_until("it is drawn", |screen| {
            screen.lines().any(|line| line.starts_with(first))
        });
        let width = tmux.column();
        tmux.wait_until("the shell", |screen| screen.trim_end().ends_with('$'));
        tmux.run("clear");
        tmux.haft("", &[text("ok")]);
        tmux.type_text(what);
        tmux.wait_until("the draft", |screen| screen.contains(&format!("› {first}")));
        tmux.type_text("x");
        tmux.wait_until("the draft", |screen| {
            screen
                .lines()
                .any(|line| line.starts_with('›') && line.ends_with('x'))
        });
        assert_eq!(tmux.column(), 2 + width + 1, "{what:?}");
        tmux.press("C-u");
        tmux.wait_until("no draft", is_idle);
        tmux.press("C-d");
        tmux.wait_until("the shell", |screen| screen.trim_end().ends_with('$'));
    }
}

#[test]
fn vector_30_colours_follow_the_terminal_and_no_color() {
    let colours = |variables: &str, reply: &[u8]| {
        let tmux = Tmux::start(80, 24)?;
        tmux.run(&format!("export {variables}"));
        tmux.haft("", &[text("A `word`.\n\n```rust\nlet a = 1;\n```\n\nEnd.")]);
        tmux.raw(reply);
        tmux.say("go");
        tmux.answered("End.");
        let written = tmux.written();
        let numbers = written.split("\x1b[").skip(1).filter_map(|sequence| {
            let (numbers, _) = sequence.split_once('m')?;
            let is_style = numbers.chars().all(|c| c.is_ascii_digit() || c == ';');
            let is_colour = |number: &str| matches!(number.as_bytes(), [b'3' | b'4' | b'9', _]);
            (is_style && numbers.split(';').any(is_colour)).then(|| numbers.to_owned())
        });
        Some(numbers.collect::<Vec<String>>())
    };
    let Some(none) = colours("NO_COLOR=1", b"") else {
        return;
    };
    assert!(none.is_empty(), "{none:?}");
    let light = colours("COLORTERM=truecolor", b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\").unwrap();
    let dark = colours("COLORTERM=truecolor", b"\x1b]11;rgb:0000/0000/0000\x1b\\").unwrap();
    assert!(!light.is_empty() && !dark.is_empty());
    assert_ne!(light.last(), dark.last());
}

#[test]
fn vector_36_a_reply_cannot_act_on_the_terminal() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.haft(
        "",
        &[text("before \u{1b}[2J and \u{1b}]52;c;aGk=\u{7} after")],
    );
    tmux.say("go");
    let screen = tmux.answered("after");
    insta::assert_snapshot!(from(&screen, "› go"));
    let written = tmux.written();
    assert!(!written.contains("\x1b[2J") && !written.contains("\x1b]52"));
}
