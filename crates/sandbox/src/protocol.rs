//! What our process and its children say to each other.
//!
//! There are two channels. The one to the keeper of a sandbox is a socket of whole packets, on which
//! open files travel too. The one to the guard of a command is a stream of frames: four bytes of
//! length, then JSON.

use std::{
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStringExt, net::UnixStream},
    },
    path::PathBuf,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{ExceededLimit, Mechanism, NameUse, NetworkId, ResourceLimits, SandboxProfile};

/// The longest packet: what is longer (a large environment) goes through a file.
const PACKET: usize = 4096;
/// The longest frame that is believed: a command line, with room to spare.
const FRAME: usize = 64 * 1024 * 1024;
/// The most files one packet carries.
pub(crate) const FILES: usize = 16;

/// What a sandbox is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) profile: SandboxProfile,
    pub(crate) mechanism: Mechanism,
    /// With a process space of its own.
    pub(crate) own_processes: bool,
    /// Guards open files for commands of a profile with guarded names.
    pub(crate) mediates: bool,
    /// Its one guard starts a program, for which it waits, and no shell.
    pub(crate) program: bool,
    /// The shell, absolute.
    pub(crate) shell: PathBuf,
    /// The whole environment of commands, each as `(name, value)`.
    pub(crate) env: Vec<(Bytes, Bytes)>,
    /// Where temporary files go.
    pub(crate) scratch: PathBuf,
    /// Read by every shell before its command.
    pub(crate) snapshot: Option<PathBuf>,
    /// Of what may be changed, what was there when this was made.
    pub(crate) there: Vec<PathBuf>,
    /// Sockets of other programs, to be hidden.
    pub(crate) sockets: Vec<PathBuf>,
    /// The most that each command may use.
    pub(crate) resources: ResourceLimits,
}

impl Plan {
    /// Does the guard of a command open files for it?
    pub(crate) fn is_mediated(&self) -> bool {
        self.mediates
            && matches!(&self.profile, SandboxProfile::Workspace(workspace) if workspace.guarded.is_some())
    }
}

/// What the keeper of a sandbox answers, once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Keeper {
    /// It stands. With [`Network::Proxy`](crate::Network::Proxy), a listening socket comes along.
    Ready,
    /// There is no place for temporary files, and none would be in any other sandbox.
    NoScratch { error: String },
    /// It cannot be had.
    Failed {
        /// What was tried.
        step: String,
        /// What the system said.
        error: String,
        /// Too many processes or open files, too little memory: it may work the next time.
        passing: bool,
    },
}

/// What is sent to the guard of a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Run {
        cwd: Bytes,
        sourced: Option<Bytes>,
        text: String,
        /// Our process can be asked about guarded names; otherwise none may be used.
        judged: bool,
    },
    /// Sent at once to the guard of a program, after a byte with its open files.
    Program {
        program: Bytes,
        arguments: Vec<Bytes>,
        /// The whole environment.
        env: Vec<(Bytes, Bytes)>,
        cwd: Bytes,
        /// The numbers at which the program finds the open files, in their order.
        numbers: Vec<i32>,
        judged: bool,
    },
    /// Interrupts the program itself, and nothing else.
    Interrupt,
    Kill {
        /// How long it may take to end by itself.
        grace_ms: u64,
    },
    /// The answer to [`News::Asks`].
    Judged {
        id: u32,
        used: NameUse,
        permitted: bool,
    },
}

/// What the guard of a command tells.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum News {
    /// A handle of the guard's own process comes along, the fences, the link on which it makes sockets, and
    /// where it has a network of its own with a proxy, a listening socket.
    Standing {
        /// No command can reach what waits or what other commands run.
        apart: bool,
        /// The command makes and changes no file but through its guard.
        mediated: bool,
        /// Files are hidden from the command: what it writes may be used once its guard has vouched for it,
        /// on one fence for each pipe. None: nothing is hidden.
        fences: usize,
        /// The network that the command has for itself; with it comes the link.
        network: Option<NetworkId>,
    },
    /// There is no shell, and no command will run.
    Unable {
        /// What was tried; empty if it says nothing about what can be had here.
        step: String,
        /// What the system said.
        error: String,
        /// It may work the next time.
        passing: bool,
    },
    /// The command wants to use a guarded name, and waits.
    Asks { id: u32, used: NameUse },
    /// The command exceeded a limit and is being ended.
    Exceeded(ExceededLimit),
    /// The command's own process ended.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        cwd: Option<Bytes>,
        left: u32,
        /// It was ended, because this hidden file was so no more.
        uncovered: Option<Bytes>,
        /// What it tried to write and may not, and whether programs often do without.
        refused: Vec<(Bytes, bool)>,
    },
    /// Nothing of it is left.
    Gone,
}

/// What a guard says on the fence, each in a byte. Our process asks there, by a byte, after it has read
/// something that the command wrote: nothing hidden could be read until now.
pub(crate) const COVERED: u8 = b'c';
/// Nor at any time: nothing of the command is left.
pub(crate) const COVERED_TO_THE_END: u8 = b'e';
/// Something hidden could be read.
pub(crate) const UNCOVERED: u8 = b'u';

/// What our process asks a guard for, in a byte: a socket in the network of its command.
pub(crate) const SOCKET_V4: u8 = b'4';
pub(crate) const SOCKET_V6: u8 = b'6';
/// The first byte of the answer, which comes with the socket.
pub(crate) const SOCKET_MADE: u8 = b's';
/// Or with the number of the error behind it.
pub(crate) const SOCKET_FAILED: u8 = b'f';

/// Bytes of the system that need not be text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bytes(Vec<u8>);

impl Bytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Bytes {
    fn from(value: &[u8]) -> Self {
        Self(value.to_vec())
    }
}

impl From<PathBuf> for Bytes {
    fn from(value: PathBuf) -> Self {
        value.into_os_string().into()
    }
}

impl From<OsString> for Bytes {
    fn from(value: OsString) -> Self {
        Self(value.into_vec())
    }
}

impl From<Bytes> for OsString {
    fn from(value: Bytes) -> Self {
        Self::from_vec(value.0)
    }
}

/// Sends one packet with open files.
pub(crate) fn send(socket: impl AsFd, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if bytes.len() > PACKET
        || (!files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)))
    {
        return Err(io::Error::other("too much for one packet"));
    }
    loop {
        match sendmsg(
            &socket,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            sent => return sent.map(drop).map_err(io::Error::from),
        }
    }
}

/// The next packet with its open files; `None` when the other side is gone.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(
            &socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.flags.contains(ReturnFlags::TRUNC) || received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other("a packet was cut"));
    }
    let files = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        })
        .flatten()
        .collect();
    bytes.truncate(received.bytes);
    Ok((received.bytes > 0).then_some((bytes, files)))
}

/// A frame, ready to be written.
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(message)?;
    let length = u32::try_from(json.len())
        .ok()
        .filter(|length| *length as usize <= FRAME)
        .ok_or_else(|| io::Error::other("a message is too long"))?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend(json);
    Ok(frame)
}

/// The length that the first four bytes of a frame tell.
pub(crate) fn length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length <= FRAME {
        Ok(length)
    } else {
        Err(io::Error::other("a message is too long"))
    }
}

/// Writes a frame; blocking.
pub(crate) fn write(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    stream.write_all(&frame(message)?)
}

/// Reads a frame; blocking. `None` when the other side is gone.
pub(crate) fn read<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<Option<T>> {
    let mut head = [0; 4];
    match stream.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut json = vec![0; length(head)?];
    stream.read_exact(&mut json)?;
    Ok(Some(serde_json::from_slice(&json)?))
}
