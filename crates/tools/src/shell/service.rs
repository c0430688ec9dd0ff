//! What the commands of one session share: the sandbox they run in, what runs in the background.

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
    ConfinedProcess, ConfinedProgram, Line, Mechanism, Network, PROXY_PORT, Sandbox, SandboxError,
    SandboxProfile, ScratchLease, Setup, system_shell,
};
use tokio::sync::{Notify, OnceCell};

use super::{
    capture::{self, Capture},
    environment,
    gate::HostGate,
    job::Job,
    limits, profile,
    program::ShellProgram,
    repl::Interpreters,
    snapshot,
    tasks::Tasks,
    tool_caches::MadeCaches,
};

use crate::blocking::blocking;

/// The commands of one session. Everything they started ends with it.
#[derive(Debug)]
pub struct Shell {
    program: Option<ShellProgram>,
    /// The session's folder.
    folder: PathBuf,
    /// The folder for temporary files, once it is needed; `None` if it cannot be a short one.
    scratch: OnceLock<Option<ScratchLease>>,
    standing: tokio::sync::Mutex<Vec<Standing>>,
    tasks: Arc<Tasks>,
    /// The calls that wait for a command, and how to tell them not to.
    waiting: Mutex<HashMap<CallId, Waits>>,
    gate: Arc<HostGate>,
    /// What was taken over from the user's own shell, if that is wanted and worked.
    taken: OnceCell<Option<Taken>>,
    /// The outputs that are kept, the oldest first, with their sizes.
    outputs: Mutex<VecDeque<(PathBuf, u64)>>,
    /// Interpreters that keep their state.
    interpreters: Interpreters,
    /// It was reported that undo does not cover commands here.
    told_uncovered: AtomicBool,
    /// The same, that commands are less confined than they should be.
    told_weak: AtomicBool,
    /// Commands were confined as they should be when that was last found out.
    is_strong: AtomicBool,
    /// Caches of tools that were made for commands.
    caches: MadeCaches,
}

/// A file with the user's functions and aliases, and their PATH.
#[derive(Debug, Clone)]
struct Taken {
    file: PathBuf,
    path: String,
}

/// How much output of commands is kept in files, in bytes, beside that of tasks.
const MOST_OUTPUT: u64 = 1 << 30;
/// How long the user's rc file may take.
const SNAPSHOT_TIME: Duration = Duration::from_secs(5);
/// How many sandboxes are kept at hand.
const MOST_STANDING: usize = 6;

/// A sandbox, and the settings of its commands.
struct Standing {
    sandbox: Sandbox,
    settings: ShellSettings,
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Standing")
    }
}

/// What settings say of the environment of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ShellSettings {
    env: Arc<BTreeMap<String, String>>,
    withheld: Arc<[String]>,
}

impl ShellSettings {
    /// The whole environment of a command.
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
        let proxied = matches!(profile, SandboxProfile::Workspace(workspace) if workspace.network == Network::Proxy);
        let child = environment::child(&environment::Origin {
            own: &own,
            settings: &settings,
            path,
            profile,
            proxy: proxied.then_some(PROXY_PORT),
        });
        child.into_iter().collect()
    }
}

impl Shell {
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
            tasks: Arc::new(Tasks::new(notices)),
            waiting: Mutex::default(),
            gate: Arc::default(),
            taken: OnceCell::new(),
            outputs: Mutex::default(),
            interpreters: Interpreters::default(),
            caches: MadeCaches::default(),
            told_uncovered: AtomicBool::new(false),
            told_weak: AtomicBool::new(false),
            is_strong: AtomicBool::new(false),
        }
    }

    /// What runs in the background.
    pub fn tasks(&self) -> &Arc<Tasks> {
        &self.tasks
    }

    /// Lets a call that waits for its command go on without it: the command goes on in the background.
    /// `false`: no such call waits.
    pub fn background(&self, call: CallId) -> bool {
        let waiting = self.waiting();
        waiting
            .get(&call)
            .map(|one| one.told.notify_one())
            .is_some()
    }

    /// The same for the call that the provider names so, or for all of them. How many there were.
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

    /// Removes caches of tools that were made for commands of this session, where none has used them.
    pub fn remove_unused_caches(&self) {
        self.caches.remove_empty();
    }

    /// Caches of tools that were made for commands.
    pub(crate) fn caches(&self) -> &MadeCaches {
        &self.caches
    }

    /// Interpreters that keep their state.
    pub(crate) fn interpreters(&self) -> &Interpreters {
        &self.interpreters
    }

    /// Who decides on hosts.
    pub(crate) fn gate(&self) -> &HostGate {
        &self.gate
    }

    /// The connections that the proxy refused, all of the session, in sentences.
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

    /// The session's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is said of a command that undo does not cover; once a session.
    pub(crate) fn uncovered(&self, why: &str) -> Option<String> {
        let told = self.told_uncovered.swap(true, Ordering::Relaxed);
        (!told).then(|| {
            format!(
                "Undo does not cover all that commands change here: {why}. This is not said again."
            )
        })
    }

    /// An output is kept, in this file; the oldest go when there is too much.
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
            // One that is gone already is as good as removed.
            let remove = move || surplus.iter().for_each(|path| drop(fs::remove_file(path)));
            let _ = blocking(remove).await;
        }
    }

    /// What the user's own shell defines.
    async fn taken(&self) -> Option<&Taken> {
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
            Some(Taken {
                file,
                path: snapshot.path,
            })
        });
        taken.await.as_ref()
    }

    /// Where an output goes that is too long to be shown.
    pub(crate) fn place(&self, call: CallId, attempt: u32) -> PathBuf {
        let name = match attempt {
            0 => format!("bash_{call}.txt"),
            again => format!("bash_{call}_{again}.txt"),
        };
        self.folder.join("tool-results").join(name)
    }

    /// Receives requests that a call should not wait any longer, as long as it is held.
    pub(crate) fn detach_request(&self, cx: &CallContext) -> DetachRequest<'_> {
        let told = Arc::new(Notify::new());
        let waits = Waits {
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
        line: Line,
        capture: Capture,
    ) -> Result<Arc<Job>, ToolError> {
        let profile = &profile::of(confinement);
        let sandbox = self.sandbox(confinement).await?;
        let not_run = |why: String| ToolError::Failed(format!("The command was not run: {why}"));
        let mechanism = sandbox.prepare(profile).await;
        // Before it runs, so that no one hears of it afterwards.
        self.note(
            profile,
            mechanism.map_err(|error| not_run(error.to_string()))?,
        );
        // Asked for with the start: what was prepared may be gone by then, and another way be taken.
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
        Ok(Arc::new(Job::new(sandbox, running, capture)))
    }

    /// Starts a program that is confined for long, with the environment of commands.
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

    /// A folder for the temporary files of a program that is confined for long: short, as that of commands is.
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

    /// The same under a profile and with an environment of its own, no weaker than this; `None` where it cannot be
    /// confined so well.
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

    /// The sandbox for commands under these settings: made when the first of them comes.
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
        let sandbox = Sandbox::new(Setup {
            program,
            shell,
            environment: Arc::new(move |profile| given.environment(profile, path.as_deref())),
            scratch: self.scratch(),
            snapshot: taken.map(|taken| taken.file),
            gate: Some(Arc::<HostGate>::clone(&self.gate)),
            best: Mechanism::Namespaces,
            resources,
        });
        // Another one only where the settings change. What still runs keeps its own.
        standing.truncate(MOST_STANDING - 1);
        standing.insert(
            0,
            Standing {
                sandbox: sandbox.clone(),
                settings,
            },
        );
        Ok(sandbox)
    }

    /// Where commands have their temporary files: a short path, since the names of sockets in it
    /// must fit into 107 bytes. It goes away with the last of them.
    ///
    /// A folder in `/tmp`, and not a `/tmp` of its own: what a person put there (`look at /tmp/log`)
    /// and the sockets of their programs stay in sight, and nothing that a command leaves there would
    /// vanish without a word. It is no weaker: all else in `/tmp` cannot be changed unasked.
    pub(crate) fn scratch(&self) -> PathBuf {
        let create = || ScratchLease::create(Path::new("/tmp")).ok();
        let short = self.scratch.get_or_init(create).as_ref();
        short.map_or_else(
            || self.folder.join("scratch"),
            |folder| folder.path().to_path_buf(),
        )
    }

    /// Takes note of how commands are confined, and says once if that is less than it should be.
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

    fn waiting(&self) -> MutexGuard<'_, HashMap<CallId, Waits>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProbeConfinement for Shell {
    fn strength<'a>(
        &'a self,
        confinement: &'a Confinement,
    ) -> BoxFuture<'a, Option<ConfinementStrength>> {
        Box::pin(async move {
            // It is made ready in any case; should it come out weaker, `start` refuses.
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

/// The weakest way of confining in which a command may still run.
fn weakest(confinement: &Confinement) -> Mechanism {
    match (confinement.required, confinement.only_confined) {
        (true, _) => Mechanism::Bubblewrap,
        (false, true) => Mechanism::Reduced,
        (false, false) => Mechanism::None,
    }
}

/// Why a command is not run that cannot be confined as it must be.
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

/// A call that waits for its command, and can be asked to stop waiting.
pub(crate) struct DetachRequest<'a> {
    shell: &'a Shell,
    call: CallId,
    told: Arc<Notify>,
}

/// A call that waits for its command.
#[derive(Debug)]
struct Waits {
    /// As the provider names it.
    tool_use_id: Arc<str>,
    told: Arc<Notify>,
}

impl DetachRequest<'_> {
    /// Waits until it is requested.
    pub(crate) async fn asked(&self) {
        self.told.notified().await;
    }
}

impl Drop for DetachRequest<'_> {
    fn drop(&mut self) {
        self.shell.waiting().remove(&self.call);
    }
}
