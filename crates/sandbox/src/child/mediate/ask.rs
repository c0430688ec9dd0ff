//! Questions to our process about guarded names.

use std::{ffi::OsString, path::Path};

use rustix::{
    fs::{AtFlags, Mode, statat},
    io::Errno,
};

use super::{
    REFUSED,
    caller::exists,
    perform::{CallMediation, MediationStop, NameLocation, place, root},
    rename::{contents, install},
};
use crate::{NameAction, NameUse};

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

    /// Checks whether the call may use a path. Succeeds if the path is not guarded or the use was
    /// permitted. Otherwise the error is a question, or a refusal.
    pub(super) fn ask(
        &self,
        path: &Path,
        action: NameAction,
        directory: bool,
    ) -> Result<(), MediationStop> {
        // A protected file whose new contents are checked may be replaced, but not changed in any other
        // way.
        let replaces =
            matches!(&action, NameAction::MoveFile { contents, .. } if contents.is_some());
        let is_checked = replaces && self.mediator.names.judged.contains(path);
        if self.mediator.immutable.includes(path) && !is_checked {
            return Err(self.refuse_protected(path));
        }
        if !self.is_guarded(path, directory) {
            return Ok(());
        }
        let neighbor = self.neighbor(path, &action);
        let used = NameUse {
            path: path.to_path_buf(),
            action,
            neighbor: neighbor.as_ref().map(|one| one.contents.clone()),
        };
        match self.permits.get(&used) {
            Some(true) => neighbor.map_or(Ok(()), |neighbor| self.install_again(&neighbor)),
            Some(false) => Err(MediationStop::Failed(REFUSED)),
            None => Err(MediationStop::Ask(used)),
        }
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
