//! Connections that a command makes.
//!
//! Connecting to a Unix socket is not a change of a file, so neither a read-only mount nor Landlock
//! (before version 9) prevents it. The guard therefore makes each connection itself, on a duplicate
//! of the command's socket, to the socket file that it checked. It never lets the kernel repeat the
//! call: by then the descriptor could be another socket, and the address another path.
//!
//! A command can connect only to socket files below its writable directories and its scratch
//! directory, regardless of when a server starts to listen on them.

use std::{
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::{
    fs::{FileType, OFlags, fcntl_getfl, fstat},
    io::Errno,
    net::{AddressFamily, sockopt::socket_domain},
};

use super::{
    MediationOutcome,
    caller::{CallerIdentity, handle_path, low, real},
    perform::{CallMediation, MediationResult, MediationStop, as_fd, open_handle, root},
};
use crate::notify::{self, NotifyReply};

/// The size of the kernel's `sockaddr_storage`: it rejects longer addresses.
const MAX_ADDRESS_LENGTH: usize = 128;

/// A connection that the guard makes on the command's behalf.
pub(super) struct MediatedConnection {
    socket: OwnedFd,
    address: Vec<u8>,
    /// Keeps the checked socket file open; `address` refers to it by this descriptor.
    _target: Option<OwnedFd>,
    maker: CallerIdentity,
}

impl MediatedConnection {
    /// Connects. A blocking socket waits.
    pub(super) fn connect(&self) -> rustix::io::Result<()> {
        self.maker
            .act(|| notify::connect(&self.socket, &self.address))
    }
}

impl CallMediation<'_> {
    /// Carries out `connect(socket, address, length)`. Everything that cannot be checked is refused.
    pub(super) fn connect(&self, socket: u64, address: u64, length: u64) -> MediationResult {
        let socket = self.caller.socket(low(socket)).map_err(denied)?;
        let length =
            usize::try_from(low(length)).map_err(|_| MediationStop::Failed(Errno::INVAL))?;
        if length > MAX_ADDRESS_LENGTH {
            return Err(MediationStop::Failed(Errno::INVAL));
        }
        let address = self.caller.bytes(address, length);
        let address = address.map_err(|_| MediationStop::Failed(Errno::FAULT))?;
        // Only if the call still waits do memory and descriptor belong to the thread that made it.
        if !notify::waits(as_fd(self.mediator), self.call) {
            return Err(MediationStop::Failed(Errno::INTR));
        }
        let (address, target) = match socket_domain(&socket)? {
            AddressFamily::UNIX => self.unix_address(address)?,
            _ => (address, None),
        };
        let blocks = !fcntl_getfl(&socket)?.contains(OFlags::NONBLOCK);
        let connection = MediatedConnection {
            socket,
            address,
            _target: target,
            maker: self
                .caller
                .identity()
                .map_err(|_| MediationStop::Failed(Errno::ACCESS))?,
        };
        if blocks {
            return Ok(MediationOutcome::Connects(connection));
        }
        connection.connect()?;
        Ok(MediationOutcome::Answered(NotifyReply::Done))
    }

    /// Checks whether the command may connect to the socket file of an address. Returns an address
    /// that leads to the checked file, and a handle of that file. Landlock decides about addresses
    /// without a file.
    fn unix_address(&self, address: Vec<u8>) -> Result<(Vec<u8>, Option<OwnedFd>), MediationStop> {
        let Some((family, name)) = address.split_first_chunk::<2>() else {
            return Err(MediationStop::Failed(Errno::INVAL));
        };
        if u16::from_ne_bytes(*family) != AddressFamily::UNIX.as_raw() || name.is_empty() {
            return Err(MediationStop::Failed(Errno::INVAL));
        }
        if name[0] == 0 {
            return Ok((address, None));
        }
        let end = name.iter().position(|byte| *byte == 0);
        let name = OsStr::from_bytes(&name[..end.unwrap_or(name.len())]);
        let target = self.socket_file(Path::new(name))?;
        let path = real(&target)?;
        if FileType::from_raw_mode(fstat(&target)?.st_mode) != FileType::Socket {
            return Err(MediationStop::Failed(Errno::CONNREFUSED));
        }
        if !self.can_connect(&path) {
            return Err(MediationStop::Failed(Errno::ACCESS));
        }
        let mut address = family.to_vec();
        address.extend(handle_path(&target).as_bytes_with_nul());
        Ok((address, Some(target)))
    }

    /// Returns a handle of the file that a path leads to for the caller.
    fn socket_file(&self, path: &Path) -> Result<OwnedFd, MediationStop> {
        // A path relative to an open directory: programs use it to shorten names that are too long
        // for an address.
        let below = ["/proc/self/fd/", "/dev/fd/"]
            .iter()
            .find_map(|prefix| path.to_str()?.strip_prefix(prefix)?.split_once('/'));
        let (start, path) = match below {
            Some((number, rest)) => {
                let number = number
                    .parse()
                    .map_err(|_| MediationStop::Failed(Errno::NOENT))?;
                (self.caller.descriptor(number), Path::new(rest))
            }
            None if path.is_absolute() => (root(), path),
            None => (self.caller.current(), path),
        };
        let start = start.map_err(denied)?;
        Ok(open_handle(&start, path.as_os_str(), OFlags::empty())?)
    }

    fn can_connect(&self, path: &Path) -> bool {
        let is_working_file = self.mediator.path_in_root(path).is_some()
            && !self.mediator.immutable.includes(path)
            && !self.is_guarded(path, false);
        is_working_file || self.mediator.temporary.include(path)
    }
}

/// Returns the result for a caller that cannot be inspected: its argument is invalid, or access is
/// denied.
fn denied(error: Errno) -> MediationStop {
    MediationStop::Failed(match error {
        Errno::BADF => Errno::BADF,
        _ => Errno::ACCESS,
    })
}
