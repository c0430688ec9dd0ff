//! What is disturbed: one mutation of a small project, from a state that the parent sets up.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

use haft_journal::edit::EditRequest;
use haft_journal::{
    ContentHash, FileChange, Journal, JournalError, PageRequest, SnapshotScope, UndoLimits,
    UndoMode, UndoSelection, WriteGrant,
};
use rustix::fs::{XattrFlags, setxattr};

use super::{Fault, Play, Script, child};
use crate::strace::{self, Step};
use crate::witness::{Kill, Killed, TestGuard};

/// The call that is disturbed.
pub(super) const CALL: &str = "the-call";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scene {
    /// 1 MB, through a link, with an owner and attributes to keep; the first change of a session.
    Edit,
    /// Two names of one file, so it is written in place; it becomes shorter.
    EditLinked,
    /// The same, becoming longer.
    EditLinkedLonger,
    /// In directories that are missing.
    WriteNew,
    Overwrite,
    /// Three files at once; one of them is written in place.
    ReplaceInFiles,
    UndoEdit,
    /// A file goes, and the directories that were made for it.
    UndoCreation,
    /// What undoing everything took away comes back: a file in its directories, and another content.
    UndoOfUndo,
    /// What a command did to files, links, modes and directories is taken back.
    UndoCommand,
    /// And made again.
    UndoOfUndoneCommand,
    /// What a witnessed command moved, linked, changed in place and removed is undone.
    UndoWitnessed,
    /// And made again.
    RedoWitnessed,
    /// The journal is over its limits: the oldest changes are dropped.
    DropOldest,
    /// The next start after [`Scene::ReplaceInFiles`] was killed half-way.
    Recovery,
}

impl Scene {
    pub(super) const ALL: [Self; 15] = [
        Self::Edit,
        Self::EditLinked,
        Self::EditLinkedLonger,
        Self::WriteNew,
        Self::Overwrite,
        Self::ReplaceInFiles,
        Self::UndoEdit,
        Self::UndoCreation,
        Self::UndoOfUndo,
        Self::UndoCommand,
        Self::UndoOfUndoneCommand,
        Self::UndoWitnessed,
        Self::RedoWitnessed,
        Self::DropOldest,
        Self::Recovery,
    ];

    pub(super) fn named(name: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|scene| format!("{scene:?}") == name).unwrap()
    }

    /// May a file be found half written until the next start?
    pub(super) fn is_in_place(self) -> bool {
        matches!(
            self,
            Self::EditLinked
                | Self::EditLinkedLonger
                | Self::ReplaceInFiles
                | Self::UndoWitnessed
                | Self::RedoWitnessed
                | Self::Recovery
        )
    }

    pub(super) fn set_up(self, folder: &Path) {
        let work = work(folder);
        fs::create_dir_all(&work).unwrap();
        let at = |name: &str| work.join(name);
        match self {
            Self::Edit => {
                fs::write(at("file"), large()).unwrap();
                symlink("file", at("link")).unwrap();
                dress(&at("file"));
            }
            Self::EditLinked | Self::EditLinkedLonger => {
                fs::write(at("file"), lines(100)).unwrap();
                fs::hard_link(at("file"), at("twin")).unwrap();
                dress(&at("file"));
            }
            Self::WriteNew => {}
            Self::Overwrite => {
                fs::write(at("file"), lines(100)).unwrap();
                dress(&at("file"));
            }
            Self::ReplaceInFiles => {
                for name in ["a", "b", "c"] {
                    fs::write(at(name), format!("{name}\n{}", lines(50))).unwrap();
                }
                fs::hard_link(at("b"), at("twin")).unwrap();
                dress(&at("a"));
            }
            Self::UndoEdit => {
                fs::write(at("file"), lines(100)).unwrap();
                dress(&at("file"));
                edit(&journal(folder), "first", &at("file"), "line 7 ", "LINE 7 ").unwrap();
            }
            Self::UndoCreation => {
                let made = at("made/deep/file");
                journal(folder)
                    .write(&ticket(folder, "first"), &made, "new\n")
                    .unwrap();
                dress(&made);
            }
            Self::UndoOfUndo => {
                fs::write(at("file"), lines(100)).unwrap();
                let journal = journal(folder);
                let made = at("a/deep/file");
                journal
                    .write(&ticket(folder, "first"), &made, "new\n")
                    .unwrap();
                dress(&made);
                edit(&journal, "second", &at("file"), "line 7 ", "LINE 7 ").unwrap();
                let all = UndoSelection::Since(UNIX_EPOCH);
                journal
                    .undo(&ticket(folder, "third"), &all, UndoMode::Apply)
                    .unwrap();
            }
            Self::UndoCommand => command(folder),
            Self::UndoWitnessed => witnessed(folder),
            Self::RedoWitnessed => {
                witnessed(folder);
                let (ticket, last) = (ticket(folder, "second"), UndoSelection::Last);
                let journal = journal(folder);
                journal.undo(&ticket, &last, UndoMode::Apply).unwrap();
            }
            Self::UndoOfUndoneCommand => {
                command(folder);
                journal(folder)
                    .undo(
                        &ticket(folder, "second"),
                        &UndoSelection::Last,
                        UndoMode::Apply,
                    )
                    .unwrap();
            }
            Self::DropOldest => {
                fs::write(at("file"), lines(100)).unwrap();
                let journal = journal(folder);
                for number in 0..4 {
                    let (old, new) = (format!("line {number} "), format!("LINE {number} "));
                    edit(&journal, &format!("c{number}"), &at("file"), &old, &new).unwrap();
                }
            }
            Self::Recovery => {
                Self::ReplaceInFiles.set_up(folder);
                let fault = Fault::kill(last_rename());
                let killed = child(Self::ReplaceInFiles, folder, &fault.injections);
                assert!(killed.killed && killed.began, "{killed:?}");
            }
        }
    }

    /// In the child: gets ready, begins, and does it.
    pub(super) fn act(self, folder: &Path) -> Result<(), JournalError> {
        let at = |name: &str| work(folder).join(name);
        if self == Self::Recovery {
            strace::say("begin");
            let _ = journal(folder);
            return Ok(());
        }
        let journal = journal(folder);
        let ticket = ticket(folder, CALL);
        let read = |name: &str| {
            let request = PageRequest {
                limit: Some(10_000),
                ..PageRequest::default()
            };
            journal.read(&at(name), &request).unwrap();
        };
        let change = |name: &str, old: &str, new: &str| {
            read(name);
            strace::say("begin");
            let change = EditRequest {
                old,
                new,
                replace_all: false,
            };
            journal.edit(&ticket, &at(name), &change).map(drop)
        };
        match self {
            Self::Edit => change("link", "line 9000 ", "another line here "),
            Self::EditLinked => change("file", &lines(100), &lines(30).replace("line", "L")),
            Self::EditLinkedLonger => change("file", &lines(100), &lines(150).replace("line", "L")),
            Self::WriteNew => {
                strace::say("begin");
                let path = at("new/deep/file");
                journal.write(&ticket, &path, "content\n").map(drop)
            }
            Self::Overwrite => {
                read("file");
                strace::say("begin");
                journal
                    .write(&ticket, &at("file"), "all of it is new\n")
                    .map(drop)
            }
            Self::ReplaceInFiles => {
                let all = ["a", "b", "c"].map(|name| {
                    let old = fs::read_to_string(at(name)).unwrap();
                    FileChange {
                        path: at(name),
                        authorized_path: None,
                        expected: ContentHash::compute(old.as_bytes()),
                        content: old.replace("line", "replaced").into_bytes(),
                    }
                });
                strace::say("begin");
                journal.apply_all(&ticket, all.to_vec()).map(drop)
            }
            Self::UndoEdit
            | Self::UndoCreation
            | Self::UndoOfUndo
            | Self::UndoCommand
            | Self::UndoOfUndoneCommand
            | Self::UndoWitnessed
            | Self::RedoWitnessed => {
                let which = match self {
                    Self::UndoOfUndo => UndoSelection::Unit("third".to_owned()),
                    Self::UndoOfUndoneCommand | Self::RedoWitnessed => {
                        UndoSelection::Unit("second".to_owned())
                    }
                    _ => UndoSelection::Last,
                };
                strace::say("begin");
                journal.undo(&ticket, &which, UndoMode::Apply).map(drop)
            }
            Self::DropOldest => {
                let limits = UndoLimits {
                    units: 3,
                    ..UndoLimits::default()
                };
                let journal = self::journal(folder).with_undo_limits(limits);
                let path = at("file");
                journal.read(&path, &PageRequest::default()).unwrap();
                strace::say("begin");
                let change = EditRequest {
                    old: "line 50 ",
                    new: "LINE 50 ",
                    replace_all: false,
                };
                journal.edit(&ticket, &path, &change).map(drop)
            }
            Self::Recovery => Ok(()),
        }
    }
}

/// A command, as far as the journal can tell.
fn command(folder: &Path) {
    let at = |name: &str| work(folder).join(name);
    fs::write(at("changed"), lines(100)).unwrap();
    dress(&at("changed"));
    fs::create_dir_all(at("gone/deep")).unwrap();
    fs::write(at("gone/deep/file"), "in a directory that goes\n").unwrap();
    fs::set_permissions(at("gone/deep"), Permissions::from_mode(0o750)).unwrap();
    fs::write(at("kind"), "a file that becomes a directory\n").unwrap();
    symlink("changed", at("link")).unwrap();
    let journal = journal(folder);
    let sweep = SnapshotScope {
        roots: vec![work(folder)],
        ..SnapshotScope::default()
    };
    let before = journal.before_command(&sweep);
    fs::write(at("changed"), lines(30).replace("line", "L")).unwrap();
    fs::remove_dir_all(at("gone")).unwrap();
    fs::remove_file(at("kind")).unwrap();
    fs::create_dir(at("kind")).unwrap();
    fs::write(at("kind/new"), "new\n").unwrap();
    fs::remove_file(at("link")).unwrap();
    symlink("kind", at("link")).unwrap();
    let changed = journal.after_command(before, &ticket(folder, "first"), "", &|_| false);
    assert!(changed.unit.is_some() && changed.not_restorable.is_empty());
}

/// A command, and what its guard has logged.
fn witnessed(folder: &Path) {
    let at = |name: &str| work(folder).join(name);
    fs::create_dir_all(at("src/deep")).unwrap();
    fs::write(at("src/changed"), lines(60)).unwrap();
    dress(&at("src/changed"));
    fs::hard_link(at("src/changed"), at("twin")).unwrap();
    fs::write(at("src/deep/gone"), "removed\n").unwrap();
    fs::write(at("replaced"), "replaced\n").unwrap();
    fs::write(at("moved"), "moved\n").unwrap();
    symlink("moved", at("link")).unwrap();
    let journal = journal(folder);
    let roots = [work(folder)];
    let unit = journal.begin_witness("first", "Bash", "", &roots).unwrap();
    let mut guard = TestGuard::new(&unit, Kill::Never);
    let mut act = || -> Result<(), Killed> {
        guard.rename(&at("src"), &at("lib"))?;
        guard.put(&at("lib/changed"), lines(40).as_bytes())?;
        guard.unlink(&at("lib/deep/gone"))?;
        guard.rename(&at("moved"), &at("replaced"))?;
        guard.unlink(&at("link"))?;
        guard.mkdir(&at("link"))?;
        guard.put(&at("link/new"), b"new\n")?;
        guard.exchange(&at("lib/deep"), &at("link"))?;
        guard.end()
    };
    act().unwrap();
    drop(guard);
    let changed = journal.finish_witness(unit, &ticket(folder, "first"), &|_| false);
    assert!(changed.unit.is_some() && changed.not_restorable.is_empty());
}

/// Where the last of several files is put in place, and the others are already.
fn last_rename() -> &'static Step {
    static FOUND: OnceLock<Step> = OnceLock::new();
    FOUND.get_or_init(|| {
        let steps = Script::of(Play::plain(Scene::ReplaceInFiles)).steps;
        let mut renames = steps
            .into_iter()
            .filter(|step| step.call.starts_with("rename"));
        renames.next_back().unwrap()
    })
}

pub(super) fn work(folder: &Path) -> PathBuf {
    folder.join("work")
}

/// What every start does.
pub(super) fn journal(folder: &Path) -> Journal {
    Journal::new(None).with_undo(folder.join("undo"))
}

pub(super) fn ticket(folder: &Path, call: &str) -> WriteGrant {
    WriteGrant::new(call, "Fault", [work(folder)])
}

fn edit(
    journal: &Journal,
    call: &str,
    path: &Path,
    old: &str,
    new: &str,
) -> Result<(), JournalError> {
    journal.read(path, &PageRequest::default())?;
    let change = EditRequest {
        old,
        new,
        replace_all: false,
    };
    let ticket = WriteGrant::unconfined(call, "Edit");
    journal.edit(&ticket, path, &change).map(drop)
}

/// Attributes to be kept, as far as they may be set here.
fn dress(path: &Path) {
    let _ = chown(path, Some(12_345), Some(54_321)); // only root may
    let _ = setxattr(path, "user.k", b"value", XattrFlags::empty());
    fs::set_permissions(path, Permissions::from_mode(0o640)).unwrap();
}

pub(super) fn lines(count: usize) -> String {
    (0..count)
        .map(|line| format!("line {line} ================\n"))
        .collect()
}

fn large() -> String {
    let filling = "=".repeat(48);
    let text: String = (0..17_000)
        .map(|line| format!("line {line} {filling}\n"))
        .collect();
    assert!(text.len() > 1_000_000);
    text
}
