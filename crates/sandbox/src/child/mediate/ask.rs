//! Questions to our process about guarded names.

use std::{ffi::OsString, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{AtFlags, Mode, statat, unlinkat},
    io::Errno,
};

use super::{
    REFUSED,
    caller::exists,
    perform::{CallMediation, MediationStop, NameLocation, place, root},
    rename::{contents, install},
};
use crate::{NameAction, NameUse, NewDirectory};

/// A settings file that is replaced by a new file with the same contents before another name is created
/// in its directory.
struct NeighborSettings {
    place: NameLocation,
    contents: Vec<u8>,
}

impl CallMediation<'_> {
    /// Returns whether a path is guarded. `directory` is true if a directory is moved there.
    pub(super) fn is_guarded(&self, path: &Path, directory: bool) -> bool {
        let names = &self.mediator.names;
        let below = self.mediator.path_in_root(path);
        below.is_some_and(|below| names.include(below, directory) || names.is_at_home(path))
    }

    /// Checks whether the call may use a name. Succeeds if the name is not guarded or the use was
    /// permitted. Otherwise the error is a question, or a refusal.
    pub(super) fn ask(
        &self,
        place: &NameLocation,
        action: NameAction,
        directory: bool,
    ) -> Result<(), MediationStop> {
        let above = || self.mediator.new_directories.above(&place.directory);
        if self.ask_about(&place.path, action, directory, above)? {
            let new_directories = &self.mediator.new_directories;
            new_directories.holds_guarded(&place.directory);
        }
        Ok(())
    }

    /// Like [`Self::ask`], for a change of an open file.
    pub(super) fn ask_change(&self, file: &OwnedFd, path: &Path) -> Result<(), MediationStop> {
        let above = || self.new_directories_above(file, path);
        self.ask_about(path, NameAction::Change, false, above)
            .map(drop)
    }

    /// Like [`Self::ask`], for a move of a directory with guarded names to a path that led to another
    /// directory before.
    pub(super) fn ask_to_replace(&self, from: &Path, path: &Path) -> Result<(), MediationStop> {
        let used = NameUse {
            path: path.to_path_buf(),
            action: NameAction::ReplaceDirectory {
                from: from.to_path_buf(),
            },
            neighbor: None,
            new_directories: Vec::new(),
        };
        match self.permits.get(&used) {
            Some(true) => Ok(()),
            Some(false) => Err(MediationStop::Failed(REFUSED)),
            None => Err(MediationStop::Ask(used)),
        }
    }

    /// Returns whether the name is guarded and in a new directory.
    fn ask_about(
        &self,
        path: &Path,
        action: NameAction,
        directory: bool,
        new_directories: impl Fn() -> Vec<NewDirectory>,
    ) -> Result<bool, MediationStop> {
        // A protected file whose new contents are checked may be replaced, but not changed in any other
        // way.
        let replaces =
            matches!(&action, NameAction::MoveFile { contents, .. } if contents.is_some());
        let is_checked = replaces && self.mediator.names.judged.contains(path);
        if self.mediator.immutable.includes(path) && !is_checked {
            return Err(self.refuse_protected(path));
        }
        if !self.is_guarded(path, directory) {
            return Ok(false);
        }
        let neighbor = self.neighbor(path, &action);
        let mut used = NameUse {
            path: path.to_path_buf(),
            action,
            neighbor: neighbor.as_ref().map(|one| one.contents.clone()),
            new_directories: new_directories(),
        };
        match (self.permits.get(&used), neighbor) {
            (None, _) => return Err(MediationStop::Ask(used)),
            (Some(true), None) => {}
            (Some(true), Some(neighbor)) => self.install_again(&neighbor)?,
            // The rest of a new directory is created without the unsafe settings.
            (Some(false), Some(neighbor)) if !used.new_directories.is_empty() => {
                self.remove_settings(&neighbor)?;
                used.neighbor = None;
                match self.permits.get(&used) {
                    None => return Err(MediationStop::Ask(used)),
                    Some(true) => {}
                    Some(false) => return Err(MediationStop::Failed(REFUSED)),
                }
            }
            (Some(false), _) => return Err(MediationStop::Failed(REFUSED)),
        }
        Ok(!used.new_directories.is_empty())
    }

    /// Removes a settings file that must not take effect.
    fn remove_settings(&self, neighbor: &NeighborSettings) -> Result<(), MediationStop> {
        let place = &neighbor.place;
        self.entry_goes(place)?;
        self.done(|| unlinkat(&place.directory, &*place.name, AtFlags::empty()))
            .map(drop)
    }

    /// Records a refused change of a protected path, and returns the refusal.
    pub(super) fn refuse_protected(&self, path: &Path) -> MediationStop {
        self.mediator.record_refused(path, false);
        MediationStop::Failed(REFUSED)
    }

    /// Returns the settings file that takes effect once this path exists, if any.
    fn neighbor(&self, path: &Path, action: &NameAction) -> Option<NeighborSettings> {
        let settings = self.mediator.names.settings.as_ref()?;
        if matches!(action, NameAction::Change | NameAction::Remove { .. }) {
            return None;
        }
        let (directory, name) = (path.parent()?, path.file_name()?);
        let is_part = settings
            .parts
            .iter()
            .any(|part| name.eq_ignore_ascii_case(part));
        let file = directory.join(&settings.file);
        if !is_part || self.mediator.immutable.includes(&file) {
            return None;
        }
        let place = place(&root().ok()?, &file).ok()?;
        let existing = settings
            .parts
            .iter()
            .filter(|part| exists(&place.directory, part.as_ref()));
        if existing.count() != 1 || exists(&place.directory, name) {
            return None;
        }
        let contents = contents(&place)?;
        Some(NeighborSettings { place, contents })
    }

    /// Replaces the settings with a new file that has these contents. A process may have the old file open.
    fn install_again(&self, neighbor: &NeighborSettings) -> Result<(), MediationStop> {
        let place = &neighbor.place;
        let name: &OsString = &place.name;
        let found = statat(&place.directory, &**name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = Mode::from_raw_mode(found.st_mode & 0o777);
        let maker = self
            .caller
            .identity()
            .map_err(|_| MediationStop::Failed(Errno::ACCESS))?;
        let known = self.mediator.created.known(place);
        maker.act(|| install(place, mode, &neighbor.contents))?;
        if known.is_some() {
            self.mediator.created.remove(known);
            self.record_created(place, false);
        }
        Ok(())
    }
}
