//! Creating directories, pipes, sockets and links on behalf of a command.

use std::{ffi::OsStr, time::SystemTime};

use rustix::{
    fs::{AtFlags, CWD, Dev, FileType, Mode, OFlags, fstat, linkat, mkdirat, mknodat, symlinkat},
    io::Errno,
};

use super::{
    caller::{exists, handle_path, low, own_descriptor, real},
    perform::{CallMediation, MediationResult, MediationStop, open_handle, place, root},
};
use crate::NameAction;

impl CallMediation<'_> {
    pub(super) fn make_directory(
        &self,
        directory: u64,
        address: u64,
        mode: Mode,
    ) -> MediationResult {
        let place = self.place(directory, address, false)?;
        if exists(&place.directory, &place.name) {
            return Err(MediationStop::Failed(Errno::EXIST));
        }
        self.ask(&place, NameAction::MakeDirectory, false)?;
        self.name_changes(&place);
        let started = SystemTime::now();
        let done = self.done(|| mkdirat(&place.directory, &*place.name, mode))?;
        self.mediator.new_directories.created(&place, started);
        self.record_created(&place, true);
        Ok(done)
    }

    pub(super) fn make_node(
        &self,
        directory: u64,
        address: u64,
        kind: u64,
        mode: Mode,
        dev: u64,
    ) -> MediationResult {
        let place = self.place(directory, address, false)?;
        let raw = low(kind).unsigned_abs();
        let kind = match raw & libc::S_IFMT {
            0 => FileType::RegularFile,
            _ => FileType::from_raw_mode(raw),
        };
        if !matches!(
            kind,
            FileType::RegularFile | FileType::Fifo | FileType::Socket
        ) {
            return Err(MediationStop::Failed(Errno::PERM));
        }
        if exists(&place.directory, &place.name) {
            return Err(MediationStop::Failed(Errno::EXIST));
        }
        self.ask(&place, NameAction::MakeFile, false)?;
        self.name_changes(&place);
        let dev: Dev = dev;
        let done = self.done(|| mknodat(&place.directory, &*place.name, kind, mode, dev))?;
        self.record_created(&place, false);
        Ok(done)
    }

    pub(super) fn make_link(&self, target: u64, directory: u64, address: u64) -> MediationResult {
        let target = self
            .caller
            .path(target)
            .map_err(|_| MediationStop::Continue)?;
        let place = self.place(directory, address, false)?;
        if place.slash {
            return Err(MediationStop::Continue);
        }
        if exists(&place.directory, &place.name) {
            return Err(MediationStop::Failed(Errno::EXIST));
        }
        self.ask(&place, NameAction::MakeLink, false)?;
        self.name_changes(&place);
        let done = self.done(|| symlinkat(&*target, &place.directory, &*place.name))?;
        self.record_created(&place, false);
        Ok(done)
    }

    /// Creates a hard link. The file could be written through the new name, so the existing name is
    /// checked as well.
    pub(super) fn link(&self, from: (u64, u64), to: (u64, u64), flags: AtFlags) -> MediationResult {
        let follow = flags.contains(AtFlags::SYMLINK_FOLLOW);
        let path = self
            .caller
            .path(from.1)
            .map_err(|_| MediationStop::Continue)?;
        let handle = match own_descriptor(&path) {
            Some(number) if follow => self.caller.descriptor(number),
            _ if path.as_os_str().is_empty() && flags.contains(AtFlags::EMPTY_PATH) => {
                self.caller.directory(from.0)
            }
            _ => {
                let (start, path) = self.start(from.0, from.1)?;
                let follow = if follow {
                    OFlags::empty()
                } else {
                    OFlags::NOFOLLOW
                };
                let found = open_handle(&start, path.as_os_str(), follow);
                Ok(found.map_err(|error| self.outcome_of_missing(&start, &path, error))?)
            }
        };
        let handle = handle.map_err(|_| MediationStop::Continue)?;
        let place = self.place(to.0, to.1, false)?;
        if exists(&place.directory, &place.name) {
            return Err(MediationStop::Failed(Errno::EXIST));
        }
        // A file without links has no name that could be guarded.
        let is_unnamed = fstat(&handle)?.st_nlink == 0;
        if !is_unnamed {
            let path = real(&handle).map_err(|_| MediationStop::Continue)?;
            let is_temporary = self.is_temporary(&handle, &path);
            if !is_temporary && self.mediator.path_in_root(&path).is_none() {
                return Err(MediationStop::Continue);
            }
            if is_temporary != self.is_temporary(&place.directory, &place.path) {
                return Err(MediationStop::Failed(Errno::XDEV));
            }
            self.ask_change(&handle, &path)?;
            // The file may be changed through its new name.
            if let Some(witness) = &self.mediator.witness {
                witness.metadata_changes(&handle, &path);
            }
        }
        self.ask(&place, NameAction::MakeFile, false)?;
        self.name_changes(&place);
        if let (true, Some(witness)) = (is_unnamed, &self.mediator.witness) {
            witness.created(&handle, OsStr::new(""));
        }
        self.done(|| {
            let flags = AtFlags::SYMLINK_FOLLOW;
            linkat(
                CWD,
                handle_path(&handle),
                &place.directory,
                &*place.name,
                flags,
            )
        })
    }

    /// Checks `bind` with a path. The kernel then creates the socket, perhaps under another name than the
    /// checked one. That is safe, because no program reads a socket as a file.
    pub(super) fn bind(&self, address: u64, length: u64) -> MediationResult {
        let name = self
            .caller
            .socket_name(address, low(length))
            .ok_or(MediationStop::Continue)?;
        let start = match name.is_absolute() {
            true => root(),
            false => self.caller.current(),
        };
        let place = start.and_then(|start| place(&start, &name));
        let place = place.map_err(|_| MediationStop::Continue)?;
        if !exists(&place.directory, &place.name) {
            self.inside_at(&place, false)?;
            self.ask(&place, NameAction::MakeFile, false)?;
            self.name_changes(&place);
        }
        Err(MediationStop::Continue)
    }
}
