//! Real commands, and the tree as it was before them.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use haft_journal::{
    Changed, Journal, JournalError, Limits, Mode, Sweep, SweepLimits, UndoError, Undone, Which,
};

use crate::{Desk, assert_says, ticket};

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
        for entry in fs::read_dir(&path).unwrap() {
            add(root, &name.join(entry.unwrap().file_name()), all);
        }
        String::new()
    } else if found.is_file() {
        format!("{} names, {:?}", found.nlink(), fs::read(&path).unwrap())
    } else {
        "special".to_owned()
    };
    let text = format!("{mode:o} {time:?} {content}");
    all.insert(name.to_path_buf(), text);
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

/// A shell with nobody's settings.
pub(crate) fn shell(directory: &Path, script: &str) {
    let output = Command::new("sh")
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
fn limits() -> SweepLimits {
    SweepLimits {
        look: Duration::from_secs(100),
        keep: Duration::from_secs(100),
        ..SweepLimits::default()
    }
}

impl Desk {
    fn of_commands() -> Self {
        Self::with_limits(limits())
    }

    fn with_limits(limits: SweepLimits) -> Self {
        let mut desk = Self::new();
        let undo = desk.session.path().join("undo");
        desk.journal = Journal::new(None).with_undo(undo).with_sweep_limits(limits);
        desk
    }

    fn sweep(&self) -> Sweep {
        Sweep {
            roots: vec![self.dir.path().to_path_buf()],
            ..Sweep::default()
        }
    }

    fn run(&self, script: &str) -> Changed {
        self.run_with(&self.sweep(), script)
    }

    fn run_with(&self, sweep: &Sweep, script: &str) -> Changed {
        let before = self.journal.before_command(sweep);
        shell(self.dir.path(), script);
        let is_control = |path: &Path| path.components().any(|part| part.as_os_str() == ".claude");
        self.journal
            .after_command(before, &ticket(), script, &is_control)
    }

    fn exact(&self) -> Exact {
        exact(self.dir.path())
    }

    fn take(&self, which: Which) -> Result<Undone, JournalError> {
        self.journal.undo(&ticket(), &which, Mode::Apply)
    }

    /// The command, its undo, that undone, and undone again.
    fn there_and_back(&self, script: &str) -> Changed {
        let before = self.exact();
        let changed = self.run(script);
        let after = self.exact();
        assert_ne!(before, after, "{script} changed nothing");
        assert_eq!(changed.not_restorable, [], "{script}");
        let unit = changed.unit.clone().unwrap();
        let undone = self.take(Which::Last).unwrap();
        assert_eq!(undone.undid[0].0, unit);
        assert_same(&self.exact(), &before, &format!("undo of {script}"));
        let redone = self.take(Which::Unit(undone.unit.unwrap())).unwrap();
        assert_same(&self.exact(), &after, &format!("{script} again"));
        self.take(Which::Unit(redone.unit.unwrap())).unwrap();
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
        "chmod 0 README",
        "chmod 500 src && chmod 0 empty/inside",
    ];
    for script in scripts {
        project().there_and_back(script);
    }
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
        desk.take(Which::Last).unwrap();
        assert_same(&desk.exact(), before, "one back");
    }
    assert_says(desk.take(Which::Last), &["nothing to undo"]);
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
fn a_file_changed_since_is_refused_and_nothing_is_touched() {
    let desk = project();
    desk.run("echo ours >> README; rm src/main.c; mkdir new; echo x > new/x");
    for (name, change, back) in [
        (
            "README",
            "echo theirs >> README",
            "sed -i '/theirs/d' README",
        ),
        ("src/main.c", "echo theirs > src/main.c", "rm src/main.c"),
        ("new/x", "echo theirs > new/x", "echo x > new/x"),
    ] {
        shell(desk.dir.path(), change);
        let before = desk.exact();
        assert_says(desk.take(Which::Last), &[name, "Nothing was undone"]);
        let preview = desk.journal.undo(&ticket(), &Which::Last, Mode::Preview);
        assert!(preview.unwrap().conflict.unwrap().contains(name));
        let listed = desk.journal.history().unwrap().list(1).unwrap();
        assert!(listed[0].undoable.as_ref().unwrap_err().contains(name));
        assert_same(&desk.exact(), &before, "after a refusal");
        shell(desk.dir.path(), back);
    }
    // Someone's own file in a new directory keeps the directory.
    desk.put("new/theirs", "theirs");
    let undone = desk.take(Which::Last).unwrap();
    assert_eq!(crate::names_in(&desk.path("new")), ["theirs"]);
    assert!(undone.left[0].1.contains("stays"), "{:?}", undone.left);
    assert_eq!(desk.get("README"), b"hello world\n");
}

#[test]
fn a_mode_that_someone_else_gave_stays() {
    let desk = project();
    desk.run("echo ours >> README");
    fs::set_permissions(desk.path("README"), Permissions::from_mode(0o600)).unwrap();
    desk.take(Which::Last).unwrap();
    assert_eq!(desk.get("README"), b"hello world\n");
    let mode = |name: &str| fs::metadata(desk.path(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("README"), 0o600);
    desk.run("chmod 640 README");
    fs::set_permissions(desk.path("README"), Permissions::from_mode(0o666)).unwrap();
    assert_says(desk.take(Which::Last), &["README"]);
    assert_eq!(mode("README"), 0o666);
}

#[test]
fn times_are_not_set_back_under_later_changes() {
    let desk = project();
    let first = desk.run("echo a >> README");
    desk.run("echo built > build/new");
    let built = fs::metadata(desk.path("build/new")).unwrap().modified();
    desk.take(Which::Unit(first.unit.unwrap())).unwrap();
    let source = fs::metadata(desk.path("README")).unwrap().modified();
    assert!(source.unwrap() >= built.unwrap());
}

#[test]
fn what_is_over_the_budget_is_named_and_the_rest_restored() {
    let desk = Desk::with_limits(SweepLimits {
        file: 1 << 20,
        bytes: 3 << 20,
        ..limits()
    });
    desk.put(".gitignore", "ignored*\n");
    desk.put("large", vec![b'x'; 2 << 20]);
    for name in ["one", "two", "ignored1", "ignored2"] {
        desk.put(name, vec![b'y'; 1 << 20]);
    }
    let before = desk.exact();
    let changed = desk.run("echo x | tee -a one two large ignored1 ignored2 > new");
    let why: BTreeMap<String, String> = changed
        .not_restorable
        .iter()
        .map(|(path, why)| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                why.clone(),
            )
        })
        .collect();
    // What git ignores comes last.
    let names: Vec<&str> = why.keys().map(String::as_str).collect();
    assert_eq!(names, ["ignored1", "ignored2", "large"]);
    assert!(why["large"].contains("larger than 1 MB"), "{why:?}");
    assert!(why["ignored1"].contains("more than 3 MB"), "{why:?}");
    let undone = desk.take(Which::Last).unwrap();
    assert_eq!(undone.left.len(), 3);
    let after = desk.exact();
    for name in ["one", "two", ".gitignore"] {
        assert_eq!(after.get(Path::new(name)), before.get(Path::new(name)));
    }
    assert!(!desk.path("new").exists());
    // Modes and moves of what is not kept need no content.
    desk.there_and_back("chmod 600 large");
    // Nothing of it can be restored: said, and not passed over in silence.
    desk.run("echo y >> large");
    let error = desk.take(Which::Last).unwrap_err();
    assert!(
        matches!(error, JournalError::Undo(UndoError::NotCovered { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("larger than 1 MB"), "{error}");
}

#[test]
fn hints_come_first_and_reach_outside() {
    let desk = Desk::with_limits(SweepLimits {
        bytes: 1 << 20,
        ..limits()
    });
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("file");
    fs::write(&file, "outside\n").unwrap();
    for name in ["a", "b", "c"] {
        desk.put(name, vec![b'y'; 1 << 19]);
    }
    desk.put("named", vec![b'z'; 1 << 20]);
    let mut sweep = desk.sweep();
    sweep.hints = vec![
        desk.path("named"),
        file.clone(),
        outside.path().join("new/dir"),
    ];
    fs::write(desk.path("named"), vec![b'z'; (1 << 20) - 100]).unwrap();
    let (before, beyond) = (desk.exact(), exact(outside.path()));
    let script = format!(
        "echo x >> named; cd {}; echo y >> file; mkdir -p new/dir/deep; echo z > new/dir/file",
        outside.path().display()
    );
    let changed = desk.run_with(&sweep, &script);
    assert_eq!(changed.not_restorable, []);
    desk.take(Which::Last).unwrap();
    assert_same(&desk.exact(), &before, "inside");
    assert_same(&exact(outside.path()), &beyond, "outside");
}

#[test]
fn too_many_files_are_said_and_what_is_named_is_covered() {
    let desk = Desk::with_limits(SweepLimits {
        entries: 50,
        ..limits()
    });
    fs::create_dir(desk.path("many")).unwrap();
    for number in 0..60 {
        desk.put(&format!("many/{number}"), "x\n");
    }
    desk.put("file", "old\n");
    let changed = desk.run("echo new > file");
    let why = changed.uncovered.unwrap();
    assert!(why.contains("over 50 files"), "{why}");
    assert_says(desk.take(Which::Last), &["does not cover", "over 50 files"]);
    let mut sweep = desk.sweep();
    sweep.hints = vec![desk.path("file")];
    let changed = desk.run_with(&sweep, "echo newer > file");
    assert!(
        changed
            .uncovered
            .unwrap()
            .contains("only what the command line names")
    );
    desk.take(Which::Unit(changed.unit.unwrap())).unwrap();
    assert_eq!(desk.get("file"), b"new\n");
    // What is ignored does not stand in the way of the rest.
    desk.put(".gitignore", "many/\n");
    let changed = desk.run("echo newest > file; mv many moved");
    assert_eq!(changed.uncovered, None);
    let names: Vec<&str> = changed
        .not_restorable
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(names, ["many"]);
    shell(desk.dir.path(), "mv moved many");
    let undone = desk.take(Which::Last).unwrap();
    assert!(undone.left[0].1.contains("not looked at"), "{undone:?}");
    assert_eq!(desk.get("file"), b"new\n");
}

#[test]
fn a_new_directory_with_very_much_in_it_goes_as_one() {
    let desk = project();
    let before = desk.exact();
    let script = "mkdir -p out/deep; for i in $(seq 1 600); do echo $i > out/deep/$i; done";
    let changed = desk.run(script);
    assert_eq!(changed.created, [desk.path("out").canonicalize().unwrap()]);
    desk.put("out/deep/7", "theirs\n");
    assert_says(desk.take(Which::Last), &["out"]);
    let changed = desk.run("rm -r out");
    assert_eq!(changed.not_restorable, []);
    desk.take(Which::Last).unwrap();
    shell(desk.dir.path(), "rm -r out");
    let touched = desk.run(script);
    desk.take(Which::Unit(touched.unit.unwrap())).unwrap();
    let (mut now, mut then) = (desk.exact(), before);
    now.remove(Path::new(""));
    then.remove(Path::new("")); // its time is someone else's now
    assert_same(&now, &then, "undo of very much");
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
        .take_back(&ticket(), &unit, &changed.control)
        .unwrap();
    assert_eq!(desk.get(".claude/old"), b"old\n");
    assert!(!desk.path("sub").exists());
    assert_eq!(desk.get("file"), b"good\n");
    // The rest is undone by itself; nothing is lost.
    desk.take(Which::Unit(unit.clone())).unwrap();
    assert_same(&desk.exact(), &before, "the rest undone");
    let listed = desk.journal.history().unwrap().list(1).unwrap();
    desk.take(Which::Unit(listed[0].id.clone())).unwrap();
    desk.take(Which::Unit(taken.unit.unwrap())).unwrap();
    assert_same(&desk.exact(), &after, "all of it again");
    desk.take(Which::Unit(unit)).unwrap();
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
    desk.take(Which::Last).unwrap();
    let after = desk.exact();
    assert!(!after.contains_key(Path::new("other")));
    assert_eq!(after[Path::new("README")], before[Path::new("README")]);
}

#[test]
fn what_file_tools_change_meanwhile_is_theirs() {
    let desk = project();
    desk.read("README").unwrap();
    desk.run("echo quiet > quiet");
    let before = desk.journal.before_command(&desk.sweep());
    std::thread::sleep(Duration::from_millis(5));
    shell(desk.dir.path(), "echo loud > loud");
    let edited = desk.edit("README", "world", "there").unwrap();
    desk.write("made/file", "x\n").unwrap();
    let changed = desk
        .journal
        .after_command(before, &ticket(), "", &|_| false);
    assert_eq!(changed.created, [desk.path("loud").canonicalize().unwrap()]);
    assert_eq!(changed.modified, [] as [PathBuf; 0]);
    desk.take(Which::Unit(changed.unit.unwrap())).unwrap();
    assert_eq!(desk.get("README"), b"hello there\n");
    desk.take(Which::Unit(edited.unit.unwrap())).unwrap();
    assert_eq!(desk.get("README"), b"hello world\n");
}

#[test]
fn a_file_that_a_command_changed_is_stale_until_it_is_restored() {
    let desk = project();
    desk.read("README").unwrap();
    desk.run("echo more >> README");
    assert_says(desk.write("README", "mine\n"), &["modified since"]);
    desk.take(Which::Last).unwrap();
    desk.write("README", "mine\n").unwrap();
}

#[test]
fn everything_since_a_time_is_taken_back_whoever_did_it() {
    let desk = project();
    desk.read("README").unwrap();
    let before = desk.exact();
    let then = std::time::SystemTime::now();
    std::thread::sleep(Duration::from_millis(5));
    desk.edit("README", "world", "there").unwrap();
    desk.run("echo more >> README; rm -r src");
    desk.write("made/by/write", "x\n").unwrap();
    desk.run("echo y > made/by/command; echo even more >> README");
    let after = desk.exact();
    let undone = desk.take(Which::Since(then)).unwrap();
    // Times of what Edit and Write changed are the clock's.
    let contents = |exact: &Exact| -> BTreeMap<PathBuf, String> {
        let without = |text: &String| {
            let (head, tail) = text.split_once(" (").unwrap();
            format!("{head} {}", tail.split_once(") ").unwrap().1)
        };
        exact
            .iter()
            .map(|(path, text)| (path.clone(), without(text)))
            .collect()
    };
    assert_eq!(contents(&desk.exact()), contents(&before));
    desk.take(Which::Unit(undone.unit.unwrap())).unwrap();
    assert_eq!(contents(&desk.exact()), contents(&after));
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
        desk.take(Which::Last).unwrap();
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
    assert_says(desk.take(Which::Last), &["nothing to undo"]);
}

#[test]
fn a_session_without_an_undo_journal_says_so() {
    let mut desk = project();
    desk.journal = Journal::new(None);
    let changed = desk.run("echo x > x");
    assert!(changed.uncovered.unwrap().contains("no undo journal"));
}

#[test]
fn the_oldest_commands_are_dropped_for_room() {
    let mut desk = Desk::of_commands();
    let folder = desk.session.path().join("undo");
    let few = Limits {
        bytes: 3 << 20,
        ..Limits::default()
    };
    desk.journal = Journal::new(None).with_undo(&folder).with_undo_limits(few);
    let mut units = Vec::new();
    for byte in b'a'..b'g' {
        desk.put("file", vec![byte; 1 << 20]);
        units.push(desk.run("echo x > file").unit.unwrap());
    }
    assert_says(desk.take(Which::Unit(units[0].clone())), &["dropped"]);
    desk.take(Which::Last).unwrap();
    assert_eq!(desk.get("file"), vec![b'f'; 1 << 20]);
    let kept: u64 = fs::read_dir(folder.join("blobs"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(kept <= 4 << 20, "{kept}");
}

/// Prints what a sweep costs. `cargo test --release ... what_a_sweep_costs -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn what_a_sweep_costs() {
    let count = |name: &str, default: usize| {
        let text = std::env::var(name).unwrap_or_default();
        text.parse().unwrap_or(default)
    };
    let (files, size) = (count("FILES", 120_000), count("SIZE", 2_000));
    let desk = Desk::with_limits(SweepLimits::default());
    for number in 0..files {
        let directory = desk.path(&format!("{}/{}", number % 40, number % 1000));
        if number < 1000 {
            fs::create_dir_all(&directory).unwrap();
        }
        let text = format!("{number}\n").repeat(size / 6);
        fs::write(directory.join(number.to_string()), text).unwrap();
    }
    let timed = |what: &str, start: std::time::Instant| {
        eprintln!("{what}: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    };
    for round in 1..=6 {
        let start = std::time::Instant::now();
        let before = desk.journal.before_command(&desk.sweep());
        timed(
            &format!("{round}. before ({:?} looked at, kept)", before.cost()),
            start,
        );
        if let Some(why) = before.uncovered() {
            eprintln!("{why}");
        }
        shell(
            desk.dir.path(),
            "echo x >> 1/1/1; rm -rf 2/2; mkdir 2/2; echo y > 2/2/y",
        );
        let start = std::time::Instant::now();
        let changed = desk
            .journal
            .after_command(before, &ticket(), "", &|_| false);
        let (removed, left) = (changed.removed.len(), changed.not_restorable.len());
        timed(
            &format!("{round}. after ({removed} removed, {left} not restorable)"),
            start,
        );
        let start = std::time::Instant::now();
        match desk.take(Which::Last) {
            Ok(_) => timed(&format!("{round}. undo"), start),
            Err(error) => eprintln!("{error}"),
        }
    }
}
