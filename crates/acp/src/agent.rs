//! Handles the requests and notifications of a client, in the order of their arrival.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use haft_agent::{SessionError, transcript::TranscriptStoreError};
use haft_contract::{CalendarTime, CancellationToken, SessionId};
use haft_host::{
    EarlierConversation, MachineClock, SessionClock, SessionConfig, SessionEntry, conversations,
    session_entries,
};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite};

use crate::{
    error::AcpError,
    prompt, replay,
    sessions::{ClientCapabilities, EditorSession, ModeReport, can_ask},
    wire::{AcpClient, EditorMessage, IncomingLines},
};

/// The time limit for ending all sessions and writing the last messages. The process exits within
/// two seconds after the input ends.
const ENDING: Duration = Duration::from_millis(1700);
/// The minimum time for the client to read the last messages.
const FINAL_MESSAGES_TIMEOUT: Duration = Duration::from_millis(200);
/// The longest time that a prompt waits for MCP servers.
const SERVERS: Duration = Duration::from_secs(5);
/// The number of sessions on a page of the session list.
const PAGE: usize = 50;

/// The configuration that all sessions of an editor share.
#[derive(Clone)]
pub struct AcpAgent {
    config: SessionConfig,
    version: String,
    pub(crate) warn: fn(&str),
    pub(crate) clock: Arc<dyn SessionClock>,
}

impl AcpAgent {
    /// Creates an agent. Its sessions use this configuration and the directory that the client
    /// names. The client receives `version`; `warn` receives warnings that the client cannot show.
    pub fn new(config: SessionConfig, version: impl Into<String>, warn: fn(&str)) -> Self {
        Self {
            config,
            version: version.into(),
            warn,
            clock: Arc::new(MachineClock),
        }
    }

    /// Sets the clock for schedules. The default is the system clock.
    pub fn clock(mut self, clock: Arc<dyn SessionClock>) -> Self {
        self.clock = clock;
        self
    }
}

/// Serves a client until its input ends, it disconnects, or `stop` is cancelled. Then ends all
/// sessions.
pub async fn serve<R, W>(
    agent: AcpAgent,
    input: R,
    output: W,
    stop: CancellationToken,
) -> io::Result<()>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (client, written) = AcpClient::new(output);
    let mut server = AcpServer {
        agent,
        client: client.clone(),
        client_capabilities: None,
        sessions: HashMap::new(),
        cancels: HashMap::new(),
    };
    let mut lines = IncomingLines::new(input);
    let ended = loop {
        let message = tokio::select! {
            message = lines.next() => message,
            () = client.disconnect_token().cancelled() => break Ok(()),
            () = stop.cancelled() => break Ok(()),
        };
        match message {
            Ok(Some(message)) => server.receive(message).await,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let ends = Instant::now() + ENDING;
    server.end().await;
    drop(server);
    drop(client);
    written
        .wait(
            ends.saturating_duration_since(Instant::now())
                .max(FINAL_MESSAGES_TIMEOUT),
        )
        .await;
    ended
}

struct AcpServer {
    agent: AcpAgent,
    client: AcpClient,
    /// The client's capabilities. `None` before `initialize`.
    client_capabilities: Option<ClientCapabilities>,
    sessions: HashMap<String, Arc<EditorSession>>,
    /// Requests that run in the background, by their ids.
    cancels: HashMap<String, CancellationToken>,
}

/// The action after the response to a request.
enum AfterReply {
    Nothing,
    /// The client knows the session now: send its pending updates.
    Announce(Arc<EditorSession>),
    ReportMode(Arc<EditorSession>),
}

type HandlerResult = Result<(Value, AfterReply), AcpError>;

impl AcpServer {
    async fn receive(&mut self, message: EditorMessage) {
        match message {
            EditorMessage::Request { id, method, params } => {
                self.request(id, &method, params).await
            }
            EditorMessage::Note { method, params } => self.handle_notification(&method, &params),
            EditorMessage::Answer { id, outcome } => self.client.on_response(id, outcome),
            EditorMessage::Bad { id, error } => self.client.answer(id, Err(error)),
            EditorMessage::Nothing => {}
        }
    }

    fn handle_notification(&self, method: &str, params: &Value) {
        match method {
            "session/cancel" => {
                let id = params["sessionId"].as_str().unwrap_or_default();
                if let Some(session) = self.sessions.get(id) {
                    session.cancel();
                }
            }
            "$/cancel_request" => {
                let request = &params["requestId"];
                let is_prompt = self
                    .sessions
                    .values()
                    .any(|session| session.cancel_request(request));
                if !is_prompt && let Some(cancel) = self.cancels.get(&request.to_string()) {
                    cancel.cancel();
                }
            }
            _ => {}
        }
    }

    async fn request(&mut self, id: Value, method: &str, params: Value) {
        if self.client_capabilities.is_none() && method != "initialize" {
            let error = AcpError::bad_request("initialize comes first");
            return self.client.answer(id, Err(error));
        }
        let answered = match method {
            "initialize" => self.initialize(&params),
            "authenticate" => self.authenticate(),
            "session/new" => self.new_session(&params),
            "session/load" => self.load(&params, ReplayMode::Yes),
            "session/resume" => self.load(&params, ReplayMode::No),
            "session/list" => self.list(&params),
            "session/set_mode" => self.set_mode(&params),
            "session/prompt" => return self.prompt(id, &params),
            "session/close" | "session/delete" => {
                return self.close(id, &params, method == "session/delete");
            }
            "session/set_config_option" | "session/set_model" => {
                return self.choose(id, method, &params);
            }
            _ => Err(AcpError::no_such_method(method)),
        };
        match answered {
            Err(error) => self.client.answer(id, Err(error)),
            Ok((result, after)) => {
                self.client.answer(id, Ok(result));
                match after {
                    AfterReply::Nothing => {}
                    AfterReply::Announce(session) => session.announce(),
                    AfterReply::ReportMode(session) => session.report_mode(ModeReport::Always),
                }
            }
        }
    }

    fn initialize(&mut self, params: &Value) -> HandlerResult {
        let version = &params["protocolVersion"];
        if !version.is_u64() && !version.is_i64() {
            return Err(AcpError::bad("protocolVersion", "expected a number"));
        }
        let can = &params["clientCapabilities"];
        let has = |value: &Value| !value.is_null() && *value != false;
        self.client_capabilities = Some(ClientCapabilities {
            forms: has(&can["elicitation"]["form"]),
            notices: has(&can["session"]["notices"]),
            compaction: has(&can["session"]["compaction"]),
            read_files: has(&can["fs"]["readTextFile"]),
            write_files: has(&can["fs"]["writeTextFile"]),
            terminal_output: has(&can["_meta"]["terminal_output"]),
        });
        let methods = match can_ask(&self.agent.config) {
            true => json!([]),
            false => json!([{
                "id": "environment",
                "name": "API key",
                "description": "Set ANTHROPIC_API_KEY (or OPENAI_API_KEY and a base URL) for haft, or run `haft login` in a terminal",
            }]),
        };
        let result = json!({
            "protocolVersion": 1,
            "agentInfo": {"name": "haft", "title": "haft", "version": self.agent.version},
            "authMethods": methods,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": {
                    "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {},
                },
            },
        });
        Ok((result, AfterReply::Nothing))
    }

    fn authenticate(&self) -> HandlerResult {
        match can_ask(&self.agent.config) {
            true => Ok((json!({}), AfterReply::Nothing)),
            false => Err(AcpError::needs_key(
                "no API key is set: set ANTHROPIC_API_KEY, or run `haft login` in a terminal",
            )),
        }
    }

    /// Returns the configuration of a session in this directory.
    fn config(&self, params: &Value, cwd: PathBuf) -> Result<SessionConfig, AcpError> {
        let mut config = self.agent.config.clone();
        config.cwd = cwd;
        config.one_result = false;
        config.reports_idle = true;
        config.hooks_may_begin = false;
        config.longest_server_wait = Some(SERVERS);
        for directory in list_of(&params["additionalDirectories"], "additionalDirectories")? {
            let path = directory.as_str().map(PathBuf::from);
            let path = path.filter(|path| path.is_absolute() && path.is_dir());
            let why = || {
                AcpError::bad(
                    "additionalDirectories",
                    format!("{directory} is not a directory"),
                )
            };
            config.directories.push(path.ok_or_else(why)?);
        }
        let mut servers = Map::new();
        for server in list_of(&params["mcpServers"], "mcpServers")? {
            let (name, entry) = server_entry(server)?;
            servers.insert(name, entry);
        }
        if !servers.is_empty() {
            config
                .mcp_servers
                .push(json!({"mcpServers": servers}).to_string());
        }
        Ok(config)
    }

    fn new_session(&mut self, params: &Value) -> HandlerResult {
        let cwd = directory(&params["cwd"])?;
        let mut config = self.config(params, cwd)?;
        let id = SessionId::new();
        config.conversation.id = Some(id);
        let session = self.open(id, config)?;
        let mut result = json!({"sessionId": id.to_string()});
        extend(&mut result, session.described()?);
        self.sessions.insert(id.to_string(), Arc::clone(&session));
        Ok((result, AfterReply::Announce(session)))
    }

    fn open(&self, id: SessionId, config: SessionConfig) -> Result<Arc<EditorSession>, AcpError> {
        let can = self.client_capabilities.unwrap_or_default();
        let session = EditorSession::new(id, config, self.client.clone(), can, &self.agent);
        session.input()?;
        Ok(session)
    }

    fn load(&mut self, params: &Value, replays: ReplayMode) -> HandlerResult {
        let name = params["sessionId"].as_str().unwrap_or_default();
        let cwd = directory(&params["cwd"])?;
        let id = name.parse().map(SessionId);
        let id = id.map_err(|_| AcpError::no_such_session(name))?;
        let environment = &self.agent.config.environment;
        let sessions = conversations(environment, &cwd);
        let kept = sessions.path(id);
        if !sessions.has(id) {
            return Err(AcpError::no_such_session(name));
        }
        let mut config = self.config(params, cwd)?;
        config.conversation.from = Some(EarlierConversation::Named(id.to_string()));
        // A session that is already open is used again.
        let session = match self.sessions.get(name) {
            Some(session) => Arc::clone(session),
            None => self.open(id, config)?,
        };
        let result = session.described()?;
        if replays == ReplayMode::Yes {
            session.replay(replay::updates(&kept, &session.cwd)?);
        }
        self.sessions.insert(id.to_string(), Arc::clone(&session));
        Ok((result, AfterReply::Announce(session)))
    }

    fn list(&self, params: &Value) -> HandlerResult {
        let environment = &self.agent.config.environment;
        let cwd = match &params["cwd"] {
            Value::Null => None,
            given => Some(directory(given)?),
        };
        let from: usize = match &params["cursor"] {
            Value::Null => 0,
            given => given
                .as_str()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| AcpError::bad("cursor", "haft did not return this cursor"))?,
        };
        let here = cwd.as_deref().unwrap_or(Path::new("/"));
        let entries = session_entries(environment, here, cwd.is_none());
        let mut entries = entries.map_err(|error| AcpError::failed(&error.to_string()))?;
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.changed));
        let page: Vec<Value> = entries
            .iter()
            .skip(from)
            .take(PAGE)
            .filter_map(listed)
            .collect();
        let mut result = json!({"sessions": page});
        if entries.len() > from.saturating_add(PAGE) {
            result["nextCursor"] = json!((from + PAGE).to_string());
        }
        Ok((result, AfterReply::Nothing))
    }

    fn session(&self, params: &Value) -> Result<Arc<EditorSession>, AcpError> {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let session = self.sessions.get(id).map(Arc::clone);
        session.ok_or_else(|| AcpError::no_such_session(id))
    }

    fn set_mode(&self, params: &Value) -> HandlerResult {
        let session = self.session(params)?;
        session.set_mode(text(params, "modeId")?, "modeId")?;
        Ok((json!({}), AfterReply::ReportMode(session)))
    }

    fn prompt(&self, id: Value, params: &Value) {
        let read = self.session(params).and_then(|session| {
            let environment = &self.agent.config.environment;
            let folder = environment.session_folder(&session.cwd, session.id);
            Ok((session, prompt::read(&params["prompt"], &folder)?))
        });
        match read {
            Err(error) => self.client.answer(id, Err(error)),
            Ok((session, prompt)) => session.prompt(id, prompt),
        }
    }

    /// Ends a session. With `delete` it is also removed from the session list.
    fn close(&mut self, id: Value, params: &Value, delete: bool) {
        let name = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let open = self.sessions.remove(&name);
        if open.is_none() && !delete {
            let error = AcpError::no_such_session(&name);
            return self.client.answer(id, Err(error));
        }
        let (client, environment) = (self.client.clone(), self.agent.config.environment.clone());
        haft_contract::spawn_boxed(async move {
            let cwd = open.as_ref().map(|session| session.cwd.clone());
            if let Some(session) = open {
                session.close().await;
            }
            let removed = match delete {
                false => Ok(()),
                true => tokio::task::spawn_blocking(move || remove(&name, cwd, &environment))
                    .await
                    .unwrap_or_else(|error| Err(error.to_string())),
            };
            client.answer(
                id,
                removed
                    .map(|()| json!({}))
                    .map_err(|why| AcpError::failed(&why)),
            );
        });
    }

    /// Sets an option in the background, because the session may have to ask the provider.
    fn choose(&mut self, id: Value, method: &str, params: &Value) {
        let read = self.session(params).and_then(|session| match method {
            "session/set_model" => Ok((session, None, text(params, "modelId")?.to_owned())),
            _ => {
                let option = text(params, "configId")?.to_owned();
                Ok((session, Some(option), text(params, "value")?.to_owned()))
            }
        });
        let (session, option, value) = match read {
            Ok(read) => read,
            Err(error) => return self.client.answer(id, Err(error)),
        };
        self.cancels.retain(|_, cancel| !cancel.is_cancelled());
        let cancel = CancellationToken::new();
        self.cancels.insert(id.to_string(), cancel.clone());
        let client = self.client.clone();
        haft_contract::spawn_boxed(async move {
            let choosing = async {
                match &option {
                    Some(option) => session.set_option(option, &value).await,
                    None => session
                        .set_model(&value, "modelId")
                        .await
                        .map(|()| json!({})),
                }
            };
            let chosen = tokio::select! {
                chosen = choosing => chosen,
                () = cancel.cancelled() => Err(AcpError::cancelled()),
            };
            cancel.cancel();
            let is_chosen = chosen.is_ok();
            client.answer(id, chosen);
            if is_chosen {
                session.report_mode(ModeReport::Always);
            }
        });
    }

    async fn end(&mut self) {
        let closing: Vec<_> = self
            .sessions
            .drain()
            .map(|(_, session)| haft_contract::spawn_boxed(async move { session.close().await }))
            .collect();
        for one in closing {
            let _ = one.await;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayMode {
    Yes,
    No,
}

fn text<'a>(params: &'a Value, field: &str) -> Result<&'a str, AcpError> {
    params[field]
        .as_str()
        .ok_or_else(|| AcpError::bad(field, "expected a text"))
}

fn list_of<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], AcpError> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(list) => Ok(list),
        _ => Err(AcpError::bad(field, "expected a list")),
    }
}

fn directory(value: &Value) -> Result<PathBuf, AcpError> {
    let path = value.as_str().map(PathBuf::from);
    let path = path.filter(|path| path.is_absolute() && path.is_dir());
    path.ok_or_else(|| AcpError::bad("cwd", "expected an absolute path of a directory"))
}

fn extend(to: &mut Value, more: Value) {
    if let (Some(to), Value::Object(more)) = (to.as_object_mut(), more) {
        to.extend(more);
    }
}

/// Converts an MCP server of the client to the format of configuration files.
fn server_entry(server: &Value) -> Result<(String, Value), AcpError> {
    let bad = |why: &str| AcpError::bad("mcpServers", why);
    let name = server["name"]
        .as_str()
        .ok_or_else(|| bad("an entry has no name"))?;
    let pairs = |list: &Value| -> Map<String, Value> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|pair| Some((pair["name"].as_str()?.to_owned(), pair["value"].clone())))
            .collect()
    };
    let entry = match (server["type"].as_str(), server["command"].as_str()) {
        (None | Some("stdio"), Some(command)) => json!({
            "command": command,
            "args": list_of(&server["args"], "mcpServers")?,
            "env": pairs(&server["env"]),
        }),
        (Some(kind @ ("http" | "sse")), _) => json!({
            "type": kind,
            "url": server["url"],
            "headers": pairs(&server["headers"]),
        }),
        _ => {
            return Err(bad(&format!(
                "{name}: expected a command, or type http and a url"
            )));
        }
    };
    Ok((name.to_owned(), entry))
}

fn listed(entry: &SessionEntry) -> Option<Value> {
    let title = entry.title.as_ref().or(entry.first_prompt.as_ref());
    let mut session = json!({
        "sessionId": entry.id.to_string(),
        "cwd": entry.cwd.as_ref()?,
        "updatedAt": CalendarTime::from_system_time(entry.changed).to_millisecond(),
    });
    if let Some(title) = title {
        session["title"] = json!(title);
    }
    Some(session)
}

/// Archives a session, which removes it from the list. An unknown session is not an error.
fn remove(
    name: &str,
    cwd: Option<PathBuf>,
    environment: &haft_host::Environment,
) -> Result<(), String> {
    let Ok(id) = name.parse().map(SessionId) else {
        return Ok(());
    };
    let cwd = match cwd {
        Some(cwd) => cwd,
        None => {
            let all = session_entries(environment, Path::new("/"), true);
            let all = all.map_err(|error| error.to_string())?;
            let found = all.into_iter().find(|entry| entry.id == id);
            match found.and_then(|entry| entry.cwd) {
                Some(cwd) => cwd,
                None => return Ok(()),
            }
        }
    };
    match conversations(environment, &cwd).archive(id) {
        Ok(()) => Ok(()),
        Err(SessionError::Store(TranscriptStoreError::Io { source, .. }))
            if source.kind() == io::ErrorKind::NotFound =>
        {
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}
