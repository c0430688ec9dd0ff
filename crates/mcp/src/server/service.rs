//! The operations of a server, independent of its transport.

use std::{fmt, sync::Arc};

use haft_contract::{BoxFuture, CancellationToken};
use serde_json::{Map, Value, json};

use crate::{Revision, RpcError, RpcId};

/// The result of a request.
pub type ServiceAnswer = Result<Value, RpcError>;

/// A session of a server: answers the requests of a client after the handshake.
pub trait McpService: Send + Sync {
    /// Returns the server's name and capabilities.
    fn description(&self) -> ServerDescription;

    /// Answers a request. The future is dropped if the client cancels the request.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Value,
        cx: &'a RequestContext,
    ) -> BoxFuture<'a, ServiceAnswer>;

    /// Handles a notification of the client.
    fn notification(&self, method: &str) {
        let _ = method;
    }

    /// Returns the input schema of a tool, if some of its parameters must also be sent as headers
    /// (`x-mcp-header`).
    fn schema_with_headers(&self, tool: &str) -> Option<Value> {
        let _ = tool;
        None
    }

    /// Ends the session and everything that still runs in it.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Opens sessions, which are independent of each other.
pub trait OpenSession: Send + Sync {
    /// Opens a new session. Its own notifications go to `notifier`. The error is shown to the
    /// client.
    fn open(&self, notifier: SessionNotifier)
    -> BoxFuture<'_, Result<Arc<dyn McpService>, String>>;
}

/// The server's name and capabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerDescription {
    /// Its programmatic name.
    pub name: String,
    /// Its name for display.
    pub title: String,
    /// Its version.
    pub version: String,
    /// Instructions for its use.
    pub instructions: Option<String>,
    /// Its capabilities in the form of the protocol.
    pub capabilities: Value,
}

impl ServerDescription {
    pub(super) fn info(&self) -> Value {
        json!({"name": self.name, "title": self.title, "version": self.version})
    }
}

/// The description of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientInfo {
    /// The revision that it uses.
    pub revision: Revision,
    /// Its name and version.
    pub info: Value,
    /// Its capabilities.
    pub capabilities: Value,
}

impl ClientInfo {
    /// Returns whether the client can show a form to its user.
    pub fn has_forms(&self) -> bool {
        match &self.capabilities["elicitation"] {
            // Before there were other kinds, an empty object meant forms.
            Value::Object(kinds) => kinds.is_empty() || kinds.contains_key("form"),
            _ => false,
        }
    }
}

/// The severity of a log message. The most severe is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Normal events.
    Info,
    /// Notable events.
    Notice,
    /// Possible problems.
    Warning,
    /// Errors.
    Error,
    /// Severe errors.
    Critical,
    /// Problems that need immediate action.
    Alert,
    /// The system is unusable.
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

    /// Parses the name of a level.
    pub fn parse(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, own)| *own == name);
        found.map(|(level, _)| level)
    }

    /// Returns the name in the form of the protocol.
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(level, _)| *level == self);
        found.map_or("info", |(_, name)| name)
    }
}

/// The reason why the client did not answer a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientRequestError {
    /// The client answered with an error.
    #[error(transparent)]
    Answered(#[from] RpcError),
    /// The client has disconnected, or has cancelled the request that the question belongs to.
    #[error("the client has disconnected")]
    Gone,
}

/// The channel to a client while one of its requests is processed.
pub(super) trait RequestChannel: Send + Sync {
    /// Sends a notification that belongs to the request. It is lost if the client does not keep up.
    fn notify(&self, method: &str, params: Value);

    /// Closes the waiting connection, if the client can resume later.
    fn disconnect(&self) {}

    /// Sends a request to the client, with this name if the revision has names.
    fn ask(
        &self,
        name: Option<&str>,
        method: &str,
        params: Value,
    ) -> BoxFuture<'_, Result<Value, ClientRequestError>>;
}

/// The context of a request, with the channel to its client. Cheap to clone.
#[derive(Clone)]
pub struct RequestContext {
    /// The id of the request.
    pub id: RpcId,
    /// The client.
    pub client: Arc<ClientInfo>,
    /// Cancelled when the client cancels the request or disconnects.
    pub cancel: CancellationToken,
    pub(super) progress: Option<Value>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) channel: Arc<dyn RequestChannel>,
}

impl RequestContext {
    /// Returns whether the client requested progress.
    pub fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Reports progress, if the client requested it. `done` must increase from report to report.
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

    /// Sends a log message, if the client requested messages of this level.
    pub fn log(&self, level: LogLevel, logger: &str, data: Value) {
        if self.log_level.is_some_and(|least| level >= least) {
            let params = json!({"level": level.as_str(), "logger": logger, "data": data});
            self.channel.notify("notifications/message", params);
        }
    }

    /// Closes the connection on which the client waits for the answer; the client resumes later.
    /// Useful for long calls. If the client cannot resume (a pipe, the stateless revision), nothing
    /// happens.
    pub fn disconnect(&self) {
        // Older clients receive no id to resume with.
        if self.client.revision >= Revision::V2025_11_25 {
            self.channel.disconnect();
        }
    }

    /// Sends a request to the client and waits for the answer without a time limit.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, ClientRequestError> {
        self.channel.ask(None, method, params).await
    }

    /// Like [`Self::ask`], but with a descriptive name, which clients of the stateless revision
    /// see.
    pub async fn ask_as(
        &self,
        name: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, ClientRequestError> {
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

/// Converts a number to JSON; integral numbers are written without a fraction.
fn number(value: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "used only if no precision is lost"
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

/// Sends notifications that belong to no request.
#[derive(Clone)]
pub struct SessionNotifier(Arc<SendNotice>);

/// A function that sends a method with its parameters.
type SendNotice = dyn Fn(&str, Value) + Send + Sync;

impl SessionNotifier {
    pub(super) fn new(send: impl Fn(&str, Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(send))
    }

    /// Sends a notification. It is lost if the client is not connected.
    pub fn notify(&self, method: &str, params: Value) {
        (self.0)(method, params);
    }

    /// Sends a log message that belongs to no request.
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
            let client = ClientInfo {
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
