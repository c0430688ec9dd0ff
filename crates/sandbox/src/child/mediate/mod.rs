//! Mediation: the guard carries out the file system calls of a command.
//!
//! Landlock lets the processes of the command write only to temporary files and devices, not below the
//! writable directories. A seccomp filter passes each call that may write to the guard. The guard
//! resolves the path. If the path is below a writable directory, the guard asks our process about guarded
//! names, and carries the call out on a handle of the directory that it checked. It leaves all other
//! calls to the kernel, which refuses writes. So a command gains nothing by changing the arguments of a
//! call after the check.
//!
//! - [`Mediator`]: receives calls, and stores those that wait for an answer about a name
//! - `caller`: the thread that made a call
//! - `ask`: questions about guarded names
//! - `perform`: carries calls out; `create`, `rename`, `metadata`: some kinds of calls
//! - `witness`: stores the old state of everything that changes, for undo
//! - `storage_waits`: calls that wait because a file could not be stored
//! - `connect`: makes connections for the command
//! - `created_files`: the files that the command has created, and the paths that it must not change
//! - `new_directories`: the directories that the command has created, where control files may arrive
//! - `refused_writes`: the writes that were refused

mod ask;
mod caller;
mod connect;
mod create;
mod created_files;
mod metadata;
mod new_directories;
mod perform;
mod refused_writes;
mod rename;
mod storage_waits;
mod temporary_files;
mod witness;

use std::{
    collections::{HashMap, VecDeque},
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::io::Errno;

pub(super) use self::witness::ChangeWitness;
use self::{
    connect::MediatedConnection,
    created_files::{CreatedFiles, ImmutablePaths},
    new_directories::NewDirectories,
    refused_writes::RefusedWrites,
    storage_waits::StorageWaits,
    temporary_files::TemporaryFiles,
    witness::UnstoredObject,
};
use crate::{
    GuardedNames, NameAction, NameUse, RefusedWrite, SandboxProfile, StorageAnswer, UnstoredFile,
    fork::{ForkSide, fork},
    notify::{self, NotifiedCall, NotifyReply},
    protocol::SandboxPlan,
};

/// The error of refused calls. Existing guarded files are mounted read-only and give the same error.
const REFUSED: Errno = Errno::ROFS;

/// Receives the file system calls of one command and carries them out.
pub(super) struct Mediator {
    listener: OwnedFd,
    names: GuardedNames,
    roots: Vec<PathBuf>,
    immutable: ImmutablePaths,
    created: CreatedFiles,
    new_directories: NewDirectories,
    refused: RefusedWrites,
    /// Stores what the command changes, if our process wants that.
    witness: Option<ChangeWitness>,
    temporary: TemporaryFiles,
    /// Calls that wait for a decision of our process, by the number of the question.
    parked: HashMap<u32, ParkedCall>,
    next: u32,
    /// Calls that must be decided one at a time: moves of directories, and uses of names that are guarded
    /// in any directory. The decision depends on other files, which must not change until the call has
    /// been carried out.
    exclusive: VecDeque<ParkedCall>,
    /// The question about an exclusive call that is not answered yet.
    asking: Option<u32>,
    /// Calls that wait because a file could not be stored for undo.
    storing: StorageWaits,
}

/// A call that waits, with the decisions about the names that it uses. Decisions are not reused for other
/// calls, because they can depend on the existing files.
struct ParkedCall {
    call: NotifiedCall,
    permits: HashMap<NameUse, bool>,
}

/// The outcome of a call.
enum MediationOutcome {
    /// The call was carried out or refused, or is left to the kernel.
    Answered(NotifyReply),
    /// The caller gets this file.
    File { file: OwnedFd, close_on_exec: bool },
    /// Opening the file waits for another process, so a separate process does it.
    Waits {
        handle: OwnedFd,
        flags: rustix::fs::OFlags,
    },
    /// Connecting may wait for the other side, so a separate process does it.
    Connects(MediatedConnection),
    /// Our process must decide about this use first.
    Ask(NameUse),
    /// Our process must decide about this file first, which could not be stored.
    Store(UnstoredObject),
}

impl Mediator {
    pub(super) fn new(listener: OwnedFd, plan: &SandboxPlan) -> Self {
        let (names, roots, immutable) = match &plan.profile {
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
            immutable,
            created: CreatedFiles::default(),
            new_directories: NewDirectories::default(),
            refused: RefusedWrites::default(),
            witness: None,
            temporary: TemporaryFiles::for_plan(plan),
            parked: HashMap::new(),
            next: 0,
            exclusive: VecDeque::new(),
            asking: None,
            storing: StorageWaits::default(),
        }
    }

    /// Returns the descriptor that becomes readable when a call arrives.
    pub(super) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Stores what the command changes from now on.
    pub(super) fn set_witness(&mut self, witness: Option<ChangeWitness>) {
        self.witness = witness;
    }

    /// Returns the witness, and stores nothing from now on.
    pub(super) fn take_witness(&mut self) -> Option<ChangeWitness> {
        self.witness.take()
    }

    /// Returns the writes that were refused so far, by the guard or by the kernel.
    pub(super) fn refused(&self) -> Vec<RefusedWrite> {
        self.refused.all()
    }

    /// Records a write that the kernel will refuse. Leaves out temporary files, which may all be
    /// written.
    fn record_refused(&self, path: &Path, tentative: bool) {
        if !self.temporary.include(path) {
            self.refused.record(path, tentative);
        }
    }

    /// Returns whether no other call may be received now.
    pub(super) fn is_busy(&self) -> bool {
        self.asking.is_some() || !self.exclusive.is_empty()
    }

    /// Receives the next call and carries it out. Returns a question if our process must decide first.
    /// With `can_ask` false, calls that need a decision are refused instead.
    pub(super) fn receive_call(&mut self, can_ask: bool) -> io::Result<Option<(u32, NameUse)>> {
        match notify::receive(self.listener.as_fd()) {
            Ok(call) => {
                let permits = HashMap::new();
                Ok(self.carry_out(ParkedCall { call, permits }, can_ask))
            }
            // The call was interrupted, or its process has exited.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Receives the decision of our process about a name, and carries the call out. If its path leads to
    /// another file by now, returns another question.
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

    /// Returns the new questions about files that could not be stored.
    pub(super) fn take_storage_questions(&mut self) -> Vec<(u32, UnstoredFile)> {
        self.storing.take_questions()
    }

    /// Receives the answer of our process about a file that could not be stored, and carries out the
    /// calls that waited for it. Names are decided again, because other calls were carried out since.
    pub(super) fn on_storage(&mut self, id: u32, answer: StorageAnswer) -> Vec<(u32, NameUse)> {
        let Some((file, calls)) = self.storing.take_calls(id) else {
            return Vec::new();
        };
        if let Some(witness) = &self.witness {
            witness.on_answer(file, answer);
        }
        let permits = HashMap::new;
        let calls = calls.into_iter().map(|call| ParkedCall {
            call,
            permits: permits(),
        });
        let mut questions = Vec::new();
        for parked in calls {
            // Only one exclusive question may be open.
            if self.is_busy() {
                self.exclusive.push_back(parked);
                continue;
            }
            questions.extend(self.carry_out(parked, true));
        }
        questions
    }

    /// Carries a call out and answers it. Returns a question if our process must decide first.
    fn carry_out(&mut self, parked: ParkedCall, can_ask: bool) -> Option<(u32, NameUse)> {
        let call = parked.call;
        let answer = match perform::carry_out(self, &call, &parked.permits) {
            MediationOutcome::Ask(_) if !can_ask => NotifyReply::Failed(REFUSED),
            MediationOutcome::Ask(used) => {
                let exclusive = self.is_exclusive(&used);
                // Calls with an open question are carried out first.
                if exclusive && !self.parked.is_empty() {
                    self.exclusive.push_back(parked);
                    return None;
                }
                self.next = self.next.wrapping_add(1);
                self.asking = exclusive.then_some(self.next);
                self.parked.insert(self.next, parked);
                return Some((self.next, used));
            }
            MediationOutcome::Store(file) => {
                self.storing.hold(file, call);
                return None;
            }
            MediationOutcome::Answered(answer) => answer,
            MediationOutcome::File {
                file,
                close_on_exec,
            } => match notify::hand_over(self.listener.as_fd(), &call, file.as_fd(), close_on_exec)
            {
                Ok(()) => return None,
                // The process has reached its limit of open files, or has exited.
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
        // Fails if the process has exited.
        let _ = notify::answer(self.listener.as_fd(), &call, &answer);
        None
    }

    /// Opens a named pipe in a separate process, because that waits until the other side opens it.
    fn wait_and_open(
        &self,
        call: &NotifiedCall,
        handle: &OwnedFd,
        flags: rustix::fs::OFlags,
    ) -> io::Result<()> {
        if let ForkSide::Parent(_) = fork()? {
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

    /// Connects in a separate process, because a blocking socket waits for the other side.
    fn wait_and_connect(
        &self,
        call: &NotifiedCall,
        connection: &MediatedConnection,
    ) -> io::Result<()> {
        if let ForkSide::Parent(_) = fork()? {
            return Ok(());
        }
        let reply = match connection.connect() {
            Ok(()) => NotifyReply::Done,
            Err(errno) => NotifyReply::Failed(errno),
        };
        let _ = notify::answer(self.listener.as_fd(), call, &reply);
        std::process::exit(0);
    }

    /// Returns whether no other call may be carried out until the question about this use is answered.
    fn is_exclusive(&self, used: &NameUse) -> bool {
        let is_name = |below| self.names.is_guarded_name(below, false);
        matches!(
            used.action,
            NameAction::MoveDirectory { .. } | NameAction::ReplaceDirectory { .. }
        ) || self.path_in_root(&used.path).is_some_and(is_name)
    }

    /// Returns a path relative to the writable directory that contains it. `None` if no writable
    /// directory does, or the path is a temporary file.
    fn path_in_root<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        if self.temporary.include(path) {
            return None;
        }
        self.roots
            .iter()
            .find_map(|root| path.strip_prefix(root).ok())
    }
}
