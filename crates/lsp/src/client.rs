//! A language server with its open documents and diagnostics.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::{
    LspConnection, LspError, LspEvents, PositionEncoding, TextPosition,
    capabilities::capabilities,
    pull_diagnostics::{PullMethod, PullRounds},
    report::{DiagnosticSources, DocumentReport},
    types::{Diagnostic, LspPosition, diagnostics},
    uri,
};

/// The time without messages after which the received diagnostics are complete. Some servers first
/// push an empty list.
pub(crate) const SILENCE: Duration = Duration::from_millis(300);

/// The pause before a request that was interrupted is sent again.
const AGAIN: Duration = Duration::from_millis(20);
/// Error codes of requests that were interrupted by a change and can be sent again.
const INTERRUPTED: [i64; 3] = [-32800, -32801, -32802];
/// The maximum number of registrations to store per server.
const MAX_REGISTRATIONS: usize = 64;

/// The options of a connection to a server.
#[derive(Debug, Clone)]
pub struct LspOptions {
    /// The root folder of the workspace.
    pub root: PathBuf,
    /// The initialization options.
    pub initialization: Value,
    /// The settings that the server may request later, by section.
    pub settings: Value,
    /// The time limit for the `initialize` request.
    pub startup: Duration,
}

/// An open document.
#[derive(Debug, Clone)]
pub struct LspDocument {
    /// The text, as the server has it.
    pub text: Arc<str>,
    /// The version of the text.
    pub version: i64,
    /// The diagnostics of the server.
    pub report: DocumentReport,
    pub(crate) sources: DiagnosticSources,
    /// The time of the last use, as a counter; the least recently used document is closed first.
    used: u64,
}

/// A running server. Cheap to clone.
#[derive(Clone)]
pub struct LspClient {
    connection: LspConnection,
    pub(crate) state: Arc<LspState>,
    encoding: PositionEncoding,
    capabilities: Arc<Value>,
}

pub(crate) struct LspState {
    documents: Mutex<DocumentTable>,
    pub(crate) settings: Value,
    root: String,
    /// Notified when a message arrives.
    pub(crate) news_arrived: Notify,
    /// The server's work in progress, by token.
    progress: Mutex<BTreeMap<String, String>>,
    /// The method to pull diagnostics, if the server announced it in its capabilities.
    pulls: OnceLock<PullMethod>,
    /// The ids of dynamic registrations for pull diagnostics. A new one may arrive before the one
    /// it replaces is removed.
    pull_registrations: Mutex<BTreeSet<String>>,
    pull_rounds: Mutex<PullRounds>,
    /// The number of times the server reported that new diagnostics can be pulled.
    pub(crate) refreshes: AtomicU64,
    /// True if the server was found to push no diagnostics.
    pub(crate) pushes_nothing: AtomicBool,
}

#[derive(Default)]
pub(crate) struct DocumentTable {
    pub(crate) open: HashMap<PathBuf, LspDocument>,
    clock: u64,
    /// The time of the last message about diagnostics.
    last_diagnostics_at: Option<Instant>,
    /// The time of the last message that was not an answer.
    last_message_at: Option<Instant>,
    /// The time of the last pull for all documents.
    pub(crate) pulled_at: Option<Instant>,
    /// The `source` values of the pulled diagnostics.
    pub(crate) pulled_sources: BTreeSet<Option<String>>,
    /// True if the server also pushes diagnostics from other sources than the pulled ones.
    pushes_more: bool,
}

impl LspState {
    fn new(root: String, settings: Value) -> Self {
        Self {
            documents: Mutex::default(),
            settings,
            root,
            news_arrived: Notify::new(),
            progress: Mutex::default(),
            pulls: OnceLock::new(),
            pull_registrations: Mutex::default(),
            pull_rounds: Mutex::default(),
            refreshes: AtomicU64::new(0),
            pushes_nothing: AtomicBool::new(false),
        }
    }

    pub(crate) fn documents(&self) -> MutexGuard<'_, DocumentTable> {
        self.documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pull_rounds(&self) -> MutexGuard<'_, PullRounds> {
        self.pull_rounds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the method to pull diagnostics, or `None` if the server pushes them.
    fn pull_method(&self) -> Option<PullMethod> {
        let registered = self.pull_registrations.lock();
        let registered = registered.unwrap_or_else(PoisonError::into_inner);
        let registered = (!registered.is_empty()).then_some(PullMethod::Protocol);
        registered.or(self.pulls.get().copied())
    }

    /// Returns the time of the last unsolicited message, and whether the server has ever sent
    /// anything about diagnostics.
    pub(crate) fn last_message(&self) -> (Option<Instant>, bool) {
        let documents = self.documents();
        (
            documents.last_message_at,
            documents.last_diagnostics_at.is_some(),
        )
    }

    /// Returns the time at which the server has been silent for long enough, not before `earliest`.
    /// Returns `None` for a server that pushes nothing besides the pulled diagnostics.
    pub(crate) fn quiet_time(&self, earliest: Instant) -> Option<Instant> {
        let documents = self.documents();
        let last = documents.last_diagnostics_at.map(|last| last + SILENCE);
        documents
            .pushes_more
            .then(|| last.map_or(earliest, |last| last.max(earliest)))
    }

    fn publish(&self, params: &Value) {
        let Some(path) = params
            .get("uri")
            .and_then(Value::as_str)
            .and_then(uri::to_path)
        else {
            return;
        };
        let version = params.get("version").and_then(Value::as_i64);
        let mut documents = self.documents();
        documents.last_diagnostics_at = Some(Instant::now());
        let DocumentTable {
            open,
            pulled_sources,
            pushes_more: tells_more,
            ..
        } = &mut *documents;
        let Some(document) = open.get_mut(&path) else {
            return;
        };
        // The diagnostics are for an outdated text.
        if version.is_some_and(|version| version != document.version) {
            return;
        }
        let found = diagnostics(params.get("diagnostics"));
        // If diagnostics are pulled, pushed ones are only a part of them.
        match self.pull_method() {
            Some(PullMethod::Protocol) => {
                let is_other = |one: &Diagnostic| !pulled_sources.contains(&one.source);
                *tells_more |= found.iter().any(is_other);
            }
            Some(PullMethod::TsServer) => {}
            None => document.report.version = Some(document.version),
        }
        document.sources.push(found);
        document.report.problems = document.sources.all(pulled_sources);
    }

    /// Records the (un)registration of pull diagnostics.
    fn register(&self, params: &Value, is_on: bool) {
        let field = if is_on {
            "registrations"
        } else {
            "unregisterations" // the spelling of the protocol
        };
        let all = params.get(field).and_then(Value::as_array);
        let all = all.into_iter().flatten();
        let ids = all.filter(|one| one["method"] == "textDocument/diagnostic");
        let registered = self.pull_registrations.lock();
        let mut registered = registered.unwrap_or_else(PoisonError::into_inner);
        for id in ids.map(|one| one["id"].to_string()) {
            // The number is limited, so that a server cannot fill the memory with registrations.
            if !is_on {
                registered.remove(&id);
            } else if registered.len() < MAX_REGISTRATIONS {
                registered.insert(id);
            }
        }
        drop(registered);
        self.news_arrived.notify_waiters();
    }

    fn record_progress(&self, params: &Value) {
        let (Some(token), Some(value)) = (params.get("token"), params.get("value")) else {
            return;
        };
        let token = token.to_string();
        let mut progress = self.progress();
        if value.get("kind").and_then(Value::as_str) == Some("end") {
            progress.remove(&token);
            return;
        }
        let percent = value.get("percentage").and_then(Value::as_u64);
        let title = value.get("title").and_then(Value::as_str);
        // Some servers send an empty title.
        let title = title.filter(|title| !title.is_empty()).map(str::to_owned);
        let title = title.or_else(|| progress.get(&token).cloned());
        let title = title.unwrap_or_else(|| "an unnamed task".to_owned());
        let title = title.split(" (").next().unwrap_or_default().to_owned();
        let shown = match percent {
            Some(percent) => format!("{title} ({percent} %)"),
            None => title,
        };
        // The number is limited, so that a server cannot fill the memory with progress that never
        // ends.
        if progress.len() < 64 || progress.contains_key(&token) {
            progress.insert(token, shown);
        }
    }
}

impl LspEvents for LspState {
    fn on_notification(&self, method: &str, params: &Value) {
        self.documents().last_message_at = Some(Instant::now());
        match method {
            "textDocument/publishDiagnostics" => self.publish(params),
            "$/progress" => self.record_progress(params),
            _ => return,
        }
        self.news_arrived.notify_waiters();
    }

    fn on_request(&self, method: &str, params: &Value) -> Option<Value> {
        self.documents().last_message_at = Some(Instant::now());
        match method {
            "workspace/configuration" => {
                let items = params.get("items").and_then(Value::as_array);
                let section = |item: &Value| {
                    let name = item
                        .get("section")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    let mut parts = name.split('.').filter(|part| !part.is_empty());
                    parts
                        .try_fold(&self.settings, |found, part| found.get(part))
                        .cloned()
                        .unwrap_or(Value::Null)
                };
                Some(items.into_iter().flatten().map(section).collect())
            }
            "workspace/workspaceFolders" => Some(json!([{"uri": self.root, "name": "root"}])),
            "client/registerCapability" => {
                self.register(params, true);
                Some(Value::Null)
            }
            "client/unregisterCapability" => {
                self.register(params, false);
                Some(Value::Null)
            }
            "workspace/diagnostic/refresh" => {
                self.refreshes.fetch_add(1, Ordering::Relaxed);
                self.documents().last_diagnostics_at = Some(Instant::now());
                self.news_arrived.notify_waiters();
                Some(Value::Null)
            }
            "window/workDoneProgress/create" | "window/showMessageRequest" => Some(Value::Null),
            // Edits are only planned here; another part of the program applies them.
            "workspace/applyEdit" => Some(json!({"applied": false})),
            _ => None,
        }
    }
}

impl LspClient {
    /// Initializes the connection to a server that was started.
    pub async fn start(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        options: LspOptions,
    ) -> Result<Self, LspError> {
        let root = uri::from_path(&options.root);
        let state = Arc::new(LspState::new(root.clone(), options.settings.clone()));
        let events: Arc<dyn LspEvents> = Arc::<LspState>::clone(&state);
        let connection = LspConnection::new(input, output, events);
        let params = json!({
            "processId": Value::Null, // our PID may not exist in the server's namespace
            "rootUri": root,
            "rootPath": options.root.to_string_lossy(),
            "workspaceFolders": [{"uri": root, "name": "root"}],
            "initializationOptions": options.initialization,
            "capabilities": capabilities(),
        });
        let answer = connection
            .request("initialize", params, options.startup)
            .await?;
        let capabilities = answer.get("capabilities").cloned().unwrap_or(Value::Null);
        let encoding = capabilities
            .get("positionEncoding")
            .and_then(Value::as_str)
            .and_then(PositionEncoding::named)
            .unwrap_or_default();
        let client = Self {
            connection,
            state,
            encoding,
            capabilities: Arc::new(capabilities),
        };
        if let Some(method) = PullMethod::detect(&client.capabilities) {
            client.state.pulls.get_or_init(|| method);
        }
        let connection = &client.connection;
        connection.notify("initialized", json!({}))?;
        if options
            .settings
            .as_object()
            .is_some_and(|settings| !settings.is_empty())
        {
            let settings = json!({"settings": options.settings});
            connection.notify("workspace/didChangeConfiguration", settings)?;
        }
        Ok(client)
    }

    /// Returns the unit in which the server counts columns.
    pub fn encoding(&self) -> PositionEncoding {
        self.encoding
    }

    /// Returns whether the server offers a capability, such as `renameProvider`.
    pub fn supports(&self, capability: &str) -> bool {
        !matches!(
            self.capabilities.get(capability),
            None | Some(Value::Null | Value::Bool(false))
        )
    }

    /// Returns whether the server has ended.
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Returns the protocol error for which the connection was closed, if any.
    pub fn close_reason(&self) -> Option<String> {
        self.connection.close_reason()
    }

    /// Waits until the server has ended.
    pub async fn closed(&self) {
        self.connection.closed().await;
    }

    /// Returns the title of the server's current work, if it reports progress.
    pub fn current_work(&self) -> Option<String> {
        self.state.progress().values().next().cloned()
    }

    /// Opens a document with this text, or changes its text if it differs. Returns the previous
    /// document.
    pub fn set_text(
        &self,
        path: &Path,
        language: &str,
        text: &str,
    ) -> Result<Option<LspDocument>, LspError> {
        let uri = uri::from_path(path);
        let mut documents = self.state.documents();
        documents.clock += 1;
        let used = documents.clock;
        if let Some(document) = documents.open.get_mut(path) {
            document.used = used;
            if *document.text == *text {
                return Ok(Some(document.clone()));
            }
            let before = document.clone();
            document.version += 1;
            document.text = text.into();
            document.report.version = None;
            let version = document.version;
            // Sent under the lock, so that diagnostics that arrive from now on belong to this
            // version or to none.
            let changed = json!({
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [{"text": text}],
            });
            self.connection.notify("textDocument/didChange", changed)?;
            let mut saved = json!({"textDocument": {"uri": uri}});
            let save = &self.capabilities["textDocumentSync"]["save"];
            if save["includeText"] == true {
                saved["text"] = json!(text);
            }
            self.connection.notify("textDocument/didSave", saved)?;
            return Ok(Some(before));
        }
        documents.open.insert(
            path.to_path_buf(),
            LspDocument {
                text: text.into(),
                version: 1,
                report: DocumentReport::default(),
                sources: DiagnosticSources::default(),
                used,
            },
        );
        let document = json!({"uri": uri, "languageId": language, "version": 1, "text": text});
        self.connection
            .notify("textDocument/didOpen", json!({"textDocument": document}))?;
        Ok(None)
    }

    /// Closes a document.
    pub fn close(&self, path: &Path) -> Result<(), LspError> {
        if self.state.documents().open.remove(path).is_none() {
            return Ok(());
        }
        let closed = json!({"textDocument": {"uri": uri::from_path(path)}});
        self.connection.notify("textDocument/didClose", closed)
    }

    /// Reports changed files of the workspace. The number is 1 for created, 2 for changed and 3 for
    /// deleted.
    pub fn files_changed(&self, files: &[(PathBuf, u32)]) -> Result<(), LspError> {
        if files.is_empty() {
            return Ok(());
        }
        let changes: Vec<Value> = files
            .iter()
            .map(|(path, kind)| json!({"uri": uri::from_path(path), "type": kind}))
            .collect();
        let changes = json!({"changes": changes});
        self.connection
            .notify("workspace/didChangeWatchedFiles", changes)
    }

    /// Returns an open document.
    pub fn document(&self, path: &Path) -> Option<LspDocument> {
        self.state.documents().open.get(path).cloned()
    }

    /// Returns all open documents, the least recently used first.
    pub fn documents(&self) -> Vec<(PathBuf, LspDocument)> {
        let documents = self.state.documents();
        let mut open: Vec<_> = documents
            .open
            .iter()
            .map(|(path, document)| (path.clone(), document.clone()))
            .collect();
        open.sort_by_key(|(_, document)| document.used);
        open
    }

    /// Returns whether diagnostics are pulled rather than pushed.
    pub fn uses_pull(&self) -> bool {
        self.state.pull_method().is_some()
    }

    /// Returns whether the server has reported since the last pull that there may be new
    /// diagnostics.
    pub fn has_newer_diagnostics(&self) -> bool {
        let documents = self.state.documents();
        self.uses_pull() && documents.pulled_at < documents.last_diagnostics_at
    }

    /// Waits until the diagnostics are those of the current texts and the server sends no further
    /// ones, or until the deadline. Returns whether the diagnostics are complete.
    pub async fn wait_for_diagnostics(&self, changed: &[PathBuf], until: Instant) -> bool {
        loop {
            // Subscribed before the check, so that no message in between is missed.
            let news = self.state.news_arrived.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if self.is_closed() {
                return false;
            }
            // A server may register pull diagnostics only after its start.
            if let Some(method) = self.state.pull_method() {
                return self
                    .wait_for_pulled_diagnostics(method, changed, until)
                    .await;
            }
            let busy = self.current_work().is_some();
            let rest = {
                let documents = self.state.documents();
                let known = changed.iter().all(|path| {
                    let document = documents.open.get(path);
                    document.is_none_or(|document| document.report.version.is_some())
                });
                (known && !busy).then(|| {
                    documents
                        .last_diagnostics_at
                        .map_or(until, |last| last + SILENCE)
                })
            };
            let wait_until = rest.map_or(until, |rest| rest.min(until));
            if rest.is_some_and(|rest| rest <= Instant::now()) {
                return true;
            }
            tokio::select! {
                waited = timeout_at(wait_until, news) => if waited.is_err() {
                    return rest.is_some_and(|rest| rest <= until);
                },
                () = self.closed() => return false,
            }
        }
    }

    /// Sends a request. A request that was interrupted by a change is sent again.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        within: Duration,
    ) -> Result<Value, LspError> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let asked = self.connection.request(method, params.clone(), left).await;
            match asked {
                Err(LspError::Refused { code, .. }) if INTERRUPTED.contains(&code) => {
                    if Instant::now() + AGAIN >= until {
                        return Err(LspError::TimedOut(within));
                    }
                    tokio::time::sleep(AGAIN).await;
                }
                Err(LspError::TimedOut(_)) => return Err(LspError::TimedOut(within)),
                answered => return answered,
            }
        }
    }

    /// Returns the parameters of a request about a position in a document.
    pub fn position_params(&self, path: &Path, place: TextPosition) -> Value {
        let text = self.document(path).map(|document| document.text);
        let place = self
            .encoding
            .to_server(text.as_deref().unwrap_or_default(), place);
        server_position_params(path, place)
    }

    /// Asks the server to shut down and waits for the answer. If the server does not exit, the code
    /// that started it must end it.
    pub async fn shut_down(&self, within: Duration) {
        let asked = self.connection.request("shutdown", Value::Null, within);
        if asked.await.is_ok() {
            let _ = self.connection.notify("exit", Value::Null); // it may have ended already
        }
    }
}

/// Returns the parameters of a request about a position in the server's units.
pub fn server_position_params(path: &Path, place: LspPosition) -> Value {
    json!({"textDocument": {"uri": uri::from_path(path)}, "position": place})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_without_a_title_has_a_name_too() {
        let state = LspState::new(String::new(), Value::Null);
        let shown = |value: Value| {
            state.record_progress(&json!({"token": 1, "value": value}));
            state.progress().values().next().cloned()
        };
        let begun = shown(json!({"kind": "begin", "title": ""}));
        assert_eq!(begun.as_deref(), Some("an unnamed task"));
        let half = shown(json!({"kind": "report", "percentage": 50}));
        assert_eq!(half.as_deref(), Some("an unnamed task (50 %)"));
        let named = shown(json!({"kind": "begin", "title": "Indexing"}));
        assert_eq!(named.as_deref(), Some("Indexing"));
        assert_eq!(shown(json!({"kind": "end"})), None);
    }

    #[test]
    fn a_registration_that_is_repeated_stays_also_at_the_limit() {
        let state = LspState::new(String::new(), Value::Null);
        let register = |number: usize, is_on: bool| {
            let field = if is_on {
                "registrations"
            } else {
                "unregisterations"
            };
            let one = json!({"id": number, "method": "textDocument/diagnostic"});
            state.register(&json!({field: [one]}), is_on);
        };
        for number in 0..=MAX_REGISTRATIONS {
            register(number, true);
        }
        let count = || state.pull_registrations.lock().unwrap().len();
        assert_eq!(count(), MAX_REGISTRATIONS);
        register(0, true);
        assert_eq!(count(), MAX_REGISTRATIONS);
        register(0, false);
        assert_eq!(count(), MAX_REGISTRATIONS - 1);
    }
}
