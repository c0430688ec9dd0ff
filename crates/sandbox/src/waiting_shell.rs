//! A shell that waits for its command, with the guard that started it.

use std::{
    io,
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixStream as BlockingStream},
};

use rustix::process::{Signal, pidfd_send_signal};
use tokio::net::{UnixStream, unix::pipe};

use crate::{
    CommandNetwork, Mechanism, guard_link::GuardLink, instance::SandboxInstance,
    network::ListenerGuard, process_tree, protocol::GuardEvent,
};

/// A shell that waits for its command.
pub(crate) struct WaitingShell {
    pub(crate) guard: GuardLink,
    pub(crate) output: pipe::Receiver,
    pub(crate) standing: Option<ReadyGuard>,
}

/// A guard that is ready, with its shell.
pub(crate) struct ReadyGuard {
    /// The pidfd of the guard.
    handle: OwnedFd,
    pub(crate) mediated: bool,
    /// The sockets on which the guard confirms that output may be used: one for each pipe, if files
    /// are hidden.
    pub(crate) fences: Vec<UnixStream>,
    /// The command's own network, if processes can listen there.
    pub(crate) network: Option<CommandNetwork>,
    /// Keeps the proxy listening in that network.
    _accepting: Option<ListenerGuard>,
}

impl ReadyGuard {
    /// Returns the process ID of the guard; `None` when it has exited.
    pub(crate) fn pid(&self) -> Option<u32> {
        process_tree::number(&self.handle)
    }

    /// Kills the guard. If it has its own PID namespace, the kernel ends all processes in it.
    pub(crate) fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

impl WaitingShell {
    /// Waits until the guard is ready and has its shell.
    pub(crate) async fn wait_ready(&mut self, world: &SandboxInstance) -> io::Result<ReadyGuard> {
        match self.standing.take() {
            Some(standing) => Ok(standing),
            None => self
                .receive_ready(world)
                .await
                .map_err(GuardStartError::into),
        }
    }

    pub(crate) async fn receive_ready(
        &mut self,
        world: &SandboxInstance,
    ) -> Result<ReadyGuard, GuardStartError> {
        match self.guard.next().await {
            Some(GuardEvent::Standing {
                apart,
                mediated,
                fences,
                network,
            }) => {
                world.set_isolated(apart);
                let handle = self.guard.file().ok_or(io::ErrorKind::NotFound);
                let fences: io::Result<Vec<_>> = (0..fences)
                    .map(|_| stream(self.guard.file().ok_or(io::ErrorKind::NotFound)?))
                    .collect();
                let network = network.map(|id| {
                    let link = stream(self.guard.file().ok_or(io::ErrorKind::NotFound)?)?;
                    Ok::<_, io::Error>(CommandNetwork::new(id, link))
                });
                let listener = self.guard.file().map(TcpListener::from);
                let accepting = listener.map(|listener| world.accept_from(listener));
                Ok(ReadyGuard {
                    handle: handle.map_err(|kind| GuardStartError::Shell(kind.into()))?,
                    mediated,
                    fences: fences.map_err(GuardStartError::Shell)?,
                    network: network.transpose().map_err(GuardStartError::Shell)?,
                    _accepting: accepting
                        .transpose()
                        .map_err(GuardStartError::Shell)?
                        .flatten(),
                })
            }
            Some(GuardEvent::Unable {
                step,
                error,
                passing,
            }) if passing && step.starts_with('/') => {
                // A path was moved during the setup: another sandbox may succeed.
                let text = format!("{step}: {error}");
                Err(GuardStartError::Shell(io::Error::new(
                    io::ErrorKind::BrokenPipe,
                    text,
                )))
            }
            Some(GuardEvent::Unable {
                step,
                error,
                passing,
            }) if passing || step.is_empty() => {
                Err(GuardStartError::Shell(io::Error::other(error)))
            }
            Some(GuardEvent::Unable { step, error, .. }) => {
                Err(GuardStartError::Confinement { step, error })
            }
            // Bubblewrap exits without a message if it cannot work here.
            None if world.mechanism() == Mechanism::Bubblewrap => {
                Err(GuardStartError::Confinement {
                    step: world.mechanism().name().to_owned(),
                    error: "it ended without a word".to_owned(),
                })
            }
            _ => Err(GuardStartError::Shell(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "what was to confine it ended without a word",
            ))),
        }
    }
}

fn stream(file: OwnedFd) -> io::Result<UnixStream> {
    let stream = BlockingStream::from(file);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// The reason why a guard did not start.
pub(crate) enum GuardStartError {
    /// The command cannot be confined with this mechanism.
    Confinement { step: String, error: String },
    /// The failure does not show that the mechanism fails here.
    Shell(io::Error),
}

impl From<GuardStartError> for io::Error {
    fn from(fallen: GuardStartError) -> Self {
        match fallen {
            // The mechanism worked before, so the paths must have changed in the meantime. The
            // error makes the caller try again.
            GuardStartError::Confinement { step, error } => {
                Self::new(io::ErrorKind::BrokenPipe, format!("{step}: {error}"))
            }
            GuardStartError::Shell(error) => error,
        }
    }
}
