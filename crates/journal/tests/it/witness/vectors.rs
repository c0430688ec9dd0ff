//! Single commands, with the numbers of the vectors that they show.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_journal::{
    CommandChanges, Journal, JournalError, UndoHistory, UndoLimits, UndoMode, UndoOutcome,
    UndoSelection, UnitState, settle_crashed,
};

use super::guard::{Kill, Killed, TestGuard};
use super::random::{difference, seen};
use crate::ticket;

struct Desk {
    journal: Journal,
    base: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        haft_testkit::bound_this_process();
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("p")).unwrap();
        let journal = Journal::new(None).with_undo(Self::undo_folder(base.path()));
        Self { journal, base }
    }

    fn undo_folder(base: &Path) -> PathBuf {
        base.join("project/session/undo")
    }

    fn root(&self) -> PathBuf {
        self.base.path().canonicalize().unwrap().join("p")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn history(&self) -> &UndoHistory {
        self.journal.history().unwrap()
    }

    fn run(&self, act: impl FnOnce(&mut TestGuard) -> Result<(), Killed>) -> CommandChanges {
        let ticket = ticket();
        let unit = self
            .journal
            .begin_witness(&ticket.call, "Bash", "test", &[self.root()]);
        let unit = unit.unwrap();
        let mut guard = TestGuard::new(&unit, Kill::Never);
        act(&mut guard).unwrap();
        guard.end().unwrap();
        drop(guard);
        self.journal.finish_witness(unit, &ticket, &|_| false)
    }

    /// A command whose process is killed.
    fn run_killed(&self, act: impl FnOnce(&mut TestGuard) -> Result<(), Killed>) {
        let unit = self
            .journal
            .begin_witness("killed", "Bash", "test", &[self.root()]);
        let unit = unit.unwrap();
        let mut guard = TestGuard::new(&unit, Kill::Never);
        act(&mut guard).unwrap();
    }

    fn undo(&self, unit: &str) -> Result<UndoOutcome, JournalError> {
        let which = UndoSelection::Unit(unit.to_owned());
        self.history().undo(&ticket(), &which, UndoMode::Apply)
    }

    /// The command is undone, redone and undone; each time the tree is as it was.
    #[track_caller]
    fn check(&self, act: impl FnOnce(&mut TestGuard) -> Result<(), Killed>) -> CommandChanges {
        let before = seen(&self.root());
        let changes = self.run(act);
        assert_eq!(changes.uncovered, None);
        let after = seen(&self.root());
        let mut unit = changes.unit.clone().unwrap();
        for (expected, what) in [(&before, "undo"), (&after, "redo"), (&before, "undo again")] {
            let outcome = self.undo(&unit).unwrap();
            unit = outcome.unit.unwrap();
            let now = seen(&self.root());
            assert!(now == *expected, "{what}\n{}", difference(&now, expected));
        }
        changes
    }

    fn stored(&self, name: &str) -> Vec<PathBuf> {
        let folder = Self::undo_folder(self.base.path()).join(name);
        let mut found = Vec::new();
        let mut pending = vec![folder];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.path().is_dir() {
                    true => pending.push(entry.path()),
                    false => found.push(entry.path()),
                }
            }
        }
        found
    }
}

fn inode(path: &Path) -> u64 {
    path.symlink_metadata().unwrap().ino()
}

#[test]
fn w1_an_overwritten_file_is_the_only_path_of_the_unit() {
    let desk = Desk::new();
    let path = desk.put("a", "old");
    desk.put("other", "not touched");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let none = rustix::fs::XattrFlags::empty();
    let _ = rustix::fs::setxattr(&path, "user.k", b"value", none);
    let changes = desk.check(|guard| guard.put(&path, b"x\n"));
    assert_eq!(changes.modified, [path]);
    assert!(changes.created.is_empty() && changes.removed.is_empty());
}

#[test]
fn w2_removed_files_come_back_with_their_inodes_and_without_a_copy() {
    let desk = Desk::new();
    let files: Vec<PathBuf> = (0..300)
        .map(|number| desk.put(&format!("node_modules/d{}/f{number}", number % 7), "module"))
        .collect();
    let inodes: Vec<u64> = files.iter().map(|path| inode(path)).collect();
    let changes = desk.run(|guard| guard.remove_all(&desk.at("node_modules")));
    assert_eq!(desk.stored("blobs"), [] as [PathBuf; 0]);
    assert_eq!(desk.stored("keep").len(), files.len());
    assert_eq!(desk.stored("live"), [] as [PathBuf; 0]);
    desk.undo(&changes.unit.unwrap()).unwrap();
    assert_eq!(
        files.iter().map(|path| inode(path)).collect::<Vec<_>>(),
        inodes
    );
    assert_eq!(desk.stored("keep"), [] as [PathBuf; 0]);
}

#[test]
fn w4_a_moved_directory_is_moved_back_with_later_edits() {
    let desk = Desk::new();
    for number in 0..1000 {
        desk.put(&format!("src/d{}/f{number}", number % 9), "text");
    }
    desk.put("src/x", "text");
    let changes = desk.run(|guard| guard.rename(&desk.at("src"), &desk.at("lib")));
    assert_eq!(
        (changes.created, changes.removed),
        (vec![desk.at("lib")], vec![desk.at("src")])
    );
    let listed = desk.history().list(1).unwrap();
    assert_eq!(listed[0].files.len(), 2);
    desk.put("lib/x", "edited by the user");
    desk.put("lib/new", "added by the user");
    desk.undo(&changes.unit.unwrap()).unwrap();
    assert!(!desk.at("lib").exists());
    assert_eq!(
        fs::read_to_string(desk.at("src/x")).unwrap(),
        "edited by the user"
    );
    assert!(desk.at("src/new").exists() && desk.at("src/d0/f0").exists());
}

#[test]
fn w5_all_names_of_a_file_are_old_and_stay_one_file() {
    let desk = Desk::new();
    let path = desk.put("a", "1");
    let outside = desk.base.path().join("outside");
    fs::hard_link(&path, desk.at("b")).unwrap();
    fs::hard_link(&path, &outside).unwrap();
    let own = inode(&path);
    desk.check(|guard| guard.put(&path, b"2"));
    for name in [&path, &desk.at("b"), &outside] {
        assert_eq!(
            (fs::read_to_string(name).unwrap(), inode(name)),
            ("1".to_owned(), own)
        );
    }
    // The name in the tree is removed, too.
    let changes = desk.check(|guard| {
        guard.put(&path, b"3")?;
        guard.unlink(&path)
    });
    assert_eq!(changes.removed, vec![path.clone()]);
    assert_eq!(
        (fs::read_to_string(&outside).unwrap(), inode(&path)),
        ("1".to_owned(), own)
    );
    // It is changed through a new name.
    desk.check(|guard| {
        guard.link(&path, &desk.at("c"))?;
        guard.put(&desk.at("c"), b"4")
    });
    assert_eq!(fs::read_to_string(&outside).unwrap(), "1");
}

#[test]
fn w7_a_nameless_file_and_a_file_that_the_next_command_writes() {
    let desk = Desk::new();
    let changes = desk.check(|guard| guard.link_nameless(&desk.at("n"), b"text"));
    assert_eq!(changes.created, [desk.at("n")]);
    assert!(!desk.at("n").exists());
    let (one, other) = (desk.put("one", "first"), desk.at("other"));
    fs::hard_link(&one, &other).unwrap();
    let before = seen(&desk.root());
    let removal = desk.run(|guard| guard.unlink(&one));
    let write = desk.run(|guard| guard.put(&other, b"second"));
    desk.undo(&write.unit.unwrap()).unwrap();
    desk.undo(&removal.unit.unwrap()).unwrap();
    let now = seen(&desk.root());
    assert!(now == before, "{}", difference(&now, &before));
}

#[test]
fn w8_modes_and_attributes_of_files_and_directories() {
    let desk = Desk::new();
    let (file, directory) = (desk.put("d/file", "text"), desk.at("d"));
    let changes = desk.check(|guard| {
        guard.chmod(&file, 0o600)?;
        guard.setxattr(&file, "user.a", b"1")?;
        guard.setxattr(&directory, "user.a", b"1")?;
        guard.chmod(&directory, 0o700)
    });
    assert_eq!(changes.modified, vec![file.clone()]);
    assert_eq!(desk.stored("blobs"), [] as [PathBuf; 0]);
    desk.check(|guard| {
        guard.chmod(&file, 0o600)?;
        guard.unlink(&file)?;
        guard.rmdir(&directory)
    });
}

#[test]
fn w9_exchanged_directories_and_names_in_a_circle() {
    let desk = Desk::new();
    desk.put("one/a", "1");
    desk.put("two/b", "2");
    desk.check(|guard| guard.exchange(&desk.at("one"), &desk.at("two")));
    let (a, b, t) = (desk.put("a", "A"), desk.put("b", "B"), desk.at("t"));
    desk.check(|guard| {
        guard.rename(&a, &t)?;
        guard.rename(&b, &a)?;
        guard.rename(&t, &b)
    });
    fs::remove_file(&b).unwrap();
    desk.check(|guard| {
        guard.rename(&a, &b)?;
        guard.append(&b, b"2\n")
    });
    // Contents of both directories change, too.
    desk.check(|guard| {
        guard.exchange(&desk.at("one"), &desk.at("two"))?;
        guard.put(&desk.at("two/a"), b"other")?;
        guard.unlink(&desk.at("one/b"))
    });
}

#[test]
fn w10_a_passing_file_is_no_unit_and_a_reused_inode_is_another_file() {
    let desk = Desk::new();
    let passing = desk.run(|guard| {
        guard.put(&desk.at("passing"), b"text")?;
        guard.mkdir(&desk.at("d"))?;
        guard.unlink(&desk.at("passing"))?;
        guard.rmdir(&desk.at("d"))
    });
    assert_eq!(passing, CommandChanges::default());
    assert!(desk.stored("keep").is_empty() && desk.stored("live").is_empty());
    let path = desk.put("a", "text");
    desk.check(|guard| {
        guard.unlink(&path)?;
        guard.put(&desk.at("b"), b"other")
    });
}

#[test]
fn w11_a_clean_and_a_reset() {
    let desk = Desk::new();
    desk.put("tracked", "changed but not committed");
    desk.put("target/ignored", "built");
    desk.put("notes/untracked", "mine");
    desk.put(".git/index", "index of the changes");
    desk.check(|guard| {
        // git writes a new file and renames it.
        guard.put(&desk.at("tracked.new"), b"committed")?;
        guard.rename(&desk.at("tracked.new"), &desk.at("tracked"))?;
        guard.put(&desk.at(".git/index.lock"), b"clean index")?;
        guard.rename(&desk.at(".git/index.lock"), &desk.at(".git/index"))?;
        guard.remove_all(&desk.at("target"))?;
        guard.remove_all(&desk.at("notes"))
    });
}

#[test]
fn w21_a_pipe_a_link_and_a_directory_come_back_and_a_socket_is_named() {
    let desk = Desk::new();
    let (pipe, link, directory) = (desk.at("pipe"), desk.at("link"), desk.at("empty"));
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o640);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    symlink("nowhere", &link).unwrap();
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
    let before = seen(&desk.root());
    let socket = desk.at("socket");
    drop(UnixListener::bind(&socket).unwrap());
    let changes = desk.run(|guard| {
        guard.unlink(&pipe)?;
        guard.unlink(&link)?;
        guard.rmdir(&directory)?;
        guard.unlink(&socket)
    });
    let (named, why) = &changes.not_restorable[0];
    assert_eq!((named, changes.not_restorable.len()), (&socket, 1));
    assert!(why.contains("socket"), "{why}");
    desk.undo(&changes.unit.unwrap()).unwrap();
    let now = seen(&desk.root());
    assert!(now == before, "{}", difference(&now, &before));
}

/// An index of version 2 with one entry.
fn git_index(time: u8, hash: u8) -> Vec<u8> {
    let mut all = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
    all.extend([time; 24]);
    all.extend(0o100_644_u32.to_be_bytes());
    all.extend([time; 12]);
    all.extend([hash; 20]);
    all.extend(b"\0\x04file\0\0\0\0\0\0");
    all.extend([time; 20]);
    all
}

#[test]
fn w17_a_running_command_is_listed_and_undone_only_after_its_end() {
    let desk = Desk::new();
    let log = desk.put("server.log", "old\n");
    let call = ticket().call;
    let roots = [desk.root()];
    let unit = desk.journal.begin_witness(&call, "Bash", "serve", &roots);
    let unit = unit.unwrap();
    let mut guard = TestGuard::new(&unit, Kill::Never);
    guard.put(&log, b"new\n").unwrap();
    // Another process sees the command, and leaves it alone.
    let others = UndoHistory::open(desk.history().folder());
    assert_eq!(others.recover().unwrap(), []);
    let listed = others.list(10).unwrap();
    assert_eq!((listed.len(), listed[0].about.as_str()), (1, "serve"));
    assert_eq!(listed[0].state, UnitState::Open);
    assert_eq!(listed[0].undoable, Err("still running".to_owned()));
    let error = desk.undo(&listed[0].id).unwrap_err().to_string();
    assert!(error.contains("is still running"), "{error}");
    guard.end().unwrap();
    drop(guard);
    let done = desk.journal.finish_witness(unit, &ticket(), &|_| false);
    desk.undo(&done.unit.unwrap()).unwrap();
    assert_eq!(fs::read_to_string(log).unwrap(), "old\n");
}

#[test]
fn w23_a_refreshed_index_is_not_a_change() {
    let desk = Desk::new();
    desk.put(".git/HEAD", "ref: refs/heads/main");
    let index = desk.at(".git/index");
    let lock = desk.at(".git/index.lock");
    fs::write(&index, git_index(1, 1)).unwrap();
    let status = |time, hash| {
        fs::write(&lock, git_index(time, hash)).unwrap();
        fs::rename(&lock, &index).unwrap();
    };
    let commit = desk.run(|guard| {
        guard.put(&lock, &git_index(2, 2))?;
        guard.rename(&lock, &index)
    });
    status(3, 2);
    let undone = desk.undo(&commit.unit.unwrap()).unwrap().unit.unwrap();
    assert_eq!(fs::read(&index).unwrap(), git_index(1, 1));
    status(4, 1);
    let redone = desk.undo(&undone).unwrap().unit.unwrap();
    assert_eq!(fs::read(&index).unwrap(), git_index(3, 2));
    // Other entries are a change.
    status(5, 9);
    assert!(
        desk.undo(&redone)
            .unwrap_err()
            .to_string()
            .contains("Nothing was undone")
    );
}

#[test]
fn w24_an_interrupted_first_command_is_listed_and_undone_by_the_next_process() {
    let desk = Desk::new();
    desk.put("lib/file", "text");
    desk.put("a.txt", "a");
    let before = seen(&desk.root());
    let act = |guard: &mut TestGuard| {
        guard.remove_all(&desk.at("lib"))?;
        guard.put(&desk.at("a.txt"), b"b\n")
    };
    desk.run_killed(act);
    super::random::list_recovered(desk.history());
    // A unit of a running process is left alone.
    let running = Journal::new(None).with_undo(Desk::undo_folder(desk.base.path()));
    let live = running
        .begin_witness("live", "Bash", "", &[desk.root()])
        .unwrap();
    let history = UndoHistory::open(Desk::undo_folder(desk.base.path()));
    let listed = history.list(10).unwrap();
    let calls: Vec<_> = listed
        .iter()
        .map(|unit| (unit.call.as_str(), &unit.state))
        .collect();
    assert_eq!(
        calls,
        [("live", &UnitState::Open), ("killed", &UnitState::Made)]
    );
    assert!(live.folder().exists());
    let outcome = history.undo(&ticket(), &UndoSelection::Last, UndoMode::Apply);
    assert_eq!(outcome.unwrap().left, []);
    let now = seen(&desk.root());
    assert!(now == before, "{}", difference(&now, &before));
    // The same for the next session of the project.
    desk.run_killed(act);
    let recovered = settle_crashed(&desk.base.path().join("project"));
    assert_eq!(recovered.len(), 1);
    drop(live);
    super::random::list_recovered(&history);
    assert_eq!(history.list(10).unwrap().len(), 3);
}

#[test]
fn a_damaged_log_is_listed_and_blocks_no_other() {
    let desk = Desk::new();
    let path = desk.put("a", "old");
    let unit = desk
        .journal
        .begin_witness("damaged", "Bash", "rm a", &[desk.root()])
        .unwrap();
    let mut guard = TestGuard::new(&unit, Kill::Never);
    guard.put(&path, b"new").unwrap();
    use std::io::Write;
    unit.log().write_all(b"{\"number\":9,\n{}\n").unwrap();
    drop((guard, unit));
    desk.run_killed(|guard| guard.put(&desk.at("b"), b"text"));
    let listed = super::random::list_recovered(desk.history());
    assert_eq!(listed.len(), 2);
    let damaged = listed.iter().find(|unit| unit.call == "damaged").unwrap();
    assert!(damaged.left[0].1.contains("witness log"), "{damaged:?}");
    assert!(damaged.undoable.is_err());
    // Its stored file stays as long as it is listed.
    desk.history().recover().unwrap();
    assert!(
        desk.stored("keep")
            .iter()
            .any(|path| path.ends_with("log.damaged"))
    );
    assert_eq!(desk.history().list(10).unwrap().len(), 2);
}

#[test]
fn what_was_not_stored_is_reported_and_the_rest_is_undone() {
    let desk = Desk::new();
    let (large, small) = (desk.put("large", "large"), desk.put("small", "small"));
    let changes = desk.run(|guard| {
        guard.missing = Some("larger than 256 MiB".to_owned());
        guard.put(&large, b"new")?;
        guard.missing = None;
        guard.put(&small, b"new")
    });
    let (path, why) = &changes.not_restorable[0];
    assert!(
        *path == large && why.contains("larger than 256 MiB"),
        "{why}"
    );
    let outcome = desk.undo(&changes.unit.unwrap()).unwrap();
    assert_eq!(outcome.left.len(), 1);
    assert_eq!(fs::read_to_string(small).unwrap(), "small");
    assert_eq!(fs::read_to_string(large).unwrap(), "new");
}

#[test]
fn a_later_change_is_a_conflict_and_nothing_is_undone() {
    let desk = Desk::new();
    let (one, other) = (desk.put("one", "1"), desk.put("other", "2"));
    let changes = desk.run(|guard| {
        guard.put(&one, b"new")?;
        guard.unlink(&other)
    });
    fs::write(&one, "by the user").unwrap();
    let error = desk.undo(&changes.unit.unwrap()).unwrap_err().to_string();
    assert!(error.contains("Nothing was undone"), "{error}");
    assert!(!other.exists());
}

#[test]
fn several_units_are_undone_together() {
    let desk = Desk::new();
    let path = desk.put("a", "first");
    desk.put("src/file", "text");
    let before = seen(&desk.root());
    desk.run(|guard| guard.put(&path, b"second"));
    desk.run(|guard| guard.rename(&path, &desk.at("b")));
    desk.run(|guard| guard.rename(&desk.at("src"), &desk.at("lib")));
    desk.run(|guard| {
        guard.put(&desk.at("b"), b"third")?;
        guard.put(&desk.at("new"), b"new")
    });
    let since = UndoSelection::Since(std::time::UNIX_EPOCH);
    desk.history()
        .undo(&ticket(), &since, UndoMode::Apply)
        .unwrap();
    let now = seen(&desk.root());
    assert!(now == before, "{}", difference(&now, &before));
}

#[test]
fn another_call_of_the_session_keeps_its_change() {
    let desk = Desk::new();
    let (own, other) = (desk.put("own", "1"), desk.put("other", "1"));
    desk.journal.read(&other, &Default::default()).unwrap();
    let changes = desk.run(|guard| {
        guard.put(&own, b"2")?;
        guard.put(&other, b"by the command")?;
        desk.journal
            .write(&ticket(), &other, "by the tool")
            .unwrap_err();
        desk.journal.read(&other, &Default::default()).unwrap();
        desk.journal
            .write(&ticket(), &other, "by the tool")
            .unwrap();
        Ok(())
    });
    assert_eq!(changes.modified, vec![own.clone()]);
    desk.undo(&changes.unit.unwrap()).unwrap();
    assert_eq!(fs::read_to_string(other).unwrap(), "by the tool");
    assert_eq!(fs::read_to_string(own).unwrap(), "1");
}

#[test]
fn large_created_directories_are_one_record() {
    let desk = Desk::new();
    let changes = desk.check(|guard| {
        guard.mkdir(&desk.at("big"))?;
        for number in 0..600 {
            guard.put(&desk.at(&format!("big/f{number}")), b"text")?;
        }
        Ok(())
    });
    assert_eq!(changes.created, [desk.at("big")]);
}

#[test]
fn pinned_files_are_dropped_with_the_oldest_units_only() {
    let desk = Desk::new();
    let limits = UndoLimits {
        pinned: 2_500,
        min_age: Duration::ZERO,
        ..UndoLimits::default()
    };
    let mut desk = desk;
    desk.journal = Journal::new(None)
        .with_undo(Desk::undo_folder(desk.base.path()))
        .with_undo_limits(limits);
    let text = "x".repeat(1000);
    let files: Vec<PathBuf> = (0..4)
        .map(|number| desk.put(&format!("f{number}"), &text))
        .collect();
    let units: Vec<String> = files
        .iter()
        .map(|path| desk.run(|guard| guard.unlink(path)).unit.unwrap())
        .collect();
    assert_eq!(desk.stored("keep").len(), 2);
    let listed = desk.history().list(10).unwrap();
    let listed: Vec<&str> = listed.iter().map(|unit| unit.id.as_str()).collect();
    assert_eq!(listed, [units[3].as_str(), units[2].as_str()]);
    assert!(
        desk.undo(&units[0])
            .unwrap_err()
            .to_string()
            .contains("dropped")
    );
    desk.undo(&units[3]).unwrap();
    desk.undo(&units[2]).unwrap();
    assert!(files[2].exists() && files[3].exists() && !files[0].exists());
}

#[test]
#[ignore = "a measurement"]
fn what_a_removal_costs() {
    let desk = Desk::new();
    for number in 0..50_000 {
        desk.put(
            &format!("node_modules/d{}/f{number}", number % 2_000),
            "module",
        );
    }
    let ticket = ticket();
    let unit = desk
        .journal
        .begin_witness(&ticket.call, "Bash", "rm", &[desk.root()])
        .unwrap();
    let mut guard = TestGuard::new(&unit, Kill::Never);
    let begun = std::time::Instant::now();
    guard.remove_all(&desk.at("node_modules")).unwrap();
    drop(guard);
    println!("guard {:?}", begun.elapsed());
    let begun = std::time::Instant::now();
    let changes = desk.journal.finish_witness(unit, &ticket, &|_| false);
    println!("fold {:?}", begun.elapsed());
    let begun = std::time::Instant::now();
    let redo = desk.undo(&changes.unit.unwrap()).unwrap().unit.unwrap();
    println!("undo {:?}", begun.elapsed());
    let begun = std::time::Instant::now();
    desk.undo(&redo).unwrap();
    println!("redo {:?}", begun.elapsed());
}
