//! Real commands, and the tree as it was before them.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use haft_journal::JournalError;
use haft_journal::{Changed, Journal, Mode, Sweep, SweepLimits, Undone, Which};

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
