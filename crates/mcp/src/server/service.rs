//! What a server does, whatever carries its messages.

use std::{fmt, sync::Arc};

use haft_contract::{BoxFuture, CancellationToken};
use serde_json::{Map, Value, json};

use crate::{Revision, RpcError, RpcId};

/// What comes of a request.
pub type ServiceAnswer = Result<Value, RpcError>;

/// One session of a server: answers what a client asks once both know each other.
pub trait McpService: Send + Sync {
    /// Who answers, and what it can do.
    fn description(&self) -> ServerDescription;

    /// Answers a request. Dropped when the client no longer wants the answer.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Value,
        cx: &'a RequestContext,
    ) -> BoxFuture<'a, ServiceAnswer>;

    /// The client tells of something that happened.
    fn notification(&self, method: &str) {
        let _ = method;
    }

    /// The input schema of a tool, where some of its parameters are to stand in headers too (`x-mcp-header`).
    fn schema_with_headers(&self, tool: &str) -> Option<Value> {
        let _ = tool;
        None
    }

    /// The session is over: what still runs in it ends.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Opens sessions: each is on its own.
pub trait OpenSession: Send + Sync {
    /// A new one. What it wants to say of itself goes to `notifier`. The error is for the client.
    fn open(&self, notifier: SessionNotifier)
    -> BoxFuture<'_, Result<Arc<dyn McpService>, String>>;
}

/// Who answers, and what it can do.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerDescription {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    pub title: String,
    /// Its version.
    pub version: String,
    /// How it is meant to be used.
    pub instructions: Option<String>,
    /// Its capabilities, as they are sent.
    pub capabilities: Value,
}

impl ServerDescription {
    pub(super) fn info(&self) -> Value {
        json!({"name": self.name, "title": self.title, "version": self.version})
    }
}

/// What is known of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientFacts {
    /// The revision that it speaks.
    pub revision: Revision,
    /// What it says of itself.
    pub info: Value,
    /// What it can do.
    pub capabilities: Value,
}

impl ClientFacts {
    /// Can a person be asked to fill in a form?
    pub fn has_forms(&self) -> bool {
        match &self.capabilities["elicitation"] {
            // Before there were other kinds, this alone meant forms.
            Value::Object(kinds) => kinds.is_empty() || kinds.contains_key("form"),
            _ => false,
        }
    }
}

/// How much a log message matters. The worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For those who look for a defect.
    Debug,
    /// What happens.
    Info,
    /// What happens, and is worth a look.
    Notice,
    /// What may be wrong.
    Warning,
    /// What is wrong.
    Error,
    /// What is badly wrong.
    Critical,
    /// What must be seen to at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// By its name.
    pub fn parse(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, own)| *own == name);
        found.map(|(level, _)| level)
    }

    /// Its name, as it is sent.
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(level, _)| *level == self);
        found.map_or("info", |(_, name)| name)
    }
}

/// Why the client could not be asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientAskError {
    /// It answered with an error.
    #[error(transparent)]
    Answered(#[from] RpcError),
    /// It is gone, or no longer wants the answer to which this belongs.
    #[error("the client is gone")]
    Gone,
}

/// The way back to a client while a request of its is worked on.
pub(super) trait RequestChannel: Send + Sync {
    /// Sends it something that belongs to the request. Lost where it does not keep up.
    fn notify(&self, method: &str, params: Value);

    /// Ends the connection that waits, where its client can come back for the rest.
    fn disconnect(&self) {}

    /// Asks it something for the request, under this name where questions have names.
    fn ask(
        &self,
        name: Option<&str>,
        method: &str,
        params: Value,
    ) -> BoxFuture<'_, Result<Value, ClientAskError>>;
}

/// What is known of a request, and the way back to its client. Cheap to clone.
#[derive(Clone)]
pub struct RequestContext {
    /// The request's id.
    pub id: RpcId,
    /// Who asks.
    pub client: Arc<ClientFacts>,
    /// Fires when the client no longer wants the answer, or is gone.
    pub cancel: CancellationToken,
    pub(super) progress: Option<Value>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) channel: Arc<dyn RequestChannel>,
}

impl RequestContext {
    /// Does the client want progress?
    pub fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Reports how far it is, if the client wants to know. `done` must grow from report to report.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.progress else { return };
        let mut params = Map::new();
        params.insert("progressToken".to_owned(), token.clone());
        params.insert("progress".to_owned(), number(done));
        if let Some(total) = total {
            params.insert("total".to_owned(), number(total));
        }
        let has_messages = self.client.revision >= Revision::V2025_03_26;
        if let Some(message) = message.filter(|_| has_messages) {
            params.insert("message".to_owned(), json!(message));
        }
        let params = Value::Object(params);
        self.channel.notify("notifications/progress", params);
    }

    /// Logs for the client, if it wants messages of this level.
    pub fn log(&self, level: LogLevel, logger: &str, data: Value) {
        if self.log_level.is_some_and(|least| level >= least) {
            let params = json!({"level": level.as_str(), "logger": logger, "data": data});
            self.channel.notify("notifications/message", params);
        }
    }

    /// Ends the connection on which the client waits for the answer, to which it comes back later: for calls that take
    /// long. Where it cannot come back (a pipe, the stateless revision), nothing happens.
    pub fn disconnect(&self) {
        // Older clients are not told how.
        if self.client.revision >= Revision::V2025_11_25 {
            self.channel.disconnect();
        }
    }

    /// Asks the client, and waits as long as it takes.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, ClientAskError> {
        self.channel.ask(None, method, params).await
    }

    /// The same under a name that says what is asked: clients of the stateless revision see it.
    pub async fn ask_as(
        &self,
        name: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, ClientAskError> {
        self.channel.ask(Some(name), method, params).await
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Whole numbers are written as such.
fn number(value: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only where nothing is lost"
    )]
    let whole = value as i64;
    #[expect(
        clippy::cast_precision_loss,
        reason = "compared with what it came from"
    )]
    let is_whole = whole as f64 == value;
    match is_whole {
        true => json!(whole),
        false => json!(value),
    }
}

/// Sends a client what belongs to no request of its own.
#[derive(Clone)]
pub struct SessionNotifier(Arc<SendNotice>);

/// Sends a method with its parameters.
type SendNotice = dyn Fn(&str, Value) + Send + Sync;

impl SessionNotifier {
    pub(super) fn new(send: impl Fn(&str, Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(send))
    }

    /// Sends it. Lost where there is no way to the client at the moment.
    pub fn notify(&self, method: &str, params: Value) {
        (self.0)(method, params);
    }

    /// Logs something that belongs to no request.
    pub fn log(&self, level: LogLevel, logger: &str, data: Value) {
        let params = json!({"level": level.as_str(), "logger": logger, "data": data});
        self.notify("notifications/message", params);
    }
}

impl fmt::Debug for SessionNotifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionNotifier")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_a_capability_of_old_and_new_clients() {
        let cases = [
            (json!({}), false),
            (json!({"elicitation": {}}), true),
            (json!({"elicitation": {"form": {}}}), true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true),
            (json!({"elicitation": {"url": {}}}), false),
            (json!({"elicitation": null}), false),
        ];
        for (capabilities, expected) in cases {
            let client = ClientFacts {
                revision: Revision::NEWEST,
                info: Value::Null,
                capabilities: capabilities.clone(),
            };
            assert_eq!(client.has_forms(), expected, "{capabilities}");
        }
    }

    #[test]
    fn levels_are_ordered_and_have_names() {
        assert!(LogLevel::ALL.is_sorted());
        for (level, name) in LogLevel::ALL {
            assert_eq!(LogLevel::parse(name), Some(level));
            assert_eq!(level.as_str(), name);
        }
        assert_eq!(LogLevel::parse("loud"), None);
    }
}
