//! The network namespace of a command, as seen from outside.
//!
//! A socket belongs to the network namespace where it was created, no matter which process
//! connects it. The guard of a command runs in the command's network namespace, creates sockets
//! there and sends them to our process, which connects them. Our process therefore needs no right
//! to enter namespaces, and no process ID that may be reused: a socket from a guard leads into the
//! network of that guard's command, or fails.

use std::{
    fmt, fs, io,
    mem::MaybeUninit,
    net::{SocketAddr, TcpStream as BlockingTcpStream},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    sync::Arc,
    time::Duration,
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::{TcpSocket, TcpStream, UnixStream},
    sync::Mutex,
    time::timeout,
};

use crate::protocol::{SOCKET_MADE, SOCKET_V4, SOCKET_V6};

/// The time that a guard has to create a socket. A stopped guard never answers.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The identity of a network namespace. It is unique on this machine at any one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetworkId {
    device: u64,
    number: u64,
}

impl NetworkId {
    /// Returns the network of a process. `None` if the process has exited or may not be inspected.
    pub fn for_process(pid: u32) -> Option<Self> {
        Self::from_namespace_file(&format!("/proc/{pid}/ns/net"))
    }

    /// Returns the network of this process.
    pub fn own() -> Option<Self> {
        Self::from_namespace_file("/proc/self/ns/net")
    }

    fn from_namespace_file(place: &str) -> Option<Self> {
        let found = fs::metadata(place).ok()?;
        Some(Self {
            device: found.dev(),
            number: found.ino(),
        })
    }
}

/// The network of a command or a confined program: its loopback interface, and everything that
/// listens there. Cheap to clone; does not keep the command alive.
#[derive(Clone)]
pub struct CommandNetwork(Arc<SocketLink>);

struct SocketLink {
    id: NetworkId,
    /// The link to the guard; `None` after the guard failed to answer.
    guard: Mutex<Option<UnixStream>>,
}

impl CommandNetwork {
    pub(crate) fn new(id: NetworkId, guard: UnixStream) -> Self {
        Self(Arc::new(SocketLink {
            id,
            guard: Mutex::new(Some(guard)),
        }))
    }

    /// Returns the identity of the network. Commands of one sandbox may share a network.
    pub fn id(&self) -> NetworkId {
        self.0.id
    }

    /// Connects to a loopback address in that network, which has no other addresses. The time to
    /// create the socket is limited; the time until the server accepts the connection is not.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        if !address.ip().to_canonical().is_loopback() {
            let text = format!(
                "{address} is not a loopback address, and a command's network has no other"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let kind = match address {
            SocketAddr::V4(_) => SOCKET_V4,
            SocketAddr::V6(_) => SOCKET_V6,
        };
        let sockets = Arc::clone(&self.0);
        // A separate task reads the answer even if the caller stops waiting. Otherwise the next
        // caller would receive this answer.
        let made = tokio::spawn(async move { sockets.socket(kind).await });
        let socket = made.await.map_err(io::Error::other)??;
        let socket = TcpSocket::from_std_stream(BlockingTcpStream::from(socket));
        socket.connect(address).await
    }
}

impl SocketLink {
    /// Requests a socket from the guard.
    async fn socket(&self, kind: u8) -> io::Result<OwnedFd> {
        let mut guard = self.guard.lock().await;
        let stream = guard.as_mut().ok_or_else(ended_error)?;
        match timeout(TIMEOUT, ask(stream, kind)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                *guard = None;
                Err(ended_error())
            }
            Err(_) => {
                *guard = None;
                let text = "what confines the command does not answer";
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
        }
    }
}

/// Returns the guard's answer. The outer error means that the guard has stopped answering.
async fn ask(guard: &mut UnixStream, kind: u8) -> io::Result<io::Result<OwnedFd>> {
    guard.write_all(&[kind]).await?;
    loop {
        guard.readable().await?;
        // A status byte and, after a failure, an error number.
        let mut answer = [0; 5];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = guard.try_io(Interest::READABLE, || {
            let mut pieces = [io::IoSliceMut::new(&mut answer)];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            Ok(recvmsg(guard.as_fd(), &mut pieces, &mut control, flags)?.bytes)
        });
        match received {
            Ok(0) => return Err(ended_error()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        let file = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let [how, code @ ..] = answer;
        return match file {
            Some(file) if how == SOCKET_MADE => Ok(Ok(file)),
            _ => Ok(Err(io::Error::from_raw_os_error(i32::from_le_bytes(code)))),
        };
    }
}

fn ended_error() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the command has ended")
}

impl PartialEq for CommandNetwork {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CommandNetwork {}

impl fmt::Debug for CommandNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CommandNetwork").field(&self.0.id).finish()
    }
}
