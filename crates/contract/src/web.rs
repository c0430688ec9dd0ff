//! The web, for tools without an HTTP client: pages, searches, and a small model that reads pages.

use std::net::IpAddr;

use crate::{BoxFuture, CancellationToken, HttpFailure, HttpResponse};

/// A request for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    /// The URL: http or https, without user information.
    pub url: String,
    /// The checked addresses of its host: the connection goes only to one of these. Empty: the name
    /// was not resolved, and only a proxy may resolve it.
    pub addresses: Vec<IpAddr>,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
}

/// Fetches pages. A service, as `Arc<dyn WebFetcher>`. Redirects are not followed, no cookies are
/// stored, and no connection is reused, because the address of the next request may not have been
/// checked.
pub trait WebFetcher: Send + Sync {
    /// Sends a request and waits for the head of the response. It has no timeout: the caller must
    /// set one. Dropping the future cancels the request.
    fn get(&self, request: WebRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>>;

    /// Returns whether requests go through a proxy, which then resolves names.
    fn has_proxy(&self) -> bool;
}

/// A web search query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebQuery {
    /// The search terms.
    pub words: String,
    /// Restricts the results to these hosts, unless it is empty.
    pub allowed_domains: Vec<String>,
    /// Excludes results from these hosts.
    pub blocked_domains: Vec<String>,
}

/// A result of a web search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebSearchResult {
    /// The title of the page.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// An excerpt of its text.
    pub snippet: Option<String>,
}

/// The results of a web search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebSearchResults {
    /// The results, best first.
    pub hits: Vec<WebSearchResult>,
    /// Additional text from the search backend; may be empty.
    pub text: String,
    /// The number of searches that the backend made, if known.
    pub searches: Option<u32>,
}

/// Searches the web.
pub trait WebSearchBackend: Send + Sync {
    /// Runs a search. The error is text for the model.
    fn search<'a>(
        &'a self,
        query: &'a WebQuery,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<WebSearchResults, String>>;
}

/// The search backend of a session. A service.
pub enum WebSearcher {
    /// A built-in backend.
    Service(Box<dyn WebSearchBackend>),
    /// A tool of an MCP server, by its name in rules.
    Tool(String),
}

/// A small, fast model that answers one question. A service, as `Arc<dyn SmallModel>`.
pub trait SmallModel: Send + Sync {
    /// Returns its answer. `instructions` come from this program; `text` may contain untrusted
    /// content. The error is human-readable.
    fn ask<'a>(
        &'a self,
        instructions: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<String, String>>;
}
