//! HTTP, for those who must not bring a client of their own.

use std::net::IpAddr;

use crate::BoxFuture;

/// A request that sends JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPost {
    /// Where to.
    pub url: String,
    /// Names and values, beside the type of the content. They may hold secrets.
    pub headers: Vec<(String, String)>,
    /// The JSON.
    pub body: String,
    /// The connection goes to one of these, whatever the name leads to, and through no proxy; none: wherever it
    /// leads.
    pub addresses: Vec<IpAddr>,
}

/// What came back, whatever the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// Where it points to instead, if it does.
    pub location: Option<String>,
    /// The body as text.
    pub body: String,
}

/// Sends requests. Redirects are not followed: they would carry headers to wherever they point.
pub trait HttpClient: Send + Sync {
    /// Sends JSON. The error is for people and shows no header. There is no limit on time: the one who
    /// waits brings one.
    fn post(&self, request: HttpPost) -> BoxFuture<'_, Result<HttpAnswer, String>>;
}

/// Finds where a host is, and refuses what is not somewhere on the public network.
pub trait ResolveHosts: Send + Sync {
    /// Its addresses; the error is for people. `is_named`: someone has named the host, wherever it leads.
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        is_named: bool,
    ) -> BoxFuture<'a, Result<Vec<IpAddr>, String>>;
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// Asks for something.
    Get,
    /// Sends something.
    Post,
    /// Ends something.
    Delete,
}

/// A request whose answer may be a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// What it does.
    pub method: HttpMethod,
    /// Where to.
    pub url: String,
    /// Names and values. They may hold secrets.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Vec<u8>,
}

/// The head of an answer, whatever the status, and its body as it comes.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Names in small letters, and values; those that are no text are left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Box<dyn HttpBody>,
}

impl HttpResponse {
    /// A header by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The body of an answer. The errors are for people.
pub trait HttpBody: Send {
    /// All of it; more than `longest` bytes is an error.
    fn bytes(&mut self, longest: usize) -> BoxFuture<'_, Result<Vec<u8>, String>>;

    /// The next event of a stream of them, of at most `longest` bytes; `None` at the end.
    fn event(&mut self, longest: usize) -> BoxFuture<'_, Result<Option<HttpEvent>, String>>;
}

/// An event that a server sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpEvent {
    /// The last id that the stream named, to go on from there.
    pub id: Option<String>,
    /// Its name; empty if it has none.
    pub name: String,
    /// Its data.
    pub data: String,
    /// How long to wait before the stream is opened again, in milliseconds, where the stream says so.
    pub retry: Option<u64>,
}

/// Sends requests whose answers may be streams. Redirects are not followed.
pub trait HttpStreams: Send + Sync {
    /// Sends a request and waits for the head of its answer. There is no limit on time.
    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>>;
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HttpFailure {
    /// For people; shows no header.
    pub message: String,
    /// It may work the next time: the connection was refused or lost.
    pub is_passing: bool,
}
