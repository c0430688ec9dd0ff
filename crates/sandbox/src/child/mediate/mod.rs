//! Files made, named, removed and opened for writing on a command's behalf.
//!
//! The shell and all it starts may not write below the writable directories (Landlock); each call that
//! would is handed to the guard, which looks at where it leads, asks our process about guarded names,
//! and does it with a handle of the very directory it looked at. Whatever else is left to the kernel,
//! which refuses it: so a call that changes its arguments meanwhile gains nothing.
//!
//! - [`Mediator`]: takes calls, and keeps those that wait for an answer about a name
//! - `caller`: the thread that made a call
//! - `ask`: questions about names
//! - `act`: what is done for it; `rename`: what is moved and removed
//! - `connect`: connections, which it makes for the command
//! - `made`: what it has made itself, and what is kept from it; `refused`: what it was kept from

mod ask;
mod caller;
mod connect;
mod created_files;
mod perform;
mod refused_writes;
mod rename;

use std::{
    collections::{HashMap, VecDeque},
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use self::{
    connect::Connection,
    created_files::{CreatedFiles, ImmutablePaths},
    refused_writes::RefusedWrites,
};
use crate::{
    GuardedNames, NameAction, NameUse, RefusedWrite, SandboxProfile,
    fork::{Forked, fork},
    notify::{self, NotifiedCall, NotifyReply},
    protocol::SandboxPlan,
};

/// What is refused looks like a read-only file, as guarded files that exist do.
const REFUSED: Errno = Errno::ROFS;

/// Takes the calls of one command.
pub(super) struct Mediator {
    listener: OwnedFd,
    names: GuardedNames,
    roots: Vec<PathBuf>,
    kept: ImmutablePaths,
    made: CreatedFiles,
    refused: RefusedWrites,
    scratch: PathBuf,
    /// Calls that wait for our process to say whether they may.
    parked: HashMap<u32, ParkedCall>,
    next: u32,
    /// Calls that are asked about one at a time: moves of directories, and uses of names that are guarded by
    /// themselves. The answer depends on other files, which must not change until the call is carried out.
    exclusive: VecDeque<ParkedCall>,
    /// The one that is being asked about.
    asking: Option<u32>,
}

/// A call that waits, and what was said about the names it uses. What a name may be used for can change
/// with what is there, so that it is asked about for each call.
struct ParkedCall {
    call: NotifiedCall,
    permits: HashMap<NameUse, bool>,
}

/// What becomes of a call.
enum MediationOutcome {
    Answered(NotifyReply),
    /// The caller gets this file.
    File {
        file: OwnedFd,
        close_on_exec: bool,
    },
    /// Opening it waits for another process: done by a process of its own.
    Waits {
        handle: OwnedFd,
        flags: rustix::fs::OFlags,
    },
    /// Connecting may wait for the other side: done by a second process.
    Connects(Connection),
    /// Our process must be asked first.
    Ask(NameUse),
}

impl Mediator {
    pub(super) fn new(listener: OwnedFd, plan: &SandboxPlan) -> Self {
        let (names, roots, kept) = match &plan.profile {
            SandboxProfile::Workspace(workspace) => (
                workspace.guarded.clone().unwrap_or_default(),
                workspace.writable.clone(),
                ImmutablePaths::new(&workspace.protected, &workspace.writable),
            ),
            SandboxProfile::ReadOnly(_) | SandboxProfile::Full => Default::default(),
        };
        Self {
            listener,
            names,
            roots,
            kept,
            made: CreatedFiles::default(),
            refused: RefusedWrites::default(),
            scratch: plan.scratch.clone(),
            parked: HashMap::new(),
            next: 0,
            exclusive: VecDeque::new(),
            asking: None,
        }
    }

    /// Becomes readable when there is a call.
    pub(super) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// What it kept the command from writing so far, and what the kernel does.
    pub(super) fn refused(&self) -> Vec<RefusedWrite> {
        self.refused.all()
    }

    /// Takes note of a write that the kernel will refuse.
    fn note_refused(&self, path: &Path, tentative: bool) {
        if !path.starts_with(&self.scratch) {
            self.refused.note(path, tentative);
        }
    }

    /// Must no other call be taken now?
    pub(super) fn is_busy(&self) -> bool {
        self.asking.is_some() || !self.exclusive.is_empty()
    }

    /// Takes the next call. A question comes back if our process must be asked; `asks`: there is
    /// something it can be asked about, or else the answer is no.
    pub(super) fn take(&mut self, asks: bool) -> io::Result<Option<(u32, NameUse)>> {
        match notify::receive(self.listener.as_fd()) {
            Ok(call) => {
                let permits = HashMap::new();
                Ok(self.carry_out(ParkedCall { call, permits }, asks))
            }
            // It was interrupted, or the process that made it is gone.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes what our process said about a name, and carries the call out. It may lead elsewhere by now:
    /// then there is another question.
    pub(super) fn on_answer(
        &mut self,
        id: u32,
        used: NameUse,
        permitted: bool,
    ) -> Option<(u32, NameUse)> {
        let mut parked = self.parked.remove(&id)?;
        if self.asking == Some(id) {
            self.asking = None;
        }
        parked.permits.insert(used, permitted);
        let mut question = self.carry_out(parked, true);
        while question.is_none() && self.parked.is_empty() {
            let Some(next) = self.exclusive.pop_front() else {
                break;
            };
            question = self.carry_out(next, true);
        }
        question
    }

    fn carry_out(&mut self, parked: ParkedCall, asks: bool) -> Option<(u32, NameUse)> {
        let call = parked.call;
        let answer = match perform::carry_out(self, &call, &parked.permits) {
            MediationOutcome::Ask(_) if !asks => NotifyReply::Failed(REFUSED),
            MediationOutcome::Ask(used) => {
                let exclusive = self.is_exclusive(&used);
                // What others were asked about is done first.
                if exclusive && !self.parked.is_empty() {
                    self.exclusive.push_back(parked);
                    return None;
                }
                self.next = self.next.wrapping_add(1);
                self.asking = exclusive.then_some(self.next);
                self.parked.insert(self.next, parked);
                return Some((self.next, used));
            }
            MediationOutcome::Answered(answer) => answer,
            MediationOutcome::File {
                file,
                close_on_exec,
            } => match notify::hand_over(self.listener.as_fd(), &call, file.as_fd(), close_on_exec)
            {
                Ok(()) => return None,
                // It has as many files open as it may, or it is gone.
                Err(error) => {
                    NotifyReply::Failed(Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
                }
            },
            MediationOutcome::Waits { handle, flags } => {
                match self.wait_and_open(&call, &handle, flags) {
                    Ok(()) => return None,
                    Err(error) => {
                        NotifyReply::Failed(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
                    }
                }
            }
            MediationOutcome::Connects(connection) => {
                match self.wait_and_connect(&call, &connection) {
                    Ok(()) => return None,
                    Err(error) => {
                        NotifyReply::Failed(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
                    }
                }
            }
        };
        // The process that made it may be gone.
        let _ = notify::answer(self.listener.as_fd(), &call, &answer);
        None
    }

    /// Opens a pipe with a name in a second process, for it waits until the other side does.
    fn wait_and_open(
        &self,
        call: &NotifiedCall,
        handle: &OwnedFd,
        flags: rustix::fs::OFlags,
    ) -> io::Result<()> {
        if let Forked::Parent(_) = fork()? {
            return Ok(());
        }
        let listener = self.listener.as_fd();
        let close_on_exec = flags.contains(rustix::fs::OFlags::CLOEXEC);
        let handed = caller::reopen(handle, flags, rustix::fs::Mode::empty())
            .map_err(io::Error::from)
            .and_then(|file| notify::hand_over(listener, call, file.as_fd(), close_on_exec));
        if let Err(error) = handed {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let _ = notify::answer(listener, call, &NotifyReply::Failed(errno));
        }
        std::process::exit(0);
    }

    /// Connects in a second process, for a blocking socket waits until the other side answers.
    fn wait_and_connect(&self, call: &NotifiedCall, connection: &Connection) -> io::Result<()> {
        if let Forked::Parent(_) = fork()? {
            return Ok(());
        }
        let reply = match connection.connect() {
            Ok(()) => NotifyReply::Done,
            Err(errno) => NotifyReply::Failed(errno),
        };
        let _ = notify::answer(self.listener.as_fd(), call, &reply);
        std::process::exit(0);
    }

    /// Returns whether no other call may be carried out between the question about this use and its answer.
    fn is_exclusive(&self, used: &NameUse) -> bool {
        let is_name = |below| self.names.is_guarded_name(below, false);
        matches!(used.action, NameAction::MoveDirectory { .. })
            || self.below(&used.path).is_some_and(is_name)
    }

    /// The path below the writable directory it is in; `None` if it is in none.
    fn below<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        if path.starts_with(&self.scratch) {
            return None;
        }
        self.roots
            .iter()
            .find_map(|root| path.strip_prefix(root).ok())
    }
}
