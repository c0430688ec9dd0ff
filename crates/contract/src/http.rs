//! HTTP, for those who must not bring a client of their own.

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
