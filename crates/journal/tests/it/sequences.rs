//! Any sequence of changes, undos and restarts: each undo gives back what was there before its
//! change, in all respects, and in the end everything does.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use haft_journal::edit::EditRequest;
use haft_journal::{ContentHash, FileChange, Journal, PageRequest, UndoMode, UndoSelection};
use proptest::prelude::*;
use rustix::fs::{XattrFlags, setxattr};

use crate::ticket;
use crate::tree::Tree;

/// Files by the way they are reached; the last three need not exist.
const NAMES: [&str; 8] = [
    "plain",
    "linked",
    "twin",
    "through-link",
    "through-directory/other",
    "dangling",
    "new/deep/one",
    "new/deep/two",
];

#[derive(Debug, Clone)]
enum Act {
    Write(usize, String),
    /// The first line becomes this.
    Edit(usize, String),
    /// In all files that are there.
    Replace(char, char),
    UndoLast,
    /// What was undone last comes back.
    Redo,
    Restart,
}

fn acts() -> impl Strategy<Value = Act> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => (name(), "[abc\n]{0,20}").prop_map(|(name, text)| Act::Write(name, text)),
        3 => (name(), "[abc]{0,5}").prop_map(|(name, text)| Act::Edit(name, text)),
        2 => ("[abc]", "[abcx]").prop_map(|(old, new)| {
            let sign = |text: String| text.chars().next().unwrap();
            Act::Replace(sign(old), sign(new))
        }),
        3 => Just(Act::UndoLast),
        2 => Just(Act::Redo),
        1 => Just(Act::Restart),
    ]
}

/// The mode of a file, a text, and perhaps an attribute.
type Dress = (u32, String, Option<[u8; 3]>);

fn dresses() -> impl Strategy<Value = Vec<Dress>> {
    let mode = prop::sample::select(vec![0o600, 0o640, 0o755, 0o4755, 0o2750]);
    let dress = (mode, "[abc\n]{0,30}", prop::option::of(any::<[u8; 3]>()));
    prop::collection::vec(dress, 4)
}

fn set_up(root: &Path, dresses: &[Dress]) {
    fs::create_dir(root.join("directory")).unwrap();
    let files = ["plain", "linked", "target", "directory/other"];
    for ((name, (mode, text, value)), owner) in files.iter().zip(dresses).zip(20_000..) {
        let path = root.join(name);
        fs::write(&path, text).unwrap();
        if let Some(value) = value {
            let _ = setxattr(&path, "user.k", value, XattrFlags::empty());
        }
        let _ = chown(&path, Some(owner), Some(owner + 1)); // only root may
        fs::set_permissions(&path, Permissions::from_mode(*mode)).unwrap();
    }
    fs::hard_link(root.join("linked"), root.join("twin")).unwrap();
    symlink("target", root.join("through-link")).unwrap();
    symlink("directory", root.join("through-directory")).unwrap();
    symlink("made/deep/file", root.join("dangling")).unwrap();
}

struct Session {
    root: PathBuf,
    undo: PathBuf,
    journal: Journal,
    /// What stands, oldest first: the files before it, and after.
    standing: Vec<(Tree, Tree)>,
    /// The last undo, while nothing was changed since: its unit, and what it took back.
    undone: Option<(String, (Tree, Tree))>,
}

impl Session {
    fn now(&self) -> Tree {
        Tree::of(&self.root)
    }

    fn act(&mut self, act: &Act) {
        let before = self.now();
        let unit = match act {
            Act::Write(name, text) => self.write(NAMES[*name], text),
            Act::Edit(name, text) => self.edit(NAMES[*name], text),
            Act::Replace(old, new) => self.replace(*old, *new),
            Act::UndoLast => return self.undo_last(),
            Act::Redo => return self.redo(),
            Act::Restart => {
                self.journal = Journal::new(None).with_undo(&self.undo);
                None
            }
        };
        match unit {
            Some(_) => {
                self.standing.push((before, self.now()));
                self.undone = None;
            }
            None => same(&self.now(), &before, "nothing was reported"),
        }
    }

    fn read(&self, path: &Path) -> Option<String> {
        // What is missing is to be created.
        self.journal.read(path, &PageRequest::default()).ok()?;
        fs::read_to_string(path).ok()
    }

    fn write(&self, name: &str, text: &str) -> Option<String> {
        let path = self.root.join(name);
        self.read(&path);
        self.journal.write(&ticket(), &path, text).unwrap().unit
    }

    fn edit(&self, name: &str, text: &str) -> Option<String> {
        let path = self.root.join(name);
        let now = self.read(&path)?;
        let line = now.lines().next()?;
        let change = EditRequest {
            old: line,
            new: text,
            replace_all: false,
        };
        // Refused if the line is not unique, or already so.
        self.journal.edit(&ticket(), &path, &change).ok()?.unit
    }

    fn replace(&self, old: char, new: char) -> Option<String> {
        // Of two names of one file only one is given.
        let all = NAMES.iter().filter(|name| **name != "twin");
        let all = all.filter_map(|name| {
            let path = self.root.join(name);
            let now = fs::read_to_string(&path).ok()?;
            Some(FileChange {
                path,
                authorized_path: None,
                expected: ContentHash::compute(now.as_bytes()),
                content: now.replace(old, &new.to_string()).into_bytes(),
            })
        });
        let applied = self.journal.apply_all(&ticket(), all.collect());
        applied.unwrap().unit
    }

    fn undo(&self, which: &UndoSelection) -> Option<String> {
        let undone = self.journal.undo(&ticket(), which, UndoMode::Apply);
        undone.unwrap().unit
    }

    fn undo_last(&mut self) {
        let Some((before, after)) = self.standing.pop() else {
            let nothing = self
                .journal
                .undo(&ticket(), &UndoSelection::Last, UndoMode::Apply);
            assert!(nothing.unwrap_err().to_string().contains("nothing to undo"));
            return;
        };
        let unit = self.undo(&UndoSelection::Last).unwrap();
        same(&self.now(), &before, "undone");
        self.undone = Some((unit, (before, after)));
    }

    fn redo(&mut self) {
        let Some((unit, (before, after))) = self.undone.take() else {
            return;
        };
        self.undo(&UndoSelection::Unit(unit)).unwrap();
        same(&self.now(), &after, "made again");
        self.standing.push((before, after));
    }
}

#[track_caller]
fn same(found: &Tree, expected: &Tree, what: &str) {
    let difference = found.difference(expected);
    assert!(difference.is_empty(), "{what}: {difference:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_undo_gives_back_what_was_there(dresses in dresses(), acts in prop::collection::vec(acts(), 1..16)) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        let (root, undo) = (folder.join("work"), folder.join("undo"));
        fs::create_dir(&root).unwrap();
        set_up(&root, &dresses);
        let first = Tree::of(&root);
        let journal = Journal::new(None).with_undo(&undo);
        let mut session = Session { root, undo, journal, standing: Vec::new(), undone: None };
        for act in &acts {
            session.act(act);
        }
        if !session.standing.is_empty() {
            let last = session.now();
            let all = session.undo(&UndoSelection::Since(UNIX_EPOCH));
            same(&session.now(), &first, "everything undone");
            if let Some(all) = all {
                session.undo(&UndoSelection::Unit(all));
                same(&session.now(), &last, "everything made again");
            }
        }
    }
}
