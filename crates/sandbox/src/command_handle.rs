//! A running command.

use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::{
    CommandNetwork, CommandOutput, ExceededLimit, Mechanism, NamePolicy, ProcessInfo,
    StorageAnswer, StoragePolicy,
    guard_link::GuardLink,
    instance::SandboxInstance,
    process_tree,
    protocol::{GuardEvent, GuardOrder},
    waiting_shell::{ReadyGuard, WaitingShell},
};

/// A running command. Dropping this ends all its processes.
pub struct CommandHandle {
    /// The output of the command.
    pub output: CommandOutput,
    guard: GuardLink,
    guard_state: ReadyGuard,
    /// Decides about guarded names.
    names: Option<NamePolicy>,
    /// Decides about files that cannot be stored for undo.
    storage: Option<Arc<dyn StoragePolicy>>,
    /// The answers about such files that are being found.
    storage_answers: JoinSet<(u32, StorageAnswer)>,
    ended: Option<CommandEnd>,
    exceeded: Option<ExceededLimit>,
    finished: bool,
    /// The deadline for the end of all its processes.
    due: Option<KillDeadline>,
    instance: Arc<SandboxInstance>,
}

/// The deadline of a command that is being ended, and the process to kill after it: a command can
/// stop its own guard.
#[derive(Clone, Copy)]
struct KillDeadline {
    at: Instant,
    ends: KillTarget,
}

#[derive(Clone, Copy)]
enum KillTarget {
    Guard,
    /// The guard was killed, but processes are left.
    Keeper,
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// Whether it exited with a code or was killed by a signal.
    pub how: ExitKind,
    /// The final directory, with symlinks resolved; `None` if the shell did not reach its end.
    pub cwd: Option<PathBuf>,
    /// The number of processes that it left running.
    pub left: u32,
    /// The hidden file that became readable because a process outside replaced it. The command was
    /// ended because of it.
    pub uncovered: Option<PathBuf>,
    /// The writes that were refused, whether or not the command reported them. Known only for
    /// mediated commands.
    pub refused: Vec<RefusedWrite>,
    /// The limit that the command, or processes that it left running, exceeded. They were ended
    /// because of it.
    pub exceeded: Option<ExceededLimit>,
    /// The reason why the guard did not record every change of the command for undo. Known when all
    /// processes have ended.
    pub witness_failure: Option<String>,
}

impl CommandEnd {
    /// Returns the end of a command whose exit status is unknown.
    pub fn lost() -> Self {
        Self {
            how: ExitKind::Lost,
            cwd: None,
            left: 0,
            uncovered: None,
            refused: Vec::new(),
            exceeded: None,
            witness_failure: None,
        }
    }
}

/// A write that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedWrite {
    /// The path as the command sees it, with symlinks resolved.
    pub path: PathBuf,
    /// Whether the file was opened for reading as well: programs that may not write often continue
    /// read-only.
    pub tentative: bool,
}

/// The exit status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
    /// Its sandbox was ended from outside, so the exit status is unknown.
    Lost,
}

impl CommandHandle {
    /// Sends a command to a shell, which may still be starting.
    pub(crate) async fn start(
        instance: Arc<SandboxInstance>,
        mut shell: WaitingShell,
        (order, files): (&GuardOrder, &[OwnedFd]),
        names: Option<NamePolicy>,
    ) -> io::Result<Self> {
        // Either the shell and its guard are running, or both have exited, which is known
        // immediately. A guard that has exited may have reported the reason.
        let mut guard = shell.wait_ready(&instance).await?;
        // The guard notices every replacement of a hidden file from now on. An earlier replacement
        // means that a file is no longer hidden.
        if !instance.is_current() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        shell.guard.send_files(&files)?;
        shell.guard.send(order)?;
        shell.guard.flush_orders().await?;
        let output = CommandOutput::new(shell.output, guard.fences.pop());
        Ok(Self::from_parts(
            instance,
            shell.guard,
            guard,
            output,
            names,
        ))
    }

    /// Creates the handle of a command that a guard has started.
    pub(crate) fn from_parts(
        instance: Arc<SandboxInstance>,
        guard: GuardLink,
        guard_state: ReadyGuard,
        output: CommandOutput,
        names: Option<NamePolicy>,
    ) -> Self {
        Self {
            output,
            guard,
            guard_state,
            names,
            storage: None,
            storage_answers: JoinSet::new(),
            ended: None,
            exceeded: None,
            finished: false,
            due: None,
            instance,
        }
    }

    /// Sets the policy that decides about files that cannot be stored for undo.
    pub(crate) fn set_storage_policy(&mut self, policy: Option<Arc<dyn StoragePolicy>>) {
        self.storage = policy;
    }

    /// Interrupts the program, if it is still running. For programs that were started without a
    /// shell.
    pub(crate) fn interrupt(&mut self) {
        if let Err(error) = self.guard.send(&GuardOrder::Interrupt) {
            tracing::debug!(%error, "an order cannot be sent to the guard");
        }
    }

    /// Returns the end of the command's own process, if it has ended.
    pub(crate) fn ended(&self) -> Option<&CommandEnd> {
        self.ended.as_ref()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns the mechanism that confines the command.
    pub fn mechanism(&self) -> Mechanism {
        self.instance.mechanism()
    }

    /// Returns whether the command creates and changes files only as its [`NamePolicy`] permits. If
    /// the kernel does not support that, the caller must check the changed files afterwards.
    pub fn is_mediated(&self) -> bool {
        self.guard_state.mediated
    }

    /// Returns the separate network of the command. `None` if the command uses the machine's network,
    /// or a network where no process can listen.
    pub fn network(&self) -> Option<&CommandNetwork> {
        self.guard_state.network.as_ref()
    }

    /// Waits until the command's own process has ended. Processes that it started may still run and
    /// hold the pipe open. Cancel safe.
    pub async fn wait_for_exit(&mut self) -> CommandEnd {
        loop {
            if let Some(ended) = &self.ended {
                return ended.clone();
            }
            if self.finished {
                return CommandEnd {
                    exceeded: self.exceeded,
                    ..CommandEnd::lost()
                };
            }
            self.next_event().await;
        }
    }

    /// Waits until all processes of the command have ended. Cancel safe.
    pub async fn wait_until_finished(&mut self) {
        while !self.finished {
            self.next_event().await;
        }
    }

    /// Asks all its processes to exit, and kills them after `grace`.
    /// [`wait_until_finished`](Self::wait_until_finished) waits for their end.
    pub fn kill(&mut self, grace: Duration) {
        let order = GuardOrder::Kill {
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        // If the link is closed, no process runs any longer.
        if let Err(error) = self.guard.send(&order) {
            tracing::debug!(%error, "an order cannot be sent to the guard");
        }
        let at = Instant::now().checked_add(grace.saturating_add(self.instance.timeouts.end));
        let ends = KillTarget::Guard;
        self.due = at.map(|at| KillDeadline { at, ends });
    }

    /// Returns its processes, with their process IDs outside the sandbox.
    pub fn processes(&self) -> Vec<ProcessInfo> {
        self.guard_state
            .pid()
            .map(process_tree::below)
            .unwrap_or_default()
    }

    /// Waits for the next event of the guard and handles it.
    pub(crate) async fn next_event(&mut self) {
        let next = async {
            match self.due {
                None => Ok(self.guard.next().await),
                Some(due) => timeout_at(due.at, self.guard.next()).await.map_err(|_| due),
            }
        };
        let event = tokio::select! {
            answered = self.storage_answers.join_next(), if !self.storage_answers.is_empty() => {
                if let Some(Ok((id, answer))) = answered {
                    let _ = self.guard.send(&GuardOrder::Storage { id, answer });
                }
                return;
            }
            next = next => match next {
                Ok(event) => event,
                Err(due) => return self.kill_overdue(due),
            },
        };
        match event {
            None => {
                self.storage_answers.abort_all();
                self.finished = true;
            }
            Some(GuardEvent::Gone { witness_failure }) => {
                if let Some(ended) = &mut self.ended {
                    ended.witness_failure = witness_failure;
                }
                self.storage_answers.abort_all();
                self.finished = true;
            }
            Some(GuardEvent::CannotStore { id, file }) => match &self.storage {
                Some(policy) => {
                    let answer = Arc::clone(policy).decide(file);
                    self.storage_answers
                        .spawn(async move { (id, answer.await) });
                }
                None => {
                    let answer = StorageAnswer::Refuse;
                    let _ = self.guard.send(&GuardOrder::Storage { id, answer });
                }
            },
            Some(GuardEvent::SlowCopy { path, bytes }) => {
                if let Some(policy) = &self.storage {
                    policy.on_slow_copy(&PathBuf::from(OsString::from(path)), bytes);
                }
            }
            Some(GuardEvent::Asks { id, used }) => {
                let names = self.names.as_ref();
                let permitted = names.is_some_and(|names| names.allows(&used));
                let answer = GuardOrder::Judged {
                    id,
                    used,
                    permitted,
                };
                let _ = self.guard.send(&answer);
            }
            Some(GuardEvent::Ended {
                code,
                signal,
                cwd,
                left,
                uncovered,
                refused,
            }) => {
                let how = match (code, signal) {
                    (Some(code), _) => ExitKind::Exited(code),
                    (None, Some(signal)) => ExitKind::Killed(signal),
                    (None, None) => ExitKind::Lost,
                };
                let path = |bytes| PathBuf::from(OsString::from(bytes));
                self.ended = Some(CommandEnd {
                    how,
                    cwd: cwd.map(path),
                    left,
                    uncovered: uncovered.map(path),
                    refused: refused
                        .into_iter()
                        .map(|(bytes, tentative)| RefusedWrite {
                            path: path(bytes),
                            tentative,
                        })
                        .collect(),
                    exceeded: self.exceeded,
                    witness_failure: None,
                });
            }
            Some(GuardEvent::Exceeded(exceeded)) => {
                self.exceeded = Some(exceeded);
                if let Some(ended) = &mut self.ended {
                    ended.exceeded = Some(exceeded);
                }
            }
            Some(GuardEvent::Standing { .. } | GuardEvent::Unable { .. }) => {}
        }
    }

    /// Kills processes from outside that have not ended in time.
    fn kill_overdue(&mut self, due: KillDeadline) {
        self.due = match due.ends {
            KillTarget::Guard => {
                tracing::warn!("the guard of a command did not end it in time and is killed");
                if let Some(guard) = self.guard_state.pid() {
                    process_tree::kill_below(guard, &[], || true);
                }
                self.guard_state.kill();
                let ends = KillTarget::Keeper;
                Instant::now()
                    .checked_add(self.instance.timeouts.end)
                    .map(|at| KillDeadline { at, ends })
            }
            KillTarget::Keeper => {
                tracing::warn!("the keeper of a sandbox does not answer and is killed");
                process_tree::kill_below(self.instance.pid(), &[], || true);
                None
            }
        };
    }
}
