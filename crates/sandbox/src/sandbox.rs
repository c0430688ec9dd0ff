//! A session's commands: which sandbox each of them gets.

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
    NameJudge, ResourceLimits, Running, SandboxError, SandboxProfile,
    instance::SandboxInstance,
    network::{Gate, GateLogEntry},
    protocol::{Order, Plan},
    scratch::{self, Scratch},
    sockets,
    waiting_shell::{Standing, WaitingShell},
};

/// What a session's commands need.
#[derive(Clone)]
pub struct Setup {
    /// The program that becomes the keeper of a sandbox: one whose `main` begins with
    /// [`child::run_if_asked`](crate::child::run_if_asked).
    pub program: PathBuf,
    /// The shell: bash, absolute.
    pub shell: PathBuf,
    /// The whole environment of commands in a profile. In a sandbox, `TMPDIR` is added.
    pub environment: ProfileEnvironment,
    /// Where temporary files go: a folder of the session's own, made when needed, removed at the end.
    pub scratch: PathBuf,
    /// A file that every shell reads before its command: the user's functions and aliases.
    pub snapshot: Option<PathBuf>,
    /// Who decides for [`Network::Proxy`](crate::Network::Proxy). `None`: no one may be reached.
    pub gate: Option<Arc<dyn Gate>>,
    /// The best way of confining that may be used; the better ones are not tried. For tests, and
    /// for those who know that a way does not work for them.
    pub best: Mechanism,
    /// The most that one command may use.
    pub resources: ResourceLimits,
}

/// How long those who confine commands may be silent. What they do takes milliseconds: one that needs longer
/// was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SilenceLimits {
    /// A command is given up that has not begun after this.
    pub start: Duration,
    /// How long after its grace a guard may take to end its command; then it is ended with it.
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

/// How often bubblewrap may fail before it is believed, and how long the first pause is.
pub(crate) const SILENT: u32 = 5;
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// Where bash is usually found.
const SHELLS: [&str; 4] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/run/current-system/sw/bin/bash",
];

/// The bash of the system. `PATH` is not asked: a workspace may be in it.
pub fn system_shell() -> Option<PathBuf> {
    SHELLS
        .map(PathBuf::from)
        .into_iter()
        .find(|shell| shell.is_file())
}

/// The whole environment of commands in a profile.
pub type ProfileEnvironment =
    Arc<dyn Fn(&SandboxProfile) -> Vec<(OsString, OsString)> + Send + Sync>;

/// How commands are confined here, from the best way down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mechanism {
    /// Name spaces of our own, with Landlock and a filter of system calls.
    Namespaces,
    /// The same through bubblewrap, where only that may make name spaces. A link to a control file can
    /// be replaced, and root may change modes and times of the six harmless devices.
    Bubblewrap,
    /// Landlock and the filter alone. Modes, owners and times of files can still be changed, sockets
    /// of other programs be reached, their command lines be seen and their priority be lowered;
    /// hidden files are readable in the working directories and by other names, control files can be
    /// removed, and root reads disks.
    Reduced,
    /// Not at all.
    None,
}

impl Mechanism {
    /// Its name, as people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
            Self::Reduced => "reduced (Landlock and seccomp only)",
            Self::None => "none",
        }
    }

    /// What does not hold, in words; empty where everything does.
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

    /// What a person must know of it, in one line; nothing where everything holds.
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

/// A command line and where it runs.
#[derive(Debug, Clone)]
pub struct Line {
    /// What bash is to run.
    pub text: String,
    /// Where; absolute.
    pub cwd: PathBuf,
    /// A file to be sourced first, in the same shell.
    pub sourced: Option<PathBuf>,
    /// Decides about the profile's guarded names; without it, none may be used. It is asked while someone
    /// waits for the command to end ([`Running::exited`], [`Running::gone`]), so its output must not be
    /// waited for alone.
    pub names: Option<NameJudge>,
}

/// Starts a session's commands. Cheap to clone. Nothing is started before the first command; when the
/// last clone goes, or our process does, everything that was started ends.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    setup: Setup,
    limits: SilenceLimits,
    /// Let go of before `worlds`, so that the last of those knows that it is the last holder.
    scratch: Arc<Scratch>,
    worlds: Mutex<Worlds>,
}

/// What a sandbox is set up for.
enum Purpose<'a> {
    Commands(&'a SandboxProfile),
    Program(&'a ProgramPurpose<'a>),
}

/// A program, and the sandbox that it is to get.
pub(crate) struct ProgramPurpose<'a> {
    pub(crate) profile: &'a SandboxProfile,
    /// Not to be started where only a weaker way than this one works.
    pub(crate) weakest: Mechanism,
    pub(crate) scratch: Arc<Scratch>,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) order: Order,
    pub(crate) files: Vec<BorrowedFd<'a>>,
}

#[derive(Default)]
struct Worlds {
    standing: Vec<Arc<SandboxInstance>>,
    /// Those of programs, which are theirs to hold.
    programs: Vec<Weak<SandboxInstance>>,
    /// What better ways failed with, in the order they were tried.
    failures: Vec<(Mechanism, String)>,
    /// The best way that has not failed.
    best: Option<Mechanism>,
    /// A process space of one's own cannot be had.
    shared_processes: bool,
    /// A process cannot carry out calls of another: files that a command made are judged afterwards.
    unmediated: bool,
}

impl Sandbox {
    /// For a session. Nothing is started yet.
    pub fn new(setup: Setup) -> Self {
        Self::with_limits(setup, SilenceLimits::default())
    }

    /// The same with these limits.
    pub fn with_limits(setup: Setup, limits: SilenceLimits) -> Self {
        Self(Arc::new(Inner {
            scratch: Arc::new(Scratch::new(setup.scratch.clone())),
            setup,
            limits,
            worlds: Mutex::default(),
        }))
    }

    /// Starts a command in the profile's sandbox, in the best way that works here;
    /// [`Running::mechanism`] says which.
    pub async fn start(
        &self,
        profile: &SandboxProfile,
        line: Line,
    ) -> Result<Running, SandboxError> {
        self.start_no_weaker(profile, line, Mechanism::None).await
    }

    /// The same, or not at all where only a weaker way than this one works: what was found out before
    /// ([`Self::prepare`]) may have changed meanwhile. A command that is not to be confined is started
    /// whatever is said.
    pub async fn start_no_weaker(
        &self,
        profile: &SandboxProfile,
        line: Line,
        weakest: Mechanism,
    ) -> Result<Running, SandboxError> {
        // A sandbox whose processes were killed from outside is replaced once.
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
        let world = self.world(profile).await?;
        let found = world.mechanism();
        if *profile != SandboxProfile::Full && found > weakest {
            return Err(SandboxError::TooWeak { found });
        }
        Ok(world)
    }

    /// Gets a sandbox ready, so that the first command need not wait for it. How is it confined?
    pub async fn prepare(&self, profile: &SandboxProfile) -> Result<Mechanism, SandboxError> {
        Ok(self.world(profile).await?.mechanism())
    }

    /// Ways of confining that did not work here, and why.
    pub async fn failures(&self) -> Vec<(Mechanism, String)> {
        self.0.worlds.lock().await.failures.clone()
    }

    /// What the proxy decided lately, oldest first.
    pub async fn network_log(&self) -> Vec<GateLogEntry> {
        let worlds = self.0.worlds.lock().await;
        let logs = worlds.standing.iter().map(|world| world.network_log());
        logs.flatten().collect()
    }

    /// Ends everything that still runs, and removes the temporary files.
    pub async fn close(&self) {
        // Held all the while: a new sandbox must not find its temporary files removed.
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

    async fn world(&self, profile: &SandboxProfile) -> Result<Arc<SandboxInstance>, SandboxError> {
        let mut worlds = self.0.worlds.lock().await;
        let sockets = sockets_to_hide(profile, &self.0.setup.scratch);
        let fits = |world: &Arc<SandboxInstance>| world.fits(profile, &sockets);
        if let Some(world) = worlds.standing.iter().find(|world| fits(world)) {
            return Ok(Arc::clone(world));
        }
        // One of each kind is enough; what still runs in the old one keeps it.
        worlds
            .standing
            .retain(|world| world.profile().name() != profile.name());
        let purpose = Purpose::Commands(profile);
        let (world, _) = self.0.raise(&mut worlds, &purpose, sockets).await?;
        worlds.standing.push(Arc::clone(&world));
        Ok(world)
    }

    /// The whole environment of commands in a profile, without `TMPDIR`.
    pub fn environment(&self, profile: &SandboxProfile) -> Vec<(OsString, OsString)> {
        (self.0.setup.environment)(profile)
    }

    /// Starts a program in a sandbox of its own.
    pub(crate) async fn raise_for(
        &self,
        program: &ProgramPurpose<'_>,
    ) -> Result<(Arc<SandboxInstance>, WaitingShell, Standing), SandboxError> {
        let mut worlds = self.0.worlds.lock().await;
        let sockets = sockets_to_hide(program.profile, program.scratch.path());
        let purpose = Purpose::Program(program);
        let (world, begun) = self.0.raise(&mut worlds, &purpose, sockets).await?;
        worlds.programs.retain(|world| world.strong_count() > 0);
        worlds.programs.push(Arc::downgrade(&world));
        let silent = || SandboxError::Program(io::ErrorKind::BrokenPipe.into());
        let (shell, standing) = begun.ok_or_else(silent)?;
        Ok((world, shell, standing))
    }

    /// A folder for a program's own temporary files, beside those of commands.
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

impl Inner {
    /// Tries the ways of confining from the best down. What failed is not tried again.
    async fn raise(
        &self,
        worlds: &mut Worlds,
        purpose: &Purpose<'_>,
        mut sockets: Vec<PathBuf>,
    ) -> Result<(Arc<SandboxInstance>, Option<(WaitingShell, Standing)>), SandboxError> {
        let (profile, scratch) = match purpose {
            Purpose::Commands(profile) => (*profile, &self.scratch),
            Purpose::Program(program) => (program.profile, &program.scratch),
        };
        let mut mechanism = worlds.best.unwrap_or(self.setup.best);
        let mut silent = 0;
        loop {
            if let Purpose::Program(program) = purpose
                && *profile != SandboxProfile::Full
                && mechanism > program.weakest
            {
                return Err(SandboxError::TooWeak { found: mechanism });
            }
            let mut plan = self.plan(profile, mechanism, sockets.clone(), scratch.path());
            plan.program = matches!(purpose, Purpose::Program(_));
            plan.own_processes = !worlds.shared_processes && mechanism < Mechanism::Reduced;
            plan.mediates = !worlds.unmediated;
            let failed = match self.raise_once(purpose, plan, Arc::clone(scratch)).await {
                Ok(raised) => return Ok(raised),
                Err(failed @ SandboxError::Unavailable { .. }) => failed,
                // What it is to show, hide or keep was moved meanwhile, by someone outside.
                Err(SandboxError::Shell(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    if silent == SILENT {
                        return Err(SandboxError::Shell(error));
                    }
                    silent += 1;
                    tokio::time::sleep(PAUSE * silent).await;
                    continue;
                }
                // It says nothing about what can be had here: no reason to confine less.
                Err(failed) => return Err(failed),
            };
            if *profile == SandboxProfile::Full || mechanism == Mechanism::None {
                return Err(failed);
            }
            // It gives up when a socket that it is to hide goes away meanwhile. That is no reason to
            // confine less, however often it happens: each time there are fewer.
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
                // Containers often forbid just this; the rest is still worth having.
                worlds.shared_processes = true;
                worlds
                    .failures
                    .push((mechanism, format!("no process space of its own: {failed}")));
                continue;
            }
            worlds.failures.push((mechanism, failed.to_string()));
            if !worlds.unmediated && failed.to_string().contains(crate::child::MEDIATION) {
                // An old kernel, or a container that does the same to us.
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

    /// Sets one up, with its first shell or its program.
    async fn raise_once(
        &self,
        purpose: &Purpose<'_>,
        plan: Plan,
        scratch: Arc<Scratch>,
    ) -> Result<(Arc<SandboxInstance>, Option<(WaitingShell, Standing)>), SandboxError> {
        match purpose {
            Purpose::Commands(_) => {
                let raised = SandboxInstance::raise(&self.setup, self.limits, plan, scratch);
                let world = raised.await?;
                world.first_shell().await?;
                Ok((Arc::new(world), None))
            }
            Purpose::Program(program) => {
                let mut setup = self.setup.clone();
                setup.gate = program.gate.clone().or(setup.gate);
                let raised = SandboxInstance::raise(&setup, self.limits, plan, scratch);
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
    ) -> Plan {
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
        Plan {
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

/// Sockets of other programs that a profile would let commands reach.
fn sockets_to_hide(profile: &SandboxProfile, scratch: &Path) -> Vec<PathBuf> {
    match profile {
        // It can make no socket at all.
        SandboxProfile::ReadOnly(_) | SandboxProfile::Full => Vec::new(),
        SandboxProfile::Workspace(workspace) => {
            let mut open = workspace.writable.clone();
            open.push(scratch.to_path_buf());
            sockets::listening(&open)
        }
    }
}

/// Was the sandbox, or the shell in it, ended from outside?
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}
