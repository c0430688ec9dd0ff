//! A command that runs.

use std::{ffi::OsString, io, path::PathBuf, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use crate::{
    CommandNetwork, CommandOutput, ExceededLimit, Mechanism, NameJudge, Process,
    guard_link::GuardLink,
    instance::SandboxInstance,
    protocol::{News, Order},
    tree,
    waiting_shell::{Standing, WaitingShell},
};

/// A command that runs. When this is dropped, all of it ends.
pub struct Running {
    /// What it writes.
    pub output: CommandOutput,
    guard: GuardLink,
    standing: Standing,
    /// Decides about guarded names.
    names: Option<NameJudge>,
    ended: Option<CommandEnd>,
    exceeded: Option<ExceededLimit>,
    gone: bool,
    /// When all of it should be gone.
    due: Option<Due>,
    world: Arc<SandboxInstance>,
}

/// When a command should be gone, and who is ended if it is not: a command can stop its own guard.
#[derive(Clone, Copy)]
struct Due {
    at: Instant,
    ends: Culprit,
}

#[derive(Clone, Copy)]
enum Culprit {
    Guard,
    /// The guard is gone, and what it guarded is not.
    Keeper,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// With a code, by a signal.
    pub how: ExitKind,
    /// The directory it was in at last, links followed; `None` if it did not get to the end.
    pub cwd: Option<PathBuf>,
    /// How many processes it left behind.
    pub left: u32,
    /// It was ended, because this hidden file was replaced from outside, and could have been read.
    pub uncovered: Option<PathBuf>,
    /// What it tried to write and may not, whatever it printed; known only where it is mediated.
    pub refused: Vec<RefusedWrite>,
    /// The limit for which it was ended, or for which what it left running was ended.
    pub exceeded: Option<ExceededLimit>,
}

impl CommandEnd {
    /// The end of a command whose exit status is unknown.
    pub fn lost() -> Self {
        Self {
            how: ExitKind::Lost,
            cwd: None,
            left: 0,
            uncovered: None,
            refused: Vec::new(),
            exceeded: None,
        }
    }
}

/// A write that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedWrite {
    /// Where, as the command sees it; links followed.
    pub path: PathBuf,
    /// It was opened for reading as well: programs that may not write often go on to read only.
    pub tentative: bool,
}

/// With what a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// Its sandbox was ended from outside: no one can say.
    Lost,
}

impl Running {
    /// Hands a command to a shell that waits, or will.
    pub(crate) async fn start(
        world: Arc<SandboxInstance>,
        mut shell: WaitingShell,
        order: &Order,
        names: Option<NameJudge>,
    ) -> io::Result<Self> {
        // The shell waits with its guard, or neither is there: then it is known at once. A guard that
        // does not listen any more may have said why.
        let mut standing = shell.stand(&world).await?;
        // What is replaced from now on is seen by the guard. What was replaced before that is not: it
        // was hidden when the sandbox was set up, and is so no more.
        if !world.is_current() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        shell.guard.send(order)?;
        shell.guard.told().await?;
        let output = CommandOutput::new(shell.output, standing.fences.pop());
        Ok(Self::of(world, shell.guard, standing, output, names))
    }

    /// What a guard has started.
    pub(crate) fn of(
        world: Arc<SandboxInstance>,
        guard: GuardLink,
        standing: Standing,
        output: CommandOutput,
        names: Option<NameJudge>,
    ) -> Self {
        Self {
            output,
            guard,
            standing,
            names,
            ended: None,
            exceeded: None,
            gone: false,
            due: None,
            world,
        }
    }

    /// Interrupts the program, if it still runs. For one that was started without a shell.
    pub(crate) fn interrupt(&mut self) {
        if let Err(error) = self.guard.send(&Order::Interrupt) {
            tracing::debug!(%error, "the guard does not listen");
        }
    }

    /// Has its own process ended?
    pub(crate) fn ended(&self) -> Option<&CommandEnd> {
        self.ended.as_ref()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// How it is confined.
    pub fn mechanism(&self) -> Mechanism {
        self.world.mechanism()
    }

    /// Does it make and change files only as the judge of its line lets it? Where the kernel cannot do
    /// that, what it made must be looked at afterwards.
    pub fn is_mediated(&self) -> bool {
        self.standing.mediated
    }

    /// The network that it has for itself: `None` if it has that of the machine, or none in which anything could
    /// listen.
    pub fn network(&self) -> Option<&CommandNetwork> {
        self.standing.network.as_ref()
    }

    /// Waits until the command's own process ended; what it started may still run, and hold the pipe.
    /// Nothing is lost when the wait is given up.
    pub async fn exited(&mut self) -> CommandEnd {
        loop {
            if let Some(ended) = &self.ended {
                return ended.clone();
            }
            if self.gone {
                return CommandEnd {
                    exceeded: self.exceeded,
                    ..CommandEnd::lost()
                };
            }
            self.hear().await;
        }
    }

    /// Waits until nothing of it runs any more. Nothing is lost when the wait is given up.
    pub async fn gone(&mut self) {
        while !self.gone {
            self.hear().await;
        }
    }

    /// Asks its processes to end, and after `grace` ends all that came of it; [`gone`](Self::gone)
    /// tells when.
    pub fn kill(&mut self, grace: Duration) {
        let order = Order::Kill {
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        // If it is closed, nothing runs any more.
        if let Err(error) = self.guard.send(&order) {
            tracing::debug!(%error, "the guard does not listen");
        }
        let at = Instant::now().checked_add(grace.saturating_add(self.world.limits.end));
        let ends = Culprit::Guard;
        self.due = at.map(|at| Due { at, ends });
    }

    /// Its processes, numbered as our process sees them.
    pub fn processes(&self) -> Vec<Process> {
        self.standing.pid().map(tree::below).unwrap_or_default()
    }

    /// Waits for more of what the guard says.
    pub(crate) async fn hear(&mut self) {
        let news = match self.due {
            None => self.guard.next().await,
            Some(due) => match timeout_at(due.at, self.guard.next()).await {
                Ok(news) => news,
                Err(_) => return self.overdue(due),
            },
        };
        match news {
            None | Some(News::Gone) => self.gone = true,
            Some(News::Asks { id, used }) => {
                let names = self.names.as_ref();
                let permitted = names.is_some_and(|names| names.permits(&used));
                let judged = Order::Judged {
                    id,
                    used,
                    permitted,
                };
                let _ = self.guard.send(&judged);
            }
            Some(News::Ended {
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
                });
            }
            Some(News::Exceeded(exceeded)) => {
                self.exceeded = Some(exceeded);
                if let Some(ended) = &mut self.ended {
                    ended.exceeded = Some(exceeded);
                }
            }
            Some(News::Standing { .. } | News::Unable { .. }) => {}
        }
    }

    /// Ends from outside what did not end by itself.
    fn overdue(&mut self, due: Due) {
        self.due = match due.ends {
            Culprit::Guard => {
                tracing::warn!("the guard of a command does not end it, and is ended");
                if let Some(guard) = self.standing.pid() {
                    tree::kill_below(guard, &[], || true);
                }
                self.standing.kill();
                let ends = Culprit::Keeper;
                Instant::now()
                    .checked_add(self.world.limits.end)
                    .map(|at| Due { at, ends })
            }
            Culprit::Keeper => {
                tracing::warn!("the keeper of a sandbox does not answer, and is ended");
                tree::kill_below(self.world.pid(), &[], || true);
                None
            }
        };
    }
}
