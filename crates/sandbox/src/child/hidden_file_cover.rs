//! Keeps hidden files hidden while a command runs.
//!
//! A mount over a hidden file disappears when a process outside replaces the file, as many programs
//! do to write it. The guard therefore watches the directories with inotify and ends the command if
//! a hidden file becomes readable. Output of the command is released only after a check that
//! everything is still covered.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs::{self, Metadata},
    io,
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt,
            fs::{MetadataExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init},
    io::Errno,
};

use super::keeper::{SetupFailure, step, step_at};
use crate::{Mechanism, SandboxProfile, protocol::SandboxPlan};

/// The mounts over the hidden files of a command, and the watches on their directories.
pub(super) struct HiddenFileCover {
    hidden: Vec<HiddenPath>,
    masks: HidingMounts,
    inotify: OwnedFd,
    /// Names whose change may uncover a file: those of hidden files and of directories above them.
    names: Vec<WatchedName>,
    /// The indices into `names` that each watch is for. A directory that was moved away stays
    /// watched: a command may still be in it.
    watches: BTreeMap<i32, BTreeSet<usize>>,
}

struct HiddenPath {
    path: PathBuf,
    /// The file existed when the watch began.
    there: bool,
}

struct WatchedName {
    directory: PathBuf,
    name: OsString,
}

/// The changes of watched names since the last check.
#[derive(Default)]
struct CoverChanges {
    any: bool,
    /// The indices of the names that got an entry.
    arrived: BTreeSet<usize>,
    /// The event queue overflowed: not all changes are reported.
    incomplete: bool,
}

/// The current contents of a hidden file's path.
#[derive(PartialEq, Eq)]
enum CoveredEntry {
    Nothing,
    Mask,
    /// A file that can be read.
    Other,
}

impl HiddenFileCover {
    /// Starts watching. Returns `None` if the profile hides no files or the mechanism cannot hide
    /// them. Fails if a file is not hidden now, because it was replaced or created after the sandbox
    /// was set up.
    pub(super) fn for_plan(plan: &SandboxPlan) -> Result<Option<Self>, SetupFailure> {
        let hidden = match &plan.profile {
            SandboxProfile::ReadOnly(reading) => &reading.hidden,
            SandboxProfile::Workspace(workspace) => &workspace.hidden,
            SandboxProfile::Full => return Ok(None),
        };
        if hidden.is_empty() || plan.mechanism >= Mechanism::Reduced {
            return Ok(None);
        }
        Self::for_files(hidden, plan.mechanism).map(Some)
    }

    /// Starts watching these files.
    fn for_files(hidden: &[PathBuf], mechanism: Mechanism) -> Result<Self, SetupFailure> {
        let inotify = step("watching hidden files", || {
            init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
        })?;
        let mut cover = Self {
            hidden: Vec::new(),
            masks: HidingMounts::new(mechanism),
            inotify,
            names: hidden.iter().flat_map(|path| names(path)).collect(),
            watches: BTreeMap::new(),
        };
        cover.watch_all();
        // This check must come after the watches exist: they report every later change.
        for path in hidden {
            let there = match cover.masks.in_place_of(path) {
                CoveredEntry::Nothing => false,
                CoveredEntry::Mask => true,
                CoveredEntry::Other => {
                    let changed = io::Error::from_raw_os_error(libc::ESTALE);
                    return step_at(path, || Err(changed));
                }
            };
            let path = path.clone();
            cover.hidden.push(HiddenPath { path, there });
        }
        Ok(cover)
    }

    /// Watches all directories that exist now. Existing watches stay.
    fn watch_all(&mut self) {
        let flags = WatchFlags::CREATE | WatchFlags::MOVE | WatchFlags::DELETE;
        for (number, name) in self.names.iter().enumerate() {
            let flags = flags | WatchFlags::ONLYDIR;
            if let Ok(watch) = add_watch(&self.inotify, &name.directory, flags) {
                self.watches.entry(watch).or_default().insert(number);
            }
        }
    }

    /// Returns the inotify descriptor. It becomes readable when an entry next to a hidden file
    /// changes.
    pub(super) fn watch(&self) -> &OwnedFd {
        &self.inotify
    }

    /// Returns a hidden file that can be read, or could be since the last check, because its path
    /// has new contents. Checks only if a change was reported.
    pub(super) fn uncovered_by_change(&mut self) -> io::Result<Option<PathBuf>> {
        let changes = self.changes()?;
        if !changes.any {
            return Ok(None);
        }
        Ok(self.find_uncovered(&changes))
    }

    /// Like [`HiddenFileCover::uncovered_by_change`], but checks even if no change was reported. The
    /// kernel makes a change before it reports it.
    pub(super) fn uncovered(&mut self) -> io::Result<Option<PathBuf>> {
        let changes = self.changes()?;
        Ok(self.find_uncovered(&changes))
    }

    fn find_uncovered(&mut self, changes: &CoverChanges) -> Option<PathBuf> {
        if changes.any {
            // A directory that came back must be watched before it is checked.
            self.watch_all();
        }
        for hidden in &self.hidden {
            let uncovered = match self.masks.in_place_of(&hidden.path) {
                CoveredEntry::Mask => false,
                CoveredEntry::Other => true,
                // The path is empty now, and the lost events may include a file that appeared in
                // between.
                CoveredEntry::Nothing => changes.incomplete && hidden.there,
            };
            if uncovered {
                return Some(hidden.path.clone());
            }
        }
        // An entry appeared and was removed again: the command may have read it.
        changes.arrived.iter().find_map(|number| {
            let name = self.names.get(*number)?;
            let path = name.directory.join(&name.name);
            fs::symlink_metadata(&path).is_err().then_some(path)
        })
    }

    /// Returns the changes that were reported since the last check.
    fn changes(&mut self) -> io::Result<CoverChanges> {
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut changes = CoverChanges::default();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(changes),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                changes.any = true;
                changes.incomplete = true;
            }
            let Some(name) = event.file_name() else {
                continue; // the event is about the directory itself
            };
            let name = OsStr::from_bytes(name.to_bytes());
            let numbers = self.watches.get(&event.wd()).into_iter().flatten();
            for number in numbers {
                // Other entries of these directories change, too.
                if self.names.get(*number).is_none_or(|one| one.name != name) {
                    continue;
                }
                changes.any = true;
                let arrives = ReadFlags::CREATE | ReadFlags::MOVED_TO;
                if event.events().intersects(arrives) {
                    changes.arrived.insert(*number);
                }
            }
        }
    }
}

/// Returns the name of a hidden file and those of the directories above it, because a replaced
/// directory uncovers the file as well. Leaves out the topmost directories: the kernel would report
/// every change on the machine there.
fn names(path: &Path) -> impl Iterator<Item = WatchedName> {
    let above = path.ancestors().enumerate();
    let above = above.filter(|(index, path)| *index == 0 || path.components().count() > 3);
    above.filter_map(|(_, path)| {
        Some(WatchedName {
            directory: path.parent()?.to_path_buf(),
            name: path.file_name()?.to_owned(),
        })
    })
}

/// The mounts that may cover a hidden file.
struct HidingMounts {
    known: Vec<(u64, u64)>,
    /// Whether the mechanism is bubblewrap, which mounts a new, closed directory over each hidden
    /// one.
    of_bubblewrap: bool,
}

impl HidingMounts {
    fn new(mechanism: Mechanism) -> Self {
        let known = super::mounts::MASKS.iter().chain(&["/dev/null"]);
        Self {
            known: known
                .filter_map(|path| fs::metadata(path).ok())
                .map(|found| (found.dev(), found.ino()))
                .collect(),
            of_bubblewrap: mechanism == Mechanism::Bubblewrap,
        }
    }

    /// Returns what a process finds at the path of a hidden file.
    fn in_place_of(&self, path: &Path) -> CoveredEntry {
        match fs::metadata(path) {
            Err(_) => CoveredEntry::Nothing,
            Ok(found) if self.known.contains(&(found.dev(), found.ino())) => CoveredEntry::Mask,
            Ok(found) if self.of_bubblewrap && is_closed_mount(path, &found) => CoveredEntry::Mask,
            Ok(_) => CoveredEntry::Other,
        }
    }
}

fn is_closed_mount(path: &Path, found: &Metadata) -> bool {
    let above = path.parent().and_then(|above| fs::metadata(above).ok());
    found.is_dir()
        && found.permissions().mode() & 0o777 == 0
        && above.is_some_and(|above| above.dev() != found.dev())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a hidden file in it. The link leads to what lies over hidden files in a sandbox.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(place.at("a/b/folder")).unwrap();
            symlink("/dev/null", place.hidden()).unwrap();
            place
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn hidden(&self) -> PathBuf {
            self.at("a/b/folder/secret")
        }

        fn moves(&self, from: &str, to: &str) {
            fs::rename(self.at(from), self.at(to)).unwrap();
        }

        fn replaces(&self) {
            fs::write(self.at("new"), "").unwrap();
            fs::rename(self.at("new"), self.hidden()).unwrap();
        }

        fn cover(&self) -> HiddenFileCover {
            HiddenFileCover::for_files(&[self.hidden()], Mechanism::Namespaces).unwrap()
        }
    }

    #[test]
    fn a_file_that_is_replaced_is_seen_and_what_happens_beside_it_is_not() {
        let place = Place::new();
        let mut cover = place.cover();
        fs::write(place.at("a/b/folder/other"), "").unwrap();
        assert_eq!(cover.uncovered_by_change().unwrap(), None);
        place.replaces();
        assert_eq!(cover.uncovered_by_change().unwrap(), Some(place.hidden()));
        assert!(HiddenFileCover::for_files(&[place.hidden()], Mechanism::Namespaces).is_err());
    }

    #[test]
    fn a_folder_that_was_away_is_watched_when_it_is_back() {
        let place = Place::new();
        place.moves("a/b/folder", "away");
        let mut cover = place.cover();
        place.moves("away", "a/b/folder");
        assert_eq!(cover.uncovered_by_change().unwrap(), None);
        place.replaces();
        assert_eq!(cover.uncovered_by_change().unwrap(), Some(place.hidden()));
    }

    #[test]
    fn what_was_replaced_is_seen_though_its_folder_is_away() {
        let place = Place::new();
        let mut cover = place.cover();
        place.moves("a/b/folder", "away");
        assert_eq!(cover.uncovered_by_change().unwrap(), None);
        place.moves("away", "a/b/folder");
        place.replaces();
        place.moves("a/b/folder", "away");
        assert!(cover.uncovered().unwrap().is_some());
    }

    #[test]
    fn what_came_and_went_is_seen_and_what_was_only_made_around_it_is_fine() {
        let place = Place::new();
        fs::remove_file(place.hidden()).unwrap();
        fs::remove_dir(place.at("a/b/folder")).unwrap();
        let mut cover = place.cover();
        fs::create_dir(place.at("a/b/folder")).unwrap();
        assert_eq!(cover.uncovered_by_change().unwrap(), None);
        fs::write(place.hidden(), "").unwrap();
        fs::remove_file(place.hidden()).unwrap();
        assert_eq!(cover.uncovered_by_change().unwrap(), Some(place.hidden()));
    }
}
