//! The web, for tools that bring no client of their own: pages, searches, and a small model that reads pages.

use std::net::IpAddr;

use crate::{BoxFuture, CancellationToken, HttpFailure, HttpResponse};

/// A page that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    /// Where it is: http or https, without user information.
    pub url: String,
    /// The addresses of its host that were checked: the connection goes to one of them and nowhere else.
    /// Empty: the name is not known here, and only a proxy may know it.
    pub addresses: Vec<IpAddr>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}

/// Fetches pages. A service, as `Arc<dyn FetchWeb>`. Redirects are not followed, no cookie is kept, and no
/// connection is used twice: the next request may not have been checked for where this one leads.
pub trait FetchWeb: Send + Sync {
    /// Sends a request and waits for the head of its answer. There is no limit on the whole time: the one who
    /// waits brings one. Dropped while it waits, it asks no more.
    fn get(&self, request: WebRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>>;

    /// Do requests go through a proxy? Then it is the proxy that resolves names.
    fn has_proxy(&self) -> bool;
}

/// What is searched for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebQuery {
    /// The words.
    pub words: String,
    /// Only on these hosts, if there are any.
    pub allowed_domains: Vec<String>,
    /// Not on these hosts.
    pub blocked_domains: Vec<String>,
}

/// One result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebHit {
    /// What the page is called.
    pub title: String,
    /// Where it is.
    pub url: String,
    /// Some of its text.
    pub snippet: Option<String>,
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebHits {
    /// The results, best first.
    pub hits: Vec<WebHit>,
    /// What whoever searched says beside them; empty for nothing.
    pub text: String,
    /// How many searches were made for it, where that is known.
    pub searches: Option<u32>,
}

/// Searches the web.
pub trait SearchWeb: Send + Sync {
    /// Searches. The error is for the model.
    fn search<'a>(
        &'a self,
        query: &'a WebQuery,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<WebHits, String>>;
}

/// Who searches the web in a session. A service.
pub enum WebSearcher {
    /// This.
    Service(Box<dyn SearchWeb>),
    /// A tool of an MCP server, by its name in rules.
    Tool(String),
}

/// A small, fast model that answers one question. A service, as `Arc<dyn SmallModel>`.
pub trait SmallModel: Send + Sync {
    /// Its answer. `instructions` are ours; `text` holds what was found somewhere, too. The error is for people.
    fn ask<'a>(
        &'a self,
        instructions: &'a str,
        text: String,
    ) -> BoxFuture<'a, Result<String, String>>;
}
