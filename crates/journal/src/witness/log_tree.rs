//! The directories that a witness log names, and how moves of directories changed their paths.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use haft_witness::FileId;

/// The index of a directory in [`LogTree`].
pub(super) type DirectoryIndex = usize;

const TOP: DirectoryIndex = 0;

/// Directories by their present path in the log, each with its path before the command.
#[derive(Debug)]
pub(super) struct LogTree {
    all: Vec<LogDirectory>,
}

#[derive(Debug, Default)]
struct LogDirectory {
    /// The path before the command.
    initial: PathBuf,
    /// The present place; `None` if another directory took it.
    above: Option<(DirectoryIndex, OsString)>,
    below: HashMap<OsString, DirectoryIndex>,
    /// The identity, if a line has it.
    id: Option<FileId>,
}

impl LogTree {
    pub(super) fn new() -> Self {
        let top = LogDirectory {
            initial: PathBuf::from("/"),
            ..LogDirectory::default()
        };
        Self { all: vec![top] }
    }

    /// Returns the directory at a present path.
    pub(super) fn locate(&mut self, path: &Path) -> DirectoryIndex {
        let mut at = TOP;
        for name in path.iter().skip(1) {
            at = match self.all[at].below.get(name) {
                Some(below) => *below,
                None => {
                    let initial = self.all[at].initial.join(name);
                    self.add(initial, at, name)
                }
            };
        }
        at
    }

    fn add(&mut self, initial: PathBuf, above: DirectoryIndex, name: &OsStr) -> DirectoryIndex {
        let new = self.all.len();
        self.all.push(LogDirectory {
            initial,
            above: Some((above, name.to_owned())),
            ..LogDirectory::default()
        });
        self.all[above].below.insert(name.to_owned(), new);
        new
    }

    /// Records that the directory at a present path has this identity.
    pub(super) fn identify(&mut self, path: &Path, id: FileId) {
        let at = self.locate_as(path, id);
        self.all[at].id = Some(id);
    }

    /// Like [`Self::locate`]. If the log has another identity for the directory at this path, that
    /// one was removed, and the command created the present one.
    fn locate_as(&mut self, path: &Path, id: FileId) -> DirectoryIndex {
        let at = self.locate(path);
        if self.all[at].id.is_none_or(|known| known == id) {
            return at;
        }
        let Some((above, name)) = self.all[at].above.take() else {
            return at;
        };
        let below = std::mem::take(&mut self.all[at].below);
        let initial = self.all[at].initial.clone();
        let new = self.add(initial, above, &name);
        for &one in below.values() {
            if let Some((above, _)) = &mut self.all[one].above {
                *above = new;
            }
        }
        self.all[new].below = below;
        new
    }

    /// Moves a directory with everything below it.
    pub(super) fn move_directory(&mut self, from: &Path, to: &Path, id: FileId) {
        let moved = self.locate_as(from, id);
        self.all[moved].id = Some(id);
        self.detach(moved);
        self.attach(moved, to);
    }

    /// Exchanges two entries, of which at least one is a directory.
    pub(super) fn exchange(&mut self, one: &Path, other: &Path) {
        let (first, second) = (self.locate(one), self.locate(other));
        self.detach(first);
        self.detach(second);
        self.attach(first, other);
        self.attach(second, one);
    }

    fn detach(&mut self, at: DirectoryIndex) {
        if let Some((above, name)) = self.all[at].above.take() {
            self.all[above].below.remove(&name);
        }
    }

    fn attach(&mut self, at: DirectoryIndex, to: &Path) {
        let (Some(parent), Some(name)) = (to.parent(), to.file_name()) else {
            return;
        };
        let above = self.locate(parent);
        if let Some(replaced) = self.all[above].below.insert(name.to_owned(), at) {
            self.all[replaced].above = None;
        }
        self.all[at].above = Some((above, name.to_owned()));
    }

    /// Returns the path of a directory before the command.
    pub(super) fn initial_path(&self, at: DirectoryIndex) -> &Path {
        &self.all[at].initial
    }

    /// Returns the identity of a directory, if the log has it.
    pub(super) fn id(&self, at: DirectoryIndex) -> Option<FileId> {
        self.all[at].id
    }

    /// Returns the path of a directory after the last line; `None` if another directory replaced
    /// it.
    pub(super) fn final_path(&self, at: DirectoryIndex) -> Option<PathBuf> {
        let mut names = Vec::new();
        let mut at = at;
        while at != TOP {
            let (above, name) = self.all[at].above.as_ref()?;
            names.push(name);
            at = *above;
        }
        let mut path = PathBuf::from("/");
        path.extend(names.into_iter().rev());
        Some(path)
    }
}
