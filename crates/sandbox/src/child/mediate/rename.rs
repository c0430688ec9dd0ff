//! Moving and removing files on behalf of a command.
//!
//! A protected path is neither removed nor moved away, even if a process outside has replaced the file
//! there. Our process decides whether a guarded name may be removed. The question states whether the
//! command itself has created the file, so that a command can remove a repository that it created.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use haft_witness::FileId;
use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, fstat, openat, renameat, renameat_with,
        statat, unlinkat,
    },
    io::Errno,
};

use super::{
    REFUSED,
    new_directories::NewDirectories,
    perform::{CallMediation, MediationResult, MediationStop, NameLocation},
};
use crate::NameAction;

impl CallMediation<'_> {
    pub(super) fn remove(&self, directory: u64, address: u64, flags: AtFlags) -> MediationResult {
        let place = self.place(directory, address, true)?;
        let kind = kind(&place)?;
        if place.slash && !flags.contains(AtFlags::REMOVEDIR) {
            let is_directory = kind == FileType::Directory;
            return Err(MediationStop::Failed(match is_directory {
                true => Errno::ISDIR,
                false => Errno::NOTDIR,
            }));
        }
        // A directory that can be removed is empty, so its contents need no check.
        self.check_removal(&place, false)?;
        let known = self.mediator.created.known(&place);
        let id = directory_id(&place, kind);
        self.entry_goes(&place)?;
        let done = self.done(|| unlinkat(&place.directory, &*place.name, flags))?;
        self.mediator.created.remove(known);
        self.mediator.new_directories.removed(&place, kind, id);
        self.mediator.new_directories.remove_record(id);
        Ok(done)
    }

    /// Stores the old entry of a name, and the file that is about to lose this name, for undo.
    pub(super) fn entry_goes(&self, place: &NameLocation) -> Result<(), MediationStop> {
        if let Some(witness) = &self.mediator.witness {
            witness.name_changes(place);
            witness.entry_goes(place)?;
        }
        Ok(())
    }

    /// Moves an entry, and stores for undo what the move replaces. `directory`: a directory moves.
    fn witnessed_move(
        &self,
        source: &NameLocation,
        target: &NameLocation,
        directory: bool,
        flags: RenameFlags,
        moves: impl FnOnce() -> rustix::io::Result<()>,
    ) -> MediationResult {
        let Some(witness) = &self.mediator.witness else {
            return self.done(moves);
        };
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        witness.name_changes(source);
        witness.name_changes(target);
        if !exchange {
            witness.entry_goes(target)?;
        }
        let line = directory
            .then(|| witness.directory_moves(source, target, exchange))
            .flatten();
        let done = self.done(moves);
        if let (Some(line), Err(_)) = (line, &done) {
            witness.failed(line);
        }
        done
    }

    /// Asks whether the existing file may be removed or moved away. `with_contents`: it is a directory
    /// that is moved with its contents.
    fn check_removal(
        &self,
        place: &NameLocation,
        with_contents: bool,
    ) -> Result<(), MediationStop> {
        if self.mediator.immutable.holds(&place.path) {
            return Err(self.refuse_protected(&place.path));
        }
        if !self.is_guarded(&place.path, with_contents) {
            return Ok(());
        }
        let made = self.mediator.created.known(place).is_some();
        self.ask(place, NameAction::Remove { made }, with_contents)
    }

    pub(super) fn rename(
        &self,
        from: (u64, u64),
        to: (u64, u64),
        flags: RenameFlags,
    ) -> MediationResult {
        let (start, path) = self.start(from.0, from.1)?;
        let source = self.walk(&start, &path, true)?;
        let (start, path) = self.start(to.0, to.1)?;
        let target = self.walk(&start, &path, true)?;
        let is_temporary = |place: &NameLocation| self.is_temporary(&place.directory, &place.path);
        let in_root = |place: &NameLocation| self.mediator.path_in_root(&place.path).is_some();
        let inside = |place: &NameLocation| in_root(place) || is_temporary(place);
        if !inside(&source) && !inside(&target) {
            if kind(&source).is_ok() {
                self.mediator.record_refused(&source.path, false);
                self.mediator.record_refused(&target.path, false);
            }
            return Err(MediationStop::Continue);
        }
        let directory = kind(&source)? == FileType::Directory;
        let temporary = &self.mediator.temporary;
        if [&source, &target]
            .iter()
            .any(|place| temporary.is_mount_point(&place.path))
        {
            return Err(MediationStop::Failed(Errno::BUSY));
        }
        // These are on different mounts.
        if is_temporary(&source) != is_temporary(&target) {
            return Err(MediationStop::Failed(Errno::XDEV));
        }
        if (source.slash || target.slash) && !directory {
            return Err(MediationStop::Failed(Errno::NOTDIR));
        }
        let replaced = kind(&target).ok();
        // A protected file whose new contents are checked may be replaced.
        let is_checked = !directory && self.mediator.names.judged.contains(&target.path);
        if flags.contains(RenameFlags::NOREPLACE) && replaced.is_some() {
            return Err(MediationStop::Failed(Errno::EXIST));
        }
        // A directory cannot be moved into or out of the writable directories: its files must be checked one
        // by one. Programs then copy the directory instead, and each copied file is checked.
        let either = directory || replaced == Some(FileType::Directory);
        if either && inside(&source) != inside(&target) {
            return Err(MediationStop::Failed(Errno::XDEV));
        }
        if flags.contains(RenameFlags::EXCHANGE) {
            // Both names get another file. No program needs that for guarded names.
            let kept = &self.mediator.immutable;
            if self.is_guarded(&source.path, either)
                || self.is_guarded(&target.path, either)
                || kept.holds(&source.path)
                || kept.holds(&target.path)
            {
                return Err(MediationStop::Failed(REFUSED));
            }
        } else {
            self.check_removal(&source, directory)?;
            if replaced.is_some() && !is_checked {
                self.check_removal(&target, false)?;
            }
        }
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        let moved = MovedDirectories::new(&source, &target, exchange)?;
        for (from, to) in moved.replacements(&self.mediator.new_directories) {
            self.ask_to_replace(&from.path, &to.path)?;
        }
        let moves = || {
            let (from, to) = (&source.directory, &target.directory);
            renameat_with(from, &*source.name, to, &*target.name, flags)
        };
        let moves = || {
            let done = self.witnessed_move(&source, &target, either, flags, moves)?;
            moved.record(&self.mediator.new_directories);
            Ok(done)
        };
        if self.mediator.immutable.includes(&target.path) && !is_checked {
            return Err(self.refuse_protected(&target.path));
        }
        if !self.is_guarded(&target.path, directory) {
            return moves();
        }
        let from = source.path.clone();
        if directory {
            self.ask(&target, NameAction::MoveDirectory { from }, directory)?;
            return moves();
        }
        let contents = contents(&source);
        let action = NameAction::MoveFile {
            from,
            contents: contents.clone(),
        };
        self.ask(&target, action, directory)?;
        match contents {
            Some(contents) => {
                let known = self.mediator.created.known(&target);
                self.entry_goes(&source)?;
                self.entry_goes(&target)?;
                let done = self.done(|| replace(&source, &target, &contents))?;
                self.mediator.created.remove(known);
                self.record_created(&target, directory);
                Ok(done)
            }
            None => moves(),
        }
    }
}

/// A move, and the kinds and identities of what it moves.
struct MovedDirectories<'a> {
    source: &'a NameLocation,
    target: &'a NameLocation,
    kind: FileType,
    id: Option<FileId>,
    /// The entry at the target, if any.
    replaced: Option<(FileType, Option<FileId>)>,
    exchange: bool,
}

impl<'a> MovedDirectories<'a> {
    fn new(
        source: &'a NameLocation,
        target: &'a NameLocation,
        exchange: bool,
    ) -> Result<Self, MediationStop> {
        let of = |place: &NameLocation| {
            let kind = kind(place)?;
            Ok::<_, Errno>((kind, directory_id(place, kind)))
        };
        let (kind, id) = of(source)?;
        Ok(Self {
            source,
            target,
            kind,
            id,
            replaced: of(target).ok(),
            exchange,
        })
    }

    /// Returns the directories that get another name, with that name, and whether it leads to an old
    /// directory now.
    fn arrivals(&self, directories: &NewDirectories) -> Vec<(FileId, &'a NameLocation, bool)> {
        let replaces = self
            .replaced
            .is_some_and(|(kind, id)| directories.is_old(kind, id));
        let mut all: Vec<_> = self
            .id
            .map(|id| (id, self.target, replaces))
            .into_iter()
            .collect();
        if self.exchange {
            let replaces = directories.is_old(self.kind, self.id);
            let other = self.replaced.and_then(|(_, id)| id);
            all.extend(other.map(|id| (id, self.source, replaces)));
        }
        all
    }

    /// Returns the moves, from and to, of directories with guarded names to names that led to another
    /// directory before.
    fn replacements(
        &self,
        directories: &NewDirectories,
    ) -> impl Iterator<Item = (&'a NameLocation, &'a NameLocation)> {
        let mut arrivals = self.arrivals(directories);
        arrivals.retain(|(id, place, replaces)| directories.would_replace(*id, place, *replaces));
        let (source, target) = (self.source, self.target);
        arrivals.into_iter().map(move |(_, place, _)| {
            let is_target = std::ptr::eq(place, target);
            (if is_target { source } else { target }, place)
        })
    }

    /// Records that the move was carried out.
    fn record(&self, directories: &NewDirectories) {
        let arrivals = self.arrivals(directories);
        directories.removed(self.source, self.kind, self.id);
        if let Some((kind, id)) = self.replaced {
            directories.removed(self.target, kind, id);
            if !self.exchange {
                directories.remove_record(id);
            }
        }
        for (id, place, replaces) in arrivals {
            directories.moved(id, place, replaces);
        }
    }
}

/// Returns the identity of an entry of this kind, if it is a directory.
fn directory_id(place: &NameLocation, kind: FileType) -> Option<FileId> {
    let is_directory = kind == FileType::Directory;
    is_directory.then(|| FileId::from_entry(&place.directory, &place.name))?
}

fn kind(place: &NameLocation) -> rustix::io::Result<FileType> {
    let found = statat(&place.directory, &*place.name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode))
}

/// The maximum size in bytes of a file whose contents are checked before it gets a guarded name. A longer
/// file is moved unchecked or refused, as the policy decides.
const MAX_CONTENTS: u64 = 64 << 10;

/// Returns the contents of a regular file; `None` if they are longer than [`MAX_CONTENTS`] or cannot be
/// read.
pub(super) fn contents(place: &NameLocation) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&place.directory, &*place.name, flags, Mode::empty()).ok()?;
    if FileType::from_raw_mode(fstat(&file).ok()?.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut contents = Vec::new();
    let mut file = File::from(file).take(MAX_CONTENTS + 1);
    file.read_to_end(&mut contents).ok()?;
    (contents.len() as u64 <= MAX_CONTENTS).then_some(contents)
}

/// Installs a new file with these contents as the target, and removes the source. The source itself is
/// not moved, because a process may have it open for writing.
fn replace(
    source: &NameLocation,
    target: &NameLocation,
    contents: &[u8],
) -> rustix::io::Result<()> {
    let found = statat(&source.directory, &*source.name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = Mode::from_raw_mode(found.st_mode & 0o777);
    install(target, mode, contents)?;
    unlinkat(&source.directory, &*source.name, AtFlags::empty())
}

/// Installs a new file with these contents as the target.
pub(super) fn install(
    target: &NameLocation,
    mode: Mode,
    contents: &[u8],
) -> rustix::io::Result<()> {
    let mut name = target.name.clone();
    name.push(format!(".{}", random()?));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&target.directory, &*name, flags, mode)?;
    let renamed = File::from(file)
        .write_all(contents)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        .and_then(|()| renameat(&target.directory, &*name, &target.directory, &*target.name));
    if renamed.is_err() {
        let _ = unlinkat(&target.directory, &*name, AtFlags::empty());
    }
    renamed
}

/// Returns a random name. A process that could guess it could open the new file before it is installed.
fn random() -> rustix::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
