//! The sandboxes of a session: finds or sets up the one that a command needs.

use std::{
    ffi::OsString,
    io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::{
    CommandHandle, NamePolicy, ResourceLimits, SandboxError, SandboxProfile,
    instance::SandboxInstance,
    network::{GateLogEntry, NetworkGate},
    protocol::{GuardOrder, SandboxPlan},
    scratch::{self, ScratchFolder},
    sockets,
    waiting_shell::{ReadyGuard, WaitingShell},
};

/// The settings for a session's commands.
#[derive(Clone)]
pub struct SandboxSetup {
    /// The program that becomes the keeper of a sandbox. Its `main` must begin with
    /// [`child::run_if_asked`](crate::child::run_if_asked).
    pub program: PathBuf,
    /// The absolute path of the shell, which must be bash.
    pub shell: PathBuf,
    /// The whole environment of commands in a profile. In a sandbox, `TMPDIR` is added.
    pub environment: ProfileEnvironment,
    /// The folder for temporary files. It belongs to this session, is created when needed, and is
    /// removed at the end.
    pub scratch: PathBuf,
    /// A file that every shell reads before its command: the user's functions and aliases.
    pub snapshot: Option<PathBuf>,
    /// Decides about connections for [`SandboxNetwork::Proxy`](crate::SandboxNetwork::Proxy). With `None`, all
    /// are refused.
    pub gate: Option<Arc<dyn NetworkGate>>,
    /// The best mechanism that may be used; better ones are not tried. For tests, and for users who
    /// know that a mechanism does not work for them.
    pub best: Mechanism,
    /// The most that one command may use.
    pub resources: ResourceLimits,
}

/// The time limits for keepers and guards. Their work takes milliseconds: a process that needs
/// longer was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SilenceLimits {
    /// The time after which a command that has not started is given up.
    pub start: Duration,
    /// The time, after its grace, in which a guard must end its command. Then the guard is killed
    /// with it.
    pub end: Duration,
}

impl Default for SilenceLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(20),
            end: Duration::from_secs(5),
        }
    }
}

/// The number of failures after which bubblewrap is considered unusable, and the first pause
/// between attempts.
pub(crate) const SILENT: u32 = 5;
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// The usual paths of bash.
const SHELLS: [&str; 4] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/run/current-system/sw/bin/bash",
];

/// Returns the system's bash. Does not search `PATH`, which may contain a directory of the
/// workspace.
pub fn system_shell() -> Option<PathBuf> {
    SHELLS
        .map(PathBuf::from)
        .into_iter()
        .find(|shell| shell.is_file())
}

/// Returns the whole environment of commands in a profile.
pub type ProfileEnvironment =
    Arc<dyn Fn(&SandboxProfile) -> Vec<(OsString, OsString)> + Send + Sync>;

/// The mechanisms that confine commands, from the best one down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mechanism {
    /// Our own namespaces, with Landlock and a system call filter.
    Namespaces,
    /// Like [`Namespaces`](Self::Namespaces), but through bubblewrap, if only bubblewrap may create
    /// namespaces. A symlink to a control file can be replaced, and root may change modes and times
    /// of the six device files.
    Bubblewrap,
    /// Only Landlock and the system call filter. Commands can still change modes, owners and times
    /// of files, connect to sockets of other programs, see their command lines, and lower their
    /// priority. They can read hidden files in the working directories and through other names, and
    /// remove control files. Root can read disks.
    Reduced,
    /// No confinement.
    None,
}

impl Mechanism {
    /// Returns the human-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
            Self::Reduced => "reduced (Landlock and seccomp only)",
            Self::None => "none",
        }
    }

    /// Returns the guarantees that the mechanism does not give, as text; empty if it gives all.
    pub fn holes(self) -> &'static [&'static str] {
        match self {
            Self::Namespaces | Self::Bubblewrap => &[],
            Self::Reduced => &[
                "modes, owners and times of any file of yours can be changed",
                "hidden files in the working directories can be read, others by other names they have",
                "files that control other programs can be removed from the working directories",
                "sockets of other programs can be reached",
                "other processes can be seen and slowed down",
            ],
            Self::None => &[
                "any file of yours can be read and changed",
                "any host can be reached",
                "other processes of yours can be ended",
            ],
        }
    }

    /// Returns a warning for the user, on one line; `None` if the mechanism gives all guarantees.
    pub fn warning(self) -> Option<String> {
        let what = match self {
            Self::Namespaces | Self::Bubblewrap => return None,
            Self::Reduced => "commands are confined only in part here, by Landlock and seccomp",
            Self::None => {
                "commands are not confined here at all, so that even those that only read are asked \
                 about"
            }
        };
        let holes = self.holes().join("; ");
        Some(format!(
            "{what}. What does not hold: {holes}. `haft doctor` says why"
        ))
    }

    fn next(self) -> Option<Self> {
        match self {
            Self::Namespaces => Some(Self::Bubblewrap),
            Self::Bubblewrap => Some(Self::Reduced),
            Self::Reduced => Some(Self::None),
            Self::None => None,
        }
    }
}

/// A command and its working directory.
#[derive(Debug, Clone)]
pub struct ShellCommand {
    /// The text for bash to run.
    pub text: String,
    /// The working directory; absolute.
    pub cwd: PathBuf,
    /// A file to source first, in the same shell.
    pub sourced: Option<PathBuf>,
    /// Decides about the profile's guarded names; without it, none may be used. It is called only
    /// while the caller waits for the command to end ([`CommandHandle::exited`], [`CommandHandle::gone`]). A
    /// caller that waits only for the output therefore blocks the command.
    pub names: Option<NamePolicy>,
}

/// Starts a session's commands. Cheap to clone. The first command starts the first process. When
/// the last clone is dropped or our process ends, everything that was started ends.
#[derive(Clone)]
pub struct Sandbox(Arc<SandboxInner>);

struct SandboxInner {
    setup: SandboxSetup,
    limits: SilenceLimits,
    /// Declared before `worlds` so that it is dropped first, and the last instance knows that it is
    /// the last holder.
    scratch: Arc<ScratchFolder>,
    worlds: Mutex<Instances>,
}

/// The purpose of a sandbox.
enum SandboxPurpose<'a> {
    Commands(&'a SandboxProfile),
    Program(&'a ProgramPurpose<'a>),
}

/// A program to start, and the parameters of its sandbox.
pub(crate) struct ProgramPurpose<'a> {
    pub(crate) profile: &'a SandboxProfile,
    /// The program is not started if only a weaker mechanism than this one works.
    pub(crate) weakest: Mechanism,
    pub(crate) scratch: Arc<ScratchFolder>,
    pub(crate) gate: Option<Arc<dyn NetworkGate>>,
    pub(crate) order: GuardOrder,
    pub(crate) files: Vec<BorrowedFd<'a>>,
}

#[derive(Default)]
struct Instances {
    standing: Vec<Arc<SandboxInstance>>,
    /// The instances of programs, which own them.
    programs: Vec<Weak<SandboxInstance>>,
    /// The errors of better mechanisms, in the order in which they were tried.
    failures: Vec<(Mechanism, String)>,
    /// The best mechanism that has not failed.
    best: Option<Mechanism>,
    /// PID namespaces are not available.
    shared_processes: bool,
    /// Guards cannot perform calls of commands: files that a command creates are checked
    /// afterwards.
    unmediated: bool,
}

impl Sandbox {
    /// Creates the sandbox of a session without starting any process.
    pub fn new(setup: SandboxSetup) -> Self {
        Self::with_limits(setup, SilenceLimits::default())
    }

    /// Like [`Sandbox::new`], but with these limits.
    pub fn with_limits(setup: SandboxSetup, limits: SilenceLimits) -> Self {
        Self(Arc::new(SandboxInner {
            scratch: Arc::new(ScratchFolder::new(setup.scratch.clone())),
            setup,
            limits,
            worlds: Mutex::default(),
        }))
    }

    /// Starts a command in the profile's sandbox, with the best mechanism that works here;
    /// [`CommandHandle::mechanism`] returns it.
    pub async fn start(
        &self,
        profile: &SandboxProfile,
        line: ShellCommand,
    ) -> Result<CommandHandle, SandboxError> {
        self.start_no_weaker(profile, line, Mechanism::None).await
    }

    /// Like [`Sandbox::start`], but fails if only a weaker mechanism than `weakest` works: an
    /// earlier result of [`Self::prepare`] may be outdated. A command of the profile `Full` is
    /// always started.
    pub async fn start_no_weaker(
        &self,
        profile: &SandboxProfile,
        line: ShellCommand,
        weakest: Mechanism,
    ) -> Result<CommandHandle, SandboxError> {
        // A sandbox whose processes were killed from outside is replaced, at most twice.
        for _ in 0..2 {
            let world = self.world_no_weaker(profile, weakest).await?;
            match world.start(&line).await {
                Ok(running) => return Ok(running),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    self.forget(&world).await;
                    return Err(SandboxError::Shell(error));
                }
                Err(error) if !is_gone(&error) => return Err(SandboxError::Shell(error)),
                Err(error) => {
                    tracing::debug!(%error, profile = profile.name(), "a sandbox is gone");
                    self.forget(&world).await;
                }
            }
        }
        let world = self.world_no_weaker(profile, weakest).await?;
        world.start(&line).await.map_err(SandboxError::Shell)
    }

    async fn world_no_weaker(
        &self,
        profile: &SandboxProfile,
        weakest: Mechanism,
    ) -> Result<Arc<SandboxInstance>, SandboxError> {
        let world = self.instance(profile).await?;
        let found = world.mechanism();
        if *profile != SandboxProfile::Full && found > weakest {
            return Err(SandboxError::TooWeak { found });
        }
        Ok(world)
    }

    /// Sets up a sandbox, so that the first command need not wait for it. Returns its mechanism.
    pub async fn prepare(&self, profile: &SandboxProfile) -> Result<Mechanism, SandboxError> {
        Ok(self.instance(profile).await?.mechanism())
    }

    /// Returns the mechanisms that did not work here, each with its error.
    pub async fn failures(&self) -> Vec<(Mechanism, String)> {
        self.0.worlds.lock().await.failures.clone()
    }

    /// Returns the recent decisions of the proxy, oldest first.
    pub async fn network_log(&self) -> Vec<GateLogEntry> {
        let worlds = self.0.worlds.lock().await;
        let logs = worlds.standing.iter().map(|world| world.network_log());
        logs.flatten().collect()
    }

    /// Ends everything that still runs, and removes the temporary files.
    pub async fn close(&self) {
        // The lock is kept until the end, so that no new sandbox starts whose temporary files are
        // then removed.
        let mut worlds = self.0.worlds.lock().await;
        let programs = std::mem::take(&mut worlds.programs);
        let programs = programs.iter().filter_map(Weak::upgrade);
        for world in std::mem::take(&mut worlds.standing)
            .into_iter()
            .chain(programs)
        {
            world.close().await;
        }
        scratch::remove(self.0.scratch.path());
    }

    pub(crate) fn shell(&self) -> &Path {
        &self.0.setup.shell
    }

    async fn instance(
        &self,
        profile: &SandboxProfile,
    ) -> Result<Arc<SandboxInstance>, SandboxError> {
        let mut worlds = self.0.worlds.lock().await;
        let sockets = sockets_to_hide(profile, &self.0.setup.scratch);
        let fits = |world: &Arc<SandboxInstance>| world.matches(profile, &sockets);
        if let Some(world) = worlds.standing.iter().find(|world| fits(world)) {
            return Ok(Arc::clone(world));
        }
        // One sandbox for each kind of profile is enough. Running commands keep the old one alive.
        worlds
            .standing
            .retain(|world| world.profile().name() != profile.name());
        let purpose = SandboxPurpose::Commands(profile);
        let (world, _) = self
            .0
            .set_up_strongest(&mut worlds, &purpose, sockets)
            .await?;
        worlds.standing.push(Arc::clone(&world));
        Ok(world)
    }

    /// Returns the whole environment of commands in a profile, without `TMPDIR`.
    pub fn environment(&self, profile: &SandboxProfile) -> Vec<(OsString, OsString)> {
        (self.0.setup.environment)(profile)
    }

    /// Sets up a sandbox for a program and starts the program in it.
    pub(crate) async fn start_program_in_own(
        &self,
        program: &ProgramPurpose<'_>,
    ) -> Result<(Arc<SandboxInstance>, WaitingShell, ReadyGuard), SandboxError> {
        let mut worlds = self.0.worlds.lock().await;
        let sockets = sockets_to_hide(program.profile, program.scratch.path());
        let purpose = SandboxPurpose::Program(program);
        let (world, begun) = self
            .0
            .set_up_strongest(&mut worlds, &purpose, sockets)
            .await?;
        worlds.programs.retain(|world| world.strong_count() > 0);
        worlds.programs.push(Arc::downgrade(&world));
        let silent = || SandboxError::Program(io::ErrorKind::BrokenPipe.into());
        let (shell, standing) = begun.ok_or_else(silent)?;
        Ok((world, shell, standing))
    }

    /// Returns the path of a folder for a program's temporary files, next to that of commands.
    pub(crate) fn new_scratch(&self) -> PathBuf {
        // Sandboxes of a session share the first part of the name.
        static PROGRAMS: AtomicU32 = AtomicU32::new(1);
        let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
        let mut path = self.0.setup.scratch.clone().into_os_string();
        path.push(format!("-{number}"));
        path.into()
    }

    async fn forget(&self, gone: &Arc<SandboxInstance>) {
        let mut worlds = self.0.worlds.lock().await;
        worlds.standing.retain(|world| !Arc::ptr_eq(world, gone));
    }
}

impl SandboxInner {
    /// Tries the mechanisms from the best one down. A mechanism that failed is not tried again.
    async fn set_up_strongest(
        &self,
        worlds: &mut Instances,
        purpose: &SandboxPurpose<'_>,
        mut sockets: Vec<PathBuf>,
    ) -> Result<(Arc<SandboxInstance>, Option<(WaitingShell, ReadyGuard)>), SandboxError> {
        let (profile, scratch) = match purpose {
            SandboxPurpose::Commands(profile) => (*profile, &self.scratch),
            SandboxPurpose::Program(program) => (program.profile, &program.scratch),
        };
        let mut mechanism = worlds.best.unwrap_or(self.setup.best);
        let mut silent = 0;
        loop {
            if let SandboxPurpose::Program(program) = purpose
                && *profile != SandboxProfile::Full
                && mechanism > program.weakest
            {
                return Err(SandboxError::TooWeak { found: mechanism });
            }
            let mut plan = self.plan(profile, mechanism, sockets.clone(), scratch.path());
            plan.program = matches!(purpose, SandboxPurpose::Program(_));
            plan.own_processes = !worlds.shared_processes && mechanism < Mechanism::Reduced;
            plan.mediates = !worlds.unmediated;
            let failed = match self.raise_once(purpose, plan, Arc::clone(scratch)).await {
                Ok(raised) => return Ok(raised),
                Err(failed @ SandboxError::Unavailable { .. }) => failed,
                // A path to show, hide or protect was moved during the setup by a process outside.
                Err(SandboxError::Shell(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    if silent == SILENT {
                        return Err(SandboxError::Shell(error));
                    }
                    silent += 1;
                    tokio::time::sleep(PAUSE * silent).await;
                    continue;
                }
                // The failure does not show that the mechanism fails here, so it is no reason to
                // confine less.
                Err(failed) => return Err(failed),
            };
            if *profile == SandboxProfile::Full || mechanism == Mechanism::None {
                return Err(failed);
            }
            // Bubblewrap gives up if a socket that it must hide disappears during the setup. That
            // is no reason to confine less, however often it happens: each time fewer sockets are
            // left.
            if mechanism == Mechanism::Bubblewrap && !sockets.is_empty() {
                let known = sockets.len();
                sockets.retain(|socket| socket.symlink_metadata().is_ok());
                if sockets.len() < known || silent < SILENT {
                    silent = SILENT.min(silent + 1);
                    tokio::time::sleep(PAUSE * silent).await;
                    continue;
                }
            }
            tracing::warn!(mechanism = mechanism.name(), error = %failed, "commands cannot be confined this way");
            let lists = mechanism == Mechanism::Namespaces && !worlds.shared_processes;
            if lists && failed.to_string().contains(crate::child::PROCESSES) {
                // Containers often forbid only this; the rest of the mechanism is still useful.
                worlds.shared_processes = true;
                worlds
                    .failures
                    .push((mechanism, format!("no process space of its own: {failed}")));
                continue;
            }
            worlds.failures.push((mechanism, failed.to_string()));
            if !worlds.unmediated && failed.to_string().contains(crate::child::MEDIATION) {
                // An old kernel, or a container that itself uses seccomp notifications.
                worlds.unmediated = true;
                continue;
            }
            match mechanism.next() {
                Some(next) => {
                    mechanism = next;
                    worlds.best = Some(next);
                }
                None => return Err(failed),
            }
        }
    }

    /// Sets up a sandbox with its first shell or its program.
    async fn raise_once(
        &self,
        purpose: &SandboxPurpose<'_>,
        plan: SandboxPlan,
        scratch: Arc<ScratchFolder>,
    ) -> Result<(Arc<SandboxInstance>, Option<(WaitingShell, ReadyGuard)>), SandboxError> {
        match purpose {
            SandboxPurpose::Commands(_) => {
                let raised = SandboxInstance::set_up(&self.setup, self.limits, plan, scratch);
                let world = raised.await?;
                world.first_shell().await?;
                Ok((Arc::new(world), None))
            }
            SandboxPurpose::Program(program) => {
                let mut setup = self.setup.clone();
                setup.gate = program.gate.clone().or(setup.gate);
                let raised = SandboxInstance::set_up(&setup, self.limits, plan, scratch);
                let world = raised.await?;
                let begun = world.start_program(&program.order, &program.files).await?;
                Ok((Arc::new(world), Some(begun)))
            }
        }
    }

    fn plan(
        &self,
        profile: &SandboxProfile,
        mechanism: Mechanism,
        sockets: Vec<PathBuf>,
        scratch: &Path,
    ) -> SandboxPlan {
        let full = *profile == SandboxProfile::Full;
        let mut env: Vec<_> = (self.setup.environment)(profile)
            .into_iter()
            .filter(|(name, _)| full || name != "TMPDIR")
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        if !full {
            let scratch = scratch.as_os_str().to_owned();
            env.push((OsString::from("TMPDIR").into(), scratch.into()));
        }
        let there = match profile {
            SandboxProfile::Workspace(workspace) => workspace.writable.iter(),
            SandboxProfile::ReadOnly(_) | SandboxProfile::Full => [].iter(),
        };
        SandboxPlan {
            there: there.filter(|path| path.exists()).cloned().collect(),
            profile: profile.clone(),
            mechanism,
            own_processes: false,
            mediates: true,
            shell: self.setup.shell.clone(),
            env,
            program: false,
            scratch: scratch.to_path_buf(),
            snapshot: self.setup.snapshot.clone(),
            sockets,
            resources: self.setup.resources,
        }
    }
}

/// Returns the sockets of other programs to which commands of a profile could connect.
fn sockets_to_hide(profile: &SandboxProfile, scratch: &Path) -> Vec<PathBuf> {
    match profile {
        // A command of this profile cannot create a socket at all, or is not confined.
        SandboxProfile::ReadOnly(_) | SandboxProfile::Full => Vec::new(),
        SandboxProfile::Workspace(workspace) => {
            let mut open = workspace.writable.clone();
            open.push(scratch.to_path_buf());
            sockets::listening(&open)
        }
    }
}

/// Returns whether the error means that the sandbox, or the shell in it, was ended from outside.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}
