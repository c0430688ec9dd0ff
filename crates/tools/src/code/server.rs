//! A language server process: started in its sandbox, restarted when it dies, stopped when it is
//! idle.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use haft_lsp::{LspClient, LspDocument, LspOptions};
use haft_sandbox::{
    CommandOutput, ConfinedProcess, ConfinedProgram, Mechanism, Sandbox, SandboxError,
    SandboxNetwork, SandboxProfile, WorkspaceProfile,
};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt,
    sync::{Notify, watch},
    time::{Instant, MissedTickBehavior, interval_at, sleep, timeout},
};

use super::{setup::LanguageServerSetup, table::LanguageServerEntry};
use crate::{blocking::blocking, shell::ShellService};

/// The time without requests after which a server is stopped.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// The waits before a server that died is restarted.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(15),
];
/// The time after which the death of a server is ignored.
const CRASH_MEMORY: Duration = Duration::from_secs(600);
/// The interval of memory checks.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The time for a server's last output to arrive.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time that a server may take to analyze its first documents.
const FIRST_ANALYSIS_TIMEOUT: Duration = Duration::from_secs(60);
/// The number of bytes of its standard error that are stored.
const MAX_STDERR: usize = 4096;

/// The name of a server and the folder it works on.
pub(crate) type ServerKey = (String, PathBuf);

/// A language server and its state.
pub(crate) struct LanguageServer {
    pub(crate) entry: LanguageServerEntry,
    pub(crate) root: PathBuf,
    state: watch::Sender<LanguageServerState>,
    used: Mutex<Instant>,
    /// Requests an immediate restart of the server.
    again: Notify,
    /// Requests the end of the server.
    end: Notify,
    stderr_tail: Arc<Mutex<String>>,
    /// Documents that have had the longer wait for their first analysis.
    requested_documents: Mutex<BTreeSet<PathBuf>>,
    /// Documents to open as soon as the server is ready.
    opened_first: Mutex<OpenDocuments>,
    /// Whether a background task is waiting for documents without results.
    is_looking: Arc<AtomicBool>,
}

#[derive(Clone)]
pub(crate) enum LanguageServerState {
    Starting,
    Ready(LspClient),
    /// It died and will be restarted.
    Died(String),
    /// It will not be restarted automatically.
    Failed(String),
    /// It was stopped because it was idle.
    Idle,
    /// It was ended permanently.
    Ended,
}

impl LanguageServer {
    /// Starts the server in the background.
    pub(crate) fn start(
        entry: LanguageServerEntry,
        root: PathBuf,
        program: (PathBuf, Vec<String>),
        setup: &LanguageServerSetup,
        shell: Arc<ShellService>,
    ) -> Arc<Self> {
        let server = Arc::new(Self {
            entry,
            root,
            state: watch::channel(LanguageServerState::Starting).0,
            used: Mutex::new(Instant::now()),
            again: Notify::new(),
            end: Notify::new(),
            stderr_tail: Arc::default(),
            requested_documents: Mutex::default(),
            opened_first: Mutex::default(),
            is_looking: Arc::default(),
        });
        let task = ServerSupervisor {
            server: Arc::clone(&server),
            program,
            setup: setup.clone(),
            shell,
        };
        haft_contract::spawn_boxed(task.supervise());
        server
    }

    pub(crate) fn has_key(&self, (name, root): &ServerKey) -> bool {
        self.entry.name == *name && self.root == *root
    }

    pub(crate) fn state(&self) -> LanguageServerState {
        self.state.borrow().clone()
    }

    /// Records that the server is needed now.
    pub(crate) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if matches!(self.state(), LanguageServerState::Idle) {
            self.again.notify_one();
        }
    }

    pub(crate) fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Restarts the server immediately, in any state.
    pub(crate) fn restart(&self) {
        let was = self.state.send_replace(LanguageServerState::Starting);
        if !matches!(was, LanguageServerState::Starting) {
            self.again.notify_one();
        }
    }

    /// Returns the reason why the server ended during a call.
    pub(crate) async fn why_it_ended(&self) -> String {
        let mut state = self.state.subscribe();
        let known = state.wait_for(
            |state| !matches!(state, LanguageServerState::Ready(client) if client.is_closed()),
        );
        let why = match timeout(LAST_OUTPUT_TIMEOUT, known).await {
            Ok(Ok(found)) => match &*found {
                LanguageServerState::Died(why) | LanguageServerState::Failed(why) => {
                    Some(why.clone())
                }
                _ => None,
            },
            _ => None,
        };
        why.unwrap_or_else(|| format!("{} died and is being restarted.", self.entry.name))
    }

    /// Waits until the server has ended permanently.
    pub(crate) async fn wait_until_ended(&self) {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| matches!(state, LanguageServerState::Ended));
        let _ = ended.await; // or its task was dropped
    }

    /// Ends the server permanently.
    pub(crate) fn stop(&self) {
        self.end.notify_one();
    }

    /// Waits until the server is ready. The error is the reason why it is not.
    pub(crate) async fn ready(&self, within: Duration) -> Result<LspClient, String> {
        self.touch();
        let mut state = self.state.subscribe();
        // A server that died may not be marked as such yet.
        let settled = state.wait_for(|state| match state {
            LanguageServerState::Ready(client) => !client.is_closed(),
            LanguageServerState::Failed(_) | LanguageServerState::Ended => true,
            _ => false,
        });
        let name = &self.entry.name;
        match timeout(within, settled).await {
            Ok(Ok(found)) => match &*found {
                LanguageServerState::Ready(client) => Ok(client.clone()),
                LanguageServerState::Failed(why) => Err(why.clone()),
                _ => Err(format!("{name} was ended; try again.")),
            },
            Ok(Err(_)) => Err(format!("{name} was ended.")),
            Err(_) => Err(format!("{name} is still starting; try again.")),
        }
    }

    /// Returns whether this document is requested for the first time.
    pub(crate) fn is_first_request(&self, path: &Path) -> bool {
        let looked_at = self.requested_documents.lock();
        let mut looked_at = looked_at.unwrap_or_else(PoisonError::into_inner);
        looked_at.insert(path.to_path_buf())
    }

    /// Sets the documents to open when the server is ready, so that it knows them before they are
    /// changed.
    pub(crate) fn open_once_ready(&self, documents: OpenDocuments) {
        let first = self.opened_first.lock();
        *first.unwrap_or_else(PoisonError::into_inner) = documents;
    }

    /// Requests, in the background, the results of open documents that have none yet.
    pub(crate) fn request_missing_diagnostics(&self, client: &LspClient) {
        let is_known = |(_, document): &(_, LspDocument)| document.report.version.is_some();
        if client.documents().iter().all(is_known) || self.is_looking.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let (client, is_looking) = (client.clone(), Arc::clone(&self.is_looking));
        haft_contract::spawn_boxed(async move {
            let until = Instant::now() + FIRST_ANALYSIS_TIMEOUT;
            // More documents may be opened in the meantime.
            while client.wait_for_diagnostics(&[], until).await
                && client.uses_pull()
                && !client.documents().iter().all(is_known)
            {}
            is_looking.store(false, Ordering::Relaxed);
        });
    }

    /// Returns the last line that the server wrote to standard error.
    fn last_stderr_line(&self) -> String {
        let said = self
            .stderr_tail
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let line = said.lines().rev().find(|line| !line.trim().is_empty());
        line.unwrap_or_default().trim().chars().take(300).collect()
    }
}

/// The task that runs a server and restarts it.
struct ServerSupervisor {
    server: Arc<LanguageServer>,
    program: (PathBuf, Vec<String>),
    setup: LanguageServerSetup,
    shell: Arc<ShellService>,
}

/// The reason why a server no longer runs.
enum ServerExit {
    /// It died, or was given up because of its output.
    Died(Option<String>),
    /// It used too much memory: this number of MB.
    TooLarge(u64),
    Idle,
    Again,
    Ended,
}

/// Documents with their languages and texts.
pub(crate) type OpenDocuments = Vec<(PathBuf, String, Arc<str>)>;

impl ServerSupervisor {
    async fn supervise(self) {
        self.supervise_until_end().await;
        self.server.state.send_replace(LanguageServerState::Ended);
    }

    async fn supervise_until_end(&self) {
        let server = &self.server;
        let mut deaths: VecDeque<Instant> = VecDeque::new();
        let mut was_too_large = false;
        // The documents that the previous process had open.
        let mut open = OpenDocuments::new();
        loop {
            server.state.send_replace(LanguageServerState::Starting);
            let exit = match self.run(&mut open).await {
                Ok(exit) => exit,
                Err(why) => {
                    if !self.fail(why).await {
                        return;
                    }
                    continue;
                }
            };
            let name = &server.entry.name;
            match exit {
                ServerExit::Ended => return,
                ServerExit::Again => {}
                ServerExit::TooLarge(mb) if was_too_large => {
                    let why = format!(
                        "{name} used {mb} MB of memory again and will not be restarted: the limit is {} MB \
                         (`lsp.memoryMb`).",
                        self.setup.memory_mb()
                    );
                    if !self.fail(why).await {
                        return;
                    }
                    was_too_large = false;
                }
                ServerExit::TooLarge(_) => was_too_large = true,
                ServerExit::Idle => {
                    server.state.send_replace(LanguageServerState::Idle);
                    open.clear();
                    tokio::select! {
                        () = server.again.notified() => {}
                        () = server.end.notified() => return,
                    }
                }
                ServerExit::Died(fault) => {
                    let now = Instant::now();
                    deaths.retain(|death| now.duration_since(*death) < CRASH_MEMORY);
                    deaths.push_back(now);
                    let words = match fault.unwrap_or_else(|| server.last_stderr_line()) {
                        words if words.is_empty() => String::new(),
                        words => format!(" ({words})"),
                    };
                    if deaths.len() > server.entry.restarts {
                        let often = if deaths.len() > 1 {
                            " again and again"
                        } else {
                            ""
                        };
                        let why = format!(
                            "{name} died{often}{words} and will not be restarted automatically; the operation `restart` starts it."
                        );
                        if !self.fail(why).await {
                            return;
                        }
                        deaths.clear();
                        continue;
                    }
                    let pause = PAUSES[deaths.len().min(PAUSES.len()) - 1];
                    let why = format!("{name} died{words}; it is being restarted.");
                    server.state.send_replace(LanguageServerState::Died(why));
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = server.again.notified() => {}
                        () = server.end.notified() => return,
                    }
                }
            }
        }
    }

    /// Marks the server as failed and waits for a requested restart. Returns `false` if it must
    /// end.
    async fn fail(&self, why: String) -> bool {
        self.server
            .state
            .send_replace(LanguageServerState::Failed(why));
        tokio::select! {
            () = self.server.again.notified() => true,
            () = self.server.end.notified() => false,
        }
    }

    /// Starts the server and runs it until its process has ended.
    async fn run(&self, open: &mut OpenDocuments) -> Result<ServerExit, String> {
        let server = &self.server;
        let (process, client) = tokio::select! {
            begun = self.start_process() => begun?,
            () = server.end.notified() => return Ok(ServerExit::Ended),
        };
        let first = server.opened_first.lock();
        let first = std::mem::take(&mut *first.unwrap_or_else(PoisonError::into_inner));
        for (path, language, text) in open.drain(..).chain(first) {
            let _ = client.set_text(&path, &language, &text); // it may die immediately
        }
        server.request_missing_diagnostics(&client);
        server
            .state
            .send_replace(LanguageServerState::Ready(client.clone()));
        let over = self.wait_for_exit(&client, &process).await;
        *open = self.documents(&client);
        let grace = server.entry.shutdown;
        if !matches!(over, ServerExit::Died(_)) {
            client.shut_down(grace).await;
        }
        process.kill(match client.is_closed() {
            true => Duration::ZERO,
            false => grace,
        });
        process.control().wait_until_finished().await;
        Ok(over)
    }

    fn documents(&self, client: &LspClient) -> OpenDocuments {
        let entry = &self.server.entry;
        let open = client.documents().into_iter();
        open.filter_map(|(path, document)| {
            let language = entry.language(&path)?.to_owned();
            Some((path, language, document.text))
        })
        .collect()
    }

    /// Waits for the end of a running server.
    async fn wait_for_exit(&self, client: &LspClient, process: &ConfinedProcess) -> ServerExit {
        let most = self.setup.memory_mb();
        let mut looks = interval_at(
            Instant::now() + MEMORY_CHECK_INTERVAL,
            MEMORY_CHECK_INTERVAL,
        );
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let idle_at = self.server.last_used() + IDLE;
            tokio::select! {
                () = client.closed() => return ServerExit::Died(client.close_reason()),
                () = self.server.again.notified() => return ServerExit::Again,
                () = self.server.end.notified() => return ServerExit::Ended,
                () = tokio::time::sleep_until(idle_at) => {
                    if self.server.last_used() + IDLE <= Instant::now() {
                        return ServerExit::Idle;
                    }
                }
                _ = looks.tick() => {
                    let pids = process.processes().into_iter().map(|one| one.pid);
                    let used = resident_mb(pids.collect()).await;
                    if used > most {
                        return ServerExit::TooLarge(used);
                    }
                }
            }
        }
    }

    /// Starts the process and waits until it is initialized.
    async fn start_process(&self) -> Result<(ConfinedProcess, LspClient), String> {
        let server = &self.server;
        let name = &server.entry.name;
        let cache = self.setup.cache_of(name, &server.root);
        fs::create_dir_all(&cache)
            .map_err(|error| format!("{name} has no cache folder: {}: {error}", cache.display()))?;
        let confinement = (self.setup.confinement)();
        let profile = profile(&confinement, &cache);
        let sandbox = self.shell.sandbox_for(&confinement).await;
        let sandbox = sandbox.map_err(|error| format!("{name} cannot be confined: {error}"))?;
        let program = self.program(&sandbox, &profile, &cache);
        let weakest = match self.setup.allows_unsandboxed() {
            true => Mechanism::None,
            false => Mechanism::Bubblewrap,
        };
        let started = sandbox.start_program(&profile, program, weakest);
        let mut process = started.await.map_err(|error| match error {
            SandboxError::TooWeak { .. } => format!(
                "{name} runs code of the project and cannot be confined here, so it was not started. \
                 `haft doctor` shows the reason. `lsp.allowUnsandboxed` in the user's settings starts it anyway."
            ),
            error => format!("{name} cannot be started: {error}"),
        })?;
        server
            .stderr_tail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let stderr = CommandOutput::take(&mut process.stderr);
        let listening = haft_contract::spawn_boxed(listen(stderr, Arc::clone(&server.stderr_tail)));
        let stdout = CommandOutput::take(&mut process.stdout);
        let Some(stdin) = process.stdin.take() else {
            return Err(format!("{name} has no standard input."));
        };
        let options = LspOptions {
            root: server.root.clone(),
            initialization: self.initialization(&cache),
            settings: server.entry.settings.clone(),
            startup: server.entry.startup,
        };
        match LspClient::start(stdout, stdin, options).await {
            Ok(client) => Ok((process, client)),
            Err(error) => {
                process.kill(Duration::ZERO);
                process.control().wait_until_finished().await;
                // Its last output may not have arrived yet.
                let _ = timeout(LAST_OUTPUT_TIMEOUT, listening).await;
                let words = server.last_stderr_line();
                let why = match words.is_empty() {
                    true => error.to_string(),
                    false => words,
                };
                Err(format!("{name} failed to start: {why}"))
            }
        }
    }

    /// Returns the initialization options of the server. They include its cache folder if it does
    /// not use environment variables.
    fn initialization(&self, cache: &Path) -> Value {
        let mut told = self.server.entry.initialization.clone();
        if self.server.entry.name == "rust-analyzer" && told.is_null() {
            told = json!({"cargo": {"targetDir": cache.join("target")}});
        }
        told
    }

    fn program(
        &self,
        sandbox: &Sandbox,
        profile: &SandboxProfile,
        cache: &Path,
    ) -> ConfinedProgram {
        let (path, arguments) = &self.program;
        let mut program = ConfinedProgram::new(path, &self.server.root);
        program.arguments = arguments.iter().map(OsString::from).collect();
        let mut env = sandbox.environment(profile);
        let own = [
            ("CARGO_TARGET_DIR", cache.join("target").into_os_string()),
            ("GOCACHE", cache.join("go").into_os_string()),
            ("XDG_CACHE_HOME", cache.as_os_str().to_owned()),
            ("CARGO_NET_OFFLINE", "true".into()),
            ("GOPROXY", "off".into()),
            ("GOTOOLCHAIN", "local".into()),
        ];
        let own = own.map(|(name, value)| (OsString::from(name), value));
        let entry = self.server.entry.env.iter();
        let entry = entry.map(|(name, value)| (name.into(), value.into()));
        for (name, value) in own.into_iter().chain(entry) {
            env.retain(|(known, _)| *known != name);
            env.push((name, value));
        }
        program.env = env;
        program
    }
}

/// Returns the sandbox profile: all files except hidden and closed ones are readable, only the
/// server's cache is writable, no network.
fn profile(confinement: &haft_contract::Confinement, cache: &Path) -> SandboxProfile {
    let (hidden, closed) = match crate::shell::profile::sandbox_profile(confinement) {
        SandboxProfile::Workspace(workspace) => (workspace.hidden, workspace.closed),
        SandboxProfile::ReadOnly(reading) => (reading.hidden, reading.closed),
        SandboxProfile::Full => Default::default(),
    };
    SandboxProfile::Workspace(WorkspaceProfile {
        writable: vec![cache.to_path_buf()],
        protected: Vec::new(),
        hidden,
        guarded: None,
        closed,
        network: SandboxNetwork::None,
    })
}

/// Stores the end of what a server writes to standard error.
async fn listen(mut stderr: CommandOutput, said: Arc<Mutex<String>>) {
    let mut bytes = [0; 4096];
    while let Ok(count) = stderr.read(&mut bytes).await {
        if count == 0 {
            return;
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let over = said.len().saturating_sub(MAX_STDERR);
        let over = (over..=said.len()).find(|at| said.is_char_boundary(*at));
        said.drain(..over.unwrap_or(0));
    }
}

/// Returns the memory of these processes in MB, without shared pages.
async fn resident_mb(pids: Vec<u32>) -> u64 {
    let resident = |pid: u32| {
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let mut pages = statm
            .split_whitespace()
            .filter_map(|field| field.parse::<u64>().ok());
        let (resident, shared) = (pages.nth(1).unwrap_or(0), pages.next().unwrap_or(0));
        resident.saturating_sub(shared) * 4 / 1024
    };
    let all = blocking(move || pids.into_iter().map(resident).sum());
    all.await.unwrap_or(0)
}
