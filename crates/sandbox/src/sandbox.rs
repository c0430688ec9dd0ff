//! The sandboxes of a session. [`Sandbox::start`] finds the sandbox that a command needs, or sets it
//! up, and starts the command in it.
//!
//! There is one [`SandboxInstance`] per kind of profile for all shell commands, and one per confined
//! program. To set up an instance, [`SandboxInner::set_up_strongest`] tries the mechanisms from the
//! strictest to the weakest.

use std::{
    ffi::OsString,
    io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::sync::Mutex;

use crate::{
    CommandHandle, Mechanism, NamePolicy, ResourceLimits, SandboxError, SandboxProfile,
    WitnessRequest,
    instance::{FAREWELL, SandboxInstance},
    network::{GateLogEntry, NetworkGate},
    private_tmp,
    process_tree::PinnedProcess,
    protocol::{GuardOrder, SandboxPlan},
    scratch::{self, ScratchFolder},
    sockets,
    waiting_shell::{ReadyGuard, WaitingShell},
};

/// The settings for all sandboxes of a session.
#[derive(Clone)]
pub struct SandboxSetup {
    /// The executable that is started as the keeper of a sandbox. Its `main` must begin with
    /// [`child::run_if_asked`](crate::child::run_if_asked).
    pub program: PathBuf,
    /// The absolute path of the shell, which must be bash.
    pub shell: PathBuf,
    /// Returns the whole environment of a command. In a sandbox, `TMPDIR` is added.
    pub environment: ProfileEnvironment,
    /// The folder for temporary files of this session. It is created when needed and removed at the
    /// end.
    pub scratch: PathBuf,
    /// A file with the user's shell functions and aliases. Every shell sources it before its command.
    pub snapshot: Option<PathBuf>,
    /// Decides which connections the proxy of [`SandboxNetwork::Proxy`](crate::SandboxNetwork::Proxy)
    /// allows. With `None`, the proxy refuses all connections.
    pub gate: Option<Arc<dyn NetworkGate>>,
    /// The strictest mechanism to try; stricter ones are skipped. For tests, and for users who know
    /// that a mechanism does not work on their machine.
    pub strictest_mechanism: Mechanism,
    /// The resource limits of each command.
    pub resource_limits: ResourceLimits,
}

/// The timeouts for keepers and guards. Their own work takes milliseconds. If one takes longer, it was
/// probably stopped, for example by a SIGSTOP of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessTimeouts {
    /// The timeout for starting a command.
    pub start: Duration,
    /// The timeout for ending a command, counted from the end of its grace period. After it, our
    /// process kills the guard together with the command.
    pub end: Duration,
}

impl Default for ProcessTimeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(20),
            end: Duration::from_secs(5),
        }
    }
}

/// The maximum number of retries when a setup fails because files or sockets changed while it ran.
pub(crate) const MAX_SETUP_RETRIES: u32 = 5;
/// The pause before the first retry. The pause before retry number `n` is `n` times as long.
pub(crate) const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The paths where distributions install bash.
const SHELL_PATHS: [&str; 4] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/run/current-system/sw/bin/bash",
];

/// Returns the path of the system's bash, if it is installed. Does not search `PATH`, which may
/// contain a directory of the workspace.
pub fn system_shell() -> Option<PathBuf> {
    SHELL_PATHS
        .map(PathBuf::from)
        .into_iter()
        .find(|shell| shell.is_file())
}

/// A function that returns the whole environment of commands in a profile, as `(name, value)` pairs.
pub type ProfileEnvironment =
    Arc<dyn Fn(&SandboxProfile) -> Vec<(OsString, OsString)> + Send + Sync>;

/// A command and its working directory.
#[derive(Debug, Clone)]
pub struct ShellCommand {
    /// The text for bash to run.
    pub text: String,
    /// The working directory; absolute.
    pub cwd: PathBuf,
    /// A file that the shell sources before it runs the text.
    pub source_file: Option<PathBuf>,
    /// Decides which guarded names of the profile the command may use. With `None`, it may use none.
    /// The policy is called only while the caller awaits [`CommandHandle::wait_for_exit`] or
    /// [`CommandHandle::wait_until_finished`]. A caller that waits only for the output therefore blocks the command.
    pub name_policy: Option<NamePolicy>,
}

/// Starts the commands of a session. Cheap to clone. No process is started before the first command.
/// Dropping the last clone ends all processes of the session, and so does the end of our process.
#[derive(Clone)]
pub struct Sandbox(Arc<SandboxInner>);

struct SandboxInner {
    setup: SandboxSetup,
    timeouts: ProcessTimeouts,
    /// Declared before the instances so that it is dropped first: the last instance to be dropped
    /// holds the last reference, and has the folder removed.
    scratch: Arc<ScratchFolder>,
    /// The folder where guards store files for undo.
    witness_store: std::sync::Mutex<Option<PathBuf>>,
    state: Mutex<SandboxState>,
}

/// The purpose of a sandbox instance.
enum SandboxPurpose<'a> {
    /// It runs all shell commands with this profile.
    Commands(&'a SandboxProfile),
    /// It runs one confined program.
    Program(&'a ProgramRequest<'a>),
}

/// A program to start, and the parameters of its sandbox.
pub(crate) struct ProgramRequest<'a> {
    pub(crate) profile: &'a SandboxProfile,
    /// The weakest mechanism to use. If none as strict works, the program is not started.
    pub(crate) weakest: Mechanism,
    pub(crate) scratch: Arc<ScratchFolder>,
    pub(crate) gate: Option<Arc<dyn NetworkGate>>,
    /// The order that starts the program.
    pub(crate) order: GuardOrder,
    /// The open files for the program.
    pub(crate) files: Vec<BorrowedFd<'a>>,
}

/// The instances that are set up, and the findings about this machine.
#[derive(Default)]
struct SandboxState {
    /// The instances for shell commands; at most one per kind of profile.
    command_instances: Vec<Arc<SandboxInstance>>,
    /// All instances whose processes may still run: also those of confined programs, which belong
    /// to the handle of the program, and those that a newer instance has replaced.
    started: Vec<StartedInstance>,
    /// The mechanisms that failed, each with its error, in the order of the attempts.
    failures: Vec<(Mechanism, String)>,
    /// The strictest mechanism that has not failed; `None` as long as none has failed.
    strictest_mechanism: Option<Mechanism>,
    /// Whether PID namespaces are unavailable.
    no_pid_namespaces: bool,
    /// Whether guards cannot carry out file system calls for commands. The caller must then check
    /// the files that a command created or changed.
    no_mediation: bool,
}

/// An instance and its waiter. The waiter may run for a moment after the instance was dropped.
struct StartedInstance {
    instance: Weak<SandboxInstance>,
    waiter: PinnedProcess,
}

impl Sandbox {
    /// Creates the sandboxes of a session. Starts no process.
    pub fn new(setup: SandboxSetup) -> Self {
        Self::with_timeouts(setup, ProcessTimeouts::default())
    }

    /// Like [`Sandbox::new`], but with these timeouts.
    pub fn with_timeouts(setup: SandboxSetup, limits: ProcessTimeouts) -> Self {
        Self(Arc::new(SandboxInner {
            scratch: Arc::new(ScratchFolder::new(setup.scratch.clone())),
            setup,
            timeouts: limits,
            witness_store: std::sync::Mutex::default(),
            state: Mutex::default(),
        }))
    }

    /// Starts a command in the sandbox of a profile, with the strictest mechanism that works here.
    /// [`CommandHandle::mechanism`] returns that mechanism.
    pub async fn start(
        &self,
        profile: &SandboxProfile,
        command: ShellCommand,
    ) -> Result<CommandHandle, SandboxError> {
        self.start_no_weaker(profile, command, Mechanism::None)
            .await
    }

    /// Like [`Sandbox::start`], but fails with [`SandboxError::TooWeak`] if only a weaker mechanism
    /// than `weakest` works. Use it after [`Self::prepare`], whose result may be outdated. A command
    /// with the profile `Full` is always started.
    pub async fn start_no_weaker(
        &self,
        profile: &SandboxProfile,
        command: ShellCommand,
        weakest: Mechanism,
    ) -> Result<CommandHandle, SandboxError> {
        self.start_in_instance(profile, &command, weakest, None)
            .await
    }

    /// Like [`Sandbox::start_no_weaker`], but the guard stores what the command changes. Fails with
    /// [`SandboxError::NoWitness`] if no guard can do that here; see [`Self::can_witness`].
    pub async fn start_witnessed(
        &self,
        profile: &SandboxProfile,
        command: ShellCommand,
        weakest: Mechanism,
        witness: &WitnessRequest,
    ) -> Result<CommandHandle, SandboxError> {
        self.start_in_instance(profile, &command, weakest, Some(witness))
            .await
    }

    /// Sets the folder where guards store files for undo; `None`: nowhere. It must exist as long as
    /// commands are started. Sandboxes that are set up already are replaced.
    pub fn set_witness_store(&self, store: Option<PathBuf>) {
        let known = self.0.witness_store.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = store;
    }

    /// Returns whether guards can store what a command with this profile changes. Sets up the sandbox
    /// of the profile.
    pub async fn can_witness(&self, profile: &SandboxProfile) -> Result<bool, SandboxError> {
        if !matches!(profile, SandboxProfile::Workspace(_)) || self.0.witness_store().is_none() {
            return Ok(false);
        }
        Ok(self.find_or_set_up(profile).await?.has_witness())
    }

    async fn start_in_instance(
        &self,
        profile: &SandboxProfile,
        command: &ShellCommand,
        weakest: Mechanism,
        witness: Option<&WitnessRequest>,
    ) -> Result<CommandHandle, SandboxError> {
        // If the processes of an instance were killed from outside, another one is set up, at most
        // twice.
        for _ in 0..2 {
            let instance = self.instance_no_weaker(profile, weakest).await?;
            if witness.is_some() && !instance.has_witness() {
                return Err(SandboxError::NoWitness);
            }
            match instance.start(command, witness).await {
                Ok(handle) => return Ok(handle),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    self.remove_instance(&instance).await;
                    return Err(SandboxError::Shell(error));
                }
                Err(error) if !is_ended_outside(&error) => return Err(SandboxError::Shell(error)),
                Err(error) => {
                    tracing::debug!(%error, profile = profile.name(), "a sandbox was ended from outside");
                    self.remove_instance(&instance).await;
                }
            }
        }
        let instance = self.instance_no_weaker(profile, weakest).await?;
        if witness.is_some() && !instance.has_witness() {
            return Err(SandboxError::NoWitness);
        }
        let started = instance.start(command, witness).await;
        started.map_err(SandboxError::Shell)
    }

    /// Returns the instance for commands with this profile. Fails if its mechanism is weaker than
    /// `weakest`, except for the profile `Full`.
    async fn instance_no_weaker(
        &self,
        profile: &SandboxProfile,
        weakest: Mechanism,
    ) -> Result<Arc<SandboxInstance>, SandboxError> {
        let instance = self.find_or_set_up(profile).await?;
        let found = instance.mechanism();
        if *profile != SandboxProfile::Full && found > weakest {
            return Err(SandboxError::TooWeak { found });
        }
        Ok(instance)
    }

    /// Sets up the sandbox of a profile, so that the first command need not wait for that. Returns
    /// its mechanism.
    pub async fn prepare(&self, profile: &SandboxProfile) -> Result<Mechanism, SandboxError> {
        Ok(self.find_or_set_up(profile).await?.mechanism())
    }

    /// Returns the mechanisms that did not work here, each with its error, in the order of the
    /// attempts.
    pub async fn failures(&self) -> Vec<(Mechanism, String)> {
        self.0.state.lock().await.failures.clone()
    }

    /// Returns the recent decisions of the proxies for shell commands. Those of each sandbox are in
    /// order, oldest first.
    pub async fn network_log(&self) -> Vec<GateLogEntry> {
        let state = self.0.state.lock().await;
        let logs = state
            .command_instances
            .iter()
            .map(|instance| instance.network_log());
        logs.flatten().collect()
    }

    /// Ends all processes of all sandboxes, and removes the temporary files.
    pub async fn close(&self) {
        // Holds the lock until the end. Otherwise a sandbox that is set up in the meantime would lose
        // its temporary files.
        let mut state = self.0.state.lock().await;
        let command_instances = std::mem::take(&mut state.command_instances);
        for StartedInstance { instance, waiter } in std::mem::take(&mut state.started) {
            match instance.upgrade() {
                Some(instance) => instance.close().await,
                // It was dropped, but its processes may still be ending.
                None => waiter.wait_until_ended(FAREWELL).await,
            }
        }
        drop(command_instances);
        scratch::remove(self.0.scratch.path());
    }

    /// Returns the absolute path of the shell.
    pub(crate) fn shell(&self) -> &Path {
        &self.0.setup.shell
    }

    /// Returns the instance for commands with this profile. Sets up a new one if the known instances
    /// have other profiles, or if files or sockets have changed since.
    async fn find_or_set_up(
        &self,
        profile: &SandboxProfile,
    ) -> Result<Arc<SandboxInstance>, SandboxError> {
        let mut state = self.0.state.lock().await;
        let sockets = sockets_to_hide(profile, &self.0.setup.scratch);
        let store = self.0.witness_store_of(profile);
        let is_suitable = |instance: &Arc<SandboxInstance>| {
            instance.matches(profile, &sockets) && instance.witness_store() == store.as_deref()
        };
        if let Some(instance) = state
            .command_instances
            .iter()
            .find(|known| is_suitable(known))
        {
            return Ok(Arc::clone(instance));
        }
        // One instance per kind of profile is enough. Commands that still run in the old instance
        // keep it alive.
        state
            .command_instances
            .retain(|instance| instance.profile().name() != profile.name());
        let purpose = SandboxPurpose::Commands(profile);
        let (instance, _) = self
            .0
            .set_up_strongest(&mut state, &purpose, sockets)
            .await?;
        state.add_started(&instance);
        state.command_instances.push(Arc::clone(&instance));
        Ok(instance)
    }

    /// Returns the whole environment of commands in a profile, without the `TMPDIR` that the sandbox
    /// adds.
    pub fn environment(&self, profile: &SandboxProfile) -> Vec<(OsString, OsString)> {
        (self.0.setup.environment)(profile)
    }

    /// Sets up a new instance for a confined program and starts the program in it.
    pub(crate) async fn set_up_and_start_program(
        &self,
        program: &ProgramRequest<'_>,
    ) -> Result<(Arc<SandboxInstance>, WaitingShell, ReadyGuard), SandboxError> {
        let mut state = self.0.state.lock().await;
        let sockets = sockets_to_hide(program.profile, program.scratch.path());
        let purpose = SandboxPurpose::Program(program);
        let (instance, started) = self
            .0
            .set_up_strongest(&mut state, &purpose, sockets)
            .await?;
        state.add_started(&instance);
        let not_started = || SandboxError::Program(io::ErrorKind::BrokenPipe.into());
        let (shell, guard) = started.ok_or_else(not_started)?;
        Ok((instance, shell, guard))
    }

    /// Returns a new path for the temporary files of a confined program: the session's scratch folder
    /// with a number appended.
    pub(crate) fn new_scratch_path(&self) -> PathBuf {
        // Shared by all `Sandbox` values of this process, which may have the same scratch folder.
        static PROGRAMS: AtomicU32 = AtomicU32::new(1);
        let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
        let mut path = self.0.setup.scratch.clone().into_os_string();
        path.push(format!("-{number}"));
        path.into()
    }

    /// Removes an instance that was ended from outside or does not answer. The next command with its
    /// profile gets a new one.
    async fn remove_instance(&self, broken: &Arc<SandboxInstance>) {
        let mut state = self.0.state.lock().await;
        state
            .command_instances
            .retain(|instance| !Arc::ptr_eq(instance, broken));
    }
}

impl SandboxState {
    /// Adds an instance to those that [`Sandbox::close`] ends, and removes those that have ended.
    fn add_started(&mut self, instance: &Arc<SandboxInstance>) {
        self.started.retain(|started| started.waiter.is_alive());
        let waiter = PinnedProcess::from_pid(instance.pid());
        self.started.extend(waiter.map(|waiter| StartedInstance {
            instance: Arc::downgrade(instance),
            waiter,
        }));
    }
}

impl SandboxInner {
    /// Sets up an instance with the strictest mechanism that works. Tries the mechanisms in order, and
    /// records those that fail so that they are not tried again. For a confined program, also returns
    /// its guard.
    async fn set_up_strongest(
        &self,
        state: &mut SandboxState,
        purpose: &SandboxPurpose<'_>,
        mut sockets: Vec<PathBuf>,
    ) -> Result<(Arc<SandboxInstance>, Option<(WaitingShell, ReadyGuard)>), SandboxError> {
        let (profile, scratch) = match purpose {
            SandboxPurpose::Commands(profile) => (*profile, &self.scratch),
            SandboxPurpose::Program(program) => (program.profile, &program.scratch),
        };
        let mut mechanism = state
            .strictest_mechanism
            .unwrap_or(self.setup.strictest_mechanism);
        let mut retries = 0;
        loop {
            if let SandboxPurpose::Program(program) = purpose
                && *profile != SandboxProfile::Full
                && mechanism > program.weakest
            {
                return Err(SandboxError::TooWeak { found: mechanism });
            }
            let mut plan = self.make_plan(profile, mechanism, sockets.clone(), scratch.path());
            plan.program = matches!(purpose, SandboxPurpose::Program(_));
            if !plan.program {
                plan.witness_store = self.witness_store_of(profile);
            }
            plan.own_processes = !state.no_pid_namespaces && mechanism < Mechanism::Reduced;
            plan.mediates = !state.no_mediation;
            plan.set_temporary_variable();
            let failure = match self.try_set_up(purpose, plan, Arc::clone(scratch)).await {
                Ok(instance) => return Ok(instance),
                Err(failure @ SandboxError::Unavailable { .. }) => failure,
                // A process outside moved a path that the sandbox must show, hide or protect, while
                // the sandbox was set up. The next attempt may succeed.
                Err(SandboxError::Shell(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    if retries == MAX_SETUP_RETRIES {
                        return Err(SandboxError::Shell(error));
                    }
                    retries += 1;
                    tokio::time::sleep(FIRST_RETRY_PAUSE * retries).await;
                    continue;
                }
                // Other errors do not show that the mechanism fails here. A weaker mechanism must not
                // be used because of them.
                Err(failure) => return Err(failure),
            };
            if *profile == SandboxProfile::Full || mechanism == Mechanism::None {
                return Err(failure);
            }
            // Bubblewrap exits if a socket that it must hide disappears during the setup. A weaker
            // mechanism must not be used because of that. The retries end: each one has fewer sockets
            // left, or counts towards the maximum.
            if mechanism == Mechanism::Bubblewrap && !sockets.is_empty() {
                let before = sockets.len();
                sockets.retain(|socket| socket.symlink_metadata().is_ok());
                if sockets.len() < before || retries < MAX_SETUP_RETRIES {
                    retries = MAX_SETUP_RETRIES.min(retries + 1);
                    tokio::time::sleep(FIRST_RETRY_PAUSE * retries).await;
                    continue;
                }
            }
            tracing::warn!(mechanism = mechanism.name(), error = %failure, "a mechanism cannot confine commands here");
            let has_pid_namespace = mechanism == Mechanism::Namespaces && !state.no_pid_namespaces;
            if has_pid_namespace && failure.to_string().contains(crate::child::PROCESSES) {
                // Containers often forbid only PID namespaces. The same mechanism without them is
                // still stricter than the next one.
                state.no_pid_namespaces = true;
                state
                    .failures
                    .push((mechanism, format!("no separate PID namespace: {failure}")));
                continue;
            }
            state.failures.push((mechanism, failure.to_string()));
            if !state.no_mediation && failure.to_string().contains(crate::child::MEDIATION) {
                // The kernel is too old, or a container already uses seccomp notifications.
                state.no_mediation = true;
                continue;
            }
            match mechanism.next_weaker() {
                Some(next) => {
                    mechanism = next;
                    state.strictest_mechanism = Some(next);
                }
                None => return Err(failure),
            }
        }
    }

    /// Tries once to set up an instance with this plan. For shell commands, also starts a first shell;
    /// for a confined program, the program.
    async fn try_set_up(
        &self,
        purpose: &SandboxPurpose<'_>,
        plan: SandboxPlan,
        scratch: Arc<ScratchFolder>,
    ) -> Result<(Arc<SandboxInstance>, Option<(WaitingShell, ReadyGuard)>), SandboxError> {
        match purpose {
            SandboxPurpose::Commands(_) => {
                let instance = SandboxInstance::set_up(&self.setup, self.timeouts, plan, scratch);
                let instance = instance.await?;
                instance.first_shell().await?;
                Ok((Arc::new(instance), None))
            }
            SandboxPurpose::Program(program) => {
                let mut setup = self.setup.clone();
                setup.gate = program.gate.clone().or(setup.gate);
                let instance = SandboxInstance::set_up(&setup, self.timeouts, plan, scratch);
                let instance = instance.await?;
                let started = instance
                    .start_program(&program.order, &program.files)
                    .await?;
                Ok((Arc::new(instance), Some(started)))
            }
        }
    }

    /// Returns the plan of an instance for shell commands. The caller sets the fields that depend on
    /// the purpose and on earlier failures.
    fn make_plan(
        &self,
        profile: &SandboxProfile,
        mechanism: Mechanism,
        sockets: Vec<PathBuf>,
        scratch: &Path,
    ) -> SandboxPlan {
        let is_full = *profile == SandboxProfile::Full;
        let env: Vec<_> = (self.setup.environment)(profile)
            .into_iter()
            .filter(|(name, _)| is_full || name != "TMPDIR")
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let writable = match profile {
            SandboxProfile::Workspace(workspace) => workspace.writable.iter(),
            SandboxProfile::ReadOnly(_) | SandboxProfile::Full => [].iter(),
        };
        SandboxPlan {
            there: writable.filter(|path| path.exists()).cloned().collect(),
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
            resources: self.setup.resource_limits,
            witness_store: None,
        }
    }

    fn witness_store(&self) -> Option<PathBuf> {
        let store = self.witness_store.lock();
        store.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the folder where guards of commands with this profile store files for undo.
    fn witness_store_of(&self, profile: &SandboxProfile) -> Option<PathBuf> {
        match profile {
            SandboxProfile::Workspace(_) => self.witness_store(),
            SandboxProfile::ReadOnly(_) | SandboxProfile::Full => None,
        }
    }
}

/// Returns the sockets of other programs that must be hidden from commands with this profile. Sockets
/// in writable directories stay visible.
fn sockets_to_hide(profile: &SandboxProfile, scratch: &Path) -> Vec<PathBuf> {
    match profile {
        // These commands cannot create sockets at all, or are not confined.
        SandboxProfile::ReadOnly(_) | SandboxProfile::Full => Vec::new(),
        SandboxProfile::Workspace(workspace) => {
            let mut writable = workspace.writable.clone();
            writable.push(scratch.to_path_buf());
            let mut sockets = sockets::listening(&writable);
            sockets.retain(|socket| !private_tmp::is_private(profile, socket));
            sockets
        }
    }
}

/// Returns whether the error means that the sandbox, or a shell in it, was ended from outside.
fn is_ended_outside(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}
