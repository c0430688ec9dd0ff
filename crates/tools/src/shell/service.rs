//! The shared state of a session's commands: the sandboxes they run in, and the background tasks.

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
    BackgroundTasks, BoxFuture, CallContext, CallId, Confinement, ConfinementStrength,
    ProbeConfinement, ToolError,
};
use haft_sandbox::{
    ConfinedProcess, ConfinedProgram, Mechanism, PROXY_PORT, Sandbox, SandboxError, SandboxNetwork,
    SandboxProfile, SandboxSetup, ScratchLease, ShellCommand, system_shell,
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

/// The commands of one session. When the session ends, everything they started ends too.
#[derive(Debug)]
pub struct ShellService {
    program: Option<ShellProgram>,
    /// The session's folder.
    folder: PathBuf,
    /// The folder for temporary files, once it is needed. `None` if no short path is available.
    scratch: OnceLock<Option<ScratchLease>>,
    standing: tokio::sync::Mutex<Vec<SandboxEntry>>,
    tasks: Arc<ShellTasks>,
    /// The calls that wait for a command, and a way to stop each from waiting.
    waiting: Mutex<HashMap<CallId, DetachableCall>>,
    gate: Arc<HostGate>,
    /// The definitions of the user's own shell, if they are enabled and could be read.
    taken: OnceCell<Option<UserShellSnapshot>>,
    /// The stored outputs with their sizes, the oldest first.
    outputs: Mutex<VecDeque<(PathBuf, u64)>>,
    /// The interpreters of the REPL tool.
    interpreters: Interpreters,
    /// The notice that undo does not cover commands here was sent.
    told_uncovered: AtomicBool,
    /// The notice that commands are less confined than they should be was sent.
    told_weak: AtomicBool,
    /// The last check found that commands are confined as they should be.
    is_strong: AtomicBool,
    /// The caches of tools that haft created for commands.
    caches: CreatedCaches,
}

/// A file with the user's functions and aliases, and their PATH.
#[derive(Debug, Clone)]
struct UserShellSnapshot {
    file: PathBuf,
    path: String,
}

/// The maximum size of stored command outputs, in bytes. Outputs of tasks are not included.
const MOST_OUTPUT: u64 = 1 << 30;
/// The time limit for the user's rc file.
const SNAPSHOT_TIME: Duration = Duration::from_secs(5);
/// The maximum number of cached sandboxes.
const MOST_STANDING: usize = 6;

/// A sandbox, and the settings of its commands.
struct SandboxEntry {
    sandbox: Sandbox,
    settings: ShellSettings,
}

impl fmt::Debug for SandboxEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Standing")
    }
}

/// The settings for the environment of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ShellSettings {
    env: Arc<BTreeMap<String, String>>,
    withheld: Arc<[String]>,
}

impl ShellSettings {
    /// Returns the whole environment of a command.
    fn environment(
        &self,
        profile: &SandboxProfile,
        path: Option<&str>,
    ) -> Vec<(OsString, OsString)> {
        let taken_away = |name: &OsStr| {
            let name = name.to_string_lossy();
            self.env.get(&*name).is_some_and(String::is_empty)
                || self.withheld.iter().any(|held| *held == name)
        };
        let own: Vec<_> = env::vars_os()
            .filter(|(name, _)| !taken_away(name))
            .collect();
        let mut settings = BTreeMap::clone(&self.env);
        settings.retain(|name, value| !value.is_empty() && !self.withheld.contains(name));
        let proxied = matches!(profile, SandboxProfile::Workspace(workspace) if workspace.network == SandboxNetwork::Proxy);
        let child = environment::child(&environment::EnvironmentSource {
            own: &own,
            settings: &settings,
            path,
            profile,
            proxy: proxied.then_some(PROXY_PORT),
        });
        child.into_iter().collect()
    }
}

impl ShellService {
    pub(crate) fn new(
        program: Option<&ShellProgram>,
        folder: &Path,
        notices: Arc<BackgroundTasks>,
    ) -> Self {
        Self {
            program: program.cloned(),
            folder: folder.to_path_buf(),
            scratch: OnceLock::new(),
            standing: tokio::sync::Mutex::default(),
            tasks: Arc::new(ShellTasks::new(notices)),
            waiting: Mutex::default(),
            gate: Arc::default(),
            taken: OnceCell::new(),
            outputs: Mutex::default(),
            interpreters: Interpreters::default(),
            caches: CreatedCaches::default(),
            told_uncovered: AtomicBool::new(false),
            told_weak: AtomicBool::new(false),
            is_strong: AtomicBool::new(false),
        }
    }

    /// Returns the background tasks.
    pub fn tasks(&self) -> &Arc<ShellTasks> {
        &self.tasks
    }

    /// Moves the command of a waiting call to the background, so that the call can return. Returns
    /// `false` if the call is not waiting for a command.
    pub fn background(&self, call: CallId) -> bool {
        let waiting = self.waiting();
        waiting
            .get(&call)
            .map(|one| one.told.notify_one())
            .is_some()
    }

    /// Like [`ShellService::background`], but for the call with this id of the provider, or for all calls.
    /// Returns the number of calls.
    pub fn background_named(&self, tool_use_id: Option<&str>) -> usize {
        let waiting = self.waiting();
        let meant = waiting
            .values()
            .filter(|one| tool_use_id.is_none_or(|id| *one.tool_use_id == *id));
        meant.map(|one| one.told.notify_one()).count()
    }

    /// Ends everything that commands of this session left running.
    pub async fn close(&self) {
        self.tasks.stop_all().await;
        self.interpreters.close().await;
        let standing = std::mem::take(&mut *self.standing.lock().await);
        for one in standing {
            one.sandbox.close().await;
        }
        self.remove_unused_caches();
    }

    /// Removes the caches of tools that haft created for commands of this session and that no tool
    /// has used.
    pub fn remove_unused_caches(&self) {
        self.caches.remove_empty();
    }

    /// Returns the caches of tools that haft created for commands.
    pub(crate) fn caches(&self) -> &CreatedCaches {
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

    /// Returns the connections that the proxy refused in this session, as sentences.
    pub(crate) async fn refused_hosts(&self) -> Vec<String> {
        let mut refused = Vec::new();
        for one in &*self.standing.lock().await {
            let log = one.sandbox.network_log().await;
            let no = log.into_iter().filter(|entry| !entry.allowed);
            refused.extend(
                no.map(|entry| format!("{}, port {}: {}", entry.host, entry.port, entry.because)),
            );
        }
        refused
    }

    /// Returns the session's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the notice that undo does not cover a command, once per session.
    pub(crate) fn undo_warning(&self, why: &str) -> Option<String> {
        let told = self.told_uncovered.swap(true, Ordering::Relaxed);
        (!told).then(|| {
            format!(
                "Undo does not cover all that commands change here: {why}. This is not said again."
            )
        })
    }

    /// Records a stored output. Removes the oldest outputs if there are too many bytes.
    pub(crate) async fn remember(&self, path: PathBuf, bytes: u64) {
        let surplus = {
            let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
            outputs.push_back((path, bytes));
            let mut all: u64 = outputs.iter().map(|(_, bytes)| bytes).sum();
            let mut surplus = Vec::new();
            while all > MOST_OUTPUT && outputs.len() > 1 {
                let Some((path, bytes)) = outputs.pop_front() else {
                    break;
                };
                all -= bytes;
                surplus.push(path);
            }
            surplus
        };
        if !surplus.is_empty() {
            // A file that no longer exists needs no removal.
            let remove = move || surplus.iter().for_each(|path| drop(fs::remove_file(path)));
            let _ = blocking(remove).await;
        }
    }

    /// Returns the definitions of the user's own shell.
    async fn taken(&self) -> Option<&UserShellSnapshot> {
        let taken = self.taken.get_or_init(|| async {
            let users_shell = self
                .program
                .as_ref()
                .is_some_and(|program| program.users_shell);
            let home = env::var_os("HOME").filter(|_| users_shell)?;
            let mark = CallId::new().0.simple().to_string();
            let taken = snapshot::take(Path::new(&home), None, &mark, SNAPSHOT_TIME).await;
            let snapshot = taken.ok()?;
            let file = self.folder.join(format!("shell_{mark}.sh"));
            let (to, text) = (file.clone(), snapshot.text);
            let written = blocking(move || capture::create(&to)?.write_all(text.as_bytes()));
            written.await.ok()?.ok()?;
            Some(UserShellSnapshot {
                file,
                path: snapshot.path,
            })
        });
        taken.await.as_ref()
    }

    /// Returns the path for an output that is too long to be shown.
    pub(crate) fn output_path(&self, call: CallId, attempt: u32) -> PathBuf {
        let name = match attempt {
            0 => format!("bash_{call}.txt"),
            again => format!("bash_{call}_{again}.txt"),
        };
        self.folder.join("tool-results").join(name)
    }

    /// Registers a waiting call. While the returned value exists, the call can be asked to stop
    /// waiting.
    pub(crate) fn detach_request(&self, cx: &CallContext) -> DetachRequest<'_> {
        let told = Arc::new(Notify::new());
        let waits = DetachableCall {
            tool_use_id: Arc::clone(&cx.tool_use_id),
            told: Arc::clone(&told),
        };
        self.waiting().insert(cx.call, waits);
        DetachRequest {
            shell: self,
            call: cx.call,
            told,
        }
    }

    /// Starts a command.
    pub(crate) async fn start(
        &self,
        confinement: &Confinement,
        line: ShellCommand,
        capture: OutputCapture,
    ) -> Result<Arc<CommandJob>, ToolError> {
        let profile = &profile::of(confinement);
        let sandbox = self.sandbox(confinement).await?;
        let not_run = |why: String| ToolError::Failed(format!("The command was not run: {why}"));
        let mechanism = sandbox.prepare(profile).await;
        // Report before the command runs, so that the user is not informed too late.
        self.note(
            profile,
            mechanism.map_err(|error| not_run(error.to_string()))?,
        );
        // The limit is also passed to the start, because the prepared mechanism may fail by then
        // and a weaker one be used.
        let weakest = weakest(confinement);
        let running = match sandbox.start_no_weaker(profile, line, weakest).await {
            Ok(running) => running,
            Err(SandboxError::TooWeak { found }) => {
                self.note(profile, found);
                return Err(not_run(too_weak(confinement, &sandbox).await));
            }
            Err(error) => return Err(not_run(error.to_string())),
        };
        self.note(profile, running.mechanism());
        Ok(Arc::new(CommandJob::new(sandbox, running, capture)))
    }

    /// Starts a long-running confined program, with the environment of commands.
    pub(crate) async fn start_program(
        &self,
        confinement: &Confinement,
        mut program: ConfinedProgram,
    ) -> Result<(Sandbox, ConfinedProcess), ToolError> {
        let profile = &profile::of(confinement);
        let sandbox = self.sandbox(confinement).await?;
        program.env = sandbox.environment(profile);
        let not_run = |why: String| ToolError::Failed(format!("It was not started: {why}"));
        let weakest = weakest(confinement);
        match sandbox.start_program(profile, program, weakest).await {
            Ok(process) => {
                self.note(profile, process.mechanism());
                Ok((sandbox, process))
            }
            Err(SandboxError::TooWeak { found }) => {
                self.note(profile, found);
                Err(not_run(too_weak(confinement, &sandbox).await))
            }
            Err(error) => Err(not_run(error.to_string())),
        }
    }

    /// Returns a folder for the temporary files of a long-running confined program. The path is
    /// short, like that of commands.
    #[cfg(feature = "browser")]
    pub(crate) fn scratch_for(&self, program: &str) -> PathBuf {
        static STARTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
        let mut path = self.scratch().into_os_string();
        path.push(format!(
            "-{program}{}",
            STARTED.fetch_add(1, Ordering::Relaxed)
        ));
        path.into()
    }

    /// Like [`ShellService::start_program`], but with a separate profile and environment, and with a
    /// mechanism no weaker than `weakest`. Returns `None` if that is not possible.
    #[cfg(feature = "browser")]
    pub(crate) async fn start_under(
        &self,
        confinement: &Confinement,
        profile: &SandboxProfile,
        program: ConfinedProgram,
        weakest: Mechanism,
    ) -> Result<Option<ConfinedProcess>, ToolError> {
        let sandbox = self.sandbox(confinement).await?;
        let name = program.program.display().to_string();
        match sandbox.start_program(profile, program, weakest).await {
            Ok(process) => Ok(Some(process)),
            Err(SandboxError::TooWeak { .. }) => Ok(None),
            Err(error) => Err(ToolError::Failed(format!(
                "{name} was not started: {error}"
            ))),
        }
    }

    /// Returns the sandbox for commands under these settings, and creates it on first use.
    pub(crate) async fn sandbox(&self, confinement: &Confinement) -> Result<Sandbox, ToolError> {
        let settings = ShellSettings {
            env: Arc::clone(&confinement.env),
            withheld: Arc::clone(&confinement.withheld),
        };
        let mut standing = self.standing.lock().await;
        if let Some(found) = standing.iter().find(|one| one.settings == settings) {
            return Ok(found.sandbox.clone());
        }
        let program = self
            .program
            .as_ref()
            .map(|program| program.path.clone())
            .ok_or(ToolError::Unavailable("a program that confines commands"))?;
        let shell = system_shell().ok_or(ToolError::Unavailable("bash"))?;
        let taken = self.taken().await.cloned();
        let resources = limits::resources(|name| {
            let set = settings.env.get(name).cloned();
            set.or_else(|| env::var(name).ok())
        });
        let given = settings.clone();
        let path = taken.as_ref().map(|taken| taken.path.clone());
        let sandbox = Sandbox::new(SandboxSetup {
            program,
            shell,
            environment: Arc::new(move |profile| given.environment(profile, path.as_deref())),
            scratch: self.scratch(),
            snapshot: taken.map(|taken| taken.file),
            gate: Some(Arc::<HostGate>::clone(&self.gate)),
            best: Mechanism::Namespaces,
            resources,
        });
        // A new sandbox is only needed if the settings change. Running commands keep theirs.
        standing.truncate(MOST_STANDING - 1);
        standing.insert(
            0,
            SandboxEntry {
                sandbox: sandbox.clone(),
                settings,
            },
        );
        Ok(sandbox)
    }

    /// Returns the folder for temporary files of commands. Its path is short, since the names of
    /// sockets in it must fit into 107 bytes. The folder is removed with the last lease on it.
    ///
    /// It is a folder in `/tmp`, and not a separate `/tmp`: files that the user put there and the
    /// sockets of the user's programs remain visible, and no file that a command leaves in `/tmp`
    /// disappears silently. This is no weaker, because commands cannot change anything else in
    /// `/tmp` without approval.
    pub(crate) fn scratch(&self) -> PathBuf {
        let create = || ScratchLease::create(Path::new("/tmp")).ok();
        let short = self.scratch.get_or_init(create).as_ref();
        short.map_or_else(
            || self.folder.join("scratch"),
            |folder| folder.path().to_path_buf(),
        )
    }

    /// Records the mechanism that confines commands, and reports once per session if it is weaker
    /// than it should be.
    fn note(&self, profile: &SandboxProfile, mechanism: Mechanism) {
        if *profile == SandboxProfile::Full {
            return;
        }
        let is_strong = mechanism < Mechanism::Reduced;
        self.is_strong.store(is_strong, Ordering::Relaxed);
        let weak = mechanism.warning();
        if let Some(warning) = weak
            && let Some(learns) = self
                .program
                .as_ref()
                .and_then(|program| program.on_weak.as_ref())
            && !self.told_weak.swap(true, Ordering::Relaxed)
        {
            learns(&warning);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<CallId, DetachableCall>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProbeConfinement for ShellService {
    fn strength<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Option<ConfinementStrength>> {
        Box::pin(async move {
            // The sandbox is prepared in any case. If its mechanism is weaker, `start` refuses to
            // run the command.
            if self.is_strong.load(Ordering::Relaxed) {
                return Some(ConfinementStrength::Whole);
            }
            let profile = &profile::of(confinement);
            let sandbox = self.sandbox(confinement).await.ok()?;
            let mechanism = sandbox.prepare(profile).await.ok()?;
            self.note(profile, mechanism);
            Some(match mechanism {
                Mechanism::Namespaces | Mechanism::Bubblewrap => ConfinementStrength::Whole,
                Mechanism::Reduced => ConfinementStrength::Reduced,
                Mechanism::None => ConfinementStrength::Nothing,
            })
        })
    }
}

/// Returns the weakest mechanism with which the command may still run.
fn weakest(confinement: &Confinement) -> Mechanism {
    match (confinement.required, confinement.only_confined) {
        (true, _) => Mechanism::Bubblewrap,
        (false, true) => Mechanism::Reduced,
        (false, false) => Mechanism::None,
    }
}

/// Returns the reason for not running a command that cannot be confined as required.
async fn too_weak(confinement: &Confinement, sandbox: &Sandbox) -> String {
    if !confinement.required {
        return "nothing confines commands here, and it was to run unasked only because it would be \
                confined. Call it again: then the user is asked."
            .to_owned();
    }
    let failures = sandbox.failures().await.into_iter();
    let why: Vec<String> = failures.map(|(_, why)| why).collect();
    format!(
        "the settings want it confined, and that cannot be done here: {}",
        why.join("; ")
    )
}

/// The registration of a call that waits for its command and can be asked to stop waiting.
pub(crate) struct DetachRequest<'a> {
    shell: &'a ShellService,
    call: CallId,
    told: Arc<Notify>,
}

/// A call that waits for its command.
#[derive(Debug)]
struct DetachableCall {
    /// The provider's id of the call.
    tool_use_id: Arc<str>,
    told: Arc<Notify>,
}

impl DetachRequest<'_> {
    /// Waits until the call is asked to stop waiting.
    pub(crate) async fn asked(&self) {
        self.told.notified().await;
    }
}

impl Drop for DetachRequest<'_> {
    fn drop(&mut self) {
        self.shell.waiting().remove(&self.call);
    }
}
