//! Intercepts requests: decides where pages may go, and serves files without a server.

use std::{future::Future, pin::Pin, sync::Arc};

/// A paused request that waits for a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserRequest {
    /// The address.
    pub url: String,
    /// `GET` …
    pub method: String,
    /// True if the response becomes the main document of the tab.
    pub is_page: bool,
    /// The address that the tab shows now.
    pub from: String,
}

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestVerdict {
    /// Send the request.
    Pass,
    /// Do not send the request; the tab keeps its page. The reason is for the reader.
    Refuse(String),
    /// Answer the request with this file; nothing is sent.
    Serve(ServedFile),
}

/// A response without a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedFile {
    /// `200` …
    pub status: u16,
    /// `text/html; charset=utf-8` …
    pub content_type: String,
    /// The contents of the file.
    pub body: Vec<u8>,
}

/// A future verdict. It may wait for an answer of the user.
pub type VerdictFuture<'a> = Pin<Box<dyn Future<Output = RequestVerdict> + Send + 'a>>;

/// Receives every document request before any of it is sent, and every request of a page to
/// `localhost` and names below it (which includes [`SERVED_HOST`]), `127.*` and `[::1]`.
pub trait RequestInterceptor: Send + Sync {
    /// Returns the verdict on `request`.
    fn intercept<'a>(&'a self, request: &'a BrowserRequest) -> VerdictFuture<'a>;
}

/// The host whose requests are answered by the [`RequestInterceptor`]; it exists in no DNS.
pub const SERVED_HOST: &str = "haft.localhost";

/// Passes all requests and serves nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAllRequests;

impl RequestInterceptor for AllowAllRequests {
    fn intercept<'a>(&'a self, _: &'a BrowserRequest) -> VerdictFuture<'a> {
        Box::pin(std::future::ready(RequestVerdict::Pass))
    }
}

impl<J: RequestInterceptor + ?Sized> RequestInterceptor for Arc<J> {
    fn intercept<'a>(&'a self, request: &'a BrowserRequest) -> VerdictFuture<'a> {
        (**self).intercept(request)
    }
}
