//! The network that a command has for itself, seen from outside.
//!
//! A socket belongs to the network in which it was made, no matter who connects it. So the guard of a command, which stands
//! in that network, makes sockets there and hands them out; our process connects them. Nothing has to enter a name
//! space for that, which not everyone may, and no process is named by a number that could become another's: what a
//! guard hands out leads into the network of its own command, or it is gone.

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

/// How long a guard may take to make a socket: one that was stopped never does.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tells a network from all others of this machine that there are at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetworkId {
    device: u64,
    number: u64,
}

impl NetworkId {
    /// The network of a process; `None` if it is gone, or may not be looked at.
    pub fn of(pid: u32) -> Option<Self> {
        Self::at(&format!("/proc/{pid}/ns/net"))
    }

    /// The network of this process.
    pub fn own() -> Option<Self> {
        Self::at("/proc/self/ns/net")
    }

    fn at(place: &str) -> Option<Self> {
        let found = fs::metadata(place).ok()?;
        Some(Self {
            device: found.dev(),
            number: found.ino(),
        })
    }
}

/// The network that a command, or a program that is confined for long, has for itself: its loopback interface, and
/// what listens there. Cheap to clone; does not keep the command alive.
#[derive(Clone)]
pub struct CommandNetwork(Arc<SocketLink>);

struct SocketLink {
    id: NetworkId,
    /// To the guard; `None` once it did not answer.
    guard: Mutex<Option<UnixStream>>,
}

impl CommandNetwork {
    pub(crate) fn new(id: NetworkId, guard: UnixStream) -> Self {
        Self(Arc::new(SocketLink {
            id,
            guard: Mutex::new(Some(guard)),
        }))
    }

    /// Which network it is. Commands of one sandbox may share theirs.
    pub fn id(&self) -> NetworkId {
        self.0.id
    }

    /// Connects to an address in that network, which must be one of loopback: there is nothing else in it. The only
    /// waits without a bound are those for a server that does not take the connection.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        if !address.ip().to_canonical().is_loopback() {
            let text =
                format!("{address} is no loopback address, and a command's network has no other");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let kind = match address {
            SocketAddr::V4(_) => SOCKET_V4,
            SocketAddr::V6(_) => SOCKET_V6,
        };
        let sockets = Arc::clone(&self.0);
        // In a task of its own, so that an answer is read even if no one wants it any more: the next one who asks
        // would take it for theirs.
        let made = tokio::spawn(async move { sockets.socket(kind).await });
        let socket = made.await.map_err(io::Error::other)??;
        let socket = TcpSocket::from_std_stream(BlockingTcpStream::from(socket));
        socket.connect(address).await
    }
}

impl SocketLink {
    /// Has the guard make a socket.
    async fn socket(&self, kind: u8) -> io::Result<OwnedFd> {
        let mut guard = self.guard.lock().await;
        let stream = guard.as_mut().ok_or_else(gone)?;
        match timeout(PATIENCE, ask(stream, kind)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                *guard = None;
                Err(gone())
            }
            Err(_) => {
                *guard = None;
                let text = "what confines the command does not answer";
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
        }
    }
}

/// The guard's answer. The outer error: it gives none any more.
async fn ask(guard: &mut UnixStream, kind: u8) -> io::Result<io::Result<OwnedFd>> {
    guard.write_all(&[kind]).await?;
    loop {
        guard.readable().await?;
        // How it went, and where it did not, with what error.
        let mut answer = [0; 5];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = guard.try_io(Interest::READABLE, || {
            let mut pieces = [io::IoSliceMut::new(&mut answer)];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            Ok(recvmsg(guard.as_fd(), &mut pieces, &mut control, flags)?.bytes)
        });
        match received {
            Ok(0) => return Err(gone()),
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

fn gone() -> io::Error {
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
