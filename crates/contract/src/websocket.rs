//! WebSockets that are listened to, for those who must not bring a client of their own.

use std::net::SocketAddr;

use crate::BoxFuture;

/// A WebSocket that is to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketRequest {
    /// With TLS.
    pub is_secure: bool,
    /// The host, as in a URL.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query, with the slash at the beginning.
    pub path: String,
    /// Where the host is, checked: the connection goes to one of these and nowhere else.
    pub addresses: Vec<SocketAddr>,
    /// Subprotocols that are offered.
    pub protocols: Vec<String>,
    /// The longest message, in bytes: a longer one ends the connection.
    pub longest: usize,
}

/// Opens WebSockets.
pub trait OpenWebSockets: Send + Sync {
    /// Opens one. The error is a sentence without a full stop, for people and models.
    fn open(
        &self,
        request: WebSocketRequest,
    ) -> BoxFuture<'_, Result<Box<dyn WebSocketMessages>, String>>;
}

/// What comes from an open WebSocket. It is closed when this is dropped.
pub trait WebSocketMessages: Send {
    /// The next message; `None`: the server has closed it. The error is a sentence without a full stop.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<WebSocketMessage>, String>>;
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebSocketMessage {
    /// A text.
    Text(String),
    /// So many bytes.
    Binary(usize),
}
