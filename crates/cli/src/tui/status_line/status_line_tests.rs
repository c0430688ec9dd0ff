use std::{fs, sync::mpsc, thread};

use haft_terminal::{ColorLevel, ScreenSize, Theme, paint::paint_line};
use serde_json::json;

use super::*;
use crate::tui::ui_style::UiStyle;

const TIMEOUT: Duration = Duration::from_secs(60);

fn look(columns: u16, unicode: bool) -> UiStyle {
    UiStyle {
        theme: Theme::default(),
        unicode,
        hyperlinks: false,
        is_still: true,
        has_reduced_motion: false,
        verbose: false,
        size: ScreenSize::new(columns, 24),
    }
}

#[test]
fn our_own_row_at_two_widths() {
    let row = StatusRow {
        mode: "acceptEdits".into(),
        folder: "shop".into(),
        branch: Some("main".into()),
        model: "MODEL".into(),
        context: Some(34),
        cost_usd: 0.42,
        vi: None,
    };
    let text = |columns, unicode| status_row(&row, &look(columns, unicode)).text().to_owned();
    assert_eq!(
        text(80, false),
        " acceptEdits . shop (main) . MODEL . context 34% . $0.42"
    );
    assert_eq!(text(40, true), " acceptEdits · 34%");
}

#[test]
fn the_settings_say_how_it_is_run() {
    let of = |value| StatusLineConfig::from_json(&value, "/p".into());
    let config =
        of(json!({"type": "command", "command": " x ", "padding": 2, "refreshInterval": 5}));
    let expected = StatusLineConfig {
        command: "x".into(),
        padding: 2,
        refresh: Some(Duration::from_secs(5)),
        cwd: "/p".into(),
    };
    assert_eq!(config, Some(expected));
    assert_eq!(of(json!({"command": "x"})).unwrap().refresh, None);
    for value in [
        json!({}),
        json!({"command": ""}),
        json!({"type": "static", "command": "x"}),
    ] {
        assert_eq!(of(value), None);
    }
}

#[test]
fn what_it_reads_has_the_names_of_the_convention() {
    let facts = StatusFacts {
        session_id: "s".into(),
        vim: Some(StatusVim {
            mode: "NORMAL".into(),
        }),
        ..StatusFacts::default()
    };
    let names =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let value = serde_json::to_value(&facts).unwrap();
    assert_eq!(
        names(&value),
        [
            "session_id",
            "transcript_path",
            "cwd",
            "version",
            "model",
            "workspace",
            "output_style",
            "cost",
            "context_window",
            "exceeds_200k_tokens",
            "thinking",
            "vim"
        ]
    );
    assert_eq!(
        names(&value["cost"]),
        [
            "total_cost_usd",
            "total_duration_ms",
            "total_api_duration_ms",
            "total_lines_added",
            "total_lines_removed"
        ]
    );
}

#[test]
fn colours_and_links_stay_and_everything_else_goes() {
    let text =
        "\x1b[31mred\x1b[0m \x1b]8;;https://example.com\x07link\x1b]8;;\x07\x1b[2J\n2\n3\n4\n";
    let rows = runner::rows(text, 1);
    assert_eq!(rows.len(), 3);
    let mut out = Vec::new();
    paint_line(&rows[0], ColorLevel::Ansi16, &mut out);
    let painted = String::from_utf8(out).unwrap();
    assert!(painted.starts_with(" \x1b[0;31mred\x1b[0m"), "{painted:?}");
    assert!(painted.contains("https://example.com") && !painted.contains("[2J"));
}

fn started(command: &str, cwd: &std::path::Path) -> (StatusLine, mpsc::Receiver<Vec<String>>) {
    let (sender, receiver) = mpsc::channel();
    let config = StatusLineConfig {
        command: command.into(),
        padding: 0,
        refresh: None,
        cwd: cwd.to_path_buf(),
    };
    let show = move |rows: Vec<haft_terminal::TextLine>| {
        let rows = rows.iter().map(|row| row.text().to_owned()).collect();
        let _ = sender.send(rows);
    };
    (StatusLine::start(config, Box::new(show)), receiver)
}

fn facts(id: &str) -> StatusFacts {
    StatusFacts {
        session_id: id.into(),
        size: (80, 24),
        ..StatusFacts::default()
    }
}

#[test]
fn changes_are_gathered_and_the_newest_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let command = r#"sed 's/.*"session_id":"\([^"]*\)".*/\1/' > got; cat got; echo "$COLUMNS $LINES"; cat got >> runs"#;
    let (line, shown) = started(command, dir.path());
    for id in ["one ", "two ", "three "] {
        line.update(facts(id));
    }
    assert_eq!(shown.recv_timeout(TIMEOUT).unwrap(), ["three ", "80 24"]);
    assert_eq!(
        fs::read_to_string(dir.path().join("runs"))
            .unwrap()
            .lines()
            .count(),
        1
    );
    let (failing, shown) = started("echo x; exit 1", dir.path());
    failing.update(facts("s"));
    assert_eq!(shown.recv_timeout(TIMEOUT).unwrap(), [""; 0]);
}

#[test]
fn an_older_run_is_ended_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let command =
        "read line; case $line in *slow*) echo $$ > pid; sleep 1000;; *) echo quick;; esac";
    let (line, shown) = started(command, dir.path());
    line.update(facts("slow"));
    let pid = dir.path().join("pid");
    let written = || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'));
    haft_testkit::until_blocking("the slow one runs", written);
    line.update(facts("q"));
    assert_eq!(shown.recv_timeout(TIMEOUT).unwrap(), ["quick"]);
    let pid = fs::read_to_string(&pid).unwrap();
    let is_gone = || !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists();
    haft_testkit::until_blocking("the slow one is gone", is_gone);
    drop(line);
    thread::yield_now();
}
