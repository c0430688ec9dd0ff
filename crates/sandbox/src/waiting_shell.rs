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

/// A shell that waits for its command. Confined programs have one as well, without a shell process.
pub(crate) struct WaitingShell {
    pub(crate) guard: GuardLink,
    pub(crate) output: pipe::Receiver,
    /// The guard, if it has already reported that it is ready.
    pub(crate) ready_guard: Option<ReadyGuard>,
}

/// A guard that is ready, with its shell.
pub(crate) struct ReadyGuard {
    /// The pidfd of the guard.
    handle: OwnedFd,
    /// Whether the command creates and changes files only through its guard.
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
    pub(crate) async fn wait_ready(
        &mut self,
        instance: &SandboxInstance,
    ) -> io::Result<ReadyGuard> {
        match self.ready_guard.take() {
            Some(guard) => Ok(guard),
            None => self
                .receive_ready(instance)
                .await
                .map_err(GuardStartError::into),
        }
    }

    /// Receives the guard's report that it is ready, or why it is not.
    pub(crate) async fn receive_ready(
        &mut self,
        instance: &SandboxInstance,
    ) -> Result<ReadyGuard, GuardStartError> {
        match self.guard.next().await {
            Some(GuardEvent::Standing {
                apart,
                mediated,
                witnesses,
                fences,
                network,
            }) => {
                instance.set_isolated(apart);
                instance.set_witnessing(witnesses);
                let handle = self.guard.file().ok_or(io::ErrorKind::NotFound);
                let fences: io::Result<Vec<_>> = (0..fences)
                    .map(|_| stream(self.guard.file().ok_or(io::ErrorKind::NotFound)?))
                    .collect();
                let network = network.map(|id| {
                    let link = stream(self.guard.file().ok_or(io::ErrorKind::NotFound)?)?;
                    Ok::<_, io::Error>(CommandNetwork::new(id, link))
                });
                let listener = self.guard.file().map(TcpListener::from);
                let accepting = listener.map(|listener| instance.accept_from(listener));
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
            None if instance.mechanism() == Mechanism::Bubblewrap => {
                Err(GuardStartError::Confinement {
                    step: instance.mechanism().name().to_owned(),
                    error: "it exited without a message".to_owned(),
                })
            }
            _ => Err(GuardStartError::Shell(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "the process that confines it exited without a message",
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
    fn from(error: GuardStartError) -> Self {
        match error {
            // The mechanism worked before, so the paths must have changed in the meantime. The
            // error makes the caller try again.
            GuardStartError::Confinement { step, error } => {
                Self::new(io::ErrorKind::BrokenPipe, format!("{step}: {error}"))
            }
            GuardStartError::Shell(error) => error,
        }
    }
}
