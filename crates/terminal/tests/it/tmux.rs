//! The example in tmux: a real terminal, real sizes, real scrollback.

use std::{
    fs,
    ops::Deref,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use haft_testkit::TmuxServer;
use rustix::process::{Pid, Signal, kill_process};

/// Far more than anything takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A shell in which the example is started.
struct Tmux(TmuxServer);

impl Deref for Tmux {
    type Target = TmuxServer;

    fn deref(&self) -> &TmuxServer {
        &self.0
    }
}

impl Tmux {
    /// `None`, visibly, where tmux is missing.
    fn start(columns: u16, rows: u16) -> Option<Self> {
        let shell = |_: &_| "env PS1='$ ' bash --norc --noprofile".to_owned();
        TmuxServer::start("the terminal", [columns, rows], shell).map(Self)
    }

    /// Starts the example; every byte that it writes is kept.
    fn example(&self, arguments: &str) {
        self.record_bytes();
        self.run(&format!("{} {arguments}", example().display()));
        self.wait_until("the example", |screen| {
            screen.lines().any(|line| line.starts_with(" echo"))
        });
    }

    fn cursor(&self) -> (usize, usize) {
        let text = self.text(&["display-message", "-p", "#{cursor_x} #{cursor_y}"]);
        let (column, row) = text.trim().split_once(' ').unwrap();
        (column.parse().unwrap(), row.parse().unwrap())
    }
}

fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap();
    let example = built.join("examples/echo");
    assert!(
        example.exists(),
        "`cargo test` builds {}",
        example.display()
    );
    example
}

fn has_draft(draft: &str) -> impl Fn(&str) -> bool {
    move |screen| screen.lines().any(|line| line == draft)
}

#[test]
fn at_every_size_each_line_is_there_once() {
    // Vector 1.
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.run("clear; seq -f 'line %g.' 1 80");
    tmux.wait_until("the lines", |screen| screen.contains("line 80."));
    tmux.example("");
    tmux.type_text("the draft");
    tmux.wait_until("the draft", has_draft("> the draft"));
    let check = |what: &str| {
        tmux.wait_until(what, |_| {
            let lines = tmux.lines();
            let count = |text: &str| lines.iter().filter(|line| *line == text).count();
            (1..=80).all(|number| count(&format!("line {number}.")) == 1)
                && count("> the draft") == 1
                && count(" echo") == 1
        });
        let lines = tmux.lines();
        let numbers: Vec<&String> = lines
            .iter()
            .filter(|line| line.starts_with("line "))
            .collect();
        let expected: Vec<String> = (1..=80).map(|number| format!("line {number}.")).collect();
        assert_eq!(numbers, expected.iter().collect::<Vec<_>>(), "{what}");
    };
    for columns in [118, 90, 60, 40] {
        for rows in [12, 40] {
            tmux.resize(columns, rows);
            check(&format!("{columns}x{rows}"));
        }
    }
    for step in 0..48u16 {
        let columns = if step < 24 {
            118 - step * 3
        } else {
            46 + (step - 24) * 3
        };
        tmux.resize(columns, 24);
    }
    check("a drag");
}

#[test]
fn a_caret_exactly_at_the_new_edge_costs_no_line() {
    for columns in [17, 25, 49, 50, 51] {
        let Some(tmux) = Tmux::start(80, 20) else {
            return;
        };
        tmux.run("clear; seq -f 'line %g.' 1 5");
        tmux.wait_until("the lines", |screen| screen.contains("line 5."));
        tmux.example("");
        tmux.type_text(&"x".repeat(48));
        tmux.wait_until("the draft", |screen| screen.contains(&"x".repeat(48)));
        tmux.resize(columns, 20);
        tmux.wait_until("a region of that width", |screen| {
            let widest = screen
                .lines()
                .filter(|line| line.contains("xx"))
                .map(str::len)
                .max();
            widest.is_some_and(|widest| widest < usize::from(columns)) && screen.contains("\n echo")
        });
        let lines = tmux.lines();
        for number in 1..=5 {
            let count = lines
                .iter()
                .filter(|line| **line == format!("line {number}."));
            assert_eq!(count.count(), 1, "{columns}: {lines:#?}");
        }
        assert_eq!(
            lines.iter().filter(|line| *line == " echo").count(),
            1,
            "{columns}"
        );
        let rows = lines
            .iter()
            .filter(|line| line.starts_with("> x") || line.starts_with("  x"));
        let letters: usize = rows.map(|row| row.matches('x').count()).sum();
        assert_eq!(letters, 48, "{columns}: {lines:#?}");
    }
}

#[test]
fn a_reply_streams_while_a_person_types_and_can_be_copied() {
    // Vectors 2, 3, 4 and 24: tmux answers the questions that the example asks.
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.example("--slow");
    tmux.type_text("hello");
    tmux.press("Enter");
    tmux.wait_until("the reply", |screen| screen.contains("You said"));
    for letter in "next draft".chars() {
        tmux.type_text(&letter.to_string());
    }
    tmux.wait_until("the end", |screen| {
        let is_over = screen.contains("That is all.") && !screen.contains("Working");
        is_over && has_draft("> next draft")(screen)
    });
    let screen = tmux.screen();
    let row = screen
        .lines()
        .position(|line| line == "> next draft")
        .unwrap();
    assert_eq!(tmux.cursor(), ("> next draft".len(), row));
    let lines = tmux.lines();
    let paragraph = lines
        .iter()
        .find(|line| line.starts_with("You said"))
        .unwrap();
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .ends_with("so that you can see how a paragraph behaves."),
        "{paragraph}"
    );
    let code = lines.iter().find(|line| line.contains("println!")).unwrap();
    assert!(
        code.starts_with("    println!(\"a line") && code.ends_with("wrap it by itself\");"),
        "{code}"
    );
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.contains("That is all."))
            .count(),
        1
    );
    let bytes = String::from_utf8_lossy(&tmux.bytes()).into_owned();
    for forbidden in [
        "\x1b[J",
        "\x1b[0J",
        "\x1b[2J",
        "\x1b[3J",
        "\x1b[6n",
        "\x1b[?1000h",
        "\x1b[?1003h",
        "\x1b[?1006h",
    ] {
        assert!(!bytes.contains(forbidden), "{forbidden:?}");
    }
    // A scroll region is `CSI top;bottom r`.
    let is_region = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';');
        end.is_some_and(|end| rest[end..].starts_with('r'))
    };
    assert!(!bytes.split("\x1b[").skip(1).any(is_region));
}

#[test]
fn idle_means_no_byte() {
    // Vector 5.
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.example("");
    tmux.type_text("x");
    tmux.wait_until("the draft", has_draft("> x"));
    // What tmux answers may still change colours.
    thread::sleep(Duration::from_secs(1));
    let before = tmux.bytes().len();
    let seconds = if haft_testkit::is_thorough() { 10 } else { 2 };
    thread::sleep(Duration::from_secs(seconds));
    assert_eq!(tmux.bytes().len(), before);
}

#[test]
fn a_long_paste_is_a_chip_and_is_sent_whole() {
    // Vector 20.
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.example("");
    let text: String = (0..500)
        .map(|number| format!("pasted {number} \x1b[2J\r\n"))
        .collect();
    let file = tmux.folder().join("paste");
    fs::write(&file, text).unwrap();
    tmux.tmux(&["load-buffer", file.to_str().unwrap()]);
    tmux.tmux(&["paste-buffer", "-p", "-r"]);
    tmux.wait_until("the chip", has_draft("> [Pasted 1: 500 lines]"));
    tmux.press("Enter");
    tmux.wait_until("the reply", |screen| screen.contains("That is all."));
    let lines = tmux.lines();
    for number in 0..500 {
        let end = format!("pasted {number} ␛[2J");
        assert!(lines.iter().any(|line| line.ends_with(&end)), "{end}");
    }
}

#[test]
fn every_spelling_of_shift_enter_is_a_new_line() {
    // Vector 23.
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.example("");
    let spellings: [&[&str]; 4] = [
        &["1b", "5b", "31", "33", "3b", "32", "75"],
        &["1b", "5b", "32", "37", "3b", "32", "3b", "31", "33", "7e"],
        &["1b", "0d"],
        &["0a"],
    ];
    for (number, bytes) in spellings.iter().enumerate() {
        tmux.type_text(&number.to_string());
        let mut arguments = vec!["send-keys", "-H"];
        arguments.extend_from_slice(bytes);
        tmux.tmux(&arguments);
    }
    tmux.type_text("end");
    tmux.wait_until("five lines", |screen| {
        screen.contains("> 0\n  1\n  2\n  3\n  end")
    });
}

#[test]
fn the_cursor_is_where_tmux_draws_the_end() {
    // Vector 25.
    for text in [
        "a\u{2764}\u{fe0f}b",
        "👩\u{200d}👩\u{200d}👧",
        "漢字x",
        "e\u{301}",
    ] {
        let Some(tmux) = Tmux::start(80, 24) else {
            return;
        };
        tmux.example("");
        tmux.type_text(text);
        let started = Instant::now();
        // What tmux draws: the row's width by its own count is where its cursor is behind the same bytes.
        let expected = {
            let Some(other) = Tmux::start(80, 24) else {
                return;
            };
            other.run(&format!("clear; printf '> {text}'; sleep 600"));
            // Behind the command line, which is cleared away.
            other.wait_until("the text", |screen| screen.starts_with("> "));
            thread::sleep(Duration::from_millis(200));
            other.cursor().0
        };
        while tmux.cursor().0 != expected {
            assert!(
                started.elapsed() < TIMEOUT,
                "{text}: {:?}, not {expected}",
                tmux.cursor()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn stopped_and_brought_back_the_draft_and_its_undo_are_there() {
    // Vector 28.
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.example("");
    tmux.type_text("one two");
    tmux.wait_until("the draft", has_draft("> one two"));
    tmux.press("C-z");
    tmux.wait_until("the shell", |screen| screen.contains("Stopped"));
    assert!(!tmux.screen().contains(" echo\n"), "the region is erased");
    let modes = tmux.shell("stty -a");
    for mode in ["icanon", "echo", "isig", "icrnl"] {
        assert!(
            modes.split_whitespace().any(|word| word == mode),
            "{mode}: {modes}"
        );
    }
    tmux.run("fg");
    tmux.wait_until("the draft", has_draft("> one two"));
    tmux.press("C-_");
    tmux.wait_until("undo", has_draft("> one"));
}

#[test]
fn whatever_ends_it_the_terminal_is_as_before() {
    // Vector 29.
    for how in ["leave", "panic", "TERM", "KILL"] {
        let Some(tmux) = Tmux::start(80, 24) else {
            return;
        };
        let before = tmux.shell("stty -g");
        tmux.example("");
        match how {
            "leave" => tmux.press("C-d"),
            "panic" => tmux.run("panic"),
            _ => {
                // The pane's shell has one child: the example.
                let shell = tmux.text(&["display-message", "-p", "#{pane_pid}"]);
                let children = format!("/proc/{0}/task/{0}/children", shell.trim());
                let children = fs::read_to_string(children).unwrap();
                let child = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
                let signal = if how == "TERM" {
                    Signal::TERM
                } else {
                    Signal::KILL
                };
                kill_process(child, signal).unwrap();
            }
        }
        tmux.wait_until("the end", |screen| {
            !screen.lines().any(|line| line == " echo") || how == "KILL"
        });
        // The guard of a killed program may need a moment.
        let restored = |bytes: Vec<u8>| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.contains("\x1b[<u") && text.contains("\x1b[>4m") && text.contains("\x1b[?1004l")
        };
        tmux.wait_until("the sequence", |_| restored(tmux.bytes()));
        if how == "panic" {
            tmux.wait_until("the text", |screen| screen.contains("this was asked for"));
        }
        // What is typed before the program is gone would be typed into it.
        tmux.wait_until("the shell", |screen| {
            let last = screen.trim_end().lines().next_back();
            last.is_some_and(|line| line.starts_with('$'))
        });
        let started = Instant::now();
        while tmux.shell("stty -g") != before {
            assert!(started.elapsed() < TIMEOUT, "{how}: {before}");
        }
        assert_eq!(
            tmux.text(&["display-message", "-p", "#{cursor_flag}"])
                .trim(),
            "1",
            "{how}"
        );
    }
}

#[test]
fn a_view_leaves_no_trace() {
    let Some(tmux) = Tmux::start(80, 24) else {
        return;
    };
    tmux.example("");
    tmux.type_text("hello");
    tmux.press("Enter");
    tmux.wait_until("the reply", |screen| screen.contains("That is all."));
    let before = tmux.lines();
    tmux.press("C-o");
    tmux.wait_until("the view", |screen| screen.contains(" q leaves"));
    tmux.type_text("q");
    tmux.wait_until("the main screen", |screen| screen.contains(" echo"));
    assert_eq!(tmux.lines(), before);
}
