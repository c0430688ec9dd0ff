//! The messages between our process and its child processes.
//!
//! There are two channels. The channel to the keeper of a sandbox is a packet socket that also
//! transfers open files. The channel to the guard of a command is a stream of frames: a length of
//! four bytes, then JSON.

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

use crate::{
    ExceededLimit, Mechanism, NameUse, NetworkId, ResourceLimits, SandboxProfile, StorageAnswer,
    UnstoredFile, WitnessLimits,
};

/// The maximum size of a packet. Larger data (a large environment) goes through a file.
const PACKET: usize = 4096;
/// The maximum size of a frame: enough for any command line.
const FRAME: usize = 64 * 1024 * 1024;
/// The maximum number of open files in a packet.
pub(crate) const FILES: usize = 16;

/// The description of a sandbox, which the keeper receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SandboxPlan {
    pub(crate) profile: SandboxProfile,
    pub(crate) mechanism: Mechanism,
    /// Whether the sandbox has its own PID namespace.
    pub(crate) own_processes: bool,
    /// Whether guards open files for commands of a profile with guarded names.
    pub(crate) mediates: bool,
    /// Whether the only guard waits for a program to start, and starts no shell.
    pub(crate) program: bool,
    /// The absolute path of the shell.
    pub(crate) shell: PathBuf,
    /// The whole environment of commands, each as `(name, value)`.
    pub(crate) env: Vec<(OsBytes, OsBytes)>,
    /// The folder for temporary files.
    pub(crate) scratch: PathBuf,
    /// A file that every shell reads before its command.
    pub(crate) snapshot: Option<PathBuf>,
    /// The writable paths that existed when the plan was made.
    pub(crate) there: Vec<PathBuf>,
    /// Sockets of other programs, which must be hidden.
    pub(crate) sockets: Vec<PathBuf>,
    /// The most that each command may use.
    pub(crate) resources: ResourceLimits,
    /// The folder where guards may store files for undo, if they are to do that.
    pub(crate) witness_store: Option<PathBuf>,
}

impl SandboxPlan {
    /// Returns whether the guard of a command opens files for it: to decide about guarded names, or to
    /// store what the command changes.
    pub(crate) fn is_mediated(&self) -> bool {
        let is_needed = match &self.profile {
            SandboxProfile::Workspace(workspace) => {
                workspace.guarded.is_some() || self.witness_store.is_some()
            }
            SandboxProfile::ReadOnly(_) | SandboxProfile::Full => false,
        };
        self.mediates && is_needed
    }

    /// Returns the directories in which commands may write.
    pub(crate) fn writable(&self) -> &[PathBuf] {
        match &self.profile {
            SandboxProfile::Workspace(workspace) => &workspace.writable,
            SandboxProfile::ReadOnly(_) | SandboxProfile::Full => &[],
        }
    }
}

/// The keeper's only answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum KeeperReply {
    /// The sandbox is set up. With [`SandboxNetwork::Proxy`](crate::SandboxNetwork::Proxy) and
    /// [`Mechanism::Namespaces`], a listening socket is attached.
    Ready,
    /// The folder for temporary files cannot be created, and no other mechanism would change that.
    NoScratch { error: String },
    /// The sandbox cannot be set up.
    Failed {
        /// The step that failed.
        step: String,
        /// The error of the system.
        error: String,
        /// Whether the failure is temporary (too many processes or open files, too little memory),
        /// so that it may work the next time.
        passing: bool,
    },
}

/// The messages to the guard of a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum GuardOrder {
    /// Runs a command in the shell. Sent first, after a byte with open files.
    Run {
        cwd: OsBytes,
        sourced: Option<OsBytes>,
        text: String,
        /// Whether our process answers questions about guarded names. If not, none may be used.
        judged: bool,
        /// The order to store what the command changes. The open files for it were sent before.
        witness: Option<WitnessOrder>,
    },
    /// Sent first to the guard of a program, after a byte with its open files.
    Program {
        program: OsBytes,
        arguments: Vec<OsBytes>,
        /// The whole environment.
        env: Vec<(OsBytes, OsBytes)>,
        cwd: OsBytes,
        /// The numbers of the open files in the program, in the order of the files.
        numbers: Vec<i32>,
        /// As in [`GuardOrder::Run`].
        judged: bool,
    },
    /// Interrupts only the program itself.
    Interrupt,
    /// Asks all processes of the command to exit, and kills them after a grace period.
    Kill {
        /// The grace period: the time before it is killed, in milliseconds.
        grace_ms: u64,
    },
    /// The answer to [`GuardEvent::Asks`].
    Judged {
        id: u32,
        used: NameUse,
        permitted: bool,
    },
    /// The answer to [`GuardEvent::CannotStore`].
    Storage { id: u32, answer: StorageAnswer },
}

/// The order to store what a command changes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WitnessOrder {
    /// The recorded directories. Their handles were sent after those of the log and of the directory
    /// for stored files.
    pub(crate) roots: Vec<OsBytes>,
    pub(crate) limits: WitnessLimits,
    /// Whether the handle of the directory of shared copies was sent before those of the recorded
    /// directories.
    pub(crate) has_copies: bool,
    /// Whether our process answers questions about files that cannot be stored.
    pub(crate) asks: bool,
}

/// The messages from the guard of a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum GuardEvent {
    /// The guard is ready. Attached are a pidfd of the guard, the fences, the link on which it
    /// creates sockets, and, if it has its own network with a proxy, a listening socket.
    Standing {
        /// Whether commands cannot reach waiting shells or other commands.
        apart: bool,
        /// Whether the command creates and changes files only through its guard.
        mediated: bool,
        /// Whether the guard can store what the command changes.
        witnesses: bool,
        /// The number of fences. If files are hidden from the command, its output may be used only
        /// after the guard has confirmed on a fence that they were not readable; each pipe has a
        /// fence. 0 if no files are hidden.
        fences: usize,
        /// The command's own network; the link is attached with it.
        network: Option<NetworkId>,
    },
    /// The shell cannot be started, and no command will run.
    Unable {
        /// The step that failed; empty if the failure does not show that the mechanism fails here.
        step: String,
        /// The error of the system.
        error: String,
        /// Whether it may work the next time.
        passing: bool,
    },
    /// The command waits for permission to use a guarded name.
    Asks { id: u32, used: NameUse },
    /// A call of the command waits because a file cannot be stored.
    CannotStore { id: u32, file: UnstoredFile },
    /// Storing a file takes long.
    SlowCopy { path: OsBytes, bytes: u64 },
    /// The command exceeded a limit and is being ended.
    Exceeded(ExceededLimit),
    /// The command's own process ended.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        cwd: Option<OsBytes>,
        left: u32,
        /// The hidden file that became readable. The command was ended because of it.
        uncovered: Option<OsBytes>,
        /// The writes that were refused, each with whether programs often work without it.
        refused: Vec<(OsBytes, bool)>,
    },
    /// No process of the command is left.
    Gone {
        /// The reason why not every change was recorded.
        witness_failure: Option<String>,
    },
}

/// The answers of a guard on a fence, one byte each. Our process sends a byte after it has read
/// output of the command, and the guard answers. This answer means: no hidden file was readable
/// until now.
pub(crate) const COVERED: u8 = b'c';
/// No hidden file was ever readable, and no process of the command is left.
pub(crate) const COVERED_TO_THE_END: u8 = b'e';
/// A hidden file was readable.
pub(crate) const UNCOVERED: u8 = b'u';

/// The requests for a socket in the network of a command, one byte each.
pub(crate) const SOCKET_V4: u8 = b'4';
pub(crate) const SOCKET_V6: u8 = b'6';
/// The first byte of the answer that has the socket attached.
pub(crate) const SOCKET_MADE: u8 = b's';
/// The first byte of the answer that contains an error number.
pub(crate) const SOCKET_FAILED: u8 = b'f';

/// A path, argument or other string of the system that need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OsBytes(Vec<u8>);

impl OsBytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for OsBytes {
    fn from(value: &[u8]) -> Self {
        Self(value.to_vec())
    }
}

impl From<PathBuf> for OsBytes {
    fn from(value: PathBuf) -> Self {
        value.into_os_string().into()
    }
}

impl From<OsString> for OsBytes {
    fn from(value: OsString) -> Self {
        Self(value.into_vec())
    }
}

impl From<OsBytes> for OsString {
    fn from(value: OsBytes) -> Self {
        Self::from_vec(value.0)
    }
}

/// Sends a packet with open files.
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

/// Receives a packet with its open files; `None` when the other side has closed the socket.
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

/// Receives one byte with its open files; blocks. Fails if the other side has closed the stream.
pub(crate) fn receive_files(socket: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut piece = [IoSliceMut::new(&mut byte)];
        match recvmsg(&socket, &mut piece, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other("not all open files arrived"));
    }
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok(files.flatten().collect())
}

/// Encodes a message as a frame.
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

/// Decodes the length from the first four bytes of a frame.
pub(crate) fn length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length <= FRAME {
        Ok(length)
    } else {
        Err(io::Error::other("a message is too long"))
    }
}

/// Writes a frame; blocks.
pub(crate) fn write(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    stream.write_all(&frame(message)?)
}

/// Reads a frame; blocks. Returns `None` when the other side has closed the stream.
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
