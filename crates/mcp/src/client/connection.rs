//! A connection to a server: agreed on a revision, and what may be asked for over it.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    handler::InputRequests,
    transport::{Opened, TransportControl},
};
use crate::{
    message::{RpcError, code},
    peer::{Patience, Peer, PeerError},
    revision::{Revision, meta},
};

/// More pages of a list than this are a server that never ends.
const MOST_PAGES: usize = 100;
/// More entries of a list than this are not taken.
const MOST_ENTRIES: usize = 10_000;
/// How often a server may ask for something before it answers (2026-07-28).
const MOST_ROUNDS: usize = 10;
/// More addresses than this are not visited for one call.
const MOST_VISITS: usize = 5;
/// How often a list is asked for where a passing problem comes between.
const LIST_TRIES: u32 = 3;
/// How long a server that was asked about revisions may be silent before it is greeted the old way.
const PROBE: Duration = Duration::from_secs(3);

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// It is asked for the revisions it knows first.
    Newest,
    /// `initialize`: it is known, or found out, not to know better.
    Initialize,
}

/// A connection to a server.
pub struct Connection {
    peer: Peer,
    control: Arc<dyn TransportControl>,
    revision: Revision,
    facts: ServerFacts,
    /// What each request of the stateless revision says of us.
    meta: Option<Map<String, Value>>,
    inputs: Arc<dyn InputRequests>,
    is_closing: AtomicBool,
}

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerFacts {
    /// Its name and version.
    pub info: Value,
    /// What it can do.
    pub capabilities: Value,
    /// What a model should know of it.
    pub instructions: Option<String>,
}

impl ServerFacts {
    /// Does it have this? A server that does not say what it can do may have anything.
    pub fn has(&self, capability: &str) -> bool {
        match &self.capabilities {
            Value::Object(capabilities) => capabilities.contains_key(capability),
            _ => true,
        }
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct GreetingError {
    pub(crate) error: PeerError,
    /// It ended when it was asked about revisions: it should be started again and greeted the old way.
    pub(crate) is_old: bool,
}

impl Connection {
    /// Agrees on a revision. `capabilities`: what we can do.
    pub(crate) async fn greet(
        opened: Opened,
        greeting: Greeting,
        capabilities: &Value,
        inputs: Arc<dyn InputRequests>,
    ) -> Result<Self, GreetingError> {
        let Opened { peer, control } = opened;
        let mut closing = CloseUnlessKept(Some(Arc::clone(&control)));
        let mut connection = Self {
            peer,
            control,
            revision: Revision::NEWEST_WITH_INITIALIZE,
            facts: ServerFacts::default(),
            meta: None,
            inputs,
            is_closing: AtomicBool::new(true),
        };
        let greeted = match greeting {
            Greeting::Newest => connection.negotiate(capabilities).await,
            Greeting::Initialize => connection.initialize(capabilities).await,
        };
        if let Err(error) = greeted {
            let is_old = greeting == Greeting::Newest && matches!(error, PeerError::Closed(_));
            return Err(GreetingError { error, is_old });
        }
        connection.kept(&mut closing);
        Ok(connection)
    }

    fn kept(&self, closing: &mut CloseUnlessKept) {
        closing.0 = None;
        Arc::clone(&self.control).begun();
        self.is_closing.store(false, Ordering::Relaxed);
    }

    /// Asks for the revisions it knows, and greets it the old way where it knows no newer one. A server that says
    /// nothing may only be slow to start, so it is then asked both ways, and the first good answer counts.
    async fn negotiate(&mut self, capabilities: &Value) -> Result<(), PeerError> {
        let params = json!({"_meta": own_meta(Revision::NEWEST, capabilities)});
        self.control.agreed(Revision::NEWEST);
        let peer = self.peer.clone();
        let mut asking = Box::pin(peer.request("server/discover", params));
        let mut greeting = match timeout(PROBE, &mut asking).await {
            Ok(Err(error @ (PeerError::Closed(_) | PeerError::Unauthorized { .. }))) => {
                return Err(error);
            }
            Ok(asked) => match modern(self.asked_again(asked, capabilities).await) {
                Some(found) => return self.is_modern(found, capabilities),
                None => {
                    self.control.agreed(Revision::NEWEST_WITH_INITIALIZE);
                    return self.initialize(capabilities).await;
                }
            },
            Err(_) => Box::pin(peer.request("initialize", hello(capabilities))),
        };
        self.control.agreed(Revision::NEWEST_WITH_INITIALIZE);
        tokio::select! {
            asked = &mut asking => match modern(asked) {
                Some(found) => self.is_modern(found, capabilities),
                None => {
                    let answer = greeting.await?;
                    self.is_initialized(&answer)
                }
            },
            greeted = &mut greeting => match greeted {
                Ok(answer) => self.is_initialized(&answer),
                Err(refused) => match modern(asking.await) {
                    Some(found) => self.is_modern(found, capabilities),
                    None => Err(refused),
                },
            },
        }
    }

    /// A server that does not take the revision it was asked in may name one that both know: then it is asked in that.
    async fn asked_again(
        &self,
        asked: Result<Value, PeerError>,
        capabilities: &Value,
    ) -> Result<Value, PeerError> {
        let Err(PeerError::Answered(error)) = &asked else {
            return asked;
        };
        let data = error.data.as_ref();
        let named = data
            .map(|data| texts(&data["supported"]))
            .unwrap_or_default();
        let known = Revision::newest_of(named.iter().map(String::as_str));
        match known.filter(|known| !known.has_initialize()) {
            Some(known) if error.code == code::UNSUPPORTED_REVISION => {
                let params = json!({"_meta": own_meta(known, capabilities)});
                self.control.agreed(known);
                self.peer.request("server/discover", params).await
            }
            _ => asked,
        }
    }

    fn is_modern(
        &mut self,
        (revision, answer): (Revision, Value),
        capabilities: &Value,
    ) -> Result<(), PeerError> {
        self.revision = revision;
        self.control.agreed(revision);
        self.meta = Some(own_meta(revision, capabilities));
        self.facts = ServerFacts {
            info: answer["_meta"][meta::SERVER_INFO].clone(),
            capabilities: answer["capabilities"].clone(),
            instructions: answer["instructions"].as_str().map(str::to_owned),
        };
        Ok(())
    }

    async fn initialize(&mut self, capabilities: &Value) -> Result<(), PeerError> {
        let answer = self.peer.request("initialize", hello(capabilities)).await?;
        self.is_initialized(&answer)
    }

    fn is_initialized(&mut self, answer: &Value) -> Result<(), PeerError> {
        let date = answer["protocolVersion"].as_str().unwrap_or_default();
        // One without `initialize` is no answer to it.
        let revision = Revision::parse(date).filter(|one| one.has_initialize());
        self.revision = revision.ok_or_else(|| {
            let known: Vec<&str> = Revision::ALL.iter().map(|one| one.as_str()).collect();
            PeerError::Transport(format!(
                "it speaks revision {date:?} of the protocol, which is not known here (known: {})",
                known.join(", ")
            ))
        })?;
        self.control.agreed(self.revision);
        self.facts = ServerFacts {
            info: answer["serverInfo"].clone(),
            capabilities: answer["capabilities"].clone(),
            instructions: answer["instructions"].as_str().map(str::to_owned),
        };
        self.peer.notify("notifications/initialized", Value::Null)
    }

    /// What the server says of itself.
    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// The revision that both ends speak.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Waits until it is over; why.
    pub async fn closed(&self) -> String {
        self.peer.closed().await
    }

    /// Is it over?
    pub fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Ends it.
    pub async fn close(&self) {
        if !self.is_closing.swap(true, Ordering::Relaxed) {
            self.control.close().await;
            self.peer.close("it was ended");
        }
    }

    /// Calls a tool by the server's own name of it. Dropped while it waits, it tells the server.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &Value,
        patience: Patience,
        on_progress: impl FnMut(Value) + Send,
    ) -> Result<Value, PeerError> {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "_meta": {"progressToken": null},
        });
        self.ask("tools/call", params, patience, on_progress).await
    }

    /// Its tools.
    pub async fn list_tools(&self, patience: Patience) -> Result<Vec<Value>, PeerError> {
        let listed = self.list("tools", "tools/list", "tools", patience).await?;
        Ok(self.control.usable_tools(listed))
    }

    /// Its prompts.
    pub async fn list_prompts(&self, patience: Patience) -> Result<Vec<Value>, PeerError> {
        self.list("prompts", "prompts/list", "prompts", patience)
            .await
    }

    /// Its resources.
    pub async fn list_resources(&self, patience: Patience) -> Result<Vec<Value>, PeerError> {
        self.list("resources", "resources/list", "resources", patience)
            .await
    }

    /// Its templates of resources.
    pub async fn list_templates(&self, patience: Patience) -> Result<Vec<Value>, PeerError> {
        let (method, key) = ("resources/templates/list", "resourceTemplates");
        let listed = self.list("resources", method, key, patience).await;
        match listed {
            // Not every server with resources has templates.
            Err(PeerError::Answered(error)) if error.code == code::METHOD_NOT_FOUND => {
                Ok(Vec::new())
            }
            listed => listed,
        }
    }

    /// What a resource holds.
    pub async fn read_resource(&self, uri: &str, patience: Patience) -> Result<Value, PeerError> {
        self.ask("resources/read", json!({"uri": uri}), patience, |_| {})
            .await
    }

    /// What a prompt says.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        patience: Patience,
    ) -> Result<Value, PeerError> {
        let params = json!({"name": name, "arguments": arguments});
        self.ask("prompts/get", params, patience, |_| {}).await
    }

    /// Is it alive?
    pub async fn ping(&self, patience: Patience) -> Result<(), PeerError> {
        if self.revision.has_initialize() {
            self.request("ping", json!({}), patience).await?;
        }
        Ok(())
    }

    /// Our roots are others from now on.
    pub fn roots_changed(&self) {
        if self.revision.has_initialize() {
            let _ = self
                .peer
                .notify("notifications/roots/list_changed", Value::Null); // it may be gone
        }
    }

    /// Asks for notifications of changes. In the stateless revision that is a request which is answered at its end.
    pub(crate) async fn listen(&self) -> Result<(), PeerError> {
        if self.revision.has_initialize() {
            return Ok(());
        }
        let wanted = json!({
            "notifications": {
                "toolsListChanged": true,
                "promptsListChanged": true,
                "resourcesListChanged": true,
            }
        });
        self.request("subscriptions/listen", wanted, Patience::default())
            .await?;
        Ok(())
    }

    /// The entries of a list, page after page. None where the server has no such thing.
    async fn list(
        &self,
        capability: &str,
        method: &str,
        key: &str,
        patience: Patience,
    ) -> Result<Vec<Value>, PeerError> {
        let mut entries = Vec::new();
        if !self.facts.has(capability) {
            return Ok(entries);
        }
        let (mut params, mut seen) = (json!({}), HashSet::new());
        for _ in 0..MOST_PAGES {
            let mut page = self.list_page(method, params, patience).await?;
            if let Value::Array(listed) = page[key].take() {
                entries.extend(listed);
            }
            match page["nextCursor"].take() {
                Value::String(cursor)
                    if !cursor.is_empty()
                        && entries.len() < MOST_ENTRIES
                        && seen.insert(cursor.clone()) =>
                {
                    params = json!({"cursor": cursor});
                }
                _ => break,
            }
        }
        entries.truncate(MOST_ENTRIES);
        Ok(entries)
    }

    async fn list_page(
        &self,
        method: &str,
        params: Value,
        patience: Patience,
    ) -> Result<Value, PeerError> {
        let mut tried = 1;
        loop {
            let failed = match self.request(method, params.clone(), patience).await {
                Err(error @ PeerError::Transport(_)) if tried < LIST_TRIES => error,
                answered => return answered,
            };
            tracing::debug!(method, %failed, "a list is asked for again");
            tokio::time::sleep(Duration::from_millis(200) * tried).await;
            tried += 1;
        }
    }

    /// Asks for something that the server may want to know more about first (2026-07-28).
    async fn ask(
        &self,
        method: &str,
        mut params: Value,
        patience: Patience,
        mut on_progress: impl FnMut(Value) + Send,
    ) -> Result<Value, PeerError> {
        for _ in 0..MOST_ROUNDS {
            let asked = self.with_meta(params.clone());
            let answered = self
                .peer
                .request_within(method, asked, patience, &mut on_progress)
                .await;
            let answer = match answered {
                Err(PeerError::Answered(error)) if error.code == code::URL_ELICITATION_REQUIRED => {
                    if !self.has_visited(&error).await {
                        return Err(PeerError::Answered(error));
                    }
                    continue;
                }
                answered => answered?,
            };
            if answer["resultType"] != "input_required" {
                return Ok(answer);
            }
            let mut responses = Map::new();
            for (key, wanted) in answer["inputRequests"].as_object().into_iter().flatten() {
                let wanted_method = wanted["method"].as_str().unwrap_or_default();
                let response = self
                    .inputs
                    .answer(wanted_method, wanted["params"].clone())
                    .await;
                responses.insert(key.clone(), response.map_err(PeerError::Answered)?);
            }
            if let Some(params) = params.as_object_mut() {
                params.insert("inputResponses".to_owned(), Value::Object(responses));
                match answer.get("requestState") {
                    Some(state) => params.insert("requestState".to_owned(), state.clone()),
                    // One of an earlier round is of no use to it.
                    None => params.shift_remove("requestState"),
                };
            }
        }
        let why = format!("it asked for more {MOST_ROUNDS} times and never answered");
        Err(PeerError::Transport(why))
    }

    /// Asks a person to visit the addresses that a server names as what must happen first. Did they?
    async fn has_visited(&self, refused: &RpcError) -> bool {
        let data = refused.data.as_ref();
        let wanted = data.and_then(|data| data["elicitations"].as_array());
        let Some(wanted) = wanted.filter(|wanted| (1..=MOST_VISITS).contains(&wanted.len())) else {
            return false;
        };
        for one in wanted {
            let Value::Object(mut params) = one.clone() else {
                return false;
            };
            params.insert("mode".to_owned(), json!("url"));
            let answer = self
                .inputs
                .answer("elicitation/create", params.into())
                .await;
            if !answer.is_ok_and(|answer| answer["action"] == "accept") {
                return false;
            }
        }
        true
    }

    async fn request(
        &self,
        method: &str,
        params: Value,
        patience: Patience,
    ) -> Result<Value, PeerError> {
        let params = self.with_meta(params);
        self.peer
            .request_within(method, params, patience, |_| {})
            .await
    }

    fn with_meta(&self, mut params: Value) -> Value {
        if let (Some(meta), Some(params)) = (&self.meta, params.as_object_mut()) {
            let own = params.entry("_meta").or_insert_with(|| json!({}));
            if let Some(own) = own.as_object_mut() {
                own.extend(meta.clone());
            }
        }
        params
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_closing.swap(true, Ordering::Relaxed) {
            close_later(&self.control);
        }
    }
}

/// Ends what was opened, unless it is kept: a greeting may be dropped while it waits.
struct CloseUnlessKept(Option<Arc<dyn TransportControl>>);

impl Drop for CloseUnlessKept {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            close_later(control);
        }
    }
}

/// Without a runtime the process ends, and its servers with it.
fn close_later(control: &Arc<dyn TransportControl>) {
    let control = Arc::clone(control);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { control.close().await });
    }
}

/// The newest revision without `initialize` that a server knows, with what it answered.
fn modern(asked: Result<Value, PeerError>) -> Option<(Revision, Value)> {
    let answer = asked.ok()?;
    let dates = texts(&answer["supportedVersions"]);
    let newest = Revision::newest_of(dates.iter().map(String::as_str))?;
    (!newest.has_initialize()).then_some((newest, answer))
}

fn hello(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": Revision::NEWEST_WITH_INITIALIZE.as_str(),
        "capabilities": capabilities,
        "clientInfo": own_info(),
    })
}

fn own_info() -> Value {
    json!({"name": "haft", "version": env!("CARGO_PKG_VERSION")})
}

fn own_meta(revision: Revision, capabilities: &Value) -> Map<String, Value> {
    let pairs = [
        (meta::PROTOCOL_VERSION, json!(revision.as_str())),
        (meta::CLIENT_INFO, own_info()),
        (meta::CLIENT_CAPABILITIES, capabilities.clone()),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
