//! [`ShellService`]: the state that the commands of one session share.
//!
//! A call of `Bash` uses the service in these steps:
//!
//! 1. [`ShellService::register_waiting_call`] registers the call. From then on,
//!    [`ShellService::move_to_background`] can move its command to the background, so that the call
//!    returns.
//! 2. [`ShellService::start_command`] starts the command in a sandbox. The result is a
//!    [`CommandJob`], for which the call waits. [`ShellService::sandbox_for`] caches sandboxes, so
//!    that later commands with the same settings use the same one.
//! 3. If the command moves to the background, the call adds it to [`ShellTasks`].
//!
//! [`ShellService::close`] ends everything that commands of the session left running.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    env,
    ffi::{OsStr, OsString},
    fmt, fs,
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use haft_contract::{
    BackgroundTasks, BoxFuture, CallContext, CallId, Confinement, ConfinementProfile,
    ConfinementStrength, HostLists, NetworkAccess, ProbeConfinement, ToolError,
};
use haft_journal::Journal;
use haft_sandbox::{
    ConfinedProcess, ConfinedProgram, Mechanism, PROXY_PORT, Sandbox, SandboxError, SandboxNetwork,
    SandboxProfile, SandboxSetup, ScratchLease, ShellCommand, WitnessRequest, private_directories,
    system_shell,
};
use tokio::sync::{Notify, OnceCell};

use super::{
    capture::{self, OutputCapture},
    environment,
    gate::HostGate,
    job::CommandJob,
    limits, profile,
    program::ShellProgram,
    repl::Interpreters,
    snapshot,
    tasks::ShellTasks,
    tool_caches::CreatedCaches,
};

use crate::blocking::blocking;

/// The shared state of the commands of one session. When the session ends, everything that the
/// commands started ends too.
#[derive(Debug)]
pub struct ShellService {
    /// The program that confines commands. Without it, no command can run.
    program: Option<ShellProgram>,
    /// The session's folder, which stores command outputs.
    folder: PathBuf,
    /// The journal, whose undo covers what commands change.
    journal: Option<Arc<Journal>>,
    /// The folder for temporary files of commands, created on first use. `None` if creating it
    /// failed.
    scratch: OnceLock<Option<ScratchLease>>,
    /// The cached sandboxes, the newest first.
    sandboxes: tokio::sync::Mutex<Vec<CachedSandbox>>,
    /// The background tasks.
    tasks: Arc<ShellTasks>,
    /// The calls that are waiting for a command.
    waiting_calls: Mutex<HashMap<CallId, WaitingCall>>,
    /// Decides which hosts commands may contact.
    gate: Arc<HostGate>,
    /// The definitions of the user's own shell, read on first use. `None` if they are disabled or
    /// could not be read.
    user_shell: OnceCell<Option<UserShellSnapshot>>,
    /// The files of stored outputs with their sizes, the oldest first.
    stored_outputs: Mutex<VecDeque<(PathBuf, u64)>>,
    /// The interpreters of the REPL tool.
    interpreters: Interpreters,
    /// Whether the notice that undo does not cover commands was sent.
    undo_warning_sent: AtomicBool,
    /// Whether the notice that commands are not fully confined was sent.
    weak_sandbox_reported: AtomicBool,
    /// Whether the sandbox that was started or probed last fully confines commands.
    is_fully_confined: AtomicBool,
    /// The cache directories of tools that haft created for commands.
    caches: CreatedCaches,
}

/// The functions, aliases and PATH of the user's own shell.
#[derive(Debug, Clone)]
struct UserShellSnapshot {
    /// A script with the functions and aliases. Every command's shell sources it first.
    script: PathBuf,
    /// The value of PATH.
    path_variable: String,
}

/// The maximum total size of stored command outputs, in bytes. The outputs of background tasks are
/// not included.
const MAX_STORED_OUTPUT: u64 = 1 << 30;
/// The timeout for the user's rc file.
const RC_FILE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of cached sandboxes.
const MAX_CACHED_SANDBOXES: usize = 6;

/// A cached sandbox and the settings for which it was created.
struct CachedSandbox {
    sandbox: Sandbox,
    settings: EnvironmentSettings,
    /// The only hosts that its commands may contact. `None`: the gate of the session decides.
    only_hosts: Option<HostLists>,
}

impl fmt::Debug for CachedSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CachedSandbox")
    }
}

/// The settings for the environment variables of commands. Commands with different settings run in
/// different sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EnvironmentSettings {
    /// The variables to set. An empty value removes an inherited variable.
    env: Arc<BTreeMap<String, String>>,
    /// The names of variables that commands must never get.
    withheld: Arc<[String]>,
}

impl EnvironmentSettings {
    /// Returns the complete environment of a command. `user_path` is the PATH of the user's own
    /// shell, if known.
    fn environment(
        &self,
        profile: &SandboxProfile,
        user_path: Option<&str>,
    ) -> Vec<(OsString, OsString)> {
        let is_removed = |name: &OsStr| {
            let name = name.to_string_lossy();
            self.env.get(&*name).is_some_and(String::is_empty)
                || self.withheld.iter().any(|withheld| *withheld == name)
        };
        let inherited: Vec<_> = env::vars_os()
            .filter(|(name, _)| !is_removed(name))
            .collect();
        let mut settings = BTreeMap::clone(&self.env);
        settings.retain(|name, value| !value.is_empty() && !self.withheld.contains(name));
        let uses_proxy = matches!(
            profile,
            SandboxProfile::Workspace(workspace) if workspace.network == SandboxNetwork::Proxy
        );
        let environment = environment::child(&environment::EnvironmentSource {
            own: &inherited,
            settings: &settings,
            path: user_path,
            profile,
            proxy: uses_proxy.then_some(PROXY_PORT),
        });
        environment.into_iter().collect()
    }
}

impl ShellService {
    /// Creates the service. `folder` is the session's folder; `journal` covers changes by undo; `notices`
    /// receives the events of background tasks.
    pub(crate) fn new(
        program: Option<&ShellProgram>,
        folder: &Path,
        journal: Option<Arc<Journal>>,
        notices: Arc<BackgroundTasks>,
    ) -> Self {
        Self {
            program: program.cloned(),
            folder: folder.to_path_buf(),
            journal,
            scratch: OnceLock::new(),
            sandboxes: tokio::sync::Mutex::default(),
            tasks: Arc::new(ShellTasks::new(notices)),
            waiting_calls: Mutex::default(),
            gate: Arc::default(),
            user_shell: OnceCell::new(),
            stored_outputs: Mutex::default(),
            interpreters: Interpreters::default(),
            caches: CreatedCaches::default(),
            undo_warning_sent: AtomicBool::new(false),
            weak_sandbox_reported: AtomicBool::new(false),
            is_fully_confined: AtomicBool::new(false),
        }
    }

    /// Returns the background tasks.
    pub fn tasks(&self) -> &Arc<ShellTasks> {
        &self.tasks
    }

    /// Moves the command for which a call is waiting to the background, so that the call returns.
    /// Returns `false` if the call is not waiting for a command.
    pub fn move_to_background(&self, call: CallId) -> bool {
        let calls = self.lock_waiting_calls();
        calls
            .get(&call)
            .map(|waiting| waiting.detach_signal.notify_one())
            .is_some()
    }

    /// Like [`ShellService::move_to_background`], but for the call with this tool use id, or for all
    /// waiting calls without one. Returns the number of calls.
    pub fn move_calls_to_background(&self, tool_use_id: Option<&str>) -> usize {
        let calls = self.lock_waiting_calls();
        let selected = calls
            .values()
            .filter(|waiting| tool_use_id.is_none_or(|id| *waiting.tool_use_id == *id));
        selected
            .map(|waiting| waiting.detach_signal.notify_one())
            .count()
    }

    /// Ends all background tasks, interpreters and sandboxes, and all processes in them.
    pub async fn close(&self) {
        self.tasks.stop_all().await;
        self.interpreters.close().await;
        let entries = std::mem::take(&mut *self.sandboxes.lock().await);
        for entry in entries {
            entry.sandbox.close().await;
        }
        self.remove_unused_caches();
    }

    /// Removes the cache directories that haft created in this session and that are still empty.
    pub fn remove_unused_caches(&self) {
        self.caches.remove_empty();
    }

    /// Returns the cache directories of tools that haft created for commands.
    pub(crate) fn created_caches(&self) -> &CreatedCaches {
        &self.caches
    }

    /// Returns the interpreters of the REPL tool.
    pub(crate) fn interpreters(&self) -> &Interpreters {
        &self.interpreters
    }

    /// Returns the gate that decides which hosts commands may contact.
    pub(crate) fn gate(&self) -> &HostGate {
        &self.gate
    }

    /// Returns the connections that the proxy of this sandbox refused in this session, each as text:
    /// host, port and reason.
    pub(crate) async fn refused_connections(&self, confinement: &Confinement) -> Vec<String> {
        let Ok(sandbox) = self.sandbox_for(confinement).await else {
            return Vec::new();
        };
        let connections = sandbox.network_log().await.into_iter();
        let refused = connections.filter(|connection| !connection.allowed);
        let lines = refused.map(|connection| {
            format!(
                "{}, port {}: {}",
                connection.host, connection.port, connection.reason
            )
        });
        lines.collect()
    }

    /// Returns the session's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a notice that undo does not cover the changes of a command, for this reason. Returns
    /// it only once per session.
    pub(crate) fn take_undo_warning(&self, reason: &str) -> Option<String> {
        let was_sent = self.undo_warning_sent.swap(true, Ordering::Relaxed);
        (!was_sent).then(|| {
            format!(
                "Undo does not cover all changes of commands here: {reason}. This notice is not \
                 repeated."
            )
        })
    }

    /// Records a stored output file and its size. If all stored outputs together exceed
    /// [`MAX_STORED_OUTPUT`], removes the oldest files.
    pub(crate) async fn record_stored_output(&self, path: PathBuf, bytes: u64) {
        let surplus = {
            let mut outputs = self
                .stored_outputs
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            outputs.push_back((path, bytes));
            let mut total: u64 = outputs.iter().map(|(_, bytes)| bytes).sum();
            let mut surplus = Vec::new();
            while total > MAX_STORED_OUTPUT && outputs.len() > 1 {
                let Some((path, bytes)) = outputs.pop_front() else {
                    break;
                };
                total -= bytes;
                surplus.push(path);
            }
            surplus
        };
        if !surplus.is_empty() {
            // Errors are ignored: the file may already have been removed.
            let remove = move || surplus.iter().for_each(|path| drop(fs::remove_file(path)));
            let _ = blocking(remove).await;
        }
    }

    /// Returns the definitions of the user's own shell, if they are enabled. The first call runs
    /// the user's rc file.
    async fn user_shell_snapshot(&self) -> Option<&UserShellSnapshot> {
        let user_shell = self.user_shell.get_or_init(|| async {
            let is_enabled = self
                .program
                .as_ref()
                .is_some_and(|program| program.users_shell);
            let home = env::var_os("HOME").filter(|_| is_enabled)?;
            let id = CallId::new().0.simple().to_string();
            let snapshot = snapshot::take(Path::new(&home), None, &id, RC_FILE_TIMEOUT).await;
            let snapshot = snapshot.ok()?;
            let file = self.folder.join(format!("shell_{id}.sh"));
            let (new_file, text) = (file.clone(), snapshot.text);
            let written = blocking(move || capture::create(&new_file)?.write_all(text.as_bytes()));
            written.await.ok()?.ok()?;
            Some(UserShellSnapshot {
                script: file,
                path_variable: snapshot.path,
            })
        });
        user_shell.await.as_ref()
    }

    /// Returns the path of the file for a long output. `attempt` counts how often the call has run
    /// its command again, from 0.
    pub(crate) fn output_path(&self, call: CallId, attempt: u32) -> PathBuf {
        let name = match attempt {
            0 => format!("bash_{call}.txt"),
            attempt => format!("bash_{call}_{attempt}.txt"),
        };
        self.folder.join("tool-results").join(name)
    }

    /// Registers a call that waits for its command. While the returned value exists,
    /// [`ShellService::move_to_background`] can move the command to the background.
    pub(crate) fn register_waiting_call(&self, cx: &CallContext) -> WaitingCallGuard<'_> {
        let signal = Arc::new(Notify::new());
        let waiting = WaitingCall {
            tool_use_id: Arc::clone(&cx.tool_use_id),
            detach_signal: Arc::clone(&signal),
        };
        self.lock_waiting_calls().insert(cx.call, waiting);
        WaitingCallGuard {
            shell: self,
            call: cx.call,
            detach_signal: signal,
        }
    }

    /// Starts a command in its sandbox. Its output goes to `capture`.
    pub(crate) async fn start_command(
        &self,
        confinement: &Confinement,
        command: ShellCommand,
        capture: OutputCapture,
        witness: Option<&WitnessRequest>,
    ) -> Result<Arc<CommandJob>, ToolError> {
        let profile = &profile::sandbox_profile(confinement);
        let sandbox = self.sandbox_for(confinement).await?;
        let not_run =
            |reason: String| ToolError::Failed(format!("The command was not run: {reason}"));
        let mechanism = sandbox.prepare(profile).await;
        // If the sandbox is weak, the user should know before the command runs.
        self.record_mechanism(
            profile,
            mechanism.map_err(|error| not_run(error.to_string()))?,
        );
        // The prepared mechanism may fail when the command starts, and the sandbox would then use a
        // weaker one. So the limit is checked there, too.
        let weakest = weakest_allowed_mechanism(confinement);
        let started = match witness {
            Some(witness) => {
                let starting = sandbox.start_witnessed(profile, command, weakest, witness);
                starting.await
            }
            None => sandbox.start_no_weaker(profile, command, weakest).await,
        };
        let handle = match started {
            Ok(handle) => handle,
            Err(SandboxError::TooWeak { found }) => {
                self.record_mechanism(profile, found);
                return Err(not_run(too_weak_reason(confinement, &sandbox).await));
            }
            Err(error) => return Err(not_run(error.to_string())),
        };
        self.record_mechanism(profile, handle.mechanism());
        Ok(Arc::new(CommandJob::new(sandbox, handle, capture)))
    }

    /// Returns whether the guard of a command with this confinement can record its changes.
    pub(crate) async fn can_witness(&self, confinement: &Confinement) -> Result<bool, ToolError> {
        if confinement.profile != ConfinementProfile::Workspace || self.witness_store().is_none() {
            return Ok(false);
        }
        let sandbox = self.sandbox_for(confinement).await?;
        let profile = profile::sandbox_profile(confinement);
        // An error is reported when the command starts.
        Ok(sandbox.can_witness(&profile).await.unwrap_or(false))
    }

    /// Starts a long-running confined program, with the same environment as commands. Returns it
    /// with its sandbox, which must exist as long as the program.
    pub(crate) async fn start_program(
        &self,
        confinement: &Confinement,
        mut program: ConfinedProgram,
    ) -> Result<(Sandbox, ConfinedProcess), ToolError> {
        let profile = &profile::sandbox_profile(confinement);
        let sandbox = self.sandbox_for(confinement).await?;
        program.env = sandbox.environment(profile);
        let not_started =
            |reason: String| ToolError::Failed(format!("It was not started: {reason}"));
        let weakest = weakest_allowed_mechanism(confinement);
        match sandbox.start_program(profile, program, weakest).await {
            Ok(process) => {
                self.record_mechanism(profile, process.mechanism());
                Ok((sandbox, process))
            }
            Err(SandboxError::TooWeak { found }) => {
                self.record_mechanism(profile, found);
                Err(not_started(too_weak_reason(confinement, &sandbox).await))
            }
            Err(error) => Err(not_started(error.to_string())),
        }
    }

    /// Returns a new path for the temporary files of a long-running confined program. The path is
    /// short, like [`ShellService::scratch_folder`].
    #[cfg(feature = "browser")]
    pub(crate) fn new_program_scratch(&self, program: &str) -> PathBuf {
        static STARTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
        let mut path = self.scratch_folder().into_os_string();
        path.push(format!(
            "-{program}{}",
            STARTED.fetch_add(1, Ordering::Relaxed)
        ));
        path.into()
    }

    /// Like [`ShellService::start_program`], but with this profile and with the environment that
    /// `program` contains. Returns `None` if only a weaker mechanism than `weakest` is available.
    #[cfg(feature = "browser")]
    pub(crate) async fn start_program_with_profile(
        &self,
        confinement: &Confinement,
        profile: &SandboxProfile,
        program: ConfinedProgram,
        weakest: Mechanism,
    ) -> Result<Option<ConfinedProcess>, ToolError> {
        let sandbox = self.sandbox_for(confinement).await?;
        let name = program.program.display().to_string();
        match sandbox.start_program(profile, program, weakest).await {
            Ok(process) => Ok(Some(process)),
            Err(SandboxError::TooWeak { .. }) => Ok(None),
            Err(error) => Err(ToolError::Failed(format!(
                "{name} was not started: {error}"
            ))),
        }
    }

    /// Returns the cached sandbox for the settings in `confinement`, or creates it.
    pub(crate) async fn sandbox_for(
        &self,
        confinement: &Confinement,
    ) -> Result<Sandbox, ToolError> {
        let settings = EnvironmentSettings {
            env: Arc::clone(&confinement.env),
            withheld: Arc::clone(&confinement.withheld),
        };
        // The rules of the session's gate are those of the latest call, which may allow more hosts.
        let (gate, only_hosts) = match &confinement.network {
            NetworkAccess::Only(hosts) => (
                Arc::new(HostGate::with_rules(hosts.clone())),
                Some(hosts.lists()),
            ),
            _ => (Arc::clone(&self.gate), None),
        };
        let mut entries = self.sandboxes.lock().await;
        let fits =
            |entry: &&CachedSandbox| entry.settings == settings && entry.only_hosts == only_hosts;
        if let Some(entry) = entries.iter().find(fits) {
            return Ok(entry.sandbox.clone());
        }
        let program = self
            .program
            .as_ref()
            .map(|program| program.path.clone())
            .ok_or(ToolError::Unavailable("a program that confines commands"))?;
        let shell = system_shell().ok_or(ToolError::Unavailable("bash"))?;
        let user_shell = self.user_shell_snapshot().await.cloned();
        let resources = limits::resources(|name| {
            let from_settings = settings.env.get(name).cloned();
            from_settings.or_else(|| env::var(name).ok())
        });
        let environment_settings = settings.clone();
        let user_path = user_shell.as_ref().map(|shell| shell.path_variable.clone());
        let sandbox = Sandbox::new(SandboxSetup {
            program,
            shell,
            environment: Arc::new(move |profile| {
                environment_settings.environment(profile, user_path.as_deref())
            }),
            scratch: self.scratch_folder(),
            snapshot: user_shell.map(|shell| shell.script),
            gate: Some(gate),
            strictest_mechanism: Mechanism::Namespaces,
            resource_limits: resources,
        });
        sandbox.set_witness_store(self.witness_store());
        // If the cache is full, the oldest sandbox is removed. Commands that are running in it hold
        // their own reference.
        entries.truncate(MAX_CACHED_SANDBOXES - 1);
        entries.insert(
            0,
            CachedSandbox {
                sandbox: sandbox.clone(),
                settings,
                only_hosts,
            },
        );
        Ok(sandbox)
    }

    /// Returns the folder for temporary files of commands. Its path is short, because the path of a
    /// Unix socket in it must fit into 107 bytes. The folder is removed with the last lease on it.
    ///
    /// The folder is in the machine's `/tmp`. It contains the folders that confined commands see as
    /// `/tmp` and `/var/tmp`. Without mount namespaces, only `TMPDIR` names it.
    pub(crate) fn scratch_folder(&self) -> PathBuf {
        let create = || {
            let lease = ScratchLease::create(Path::new("/tmp")).ok()?;
            if let Some(journal) = &self.journal {
                journal.leave_out_temporary_files(lease.path());
            }
            Some(lease)
        };
        let lease = self.scratch.get_or_init(create).as_ref();
        lease.map_or_else(
            || self.folder.join("scratch"),
            |lease| lease.path().to_path_buf(),
        )
    }

    /// Returns the folder where guards store what commands change, if any.
    fn witness_store(&self) -> Option<PathBuf> {
        self.journal.as_ref()?.witness_store()
    }

    /// Records how strong the mechanism is that confines commands. If it does not fully confine
    /// them, reports this to the user once per session. The profile `Full` needs no confinement, so
    /// it is ignored.
    fn record_mechanism(&self, profile: &SandboxProfile, mechanism: Mechanism) {
        if *profile == SandboxProfile::Full {
            return;
        }
        let is_strong = mechanism < Mechanism::Reduced;
        self.is_fully_confined.store(is_strong, Ordering::Relaxed);
        if let Some(warning) = mechanism.warning()
            && let Some(report) = self
                .program
                .as_ref()
                .and_then(|program| program.on_weak.as_ref())
            && !self.weak_sandbox_reported.swap(true, Ordering::Relaxed)
        {
            report(&warning);
        }
    }

    fn lock_waiting_calls(&self) -> MutexGuard<'_, HashMap<CallId, WaitingCall>> {
        self.waiting_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProbeConfinement for ShellService {
    fn strength<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Option<ConfinementStrength>> {
        Box::pin(async move {
            // Usually one probe per session is enough. If a later sandbox is weaker,
            // `start_command` does not run commands that must be confined.
            if self.is_fully_confined.load(Ordering::Relaxed) {
                return Some(ConfinementStrength::Whole);
            }
            let profile = &profile::sandbox_profile(confinement);
            let sandbox = self.sandbox_for(confinement).await.ok()?;
            let mechanism = sandbox.prepare(profile).await.ok()?;
            self.record_mechanism(profile, mechanism);
            Some(match mechanism {
                Mechanism::Namespaces | Mechanism::Bubblewrap => ConfinementStrength::Whole,
                Mechanism::Reduced => ConfinementStrength::Reduced,
                Mechanism::None => ConfinementStrength::Nothing,
            })
        })
    }

    fn is_witnessed<'a>(
        &'a self,
        confinement: &'a Confinement,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            // Without a PID namespace for the command, one of its processes could outlive the record.
            // Without a journal, nothing is stored.
            cx.services.get::<Journal>().is_ok()
                && self.strength(confinement).await == Some(ConfinementStrength::Whole)
                && self.can_witness(confinement).await.unwrap_or(false)
        })
    }

    fn private_tmp(&self, probes: bool) -> BoxFuture<'_, Vec<(PathBuf, PathBuf)>> {
        Box::pin(async move {
            let is_confined = || self.is_fully_confined.load(Ordering::Relaxed);
            if probes && !is_confined() {
                self.strength(&Confinement::default()).await;
            }
            if !is_confined() {
                return Vec::new();
            }
            let directories = private_directories(&self.scratch_folder()).into_iter();
            // The call may be before any command, which would create them.
            directories
                .filter(|directory| match probes {
                    true => directory.create().is_ok(),
                    false => directory.folder.is_dir(),
                })
                .map(|directory| (directory.path, directory.folder))
                .collect()
        })
    }

    fn prepare<'a>(&'a self, confinement: &'a Confinement) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // A failure is reported when a command needs the sandbox.
            let profile = &profile::sandbox_profile(confinement);
            if let Ok(sandbox) = self.sandbox_for(confinement).await
                && let Ok(mechanism) = sandbox.prepare(profile).await
            {
                self.record_mechanism(profile, mechanism);
            }
        })
    }

    fn allowed_hosts(&self) -> Vec<String> {
        self.gate.allowed_hosts()
    }
}

/// Returns the weakest mechanism that is sufficient for a command with this confinement.
fn weakest_allowed_mechanism(confinement: &Confinement) -> Mechanism {
    match (confinement.required, confinement.only_confined) {
        (true, _) => Mechanism::Bubblewrap,
        (false, true) => Mechanism::Reduced,
        (false, false) => Mechanism::None,
    }
}

/// Returns the reason why a command does not run, as text for the model: no available mechanism
/// confines it as strictly as required.
async fn too_weak_reason(confinement: &Confinement, sandbox: &Sandbox) -> String {
    if !confinement.required {
        return "no sandbox works here, and the command was allowed without asking only because it \
                would run in one. Call it again: the user is then asked."
            .to_owned();
    }
    let failures = sandbox.failures().await.into_iter();
    let errors: Vec<String> = failures.map(|(_, error)| error).collect();
    format!(
        "the settings require a sandbox, and none works here: {}",
        errors.join("; ")
    )
}

/// The registration of a call that waits for its command. It ends when this value is dropped.
pub(crate) struct WaitingCallGuard<'a> {
    shell: &'a ShellService,
    call: CallId,
    /// Notified when the command is to be moved to the background.
    detach_signal: Arc<Notify>,
}

/// A call that waits for its command.
#[derive(Debug)]
struct WaitingCall {
    /// The id that the model provider gave the call.
    tool_use_id: Arc<str>,
    /// Notify this to move the command to the background.
    detach_signal: Arc<Notify>,
}

impl WaitingCallGuard<'_> {
    /// Waits until the call is to stop waiting and move its command to the background.
    pub(crate) async fn wait_for_detach(&self) {
        self.detach_signal.notified().await;
    }
}

impl Drop for WaitingCallGuard<'_> {
    fn drop(&mut self) {
        self.shell.lock_waiting_calls().remove(&self.call);
    }
}
