//! A server with its documents and diagnostics.

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
    pull::{PullMethod, PullRounds},
    report::{DocumentReport, KnownProblems},
    types::{Diagnostic, Position, diagnostics},
    uri,
};

/// Nothing has come for this long: what came is what there is. Servers push an empty list first, at times.
pub(crate) const SILENCE: Duration = Duration::from_millis(300);

/// How long it is waited before a server that could not say something now is asked again.
const AGAIN: Duration = Duration::from_millis(20);
/// Codes of servers that were interrupted by a change, and can be asked again.
const INTERRUPTED: [i64; 3] = [-32800, -32801, -32802];
/// How many registrations of one server are kept.
const MOST_REGISTRATIONS: usize = 64;

/// How a server is spoken to.
#[derive(Debug, Clone)]
pub struct LspOptions {
    /// The folder that it works on.
    pub root: PathBuf,
    /// What it wants to know at the beginning.
    pub initialization: Value,
    /// What it may ask for later, by sections.
    pub settings: Value,
    /// How long it may take to begin.
    pub startup: Duration,
}

/// A document that is open.
#[derive(Debug, Clone)]
pub struct LspDocument {
    /// Its text, as the server has it.
    pub text: Arc<str>,
    /// Which version of it that is.
    pub version: i64,
    /// What the server found in it.
    pub report: DocumentReport,
    pub(crate) known: KnownProblems,
    /// When it was last used; the least used one is closed first.
    used: u64,
}

/// A server that runs. Cheap to clone.
#[derive(Clone)]
pub struct LspClient {
    connection: LspConnection,
    pub(crate) state: Arc<State>,
    encoding: PositionEncoding,
    capabilities: Arc<Value>,
}

pub(crate) struct State {
    documents: Mutex<Documents>,
    pub(crate) settings: Value,
    root: String,
    /// Something came.
    pub(crate) news: Notify,
    /// What goes on in the server, by token.
    progress: Mutex<BTreeMap<String, String>>,
    /// How it is asked for problems, if it said so at the beginning…
    pulls: OnceLock<PullMethod>,
    /// …and under which ids it registered that later. One may come before the one it replaces goes.
    pull_registrations: Mutex<BTreeSet<String>>,
    pull_rounds: Mutex<PullRounds>,
    /// How often it said that it would answer something else now.
    pub(crate) refreshes: AtomicU64,
    /// It was found to say nothing of problems by itself.
    pub(crate) tells_nothing: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Documents {
    pub(crate) open: HashMap<PathBuf, LspDocument>,
    clock: u64,
    /// When something about problems last came.
    last: Option<Instant>,
    /// When anything last came that was no answer.
    last_message: Option<Instant>,
    /// When it was last asked for all of them.
    pub(crate) pulled_at: Option<Instant>,
    /// What the problems that it was asked for call their source.
    pub(crate) pulled_sources: BTreeSet<Option<String>>,
    /// Though it is asked, it says other things by itself.
    tells_more: bool,
}

impl State {
    pub(crate) fn documents(&self) -> MutexGuard<'_, Documents> {
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

    /// How it is asked for problems; `None` if it says them by itself.
    fn pulls(&self) -> Option<PullMethod> {
        let registered = self.pull_registrations.lock();
        let registered = registered.unwrap_or_else(PoisonError::into_inner);
        let registered = (!registered.is_empty()).then_some(PullMethod::Protocol);
        registered.or(self.pulls.get().copied())
    }

    /// When it last said anything unasked, and whether it ever said something about problems.
    pub(crate) fn last_words(&self) -> (Option<Instant>, bool) {
        let documents = self.documents();
        (documents.last_message, documents.last.is_some())
    }

    /// When it has been silent for long enough, or since `earliest`; `None` for one that says nothing unasked.
    pub(crate) fn unasked_rest(&self, earliest: Instant) -> Option<Instant> {
        let documents = self.documents();
        let last = documents.last.map(|last| last + SILENCE);
        documents
            .tells_more
            .then(|| last.map_or(earliest, |last| last.max(earliest)))
    }

    fn publish(&self, params: &Value) {
        let Some(path) = params
            .get("uri")
            .and_then(Value::as_str)
            .and_then(uri::path)
        else {
            return;
        };
        let version = params.get("version").and_then(Value::as_i64);
        let mut documents = self.documents();
        documents.last = Some(Instant::now());
        let Documents {
            open,
            pulled_sources,
            tells_more,
            ..
        } = &mut *documents;
        let Some(document) = open.get_mut(&path) else {
            return;
        };
        // Of a text that is not there any more.
        if version.is_some_and(|version| version != document.version) {
            return;
        }
        let found = diagnostics(params.get("diagnostics"));
        // Of a server that is asked, what it says unasked is a part.
        match self.pulls() {
            Some(PullMethod::Protocol) => {
                let is_other = |one: &Diagnostic| !pulled_sources.contains(&one.source);
                *tells_more |= found.iter().any(is_other);
            }
            Some(PullMethod::TsServer) => {}
            None => document.report.version = Some(document.version),
        }
        document.known.push(found);
        document.report.problems = document.known.all(pulled_sources);
    }

    /// Takes note of what a server wants to be asked for from now on.
    fn register(&self, params: &Value, is_on: bool) {
        let field = if is_on {
            "registrations"
        } else {
            "unregisterations" // as the protocol spells it
        };
        let all = params.get(field).and_then(Value::as_array);
        let all = all.into_iter().flatten();
        let ids = all.filter(|one| one["method"] == "textDocument/diagnostic");
        let registered = self.pull_registrations.lock();
        let mut registered = registered.unwrap_or_else(PoisonError::into_inner);
        for id in ids.map(|one| one["id"].to_string()) {
            // A server that registers without end must not fill the memory.
            match is_on && registered.len() < MOST_REGISTRATIONS {
                true => registered.insert(id),
                false => registered.remove(&id),
            };
        }
        drop(registered);
        self.news.notify_waiters();
    }

    fn note_progress(&self, params: &Value) {
        let (Some(token), Some(value)) = (params.get("token"), params.get("value")) else {
            return;
        };
        let token = token.to_string();
        let mut progress = self.progress();
        if value.get("kind").and_then(Value::as_str) == Some("end") {
            progress.remove(&token);
            return;
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let percent = value.get("percentage").and_then(Value::as_u64);
        let title = text("title").or_else(|| progress.get(&token).cloned());
        let title = title.unwrap_or_default();
        let title = title.split(" (").next().unwrap_or_default().to_owned();
        let shown = match percent {
            Some(percent) => format!("{title} ({percent} %)"),
            None => title,
        };
        // A server that never ends what it begins must not fill the memory.
        if progress.len() < 64 || progress.contains_key(&token) {
            progress.insert(token, shown);
        }
    }
}

impl LspEvents for State {
    fn on_notification(&self, method: &str, params: &Value) {
        self.documents().last_message = Some(Instant::now());
        match method {
            "textDocument/publishDiagnostics" => self.publish(params),
            "$/progress" => self.note_progress(params),
            _ => return,
        }
        self.news.notify_waiters();
    }

    fn on_request(&self, method: &str, params: &Value) -> Option<Value> {
        self.documents().last_message = Some(Instant::now());
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
                self.documents().last = Some(Instant::now());
                self.news.notify_waiters();
                Some(Value::Null)
            }
            "window/workDoneProgress/create" | "window/showMessageRequest" => Some(Value::Null),
            // What changes files is a plan that someone else carries out.
            "workspace/applyEdit" => Some(json!({"applied": false})),
            _ => None,
        }
    }
}

impl LspClient {
    /// Begins to talk to a server that was started.
    pub async fn start(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        options: LspOptions,
    ) -> Result<Self, LspError> {
        let root = uri::of(&options.root);
        let state = Arc::new(State {
            documents: Mutex::default(),
            settings: options.settings.clone(),
            root: root.clone(),
            news: Notify::new(),
            progress: Mutex::default(),
            pulls: OnceLock::new(),
            pull_registrations: Mutex::default(),
            pull_rounds: Mutex::default(),
            refreshes: AtomicU64::new(0),
            tells_nothing: AtomicBool::new(false),
        });
        let events: Arc<dyn LspEvents> = Arc::<State>::clone(&state);
        let connection = LspConnection::new(input, output, events);
        let params = json!({
            "processId": Value::Null, // it may not see our process; who started it ends it
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
        if let Some(method) = PullMethod::of(&client.capabilities) {
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

    /// What it counts columns in.
    pub fn encoding(&self) -> PositionEncoding {
        self.encoding
    }

    /// Does it offer this, such as `renameProvider`?
    pub fn offers(&self, capability: &str) -> bool {
        !matches!(
            self.capabilities.get(capability),
            None | Some(Value::Null | Value::Bool(false))
        )
    }

    /// Has it ended?
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// What was wrong with what it wrote, where that is why it is not listened to any more.
    pub fn why_closed(&self) -> Option<String> {
        self.connection.why_closed()
    }

    /// Waits until it has ended.
    pub async fn closed(&self) {
        self.connection.closed().await;
    }

    /// What it is busy with, if it says so.
    pub fn busy_with(&self) -> Option<String> {
        self.state.progress().values().next().cloned()
    }

    /// A document has this text: it is opened, or changed if the text is another one. The document before.
    pub fn set_text(
        &self,
        path: &Path,
        language: &str,
        text: &str,
    ) -> Result<Option<LspDocument>, LspError> {
        let uri = uri::of(path);
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
            // Under the lock: what comes from now on is of this version or of none.
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
                known: KnownProblems::default(),
                used,
            },
        );
        let document = json!({"uri": uri, "languageId": language, "version": 1, "text": text});
        self.connection
            .notify("textDocument/didOpen", json!({"textDocument": document}))?;
        Ok(None)
    }

    /// A document is not needed any more.
    pub fn close(&self, path: &Path) -> Result<(), LspError> {
        if self.state.documents().open.remove(path).is_none() {
            return Ok(());
        }
        let closed = json!({"textDocument": {"uri": uri::of(path)}});
        self.connection.notify("textDocument/didClose", closed)
    }

    /// Files of the workspace changed; `kind`: 1 created, 2 changed, 3 deleted.
    pub fn files_changed(&self, files: &[(PathBuf, u32)]) -> Result<(), LspError> {
        if files.is_empty() {
            return Ok(());
        }
        let changes: Vec<Value> = files
            .iter()
            .map(|(path, kind)| json!({"uri": uri::of(path), "type": kind}))
            .collect();
        let changes = json!({"changes": changes});
        self.connection
            .notify("workspace/didChangeWatchedFiles", changes)
    }

    /// A document that is open.
    pub fn document(&self, path: &Path) -> Option<LspDocument> {
        self.state.documents().open.get(path).cloned()
    }

    /// All documents that are open, the least used first.
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

    /// Is it asked for problems, rather than saying them by itself?
    pub fn is_asked(&self) -> bool {
        self.state.pulls().is_some()
    }

    /// Has it said, since it was last asked for problems, that there may be others?
    pub fn knows_more(&self) -> bool {
        let documents = self.state.documents();
        self.is_asked() && documents.pulled_at < documents.last
    }

    /// Waits until what is known of problems is of these documents as they are now, and nothing more comes, or
    /// until that moment. Did it come to rest?
    pub async fn settled(&self, changed: &[PathBuf], until: Instant) -> bool {
        loop {
            // Before the look: what comes in between is not missed.
            let news = self.state.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if self.is_closed() {
                return false;
            }
            // A server may say only after its start that it is to be asked.
            if let Some(method) = self.state.pulls() {
                return self.pulled(method, changed, until).await;
            }
            let busy = self.busy_with().is_some();
            let rest = {
                let documents = self.state.documents();
                let known = changed.iter().all(|path| {
                    let document = documents.open.get(path);
                    document.is_none_or(|document| document.report.version.is_some())
                });
                (known && !busy).then(|| documents.last.map_or(until, |last| last + SILENCE))
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

    /// Asks the server something. One that was interrupted by a change is asked again.
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

    /// What requests about a place take.
    pub fn at(&self, path: &Path, place: TextPosition) -> Value {
        let text = self.document(path).map(|document| document.text);
        let place = self
            .encoding
            .to_server(text.as_deref().unwrap_or_default(), place);
        at_position(path, place)
    }

    /// Asks the server to end, and waits that long for its word. Who started it ends it if it does not.
    pub async fn shut_down(&self, within: Duration) {
        let asked = self.connection.request("shutdown", Value::Null, within);
        if asked.await.is_ok() {
            let _ = self.connection.notify("exit", Value::Null); // it may be gone already
        }
    }
}

/// The same, as the server counts.
pub fn at_position(path: &Path, place: Position) -> Value {
    json!({"textDocument": {"uri": uri::of(path)}, "position": place})
}
