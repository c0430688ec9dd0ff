//! A server that the program at the other end runs: JSON-RPC, each message in a control request.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use haft_protocol::{
    CallAnswer, ClientInfo, DescribedTool, McpMessageReply, McpMessageRequest, NoFields, RpcAnswer,
    RpcCall, RpcCancelled, RpcHello, RpcNotification, RpcPage, RpcRequest, RpcVersion,
    ServerGreeting, SessionRequest, ToolPage,
};
use serde::Serialize;
use serde_json::Value;

use super::super::channel::Channel;

/// The newest version of the protocol that we know; a server may answer with an older one.
const PROTOCOL: &str = "2025-11-25";
/// More pages of tools than this are a server that never ends.
const MOST_PAGES: usize = 100;

/// Speaks with one server.
pub(in super::super) struct Client {
    server: String,
    channel: Arc<Channel>,
    next: AtomicU64,
}

/// What a server says of itself.
pub(super) struct Greeting {
    pub(super) info: Value,
    pub(super) tools: Vec<DescribedTool>,
}

impl Client {
    pub(super) fn new(server: &str, channel: &Arc<Channel>) -> Self {
        Self {
            server: server.to_owned(),
            channel: Arc::clone(channel),
            next: AtomicU64::new(0),
        }
    }

    /// The server, as it was named.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Where what is worth knowing is told.
    pub(in super::super) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Greets the server and asks for its tools.
    pub(super) async fn greet(&self) -> Result<Greeting, String> {
        let hello = RpcHello {
            protocol_version: PROTOCOL.into(),
            capabilities: NoFields {},
            client_info: ClientInfo {
                name: "haft".into(),
                version: env!("CARGO_PKG_VERSION").into(),
            },
        };
        let answer = ServerGreeting::from(self.request("initialize", hello).await?);
        let initialized = RpcNotification::<NoFields> {
            jsonrpc: RpcVersion::V2,
            method: "notifications/initialized".into(),
            params: None,
        };
        self.send(&initialized).await?;
        let mut tools = Vec::new();
        let mut params = RpcPage::default();
        for _ in 0..MOST_PAGES {
            if !answer.has_tools() {
                break;
            }
            let page = ToolPage::from(self.request("tools/list", params).await?);
            tools.extend(page.tools);
            match page.next_cursor {
                Some(cursor) if !cursor.is_empty() => {
                    params = RpcPage {
                        cursor: Some(cursor),
                    }
                }
                _ => break,
            }
        }
        Ok(Greeting {
            info: answer.server_info,
            tools,
        })
    }

    /// Calls a tool by the server's own name of it. Dropped while it waits, it tells the server.
    pub(in super::super) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<CallAnswer, String> {
        let params = RpcCall {
            name: tool.into(),
            arguments: Cow::Borrowed(arguments),
        };
        self.request("tools/call", params)
            .await
            .map(CallAnswer::from)
    }

    async fn request(&self, method: &str, params: impl Serialize) -> Result<Value, String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut unanswered = Unanswered {
            client: self,
            id,
            // The protocol forbids to call off a greeting.
            told: method != "initialize",
        };
        let answer = self
            .send(&RpcRequest {
                jsonrpc: RpcVersion::V2,
                id,
                method: method.into(),
                params,
            })
            .await;
        unanswered.told = false;
        answer?.into_result()
    }

    /// The JSON-RPC answer to a message.
    async fn send(&self, message: &impl Serialize) -> Result<RpcAnswer, String> {
        let answer = self.channel.ask(self.envelope(message)?).await?;
        McpMessageReply::from(answer)
            .mcp_response
            .ok_or_else(|| "the answer holds no `mcp_response`".to_owned())
    }

    fn envelope(&self, message: &impl Serialize) -> Result<SessionRequest<'_>, String> {
        let message = serde_json::to_value(message).map_err(|error| error.to_string())?;
        Ok(SessionRequest::McpMessage(McpMessageRequest {
            server_name: (&self.server).into(),
            message,
        }))
    }
}

/// A request without an answer: calls it off when nobody waits any more.
struct Unanswered<'a> {
    client: &'a Client,
    id: u64,
    told: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.told {
            let message = RpcNotification {
                jsonrpc: RpcVersion::V2,
                method: "notifications/cancelled".into(),
                params: Some(RpcCancelled {
                    request_id: self.id,
                    reason: "nobody waits for it any more".into(),
                }),
            };
            if let Ok(message) = self.client.envelope(&message) {
                self.client.channel.tell(message);
            }
        }
    }
}
