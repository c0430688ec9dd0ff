//! HTTP interfaces for crates that must not depend on an HTTP client.

use std::net::IpAddr;

use crate::BoxFuture;

/// A POST request with a JSON body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPost {
    /// The URL.
    pub url: String,
    /// Header names and values, besides the content type. They may contain secrets.
    pub headers: Vec<(String, String)>,
    /// The JSON text.
    pub body: String,
    /// The addresses to connect to, without a proxy and regardless of name resolution. Empty: the
    /// name is resolved as usual.
    pub addresses: Vec<IpAddr>,
}

/// The response, with any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTextResponse {
    /// The status code.
    pub status: u16,
    /// The target of a redirect, if the response is one.
    pub location: Option<String>,
    /// The body as text.
    pub body: String,
}

/// Sends requests. Redirects are not followed, because they would send the headers to another host.
pub trait HttpClient: Send + Sync {
    /// Sends JSON. The error is a human-readable text that contains no header. It has no timeout:
    /// the caller must set one.
    fn post(&self, request: HttpPost) -> BoxFuture<'_, Result<HttpTextResponse, String>>;
}

/// Resolves host names, and refuses addresses that requests must not reach, such as those of a
/// private network.
pub trait HostResolver: Send + Sync {
    /// Returns the addresses of a host, or a human-readable error. With `is_named`, the settings
    /// name the host, so that internal addresses are accepted too.
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        is_named: bool,
    ) -> BoxFuture<'a, Result<Vec<IpAddr>, String>>;
}

/// The HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// Reads a resource.
    Get,
    /// Sends data.
    Post,
    /// Ends a session or deletes a resource.
    Delete,
}

/// A request whose response may be a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The URL.
    pub url: String,
    /// Header names and values. They may contain secrets.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The head of a response, with any status, and its streamed body.
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, and their values; values that are not text are left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Box<dyn HttpBody>,
}

impl HttpResponse {
    /// Returns a header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The body of a response. Its errors are human-readable.
pub trait HttpBody: Send {
    /// Reads the whole body; more than `longest` bytes is an error.
    fn bytes(&mut self, longest: usize) -> BoxFuture<'_, Result<Vec<u8>, String>>;

    /// Reads the next server-sent event, of at most `longest` bytes; `None` at the end.
    fn event(&mut self, longest: usize) -> BoxFuture<'_, Result<Option<HttpEvent>, String>>;
}

/// A server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpEvent {
    /// The last event id of the stream, from which it can be resumed.
    pub id: Option<String>,
    /// Its name; empty if it has none.
    pub name: String,
    /// Its data.
    pub data: String,
    /// The reconnection delay that the stream requested, in milliseconds.
    pub retry: Option<u64>,
}

/// Sends requests whose responses may be streams. Redirects are not followed.
pub trait HttpTransport: Send + Sync {
    /// Sends a request and waits for the head of the response. It has no timeout.
    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>>;
}

/// The reason why no response was received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HttpFailure {
    /// A human-readable text that contains no header.
    pub message: String,
    /// A retry may succeed: the connection was refused or lost.
    pub is_transient: bool,
}
