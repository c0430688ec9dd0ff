//! The journal through its facade, on real files.
//!
//! - `edit_vectors`, `edit_refusals`: numbers 1–64 of the table of file-tools.md §8
//! - `vectors`: the rest of that table, as far as it needs a file system
//! - `notebooks`: one cell changed, whatever the layout; `notebook_invariants`: what must hold then
//! - `pages`: what Read shows, and of which sizes
//! - `safety`: links, modes, attributes, pipes, parallel edits, no litter
//! - `moments`: waiting for a clock to move on
//! - `undo`: taking changes back, confinement, several files at once
//! - `buffers`: what an editor has and has not saved, and changes that it writes
//! - `commands`: the same for whatever a command did
//! - `witness`: commands whose changes the sandbox witnesses
//! - `sequences`: the same for any sequence of changes, undos and restarts
//! - `crash`: kill -9 at any moment; two processes on one file
//! - `tampered`: journals that another program has changed
//! - `faults`: killed, or an error, at every system call; `strace` makes them, `tree` compares
//! - `properties`: what must hold for any bytes; `invariants`: that, in one function
//! - `replay`: the history of this repository as edits, `damage`d and not

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]
#![expect(clippy::type_complexity, reason = "rows of tables are tuples")]

mod buffers;
mod commands;
mod crash;
mod damage;
mod edit_refusals;
mod edit_vectors;
mod faults;
mod invariants;
mod moments;
mod notebook_invariants;
mod notebooks;
mod pages;
mod properties;
mod replay;
mod safety;
mod sequences;
mod strace;
mod tampered;
mod tree;
mod undo;
mod vectors;
mod witness;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use haft_journal::edit::EditRequest;
use haft_journal::{
    EditReport, Journal, JournalError, PageRequest, TextPage, WriteGrant, WriteReport,
};
use tempfile::TempDir;

/// A journal with a directory of its own.
struct Desk {
    journal: Journal,
    dir: TempDir,
    /// The session's folder, with its undo journal.
    session: TempDir,
}

impl Desk {
    fn new() -> Self {
        haft_testkit::bound_this_process();
        let dir = tempfile::tempdir().unwrap();
        let session = tempfile::tempdir().unwrap();
        let journal =
            Journal::new(Some(dir.path().to_path_buf())).with_undo(session.path().join("undo"));
        Self {
            journal,
            dir,
            session,
        }
    }

    /// A desk with one file, `file`, that has been read.
    fn with_read(content: impl AsRef<[u8]>) -> Self {
        let desk = Self::new();
        desk.put("file", content);
        desk.read("file").unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn read(&self, name: &str) -> Result<TextPage, JournalError> {
        self.journal.read(&self.path(name), &PageRequest::default())
    }

    fn write(&self, name: &str, content: &str) -> Result<WriteReport, JournalError> {
        self.journal.write(&ticket(), &self.path(name), content)
    }

    fn edit(&self, name: &str, old: &str, new: &str) -> Result<EditReport, JournalError> {
        self.journal.edit(
            &ticket(),
            &self.path(name),
            &EditRequest {
                old,
                new,
                replace_all: false,
            },
        )
    }

    /// All names in the directory, sorted: shows any litter.
    fn names(&self) -> Vec<String> {
        names_in(self.dir.path())
    }
}

/// May write anywhere; each has a call of its own.
fn ticket() -> WriteGrant {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    WriteGrant::unconfined(format!("call-{call:06}"), "Test")
}

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The seeds of a fuzz target, by name.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let folder = seeds.join(target);
    let named = names_in(&folder).into_iter();
    named
        .map(|name| (name.clone(), fs::read(folder.join(name)).unwrap()))
        .collect()
}

#[track_caller]
fn assert_says<T: std::fmt::Debug>(result: Result<T, JournalError>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "{part:?} missing in: {error}");
    }
}
