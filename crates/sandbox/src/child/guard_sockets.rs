//! Sockets in the network of a command, which the guard creates for our process: see
//! `command_network`.

use std::{
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::{
    Mechanism, NetworkId, SandboxNetwork, SandboxProfile,
    protocol::{self, SOCKET_FAILED, SOCKET_MADE, SOCKET_V4, SOCKET_V6, SandboxPlan},
};

/// The guard's end of the link on which our process requests sockets.
pub(super) struct GuardSockets(UnixStream);

impl GuardSockets {
    /// Creates the link for a command that has its own network and can listen in it. Returns it
    /// with the end for our process.
    pub(super) fn for_plan(
        plan: &SandboxPlan,
    ) -> io::Result<Option<(Self, NetworkId, UnixStream)>> {
        let listens = matches!(
            &plan.profile,
            SandboxProfile::Workspace(workspace) if workspace.network == SandboxNetwork::Proxy
        );
        if !listens || plan.mechanism >= Mechanism::Reduced {
            return Ok(None);
        }
        // Without an identity, our process could not check which network a socket belongs to.
        let Some(id) = NetworkId::own() else {
            return Ok(None);
        };
        let (ours, theirs) = UnixStream::pair()?;
        Ok(Some((Self(ours), id, theirs)))
    }

    pub(super) fn link(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Creates the socket that our process requests. Returns `false` if the link is closed.
    pub(super) fn make_socket(&mut self) -> bool {
        let mut kind = [0];
        if !matches!(self.0.read(&mut kind), Ok(1)) {
            return false;
        }
        let family = match kind {
            [SOCKET_V4] => AddressFamily::INET,
            [SOCKET_V6] => AddressFamily::INET6,
            _ => return false,
        };
        // Our process connects the socket without blocking.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let sent = match socket_with(family, SocketType::STREAM, flags, None) {
            Ok(socket) => {
                let made = [SOCKET_MADE, 0, 0, 0, 0];
                protocol::send(&self.0, &made, &[socket.as_fd()])
            }
            Err(error) => {
                let mut answer = vec![SOCKET_FAILED];
                answer.extend(error.raw_os_error().to_le_bytes());
                protocol::send(&self.0, &answer, &[])
            }
        };
        sent.is_ok()
    }
}
