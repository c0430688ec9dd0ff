//! The client side of a connection: handles the requests and notifications of servers.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_contract::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::server_log::ServerLog;
use crate::{
    message::{RpcError, RpcId, code},
    peer::PeerHandler,
};

/// The session for which servers are connected.
pub trait ClientHost: Send + Sync {
    /// Shows a warning to the user.
    fn warn(&self, text: &str);

    /// Shows a notice to the user immediately, during their work.
    fn notice(&self, text: &str) {
        self.warn(text);
    }

    /// Returns the directories of the session.
    fn roots(&self) -> Vec<PathBuf>;

    /// Asks the user for what a server requests.
    fn elicit(&self, asked: ServerElicitation) -> BoxFuture<'_, ElicitationAnswer>;

    /// Reports that a visit to an address, which a server requested from the user, is complete.
    /// `id` is the id of the request.
    fn elicitation_completed(&self, server: &str, id: &str) {
        let _ = (server, id);
    }

    /// Returns whether a user can be asked. If not, the capability is not offered to servers.
    fn can_elicit(&self) -> bool;
}

/// A server's request for input from the user.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerElicitation {
    /// The server.
    pub server: String,
    /// The server's message to the user.
    pub message: String,
    /// The kind of input.
    pub kind: ElicitationKind,
}

/// The kind of input that is requested from the user.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationKind {
    /// An object of this schema, with properties that are strings, numbers, booleans or choices.
    Form {
        /// The schema.
        schema: Value,
    },
    /// A visit to this address in a browser.
    Url {
        /// The address.
        url: String,
        /// The server's id for the request.
        id: String,
    },
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Accepted; for a form with these values.
    Accept(Value),
    /// Declined.
    Decline,
    /// Neither: no user is present, or they dismissed the question.
    Cancel,
}

impl ElicitationAnswer {
    fn to_value(&self) -> Value {
        match self {
            Self::Accept(Value::Null) => json!({"action": "accept"}),
            Self::Accept(content) => json!({"action": "accept", "content": content}),
            Self::Decline => json!({"action": "decline"}),
            Self::Cancel => json!({"action": "cancel"}),
        }
    }
}

/// Answers the input requests that a server sends before it answers a request.
pub(crate) trait InputRequests: Send + Sync {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, RpcError>>;
}

/// The number of times a server has reported a changed list. A counter, because many reports must
/// not pile up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: u64,
    pub(crate) prompts: u64,
}

/// The client's handler for a connection.
pub(crate) struct ClientHandler {
    server: String,
    host: Arc<dyn ClientHost>,
    news: watch::Sender<ListChanges>,
    /// True once a protocol violation was reported; further ones are not shown.
    has_warned: AtomicBool,
    log: Arc<ServerLog>,
}

impl ClientHandler {
    pub(crate) fn new(
        server: &str,
        host: &Arc<dyn ClientHost>,
        news: watch::Sender<ListChanges>,
        log: &Arc<ServerLog>,
    ) -> Self {
        Self {
            server: server.to_owned(),
            host: Arc::clone(host),
            news,
            has_warned: AtomicBool::new(false),
            log: Arc::clone(log),
        }
    }

    fn roots(&self) -> Value {
        let roots = self.host.roots().into_iter().map(|root| {
            let name = root
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            json!({"uri": file_uri(&root), "name": name.unwrap_or_default()})
        });
        json!({"roots": roots.collect::<Vec<_>>()})
    }

    async fn elicit(&self, params: Value) -> Result<Value, RpcError> {
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let kind = match params["mode"].as_str() {
            Some("url") => ElicitationKind::Url {
                url: text("url"),
                id: text("elicitationId"),
            },
            None | Some("form") => ElicitationKind::Form {
                schema: params["requestedSchema"].clone(),
            },
            Some(other) => {
                return Err(RpcError::invalid_params(format!("unknown mode {other:?}")));
            }
        };
        if let ElicitationKind::Url { url, .. } = &kind
            && !url.starts_with("https://")
            && !url.starts_with("http://")
        {
            return Err(RpcError::invalid_params(
                "only http and https URLs can be opened",
            ));
        }
        let asked = ServerElicitation {
            server: self.server.clone(),
            message: text("message"),
            kind,
        };
        let schema = match &asked.kind {
            ElicitationKind::Form { schema } => schema.clone(),
            ElicitationKind::Url { .. } => Value::Null,
        };
        let mut answer = self.host.elicit(asked).await;
        if let ElicitationAnswer::Accept(Value::Object(content)) = &mut answer {
            fill_defaults(content, &schema);
        }
        Ok(answer.to_value())
    }
}

/// Fills fields that the user left out with their defaults, if the form has any.
fn fill_defaults(content: &mut serde_json::Map<String, Value>, schema: &Value) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let (None, Some(default)) = (content.get(name), property.get("default")) {
            content.insert(name.clone(), default.clone());
        }
    }
}

impl InputRequests for ClientHandler {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, RpcError>> {
        Box::pin(async move {
            match method {
                "ping" => Ok(json!({})),
                "roots/list" => Ok(self.roots()),
                "elicitation/create" => self.elicit(params).await,
                "sampling/createMessage" => Err(RpcError::new(
                    code::INVALID_REQUEST,
                    "haft does not support sampling (requests to its model)",
                )),
                other => Err(RpcError::no_method(other)),
            }
        })
    }
}

impl PeerHandler for ClientHandler {
    fn request<'a>(
        &'a self,
        _: &'a RpcId,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, RpcError>> {
        self.answer(method, params)
    }

    fn notification(&self, method: &str, params: Value) {
        match method {
            "notifications/tools/list_changed" => self.news.send_modify(|news| news.tools += 1),
            "notifications/prompts/list_changed" => self.news.send_modify(|news| news.prompts += 1),
            "notifications/elicitation/complete" => {
                let id: String = params["elicitationId"]
                    .as_str()
                    .unwrap_or_default()
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(200)
                    .collect();
                self.host.elicitation_completed(&self.server, &id);
            }
            "notifications/message" => {
                let level = params["level"].as_str().unwrap_or("info");
                let text = match &params["data"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let text: String = text.chars().take(2_000).collect();
                tracing::info!(server = self.server, level, text, "an MCP server logs");
                self.log.add(level, &text);
            }
            other => {
                tracing::debug!(
                    server = self.server,
                    method = other,
                    "an MCP server sent a notification"
                );
            }
        }
    }

    fn problem(&self, what: &str) {
        tracing::warn!(
            server = self.server,
            what,
            "an MCP server violates the protocol"
        );
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            self.host
                .warn(&format!("MCP server {}: {what}", self.server));
        }
    }
}

/// Converts a path to a `file:` address; all but unreserved characters are escaped.
pub(crate) fn file_uri(path: &std::path::Path) -> String {
    use std::{fmt::Write, os::unix::ffi::OsStrExt};
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}"); // writing to a string cannot fail
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_path_is_an_address() {
        assert_eq!(file_uri(Path::new("/a b/é")), "file:///a%20b/%C3%A9");
    }

    #[test]
    fn answers_of_people_as_they_are_sent() {
        let schema = json!({"properties": {"n": {"type": "integer", "default": 3}, "s": {"type": "string"}}});
        let mut content = serde_json::Map::from_iter([("s".to_owned(), json!("x"))]);
        fill_defaults(&mut content, &schema);
        let answer = ElicitationAnswer::Accept(Value::Object(content));
        assert_eq!(
            answer.to_value(),
            json!({"action": "accept", "content": {"s": "x", "n": 3}})
        );
        assert_eq!(
            ElicitationAnswer::Decline.to_value(),
            json!({"action": "decline"})
        );
        assert_eq!(
            ElicitationAnswer::Cancel.to_value(),
            json!({"action": "cancel"})
        );
    }
}
