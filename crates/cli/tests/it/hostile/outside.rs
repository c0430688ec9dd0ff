//! Someone outside who works on the same files meanwhile, at any instant: an editor that saves, git, a
//! person who moves a folder.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    Dice,
    arena::{Arena, OBSTACLES, SECRET},
};

/// Files that are replaced by others of the same name: control files, hidden ones, an ordinary one.
const REPLACED: [&str; 5] = [
    "place/project/.git/config",
    "place/project/.vscode/settings.json",
    "place/project/plain.txt",
    "place/project/hidden/secret.txt",
    "home/.ssh/id_rsa",
];

/// Directories that are moved away and put back: theirs, and those above them.
const MOVED: [&str; 7] = [
    "place/project/.git/hooks",
    "place/project/.git",
    "place/project/.vscode",
    "place/project/hidden",
    "place/project/sub",
    "place/project",
    "home/.ssh",
];

/// Works from the first to the last of a session's commands.
pub(super) struct Outsider<'a> {
    arena: &'a Arena,
    /// Held by the one who needs the files to stay where they are.
    gate: Mutex<()>,
    over: AtomicBool,
    done: AtomicUsize,
}

impl<'a> Outsider<'a> {
    pub(super) fn new(arena: &'a Arena) -> Self {
        Self {
            arena,
            gate: Mutex::new(()),
            over: AtomicBool::new(false),
            done: AtomicUsize::new(0),
        }
    }

    /// While this is held, everything is in its place and stays there.
    pub(super) fn still(&self) -> impl Drop + '_ {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much was done.
    pub(super) fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends it, also when the test fails.
    pub(super) fn ends(&self) -> Ends<'_> {
        Ends(&self.over)
    }

    /// Goes on until it is ended.
    pub(super) fn works(&self) {
        let mut dice = Dice(11);
        while !self.over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_micros(15_000 + dice.below(90_000)));
            let still = self.still();
            let count = REPLACED.len() + MOVED.len();
            let at = usize::try_from(dice.below(count as u64)).unwrap();
            match REPLACED.get(at) {
                Some(file) => self.replaces(&self.arena.path(file), dice.below(1 << 30)),
                None => {
                    let pause = Duration::from_micros(dice.below(12_000));
                    self.moves(&self.arena.path(MOVED[at - REPLACED.len()]), pause);
                }
            }
            self.done.fetch_add(1, Ordering::Relaxed);
            drop(still);
        }
    }

    /// As an editor saves: a new file takes the place of the old one.
    fn replaces(&self, file: &Path, number: u64) {
        let Ok(text) = fs::read_to_string(file) else {
            return; // moved along by a command
        };
        let text = match text.starts_with(SECRET) {
            true => format!("{SECRET}-{number}"),
            false => text,
        };
        let new = self.arena.path("outside/new");
        fs::write(&new, text).unwrap();
        self.arena.give(&new);
        fs::rename(&new, file).unwrap();
    }

    /// Away, and back a moment later.
    fn moves(&self, folder: &Path, pause: Duration) {
        let away = self.arena.path("outside/away/it");
        if fs::rename(folder, &away).is_err() {
            return; // moved along by a command
        }
        thread::sleep(pause);
        while let Err(error) = fs::rename(&away, folder) {
            // A command has made something of that name meanwhile: kept, to be looked at.
            let obstacle = self.arena.path(OBSTACLES).join(self.done().to_string());
            let moved = fs::rename(folder, unused(obstacle));
            assert!(moved.is_ok(), "{}: {error}: {moved:?}", folder.display());
        }
    }
}

/// This name, or a longer one.
fn unused(mut path: PathBuf) -> PathBuf {
    while path.symlink_metadata().is_ok() {
        path.as_mut_os_string().push("-");
    }
    path
}

pub(super) struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
