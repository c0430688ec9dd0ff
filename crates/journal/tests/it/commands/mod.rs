//! Real commands, and the tree as it was before them.

mod bounds;
mod others;
mod random;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_journal::{
    CommandChanges, Journal, JournalError, SnapshotLimits, SnapshotScope, UndoError, UndoLimits,
    UndoMode, UndoOutcome, UndoSelection,
};
use proptest::prelude::*;

use crate::{
    Desk, assert_says,
    moments::{next_file_time, next_millisecond, until_file_time},
    ticket,
};

/// Everything that can be seen of a directory, times included.
pub(crate) type Exact = BTreeMap<PathBuf, String>;

pub(crate) fn exact(root: &Path) -> Exact {
    let mut all = Exact::new();
    add(root, Path::new(""), &mut all);
    all
}

fn add(root: &Path, name: &Path, all: &mut Exact) {
    let path = root.join(name);
    let found = fs::symlink_metadata(&path).unwrap();
    let (mode, time) = (found.mode(), (found.mtime(), found.mtime_nsec()));
    let content = if found.is_symlink() {
        format!("-> {}", fs::read_link(&path).unwrap().display())
    } else if found.is_dir() {
        match fs::read_dir(&path) {
            Ok(entries) => {
                for entry in entries {
                    add(root, &name.join(entry.unwrap().file_name()), all);
                }
                String::new()
            }
            Err(error) => unreadable(&error),
        }
    } else if found.is_file() {
        match fs::read(&path) {
            Ok(content) => format!("{} names, {content:?}", found.nlink()),
            Err(error) => unreadable(&error),
        }
    } else {
        "special".to_owned()
    };
    let text = format!("{mode:o} {time:?} {content}");
    all.insert(name.to_path_buf(), text);
}

/// What a command may have closed to all but root.
fn unreadable(error: &io::Error) -> String {
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    "unreadable".to_owned()
}

#[track_caller]
fn assert_same(now: &Exact, then: &Exact, what: &str) {
    let names: std::collections::BTreeSet<&PathBuf> = now.keys().chain(then.keys()).collect();
    let different: Vec<String> = names
        .into_iter()
        .filter(|name| now.get(*name) != then.get(*name))
        .map(|name| {
            let brief = |side: &Exact| {
                let text = side.get(name).map_or("nothing", String::as_str);
                text.chars().take(120).collect::<String>()
            };
            format!("{}: {} but was {}", name.display(), brief(now), brief(then))
        })
        .collect();
    assert!(different.is_empty(), "{what}:\n{}", different.join("\n"));
}

/// A shell with no one's settings.
pub(crate) fn shell(directory: &Path, script: &str) {
    let output = haft_testkit::command("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.com")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
}

/// Patient: the machine may be busy.
fn limits() -> SnapshotLimits {
    SnapshotLimits {
        scan_time: Duration::from_secs(100),
        store_time: Duration::from_secs(100),
        ..SnapshotLimits::default()
    }
}

impl Desk {
    fn of_commands() -> Self {
        Self::with_limits(limits())
    }

    fn with_limits(limits: SnapshotLimits) -> Self {
        let mut desk = Self::new();
        desk.journal = desk.fresh_journal(limits);
        desk
    }

    /// As after a restart.
    fn fresh_journal(&self, limits: SnapshotLimits) -> Journal {
        let undo = self.session.path().join("undo");
        Journal::new(None).with_undo(undo).with_sweep_limits(limits)
    }

    fn sweep(&self) -> SnapshotScope {
        SnapshotScope {
            roots: vec![self.dir.path().to_path_buf()],
            ..SnapshotScope::default()
        }
    }

    fn run(&self, script: &str) -> CommandChanges {
        self.run_with(&self.sweep(), script)
    }

    fn run_with(&self, sweep: &SnapshotScope, script: &str) -> CommandChanges {
        let before = self.journal.before_command(sweep);
        shell(self.dir.path(), script);
        let is_control = |path: &Path| path.components().any(|part| part.as_os_str() == ".claude");
        self.journal
            .after_command(before, &ticket(), script, &is_control)
    }

    fn exact(&self) -> Exact {
        exact(self.dir.path())
    }

    fn take(&self, which: UndoSelection) -> Result<UndoOutcome, JournalError> {
        self.journal.undo(&ticket(), &which, UndoMode::Apply)
    }

    /// The command, its undo, that undone, and undone again.
    fn there_and_back(&self, script: &str) -> CommandChanges {
        let before = self.exact();
        let changed = self.run(script);
        let after = self.exact();
        assert_ne!(before, after, "{script} changed nothing");
        assert_eq!(changed.not_restorable, [], "{script}");
        let unit = changed.unit.clone().unwrap();
        let undone = self.take(UndoSelection::Last).unwrap();
        assert_eq!(undone.undid[0].0, unit);
        assert_same(&self.exact(), &before, &format!("undo of {script}"));
        let redone = self
            .take(UndoSelection::Unit(undone.unit.unwrap()))
            .unwrap();
        assert_same(&self.exact(), &after, &format!("{script} again"));
        self.take(UndoSelection::Unit(redone.unit.unwrap()))
            .unwrap();
        assert_same(&self.exact(), &before, &format!("{script} undone again"));
        changed
    }
}

/// A project with a bit of everything, committed.
fn project() -> Desk {
    let desk = Desk::of_commands();
    let root = desk.dir.path();
    for (name, content) in [
        ("src/main.c", "int main(void) { return 0; }\n"),
        ("src/deep/er/lib.c", "int lib;\n"),
        ("README", "hello world\n"),
        (".gitignore", "*.o\nbuild/\n"),
        ("kept.o", "an object\n"),
        ("build/old", "of an earlier build\n"),
    ] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir_all(root.join("empty/inside")).unwrap();
    symlink("README", root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    fs::set_permissions(root.join("src/main.c"), Permissions::from_mode(0o640)).unwrap();
    shell(
        root,
        "git init -q -b main . && git add -A && git commit -qm one",
    );
    desk
}

#[test]
fn an_undo_restores_the_tree_exactly() {
    let scripts = [
        "sed -i s/world/there/ README",
        "sed -i s/int/long/ src/main.c src/deep/er/lib.c",
        "rm -rf src",
        "rm -rf src empty build && mkdir src && echo x > src/other",
        "rm README && mkdir README && echo x > README/x",
        "rm -r src && echo file > src",
        "mv src moved",
        "mv README src/README2 && mv src/deep up",
        "chmod 600 README && chmod 700 src",
        "ln -sf src/main.c link && ln -s README another && rm dangling",
        "rm link && echo no link > link",
        ": > README && truncate -s 100 src/main.c",
        "touch -d 2001-01-01 README src",
        "mkdir -p a/b/c && rmdir empty/inside",
        "cp README src/copy && printf x >> README",
        "echo more >> README && git commit -qam two",
        "echo more >> README && git stash -q",
        "echo new > new && git clean -qfdx",
        "echo worse > README && rm src/main.c && git checkout -q .",
        "git checkout -qb other && git rm -q README && git commit -qm gone && git tag v1",
        "git gc -q --prune=now",
        "rm -rf .git",
        "mkdir build/new && for i in 1 2 3; do echo $i > build/new/$i.o; done; rm build/old; cp src/main.c build/new/main.c",
        "find . -name '*.c' -delete",
        "chmod 500 src && chmod 0 empty/inside",
    ];
    for script in scripts {
        project().there_and_back(script);
    }
}

#[test]
fn a_file_that_a_command_closed_is_opened_again_by_those_who_can_read_it() {
    let (desk, script) = (project(), "chmod 0 README");
    if rustix::process::geteuid().is_root() {
        desk.there_and_back(script);
        return;
    }
    // What is in it now cannot be looked at: nothing is touched.
    desk.run(script);
    let closed = desk.exact();
    let refused = desk.take(UndoSelection::Last).unwrap_err().to_string();
    assert!(refused.contains("Permission denied"), "{refused}");
    assert_same(&desk.exact(), &closed, script);
}

#[test]
fn what_git_would_destroy_for_good_comes_back() {
    let desk = project();
    desk.put("README", "never committed\n");
    desk.put("notes", "untracked\n");
    desk.there_and_back("git checkout -q .");
    desk.there_and_back("git reset -q --hard && git clean -qfdx");
    desk.there_and_back("git stash -qu && git stash drop -q");
}

#[test]
fn commands_one_after_another_are_undone_one_after_another() {
    let desk = project();
    let states: Vec<Exact> = [
        "echo a >> README",
        "rm -r src",
        "echo b >> README; mkdir x",
        "mv x y",
    ]
    .into_iter()
    .map(|script| {
        let before = desk.exact();
        assert!(desk.run(script).unit.is_some());
        before
    })
    .collect();
    for before in states.iter().rev() {
        desk.take(UndoSelection::Last).unwrap();
        assert_same(&desk.exact(), before, "one back");
    }
    assert_says(desk.take(UndoSelection::Last), &["nothing to undo"]);
}

#[test]
fn hard_links_are_hard_links_again() {
    let desk = Desk::of_commands();
    desk.put("a", "shared\n");
    fs::hard_link(desk.path("a"), desk.path("b")).unwrap();
    fs::hard_link(desk.path("a"), desk.path("c")).unwrap();
    desk.there_and_back("echo more >> b"); // all names see it
    desk.there_and_back("sed -i s/shared/own/ b"); // a file of its own
    desk.there_and_back("rm a b");
    desk.there_and_back("rm a b c");
}

#[test]
fn control_files_are_named_and_taken_back_alone() {
    let desk = project();
    fs::create_dir(desk.path(".claude")).unwrap();
    desk.put(".claude/old", "old\n");
    let before = desk.exact();
    let script = "echo bad > .claude/old; mkdir -p sub/.claude; echo {} > sub/.claude/settings.json; \
                  echo good > file";
    let changed = desk.run(script);
    let after = desk.exact();
    let root = desk.dir.path().canonicalize().unwrap();
    let names: Vec<&Path> = (changed.control.iter())
        .map(|path| path.strip_prefix(&root).unwrap())
        .collect();
    let expected = [".claude/old", "sub/.claude", "sub/.claude/settings.json"];
    assert_eq!(names, expected.map(Path::new));
    let unit = changed.unit.unwrap();
    let taken = desk
        .journal
        .revert_paths(&ticket(), &unit, &changed.control)
        .unwrap();
    assert_eq!(desk.get(".claude/old"), b"old\n");
    assert!(!desk.path("sub").exists());
    assert_eq!(desk.get("file"), b"good\n");
    // The rest is undone by itself; nothing is lost.
    desk.take(UndoSelection::Unit(unit.clone())).unwrap();
    assert_same(&desk.exact(), &before, "the rest undone");
    let listed = desk.journal.history().unwrap().list(1).unwrap();
    desk.take(UndoSelection::Unit(listed[0].id.clone()))
        .unwrap();
    desk.take(UndoSelection::Unit(taken.unit.unwrap())).unwrap();
    assert_same(&desk.exact(), &after, "all of it again");
    desk.take(UndoSelection::Unit(unit)).unwrap();
    assert_same(&desk.exact(), &before, "all of it undone");
}

#[test]
fn special_files_are_named_and_never_opened() {
    let desk = project();
    shell(
        desk.dir.path(),
        "mkfifo pipe; mkdir sub; mkfifo sub/.gitignore",
    );
    let before = desk.exact();
    let changed = desk.run("rm pipe; mkfifo other; echo x >> README; chmod 600 sub/.gitignore");
    let names: Vec<String> = changed
        .not_restorable
        .iter()
        .map(|(path, why)| format!("{} {why}", path.file_name().unwrap().display()))
        .collect();
    assert_eq!(
        names,
        [
            "pipe it was a named pipe, which cannot be made again",
            ".gitignore it was a named pipe, which cannot be made again"
        ]
    );
    desk.take(UndoSelection::Last).unwrap();
    let after = desk.exact();
    assert!(!after.contains_key(Path::new("other")));
    assert_eq!(after[Path::new("README")], before[Path::new("README")]);
}

#[test]
fn a_change_within_one_tick_of_the_clock_is_seen() {
    let desk = Desk::of_commands();
    for round in 0..10 {
        desk.put("file", "aaaa");
        let before = desk.journal.before_command(&desk.sweep());
        desk.put("file", "bbbb");
        let changed = desk
            .journal
            .after_command(before, &ticket(), "", &|_| false);
        assert_eq!(changed.modified.len(), 1, "round {round}");
        desk.take(UndoSelection::Last).unwrap();
        assert_eq!(desk.get("file"), b"aaaa");
    }
}

#[test]
fn a_command_that_never_ended_leaves_nothing() {
    let desk = project();
    let before = desk.journal.before_command(&desk.sweep());
    shell(desk.dir.path(), "echo more >> README");
    drop(before);
    let folder = desk.session.path().join("undo");
    assert_eq!(crate::names_in(&folder.join("blobs")), [] as [&str; 0]);
    assert_says(desk.take(UndoSelection::Last), &["nothing to undo"]);
}

#[test]
fn a_session_without_an_undo_journal_says_so() {
    let mut desk = project();
    desk.journal = Journal::new(None);
    let changed = desk.run("echo x > x");
    assert!(changed.uncovered.unwrap().contains("no undo journal"));
}
