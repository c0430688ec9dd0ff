//! WebSocket connections for receiving messages, for crates without a client.

use std::net::SocketAddr;

use crate::BoxFuture;

/// A WebSocket to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketRequest {
    /// The connection uses TLS.
    pub is_secure: bool,
    /// The host, as in a URL.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path and query, with a leading slash.
    pub path: String,
    /// The checked addresses of the host: the connection goes only to one of these.
    pub addresses: Vec<SocketAddr>,
    /// The subprotocols to offer.
    pub protocols: Vec<String>,
    /// The maximum message length in bytes: a longer message closes the connection.
    pub longest: usize,
}

/// Opens WebSockets.
pub trait WebSocketConnector: Send + Sync {
    /// Opens a connection. The error is a sentence without a full stop, for users and models.
    fn open(
        &self,
        request: WebSocketRequest,
    ) -> BoxFuture<'_, Result<Box<dyn WebSocketMessages>, String>>;
}

/// The messages of an open WebSocket. It is closed when this is dropped.
pub trait WebSocketMessages: Send {
    /// Receives the next message; `None`: the server has closed the connection. The error is a
    /// sentence without a full stop.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<WebSocketMessage>, String>>;
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebSocketMessage {
    /// A text message.
    Text(String),
    /// A binary message, by its number of bytes.
    Binary(usize),
}
