//! Undo, rewind, tasks and permissions over a session that remembers what was asked of it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use haft::{Card, CardSection, DiffHunk, RuleList, TaskKind};
use haft_host::{
    ChangedFile, FileChangeKind, RewindKind, RewindPoint, RuleInfo, RunningTask, UndoEntry,
    UndoReport, UndoWhich,
};
use haft_terminal::Key;
use uuid::Uuid;

use super::{
    PermissionsView, RewindView, TasksView, UndoView,
    session::ViewSession,
    test_screen::{key, keys, run_jobs, shown, test_style},
};
use crate::tui::overlay::{FullScreenView, ViewEffect, ViewOutcome};

#[derive(Default)]
struct FakeSession {
    done: Mutex<Vec<String>>,
}

impl FakeSession {
    fn note(&self, what: String) {
        self.done.lock().unwrap().push(what);
    }

    fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

fn at(minute: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(14 * 3600 + minute * 60)
}

fn changed(path: &str) -> ChangedFile {
    ChangedFile {
        path: path.into(),
        change: FileChangeKind::Changed,
        added: 1,
        removed: 1,
    }
}

fn message() -> Uuid {
    Uuid::from_u128(7)
}

impl ViewSession for FakeSession {
    fn undo_list(&self) -> Result<Vec<UndoEntry>, String> {
        let entry = |id: &str, minute, tool: &str, about: &str, files: &[&str]| UndoEntry {
            id: id.into(),
            time: at(minute),
            tool: tool.into(),
            about: about.into(),
            files: files.iter().map(|path| changed(path)).collect(),
            message: Some((message(), "Fix it.".into())),
            is_undo: false,
            undoable: Ok(()),
        };
        let mut entries = vec![
            entry(
                "bash",
                3,
                "Bash",
                "cargo fmt",
                &["/p/a.rs", "/p/b.rs", "/p/c.rs"],
            ),
            entry("edit", 2, "Edit", "", &["/p/src/price.rs"]),
        ];
        if self.done().iter().any(|done| done.starts_with("undo ")) {
            entries.insert(
                0,
                UndoEntry {
                    is_undo: true,
                    ..entry("redo", 5, "undo", "", &["/p/a.rs"])
                },
            );
        }
        entries[1].undoable = Err("changed since".into());
        Ok(entries)
    }

    fn undo(&self, which: &UndoWhich, preview: bool) -> Result<UndoReport, String> {
        if !preview {
            self.note(format!("undo {which:?}"));
        }
        let hunk = DiffHunk {
            old_start: 41,
            old_lines: 2,
            new_start: 41,
            new_lines: 2,
            lines: vec![
                " fn discount(total: u32) -> u32 {".into(),
                "-    if total >= 5000 {".into(),
                "+    if total > 5000 {".into(),
            ],
        };
        let card = Card::new("Undo", "src/price.rs").with(CardSection::Diff(vec![hunk]));
        let is_conflict = matches!(which, UndoWhich::Entry(id) if id == "edit") && !preview;
        Ok(UndoReport {
            cards: vec![card],
            left: Vec::new(),
            conflict: is_conflict.then(|| "price.rs was changed since".to_owned()),
            redo: (!preview && !is_conflict).then(|| "redo".to_owned()),
        })
    }

    fn rewind_points(&self) -> Result<Vec<RewindPoint>, String> {
        let point = |number: u128, text: &str, files: &[&str]| RewindPoint {
            uuid: Uuid::from_u128(number),
            time: Some(at(number as u64)),
            text: text.into(),
            files: files.iter().map(|path| changed(path)).collect(),
        };
        Ok(vec![
            point(1, "Why does it fail?", &["/p/a.rs", "/p/b.rs"]),
            point(2, "Fix it.", &[]),
        ])
    }

    fn rewind_to(&self, point: Uuid, kind: RewindKind) {
        self.note(format!("rewind {} {}", point.as_u128(), kind.name()));
    }

    fn tasks(&self) -> Vec<RunningTask> {
        let is_stopped = self.done().contains(&"stop b1".to_owned());
        let task = RunningTask {
            id: "b1".into(),
            kind: TaskKind::Shell,
            description: "npm run dev".into(),
            tool_use_id: None,
            in_background: true,
            output_file: None,
        };
        if is_stopped { Vec::new() } else { vec![task] }
    }

    fn task_output(&self, _: &str) -> Result<String, String> {
        Ok("ready on \u{1b}[2J:3000\n".into())
    }

    fn stop_task(&self, id: &str) -> Result<(), String> {
        self.note(format!("stop {id}"));
        Ok(())
    }

    fn rules(&self) -> Result<Vec<RuleInfo>, String> {
        let rule = |list, rule: &str, line| RuleInfo {
            list,
            rule: rule.into(),
            scope: "local".into(),
            file: Some("/p/.claude/settings.local.json".into()),
            line: Some(line),
            is_timed: false,
        };
        Ok(vec![
            rule(RuleList::Deny, "Read(./.env)", 3),
            rule(RuleList::Allow, "Bash(npm *)", 7),
        ])
    }

    fn save_rule(&self, list: RuleList, rule: &str) -> Result<Option<PathBuf>, String> {
        self.note(format!("keep {list:?} {rule}"));
        Ok(Some("/p/.claude/settings.local.json".into()))
    }

    fn remove_rule(&self, rule: &RuleInfo) -> Result<PathBuf, String> {
        self.note(format!("remove {}", rule.rule));
        Ok("/p/.claude/settings.local.json".into())
    }

    fn explain(&self, command: &str) -> Result<String, String> {
        Ok(format!("{command}: asks, because no rule allows it"))
    }
}

fn session() -> (Arc<FakeSession>, Arc<dyn ViewSession>) {
    let fake = Arc::new(FakeSession::default());
    (Arc::clone(&fake), fake)
}

/// Vector 32, at the level of the view: the change of a command is taken back with all since its message, and the
/// undo is itself in the list.
#[test]
fn changes_are_shown_with_diffs_and_taken_back() {
    let (fake, session) = session();
    let (mut view, effects) = UndoView::open(session, at(9));
    let (wide, narrow) = (test_style(80, 10), test_style(40, 10));
    run_jobs(&mut view, effects);
    let first = shown(&mut view, &wide);
    keys(&mut view, "j");
    key(&mut view, Key::RETURN);
    let diff = shown(&mut view, &wide);
    let small = shown(&mut view, &narrow);
    keys(&mut view, "u");
    let conflict = shown(&mut view, &wide);
    keys(&mut view, "kA");
    let undone = shown(&mut view, &wide);
    insta::assert_snapshot!([first, diff, small, conflict, undone].join("\n=====\n"));
    let since = format!("undo Since({:?})", message());
    assert_eq!(fake.done(), ["undo Entry(\"edit\")".to_owned(), since]);
    assert!(matches!(view.key(Key::char('q')), ViewOutcome::Close(_)));
}

/// Vector 33.
#[test]
fn rewind_begins_at_now_where_enter_changes_nothing() {
    let (fake, session) = session();
    let (mut view, effects) = RewindView::open(session, at(9));
    run_jobs(&mut view, effects);
    let ViewOutcome::Close(effects) = view.key(Key::RETURN) else {
        panic!("it stays")
    };
    assert!(effects.is_empty() && fake.done().is_empty());
}

#[test]
fn rewind_says_what_would_change_before_it_does() {
    let (fake, session) = session();
    let (mut view, effects) = RewindView::open(session, at(9));
    let (wide, narrow) = (test_style(80, 11), test_style(40, 11));
    run_jobs(&mut view, effects);
    let messages = shown(&mut view, &wide);
    keys(&mut view, "kk");
    key(&mut view, Key::RETURN);
    let choices = shown(&mut view, &wide);
    let small = shown(&mut view, &narrow);
    insta::assert_snapshot!([messages, choices, small].join("\n=====\n"));
    key(&mut view, Key::ESCAPE);
    assert!(fake.done().is_empty(), "Escape goes back");
    key(&mut view, Key::RETURN);
    keys(&mut view, "j");
    let effects = key(&mut view, Key::RETURN);
    assert_eq!(
        fake.done(),
        [format!("rewind 1 {}", RewindKind::Conversation.name())]
    );
    assert!(matches!(&effects[..], [ViewEffect::SetDraft(text)] if text == "Why does it fail?"));
}

#[test]
fn tasks_show_their_output_and_are_stopped() {
    let (fake, session) = session();
    let (mut view, effects) = TasksView::open(session);
    let look = test_style(80, 6);
    run_jobs(&mut view, effects);
    key(&mut view, Key::RETURN);
    let output = shown(&mut view, &look);
    keys(&mut view, "s");
    let stopped = shown(&mut view, &look);
    insta::assert_snapshot!([output, stopped].join("\n=====\n"));
    assert_eq!(fake.done(), ["stop b1"]);
}

#[test]
fn rules_are_added_removed_and_tried() {
    let (fake, session) = session();
    let (mut view, effects) = PermissionsView::open(session);
    let (wide, narrow) = (test_style(80, 8), test_style(40, 8));
    run_jobs(&mut view, effects);
    let rules = shown(&mut view, &wide);
    keys(&mut view, "adeny Bash(rm *)");
    let typed = shown(&mut view, &wide);
    key(&mut view, Key::RETURN);
    keys(&mut view, "jd");
    let removed = shown(&mut view, &wide);
    keys(&mut view, "tnpm run x");
    key(&mut view, Key::RETURN);
    let tried = shown(&mut view, &wide);
    let small = shown(&mut view, &narrow);
    insta::assert_snapshot!([rules, typed, removed, tried, small].join("\n=====\n"));
    assert_eq!(fake.done(), ["keep Deny Bash(rm *)", "remove Bash(npm *)"]);
}
