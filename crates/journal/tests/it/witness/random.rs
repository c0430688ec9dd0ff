//! Random commands through the model of the guard: undo restores the tree, redo the changes.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haft_journal::{Journal, UndoHistory, UndoMode, UndoSelection, UnitSummary};

use super::guard::{Kill, Killed, TestGuard, can_rename, xattrs};
use crate::ticket;

/// Everything of a tree that undo restores: kind, mode, owner, content, attributes, and which
/// names are one file.
pub(crate) type Seen = BTreeMap<PathBuf, String>;

pub(crate) fn seen(root: &Path) -> Seen {
    let mut all = Seen::new();
    let mut first = HashMap::new();
    add(root, root, &mut all, &mut first);
    all
}

fn add(root: &Path, path: &Path, all: &mut Seen, first: &mut HashMap<u64, PathBuf>) {
    let found = fs::symlink_metadata(path).unwrap();
    let name = path.strip_prefix(root).unwrap().to_path_buf();
    let content = if found.is_symlink() {
        format!("-> {}", fs::read_link(path).unwrap().display())
    } else if found.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for entry in entries {
            add(root, &entry, all, first);
        }
        String::new()
    } else if found.is_file() {
        let group = first.entry(found.ino()).or_insert_with(|| name.clone());
        let content = fs::read(path).unwrap();
        let content = String::from_utf8_lossy(&content).into_owned();
        let mtime = (found.mtime(), found.mtime_nsec());
        format!("{content:?} {mtime:?} one file with {}", group.display())
    } else {
        "special".to_owned()
    };
    let (mode, uid, gid) = (found.mode(), found.uid(), found.gid());
    let xattrs = match found.is_symlink() {
        true => Vec::new(),
        false => xattrs(path),
    };
    all.insert(name, format!("{mode:o} {uid} {gid} {xattrs:?} {content}"));
}

pub(crate) fn difference(now: &Seen, then: &Seen) -> String {
    let names: std::collections::BTreeSet<&PathBuf> = now.keys().chain(then.keys()).collect();
    let different = names
        .into_iter()
        .filter(|name| now.get(*name) != then.get(*name));
    different
        .map(|name| {
            format!(
                "{}:\n  now {}\n  was {}\n",
                name.display(),
                now.get(name).map_or("nothing", String::as_str),
                then.get(name).map_or("nothing", String::as_str)
            )
        })
        .collect()
}

/// A generator of numbers that a seed repeats.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        match all.is_empty() {
            true => None,
            false => all.get(self.below(all.len())),
        }
    }
}

fn start_tree(root: &Path, outside: &Path, numbers: &mut Numbers) {
    let mut directories = vec![root.to_path_buf()];
    let mut files: Vec<PathBuf> = Vec::new();
    for number in 0..14 {
        let above = numbers.pick(&directories).unwrap().clone();
        let path = above.join(format!("n{}", numbers.below(8)));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match numbers.below(8) {
            0..=2 => {
                fs::create_dir(&path).unwrap();
                directories.push(path);
            }
            3 if !files.is_empty() => {
                fs::hard_link(numbers.pick(&files).unwrap(), &path).unwrap();
            }
            4 => symlink("n1", &path).unwrap(),
            _ => {
                fs::write(&path, format!("first {number}\n").repeat(numbers.below(3))).unwrap();
                if numbers.below(3) == 0 {
                    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
                    let none = rustix::fs::XattrFlags::empty();
                    let _ = rustix::fs::lsetxattr(&path, "user.k", b"v", none);
                }
                if numbers.below(5) == 0 {
                    fs::hard_link(&path, outside.join(format!("o{number}"))).unwrap();
                }
                files.push(path);
            }
        }
    }
}

fn all_below(root: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            all_below(&path, all);
        }
        all.push(path);
    }
}

/// Carries out a random call; returns what it was.
fn step(guard: &mut TestGuard, root: &Path, numbers: &mut Numbers) -> Result<String, Killed> {
    let mut all = Vec::new();
    all_below(root, &mut all);
    all.sort();
    let is_file = |path: &&PathBuf| path.symlink_metadata().unwrap().is_file();
    let is_directory = |path: &&PathBuf| path.symlink_metadata().unwrap().is_dir();
    let files: Vec<PathBuf> = all.iter().filter(is_file).cloned().collect();
    let mut directories: Vec<PathBuf> = all.iter().filter(is_directory).cloned().collect();
    let no_directories = all.iter().filter(|path| !is_directory(path));
    let no_directories: Vec<PathBuf> = no_directories.cloned().collect();
    let inner = directories.clone();
    directories.push(root.to_path_buf());
    let above = numbers.pick(&directories).unwrap().clone();
    let free = above.join(format!("n{}", numbers.below(9)));
    let is_free = free.symlink_metadata().is_err();
    let text = format!("text {}\n", numbers.below(1000)).into_bytes();
    let any = numbers.pick(&all).cloned();
    let file = numbers.pick(&files).cloned();
    let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    let choice = numbers.below(26);
    Ok(match (choice, any, file) {
        (0..=2, ..) if is_free => {
            guard.put(&free, &text)?;
            format!("create {}", name(&free))
        }
        (3..=4, _, Some(file)) => {
            guard.put(&file, &text)?;
            format!("write {}", name(&file))
        }
        (5, _, Some(file)) => {
            guard.append(&file, &text)?;
            format!("append {}", name(&file))
        }
        (6, _, Some(file)) => {
            guard.truncate(&file, 2)?;
            format!("truncate {}", name(&file))
        }
        (7..=8, ..) if !no_directories.is_empty() => {
            let path = numbers.pick(&no_directories).unwrap();
            guard.unlink(path)?;
            format!("unlink {}", name(path))
        }
        (9..=10, ..) if is_free => {
            guard.mkdir(&free)?;
            format!("mkdir {}", name(&free))
        }
        (11, ..) => match numbers.pick(&inner) {
            Some(path) if fs::read_dir(path).unwrap().next().is_none() => {
                guard.rmdir(path)?;
                format!("rmdir {}", name(path))
            }
            Some(path) if numbers.below(3) == 0 => {
                let text = format!("rm -r {}", name(path));
                guard.remove_all(path)?;
                text
            }
            _ => String::new(),
        },
        (12..=15, Some(any), _) if is_free && can_rename(&any, &free) => {
            guard.rename(&any, &free)?;
            format!("rename {} {}", name(&any), name(&free))
        }
        (16..=17, Some(any), _) => match numbers.pick(&all) {
            Some(to) if can_rename(&any, to) => {
                guard.rename(&any, to)?;
                format!("rename {} over {}", name(&any), name(to))
            }
            _ => String::new(),
        },
        (18, Some(any), _) => match numbers.pick(&all) {
            Some(other) if !other.starts_with(&any) && !any.starts_with(other) => {
                guard.exchange(&any, other)?;
                format!("exchange {} {}", name(&any), name(other))
            }
            _ => String::new(),
        },
        (19, _, Some(file)) if is_free => {
            guard.link(&file, &free)?;
            format!("link {} {}", name(&file), name(&free))
        }
        (20, ..) if is_free => {
            guard.symlink("n2", &free)?;
            format!("symlink {}", name(&free))
        }
        (21, ..) if is_free => {
            guard.mkfifo(&free)?;
            format!("mkfifo {}", name(&free))
        }
        (22..=23, Some(any), _) if !any.symlink_metadata().unwrap().is_symlink() => {
            let mode = [0o700, 0o755, 0o600, 0o711][numbers.below(4)];
            let mode = match any.is_dir() {
                true => mode | 0o700,
                false => mode,
            };
            guard.chmod(&any, mode)?;
            format!("chmod {mode:o} {}", name(&any))
        }
        (24, Some(any), _) if any.is_dir() || any.is_file() => {
            guard.setxattr(&any, "user.n", &text)?;
            format!("setxattr {}", name(&any))
        }
        (25, Some(any), _) if any.is_dir() || any.is_file() => {
            guard.removexattr(&any, "user.k")?;
            format!("removexattr {}", name(&any))
        }
        _ => String::new(),
    })
}

/// Lists the units when all are recovered. A process that another test forks holds their locks until
/// it executes its program.
pub(crate) fn list_recovered(history: &UndoHistory) -> Vec<UnitSummary> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let listed = history.list(10).unwrap();
        let live = fs::read_dir(history.folder().join("live")).unwrap();
        let mut live = live.filter(|one| one.as_ref().unwrap().file_name() != ".copies");
        if live.next().is_none() || Instant::now() >= deadline {
            return listed;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What a run does with one unit.
fn run(seed: u64) {
    let mut numbers = Numbers(seed);
    let base = tempfile::tempdir().unwrap();
    let tree = base.path().canonicalize().unwrap().join("tree");
    let (root, outside) = (tree.join("root"), tree.join("outside"));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    start_tree(&root, &outside, &mut numbers);
    let undo = base.path().join("session/undo");
    let journal = Journal::new(None).with_undo(&undo);
    let before = seen(&tree);
    let ticket = ticket();
    let unit = journal.begin_witness(&ticket.call, "Bash", "random", std::slice::from_ref(&root));
    let unit = unit.unwrap();
    let kill = match numbers.below(3) {
        0 => Kill::AfterLine(1 + numbers.below(60)),
        1 => Kill::InLine(1 + numbers.below(60)),
        _ => Kill::Never,
    };
    let mut guard = TestGuard::new(&unit, kill);
    let mut steps = Vec::new();
    let mut is_killed = false;
    for _ in 0..45 {
        match step(&mut guard, &root, &mut numbers) {
            Ok(text) if text.is_empty() => {}
            Ok(text) => steps.push(text),
            Err(Killed) => {
                steps.push("killed".to_owned());
                is_killed = true;
                break;
            }
        }
    }
    let what = |phase: &str| format!("seed {seed}, {phase}\n{}\n", steps.join("\n"));
    is_killed = is_killed || guard.end().is_err();
    let after = seen(&tree);
    let history = if is_killed {
        drop((guard, unit));
        drop(journal);
        UndoHistory::open(&undo)
    } else {
        drop(guard);
        let changes = journal.finish_witness(unit, &ticket, &|_| false);
        assert_eq!(changes.uncovered, None, "{}", what("fold"));
        assert_eq!(changes.not_restorable, [], "{}", what("fold"));
        drop(journal);
        UndoHistory::open(&undo)
    };
    let listed = list_recovered(&history);
    let Some(unit) = listed.first() else {
        assert!(
            before == after,
            "{}{}",
            what("no unit"),
            difference(&after, &before)
        );
        return;
    };
    assert_eq!(unit.left, [], "{}", what("list"));
    let undo_unit = |id: &str, phase: &str| {
        let which = UndoSelection::Unit(id.to_owned());
        let outcome = history.undo(&crate::ticket(), &which, UndoMode::Apply);
        let outcome = outcome.unwrap_or_else(|error| panic!("{}{error}", what(phase)));
        assert_eq!(outcome.left, [], "{}", what(phase));
        outcome.unit.unwrap()
    };
    let undone = undo_unit(&unit.id, "undo");
    let now = seen(&tree);
    assert!(
        now == before,
        "{}{}",
        what("undo"),
        difference(&now, &before)
    );
    let redone = undo_unit(&undone, "redo");
    let now = seen(&tree);
    assert!(now == after, "{}{}", what("redo"), difference(&now, &after));
    undo_unit(&redone, "undo again");
    let now = seen(&tree);
    assert!(
        now == before,
        "{}{}",
        what("undo again"),
        difference(&now, &before)
    );
}

/// Several commands, undone one after the other, redone, and undone together.
fn run_several(seed: u64) {
    let mut numbers = Numbers(seed);
    let base = tempfile::tempdir().unwrap();
    let tree = base.path().canonicalize().unwrap().join("tree");
    let (root, outside) = (tree.join("root"), tree.join("outside"));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    start_tree(&root, &outside, &mut numbers);
    let journal = Journal::new(None).with_undo(base.path().join("session/undo"));
    let mut steps = Vec::new();
    let mut states = vec![seen(&tree)];
    let mut units = Vec::new();
    for _ in 0..3 {
        let ticket = ticket();
        let unit = journal.begin_witness(&ticket.call, "Bash", "", std::slice::from_ref(&root));
        let unit = unit.unwrap();
        let mut guard = TestGuard::new(&unit, Kill::Never);
        for _ in 0..12 {
            steps.push(step(&mut guard, &root, &mut numbers).unwrap());
        }
        steps.push("--".to_owned());
        guard.end().unwrap();
        drop(guard);
        let changes = journal.finish_witness(unit, &ticket, &|_| false);
        if let Some(unit) = changes.unit {
            units.push(unit);
            states.push(seen(&tree));
        }
    }
    steps.retain(|step| !step.is_empty());
    let history = journal.history().unwrap();
    let undo = |which: UndoSelection, expected: &Seen, phase: &str| {
        let what = format!("seed {seed}, {phase}\n{}\n", steps.join("\n"));
        let outcome = history.undo(&ticket(), &which, UndoMode::Apply);
        let outcome = outcome.unwrap_or_else(|error| panic!("{what}{error}"));
        let now = seen(&tree);
        assert!(now == *expected, "{what}{}", difference(&now, expected));
        outcome.unit.unwrap()
    };
    let mut undone = Vec::new();
    for (unit, expected) in units.iter().zip(&states).rev() {
        undone.push(undo(UndoSelection::Unit(unit.clone()), expected, "undo"));
    }
    for (unit, expected) in undone.iter().rev().zip(&states[1..]) {
        undo(UndoSelection::Unit(unit.clone()), expected, "redo");
    }
    for (unit, expected) in units.iter().zip(&states).rev() {
        undo(UndoSelection::Unit(unit.clone()), expected, "undo again");
    }
}

#[test]
fn several_commands_are_undone_one_after_the_other() {
    haft_testkit::bound_this_process();
    repeat(run_several, 60, 250);
}

#[test]
fn any_command_is_undone_and_redone_exactly() {
    haft_testkit::bound_this_process();
    repeat(run, 150, 600);
}

fn repeat(run: fn(u64), few: u64, many: u64) {
    let runs = match haft_testkit::is_thorough() {
        true => many,
        false => few,
    };
    let only = std::env::var("HAFT_TEST_SEED").ok();
    if let Some(seed) = only.and_then(|seed| seed.parse().ok()) {
        return run(seed);
    }
    std::thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || (0..runs).filter(|run| run % 4 == part).for_each(run));
        }
    });
}
