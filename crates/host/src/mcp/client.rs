//! A server that the other side runs: JSON-RPC, over the link to it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use crate::{ServerLink, event::Events};

/// The newest version of the protocol that we know; a server may answer with an older one.
const PROTOCOL: &str = "2025-11-25";
/// More pages of tools than this are a server that never ends.
const MOST_PAGES: usize = 100;

/// Speaks with one server.
pub(crate) struct Client {
    server: String,
    link: Arc<dyn ServerLink>,
    events: Arc<Events>,
    next: AtomicU64,
}

/// What a server says of itself.
pub(super) struct Greeting {
    pub(super) info: Value,
    pub(super) tools: Vec<Value>,
}

impl Client {
    pub(super) fn new(server: &str, link: &Arc<dyn ServerLink>, events: &Arc<Events>) -> Self {
        Self {
            server: server.to_owned(),
            link: Arc::clone(link),
            events: Arc::clone(events),
            next: AtomicU64::new(0),
        }
    }

    /// The server, as it was named.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Where what is worth knowing is told.
    pub(super) fn events(&self) -> &Events {
        &self.events
    }

    /// Greets the server and asks for its tools.
    pub(super) async fn greet(&self) -> Result<Greeting, String> {
        let hello = json!({
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "haft", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = self.request("initialize", hello).await?;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        let mut tools = Vec::new();
        // A server that says what it can do and does not name tools has none.
        let has_tools = match answer.get("capabilities") {
            Some(Value::Object(capabilities)) => capabilities.contains_key("tools"),
            _ => true,
        };
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            if !has_tools {
                break;
            }
            let mut page = self.request("tools/list", params).await?;
            if let Value::Array(listed) = page["tools"].take() {
                tools.extend(listed);
            }
            match page["nextCursor"].take() {
                Value::String(cursor) if !cursor.is_empty() => params = json!({"cursor": cursor}),
                _ => break,
            }
        }
        Ok(Greeting {
            info: answer["serverInfo"].clone(),
            tools,
        })
    }

    /// Calls a tool by the server's own name of it. Dropped while it waits, it tells the server.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", params).await
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut unanswered = Unanswered {
            client: self,
            id,
            // The protocol forbids to call off a greeting.
            told: method != "initialize",
        };
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.send(message).await;
        unanswered.told = false;
        let mut answer = answer?;
        match answer.get("error") {
            None | Some(Value::Null) => Ok(answer["result"].take()),
            Some(error) => Err(match error["message"].as_str() {
                Some(message) => message.to_owned(),
                None => error.to_string(),
            }),
        }
    }

    /// The JSON-RPC answer to a message.
    async fn send(&self, message: Value) -> Result<Value, String> {
        self.link.send(&self.server, message).await
    }
}

/// A request without an answer: calls it off when no one waits any more.
struct Unanswered<'a> {
    client: &'a Client,
    id: u64,
    told: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.told {
            let message = json!({
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": self.id, "reason": "no one waits for it any more"},
            });
            self.client.link.notify(&self.client.server, message);
        }
    }
}
