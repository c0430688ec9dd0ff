//! Taking changes back; where a call may write; several files at once.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use haft_journal::{
    AppliedChanges, ChangeKind, ContentHash, FileChange, Journal, JournalError, UndoHistory,
    UndoLimits, UndoMode, UndoOutcome, UndoSelection, UnitState, WriteGrant,
};
use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, XattrFlags, getxattr, renameat_with, setxattr};

use crate::{Desk, assert_says, moments::next_millisecond, ticket};

impl Desk {
    fn undo(&self, which: UndoSelection) -> Result<UndoOutcome, JournalError> {
        self.journal.undo(&ticket(), &which, UndoMode::Apply)
    }

    fn undo_unit(&self, unit: &Option<String>) -> Result<UndoOutcome, JournalError> {
        self.undo(UndoSelection::Unit(unit.clone().unwrap()))
    }

    fn replace_all(&self, names: &[&str], content: &str) -> Vec<FileChange> {
        let change = |name: &&str| FileChange {
            path: self.path(name),
            authorized_path: None,
            expected: ContentHash::compute(&self.get(name)),
            content: content.into(),
        };
        names.iter().map(change).collect()
    }

    fn apply(&self, changes: Vec<FileChange>) -> Result<AppliedChanges, JournalError> {
        self.journal.apply_all(&ticket(), changes)
    }
}

#[test]
fn an_undo_gives_back_the_bytes_and_can_be_undone() {
    let desk = Desk::with_read("a\r\nb\n");
    let edited = desk.edit("file", "b", "c").unwrap();
    let undone = desk.undo(UndoSelection::Last).unwrap();
    assert_eq!(desk.get("file"), b"a\r\nb\n");
    assert_eq!(
        undone.undid,
        [(edited.unit.clone().unwrap(), "Test".to_owned())]
    );
    assert_says(
        desk.undo_unit(&edited.unit),
        &["undone already", undone.unit.as_deref().unwrap()],
    );
    let redone = desk.undo_unit(&undone.unit).unwrap();
    assert_eq!(desk.get("file"), b"a\r\nc\n");
    desk.undo_unit(&redone.unit).unwrap();
    assert_eq!(desk.get("file"), b"a\r\nb\n");
    // The session knows what it restored.
    desk.edit("file", "a", "A").unwrap();
    assert_eq!(desk.names(), ["file"]);
}

#[test]
fn without_an_id_one_step_after_the_other_is_taken_back() {
    let desk = Desk::with_read("1\n");
    desk.edit("file", "1", "2").unwrap();
    desk.edit("file", "2", "3").unwrap();
    desk.undo(UndoSelection::Last).unwrap();
    assert_eq!(desk.get("file"), b"2\n");
    desk.undo(UndoSelection::Last).unwrap();
    assert_eq!(desk.get("file"), b"1\n");
    assert_says(desk.undo(UndoSelection::Last), &["nothing to undo"]);
}

#[test]
fn a_created_file_goes_with_the_directories_made_for_it_and_comes_back_as_it_was() {
    let desk = Desk::new();
    let written = desk.write("made/deep/file", "x\n").unwrap();
    fs::set_permissions(desk.path("made/deep/file"), Permissions::from_mode(0o640)).unwrap();
    let undone = desk.undo_unit(&written.unit).unwrap();
    assert_eq!(undone.files[0].change, ChangeKind::Removed);
    assert!(desk.names().is_empty());
    desk.undo_unit(&undone.unit).unwrap();
    assert_eq!(desk.get("made/deep/file"), b"x\n");
    let mode = fs::metadata(desk.path("made/deep/file")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o640);
}

#[test]
fn a_directory_that_someone_else_uses_stays() {
    let desk = Desk::new();
    desk.write("made/file", "x\n").unwrap();
    desk.put("made/other", "theirs");
    desk.undo(UndoSelection::Last).unwrap();
    assert_eq!(crate::names_in(&desk.path("made")), ["other"]);
}

#[test]
fn links_hard_links_and_modes_survive_an_undo() {
    let desk = Desk::with_read("a\n"); // 73–75
    fs::hard_link(desk.path("file"), desk.path("twin")).unwrap();
    symlink("file", desk.path("link")).unwrap();
    fs::set_permissions(desk.path("file"), Permissions::from_mode(0o750)).unwrap();
    let supported = setxattr(desk.path("file"), "user.k", b"v", XattrFlags::empty()).is_ok();
    let inode = fs::metadata(desk.path("file")).unwrap().ino();
    desk.edit("link", "a", "b").unwrap();
    desk.undo(UndoSelection::Last).unwrap();
    assert_eq!(
        (desk.get("file"), desk.get("twin")),
        (b"a\n".to_vec(), b"a\n".to_vec())
    );
    assert!(
        fs::symlink_metadata(desk.path("link"))
            .unwrap()
            .is_symlink()
    );
    let found = fs::metadata(desk.path("twin")).unwrap();
    assert_eq!((found.ino(), found.mode() & 0o7777), (inode, 0o750));
    if supported {
        let mut value = [0; 8];
        assert_eq!(
            getxattr(desk.path("file"), "user.k", &mut value).unwrap(),
            1
        );
    }
}

#[test]
fn a_file_changed_since_is_not_touched_and_all_three_states_are_shown() {
    let lines: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    let desk = Desk::with_read(&lines); // 98
    let edited = desk.edit("file", "line 2\n", "two\n").unwrap();
    let theirs = lines
        .replace("line 2\n", "two\n")
        .replace("line 19\n", "nineteen\n");
    desk.put("file", &theirs);
    let parts = [
        "Nothing was undone",
        "-line 2\n+two",
        "-line 19\n+nineteen",
        "do not overlap",
        "-two\n+line 2",
    ];
    assert_says(desk.undo_unit(&edited.unit), &parts);
    let preview = desk
        .journal
        .undo(&ticket(), &UndoSelection::Last, UndoMode::Preview)
        .unwrap();
    assert!(preview.conflict.unwrap().contains("+nineteen"));
    assert_eq!(desk.get("file"), theirs.as_bytes());
    // A change at the same place, and a file that is gone, offer no merge.
    desk.put("file", lines.replace("line 2\n", "zwei\n"));
    let error = desk.undo_unit(&edited.unit).unwrap_err().to_string();
    assert!(
        error.contains("+zwei") && !error.contains("do not overlap"),
        "{error}"
    );
    fs::remove_file(desk.path("file")).unwrap();
    assert_says(desk.undo_unit(&edited.unit), &["no longer exists"]);
    let listed = desk.journal.history().unwrap().list(9).unwrap();
    assert!(
        listed[0]
            .undoable
            .as_ref()
            .unwrap_err()
            .contains("outside this session")
    );
    // Back to what the call made: now it goes.
    desk.put("file", lines.replace("line 2\n", "two\n"));
    desk.undo_unit(&edited.unit).unwrap();
    assert_eq!(desk.get("file"), lines.as_bytes());
}

#[test]
fn several_files_are_written_and_undone_together() {
    let desk = Desk::new(); // 97
    let names = ["a", "b", "c"];
    for name in names {
        desk.put(name, format!("old {name}\n"));
    }
    let applied = desk.apply(desk.replace_all(&names, "new\n")).unwrap();
    assert_eq!(applied.files.len(), 3);
    assert_eq!(desk.get("c"), b"new\n");
    // One of them changed since: none is undone.
    desk.put("b", "theirs\n");
    assert_says(
        desk.undo(UndoSelection::Last),
        &["b was changed after", "Nothing was undone"],
    );
    assert_eq!(
        (desk.get("a"), desk.get("b")),
        (b"new\n".to_vec(), b"theirs\n".to_vec())
    );
    desk.put("b", "new\n");
    desk.undo(UndoSelection::Last).unwrap();
    for name in names {
        assert_eq!(desk.get(name), format!("old {name}\n").as_bytes());
    }
    assert_eq!(desk.names(), names);
}

#[test]
fn any_drift_stops_the_whole_change() {
    let desk = Desk::new(); // 96
    for name in ["a", "b", "c"] {
        desk.put(name, "old\n");
    }
    let changes = desk.replace_all(&["a", "b", "c"], "new\n");
    desk.put("b", "theirs\n");
    fs::remove_file(desk.path("c")).unwrap();
    assert_says(desk.apply(changes), &["/b", "/c", "no file was written"]);
    assert_eq!(
        (desk.get("a"), desk.get("b")),
        (b"old\n".to_vec(), b"theirs\n".to_vec())
    );
    // Nor do two names of one file overwrite each other.
    fs::hard_link(desk.path("a"), desk.path("twin")).unwrap();
    assert_says(
        desk.apply(desk.replace_all(&["a", "twin"], "new\n")),
        &["twin"],
    );
    assert_eq!(desk.get("a"), b"old\n");
    assert!(!desk.session.path().join("undo").exists());
}

#[test]
fn an_error_in_the_middle_puts_everything_back() {
    let desk = Desk::new();
    for name in ["a", "b"] {
        desk.put(name, "old\n");
    }
    fs::create_dir(desk.path("small")).unwrap();
    let mounted = haft_testkit::command("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(desk.path("small"))
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        return; // only root may mount the tiny file system this needs
    }
    desk.put("small/file", "old\n");
    let mut changes = desk.replace_all(&["a", "b", "small/file"], "new\n");
    changes[2].content = vec![b'x'; 1 << 20];
    let result = desk.apply(changes);
    let kept = desk.get("small/file");
    let _ = haft_testkit::command("umount")
        .arg(desk.path("small"))
        .output();
    assert_says(result, &["disk full"]);
    assert_eq!(
        (desk.get("a"), desk.get("b"), kept),
        (b"old\n".to_vec(), b"old\n".to_vec(), b"old\n".to_vec())
    );
    let listed = desk.journal.history().unwrap().list(9).unwrap();
    assert_eq!(listed[0].state, UnitState::NotMade);
    assert_says(
        desk.undo_unit(&Some(listed[0].id.clone())),
        &["changed nothing", "disk full"],
    );
}

#[test]
fn everything_since_a_time_is_taken_back_as_one() {
    let desk = Desk::with_read("1\n");
    desk.edit("file", "1", "2").unwrap();
    next_millisecond();
    let then = SystemTime::now();
    next_millisecond();
    desk.edit("file", "2", "3").unwrap();
    desk.write("new", "x\n").unwrap();
    desk.undo(UndoSelection::Last).unwrap();
    desk.edit("file", "3", "4").unwrap();
    let undone = desk.undo(UndoSelection::Since(then)).unwrap();
    assert_eq!(desk.get("file"), b"2\n");
    assert_eq!(desk.names(), ["file"]);
    // Times are kept in milliseconds: what was just done would be since now.
    next_millisecond();
    assert_says(
        desk.undo(UndoSelection::Since(SystemTime::now())),
        &["nothing was changed since then"],
    );
    desk.undo_unit(&undone.unit).unwrap();
    assert_eq!(desk.get("file"), b"4\n");
    // Someone else's change in between cannot be jumped over.
    desk.put("file", "theirs\n");
    desk.read("file").unwrap();
    desk.edit("file", "theirs", "ours").unwrap();
    assert_says(
        desk.undo(UndoSelection::Since(then)),
        &["outside this session", "Nothing was undone"],
    );
}

#[test]
fn the_list_is_newest_first_and_says_what_can_be_undone() {
    let desk = Desk::with_read("a\nb\n");
    let first = desk.edit("file", "a", "1\n2").unwrap();
    let second = desk.edit("file", "b", "c").unwrap();
    desk.write("new", "x\ny\n").unwrap();
    desk.undo(UndoSelection::Last).unwrap();
    let listed = desk.journal.history().unwrap().list(9).unwrap();
    assert_eq!(listed.len(), 4);
    let undo = &listed[0];
    assert_eq!(undo.undoes, [listed[1].id.clone()]);
    assert_eq!(
        listed[1].state,
        UnitState::Undone {
            by: undo.id.clone()
        }
    );
    assert_eq!(
        (listed[1].files[0].added, listed[1].files[0].change),
        (2, ChangeKind::Created)
    );
    assert_eq!(
        (Some(&listed[2].id), &listed[2].undoable),
        (second.unit.as_ref(), &Ok(()))
    );
    assert_eq!(Some(&listed[3].id), first.unit.as_ref());
    let file = &listed[3].files[0];
    assert_eq!(
        (file.added, file.removed, file.change),
        (2, 1, ChangeKind::Changed)
    );
    let why = listed[3].undoable.as_ref().unwrap_err();
    assert!(
        why.contains(&listed[2].id) && why.contains("undo that first"),
        "{why}"
    );
    assert_says(
        desk.undo(UndoSelection::Unit("no-such-id".into())),
        &["no change has the id", &listed[2].id],
    );
}

#[test]
fn nothing_is_created_before_the_first_change_and_nobody_else_can_read_it() {
    let desk = Desk::with_read("a\n");
    assert!(desk.edit("file", "missing", "b").is_err());
    let folder = desk.session.path().join("undo");
    assert!(!folder.exists());
    assert_says(desk.undo(UndoSelection::Last), &["nothing to undo"]);
    desk.edit("file", "a", "b").unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(
        (mode(folder.clone()), mode(folder.join("log.jsonl"))),
        (0o700, 0o600)
    );
    for entry in fs::read_dir(folder.join("blobs")).unwrap() {
        assert_eq!(mode(entry.unwrap().path()), 0o600);
    }
}

#[test]
fn a_torn_last_line_and_another_process_do_no_harm() {
    let desk = Desk::with_read("a\n");
    let edited = desk.edit("file", "a", "b").unwrap();
    let log = desk.session.path().join("undo/log.jsonl");
    let mut text = fs::read(&log).unwrap();
    text.extend(b"{\"kind\":\"intent\",\"uni");
    fs::write(&log, text).unwrap();
    desk.edit("file", "b", "c").unwrap();
    // What `haft undo` does: another journal on the same folder, no session.
    let history = UndoHistory::open(desk.session.path().join("undo"));
    assert_eq!(history.list(9).unwrap().len(), 2);
    history
        .undo(&ticket(), &UndoSelection::Last, UndoMode::Apply)
        .unwrap();
    desk.undo_unit(&edited.unit).unwrap();
    assert_eq!(desk.get("file"), b"a\n");
}

#[test]
fn what_is_dropped_for_room_says_so() {
    let desk = Desk::new();
    let limits = UndoLimits {
        units: 10,
        ..UndoLimits::default()
    };
    let folder = desk.session.path().join("undo");
    let journal = Journal::new(None)
        .with_undo(&folder)
        .with_undo_limits(limits);
    let mut units = Vec::new();
    for number in 0..12 {
        let name = format!("{number}");
        let written = journal.write(&ticket(), &desk.path(&name), &name).unwrap();
        units.push(written.unit.unwrap());
    }
    let history = journal.history().unwrap();
    assert_eq!(history.list(99).unwrap().len(), 10);
    let undo = |unit: &String| {
        journal.undo(
            &ticket(),
            &UndoSelection::Unit(unit.clone()),
            UndoMode::Apply,
        )
    };
    assert_says(undo(&units[0]), &["can no longer be undone", "dropped"]);
    assert!(desk.path("0").exists());
    undo(&units[11]).unwrap();
    undo(&units[5]).unwrap();
    assert!(!desk.path("5").exists());
}

#[test]
fn contents_that_no_unit_needs_are_removed() {
    let desk = Desk::new();
    let limits = UndoLimits {
        bytes: 40_000,
        min_age: Duration::ZERO,
        ..UndoLimits::default()
    };
    let folder = desk.session.path().join("undo");
    let journal = Journal::new(None)
        .with_undo(&folder)
        .with_undo_limits(limits);
    for number in 0..20 {
        let content = format!("{number}").repeat(2_000);
        journal
            .write(&ticket(), &desk.path("file"), &content)
            .unwrap();
    }
    let kept: u64 = fs::read_dir(folder.join("blobs"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!((10_000..45_000).contains(&kept), "{kept}");
    journal
        .undo(&ticket(), &UndoSelection::Last, UndoMode::Apply)
        .unwrap();
    assert_eq!(desk.get("file"), "18".repeat(2_000).as_bytes());
}

#[test]
fn a_write_stays_inside_whatever_links_say() {
    let desk = Desk::new();
    let outside = tempfile::tempdir().unwrap();
    for name in ["in", "in/sub"] {
        fs::create_dir(desk.path(name)).unwrap();
    }
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret\n").unwrap();
    symlink(&secret, desk.path("in/to-file")).unwrap();
    symlink(outside.path(), desk.path("in/to-dir")).unwrap();
    symlink("../../beside", desk.path("in/sub/dangling")).unwrap();
    let inside = |call: &str| WriteGrant::new(call, "Write", [desk.path("in")]);
    let cases = [
        "in/to-file",
        "in/to-dir/secret",
        "in/to-dir/new",
        "in/sub/dangling",
        "beside",
        "in/../beside",
        "inner",
    ];
    for name in cases {
        desk.journal
            .read(&desk.path(name), &Default::default())
            .ok();
        let result = desk.journal.write(&inside("c"), &desk.path(name), "x\n");
        assert_says(result, &["outside the directories", "Nothing was changed"]);
        let changes = vec![FileChange {
            path: desk.path(name),
            authorized_path: None,
            expected: ContentHash::compute(b"secret\n"),
            content: b"x\n".to_vec(),
        }];
        assert_says(desk.journal.apply_all(&inside("c"), changes), &["outside"]);
    }
    assert_eq!(fs::read(&secret).unwrap(), b"secret\n");
    assert_eq!(crate::names_in(outside.path()), ["secret"]);
    assert_eq!(desk.names(), ["in"]);
    // What was granted by itself is permitted, and nothing beside it.
    let granted = inside("d").with_paths([secret.clone()]);
    desk.journal
        .write(&granted, &desk.path("in/to-file"), "y\n")
        .unwrap();
    assert_says(
        desk.journal
            .write(&granted, &desk.path("in/to-dir/new"), "y\n"),
        &["outside"],
    );
    // An undo is held to its own ticket.
    let undo = |ticket: &WriteGrant| {
        desk.journal
            .undo(ticket, &UndoSelection::Last, UndoMode::Apply)
    };
    assert_says(undo(&inside("e")), &["outside the directories"]);
    undo(&granted).unwrap();
    assert_eq!(fs::read(&secret).unwrap(), b"secret\n");
    // A link to the working directory is the working directory.
    symlink("in", desk.path("alias")).unwrap();
    let aliased = WriteGrant::new("f", "Write", [desk.path("alias")]);
    desk.journal
        .write(&aliased, &desk.path("in/new"), "y\n")
        .unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_swapped_for_a_link_meanwhile_misdirects_nothing() {
    let desk = Desk::new();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(desk.path("dir")).unwrap();
    symlink(outside.path(), desk.path("link")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let (link, dir) = (desk.path("link"), desk.path("dir"));
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &link, CWD, &dir, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let inside = WriteGrant::new("c", "Write", [desk.path("")]);
        let journal = Journal::new(None);
        let mut written = 0;
        for number in 0..500 {
            let new = desk.path(&format!("dir/{}/{number}", number % 7));
            let results = [
                journal.write(&inside, &new, "x\n"),
                journal.write(&inside, &desk.path("dir/same"), &format!("{number}\n")),
            ];
            written += results.iter().filter(|result| result.is_ok()).count();
        }
        assert!(written > 0);
        stop.store(true, Ordering::Relaxed);
        swapper.join().unwrap();
    });
    assert!(crate::names_in(outside.path()).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// undo(apply(x)) = x, and redo gives back what was applied.
    #[test]
    fn an_undo_is_exact(
        files in prop::collection::vec((prop::option::of((prop::collection::vec(any::<u8>(), 0..300), 0o600_u32..0o777, prop::option::of(any::<[u8; 4]>()))), "[ -~\n]{0,200}", any::<bool>()), 1..5)
    ) {
        let desk = Desk::new();
        let look = |name: &str| {
            let found = fs::metadata(desk.path(name)).ok()?;
            let mut value = [0; 8];
            let value = getxattr(desk.path(name), "user.k", &mut value).map(|length| value[..length].to_vec()).ok();
            Some((desk.get(name), found.mode(), found.uid(), value, found.nlink()))
        };
        let names: Vec<String> = (0..files.len()).map(|number| format!("d{number}/file")).collect();
        let (mut existing, mut units) = (Vec::new(), Vec::new());
        for (name, (before, new, linked)) in names.iter().zip(&files) {
            let Some((bytes, mode, value)) = before else { continue };
            fs::create_dir(desk.path(name).parent().unwrap()).unwrap();
            desk.put(name, bytes);
            fs::set_permissions(desk.path(name), Permissions::from_mode(*mode | 0o600)).unwrap();
            if let Some(value) = value {
                let _ = setxattr(desk.path(name), "user.k", value, XattrFlags::empty());
            }
            if *linked {
                fs::hard_link(desk.path(name), desk.path(&format!("{name}-twin"))).unwrap();
            }
            if bytes != new.as_bytes() {
                let expected = ContentHash::compute(bytes);
                existing.push(FileChange { path: desk.path(name), authorized_path: None, expected, content: new.clone().into_bytes() });
            }
        }
        let before: Vec<_> = names.iter().map(|name| look(name)).collect();
        for (name, (old, new, _)) in names.iter().zip(&files) {
            if old.is_none() {
                units.push(desk.write(name, new).unwrap().unit);
            }
        }
        if !existing.is_empty() {
            units.push(desk.apply(existing).unwrap().unit);
        }
        let after: Vec<_> = names.iter().map(|name| look(name)).collect();
        let mut undos = Vec::new();
        for unit in units.iter().rev() {
            undos.push(desk.undo_unit(unit).unwrap().unit);
        }
        let undone: Vec<_> = names.iter().map(|name| look(name)).collect();
        prop_assert_eq!(&undone, &before);
        for (name, (old, _, _)) in names.iter().zip(&files) {
            prop_assert_eq!(desk.path(name).parent().unwrap().exists(), old.is_some());
        }
        for undo in undos.iter().rev() {
            desk.undo_unit(undo).unwrap();
        }
        let redone: Vec<_> = names.iter().map(|name| look(name)).collect();
        prop_assert_eq!(&redone, &after);
    }
}
