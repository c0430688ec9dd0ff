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
    network::Accepting, protocol::News, tree,
};

/// A shell that waits for its command.
pub(crate) struct WaitingShell {
    pub(crate) guard: GuardLink,
    pub(crate) output: pipe::Receiver,
    pub(crate) standing: Option<Standing>,
}

/// A guard that stands, with its shell.
pub(crate) struct Standing {
    /// Its process.
    handle: OwnedFd,
    pub(crate) mediated: bool,
    /// Where the guard vouches for what the command wrote, if it has to: for each pipe.
    pub(crate) fences: Vec<UnixStream>,
    /// The network that the command has for itself, if it has one with anything in it.
    pub(crate) network: Option<CommandNetwork>,
    /// The proxy listens in its network.
    _accepting: Option<Accepting>,
}

impl Standing {
    /// The number of the guard's process; `None` when it is gone.
    pub(crate) fn pid(&self) -> Option<u32> {
        tree::number(&self.handle)
    }

    /// Ends the guard. Where it has a process space of its own, the kernel ends all that is in there.
    pub(crate) fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

impl WaitingShell {
    /// Waits until the guard stands and has its shell.
    pub(crate) async fn stand(&mut self, world: &SandboxInstance) -> io::Result<Standing> {
        match self.standing.take() {
            Some(standing) => Ok(standing),
            None => self.rise(world).await.map_err(Fallen::into),
        }
    }

    pub(crate) async fn rise(&mut self, world: &SandboxInstance) -> Result<Standing, Fallen> {
        match self.guard.next().await {
            Some(News::Standing {
                apart,
                mediated,
                fences,
                network,
            }) => {
                world.note_apart(apart);
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
                Ok(Standing {
                    handle: handle.map_err(|kind| Fallen::Shell(kind.into()))?,
                    mediated,
                    fences: fences.map_err(Fallen::Shell)?,
                    network: network.transpose().map_err(Fallen::Shell)?,
                    _accepting: accepting.transpose().map_err(Fallen::Shell)?.flatten(),
                })
            }
            Some(News::Unable {
                step,
                error,
                passing,
            }) if passing && step.starts_with('/') => {
                // Something was moved meanwhile: another sandbox may have it.
                let text = format!("{step}: {error}");
                Err(Fallen::Shell(io::Error::new(
                    io::ErrorKind::BrokenPipe,
                    text,
                )))
            }
            Some(News::Unable {
                step,
                error,
                passing,
            }) if passing || step.is_empty() => Err(Fallen::Shell(io::Error::other(error))),
            Some(News::Unable { step, error, .. }) => Err(Fallen::Confinement { step, error }),
            // It says nothing when it cannot do its work.
            None if world.mechanism() == Mechanism::Bubblewrap => Err(Fallen::Confinement {
                step: world.mechanism().name().to_owned(),
                error: "it ended without a word".to_owned(),
            }),
            _ => Err(Fallen::Shell(io::Error::new(
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

/// Why a guard does not stand.
pub(crate) enum Fallen {
    /// Its command cannot be confined so.
    Confinement { step: String, error: String },
    /// That says nothing about what can be had here.
    Shell(io::Error),
}

impl From<Fallen> for io::Error {
    fn from(fallen: Fallen) -> Self {
        match fallen {
            // It could be done before: what is there has changed meanwhile, so that it is tried anew.
            Fallen::Confinement { step, error } => {
                Self::new(io::ErrorKind::BrokenPipe, format!("{step}: {error}"))
            }
            Fallen::Shell(error) => error,
        }
    }
}
