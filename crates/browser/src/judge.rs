//! Who decides where pages go, and who answers for files that no server has.

use std::{future::Future, pin::Pin, sync::Arc};

/// A request that waits for a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserRequest {
    /// Where it goes.
    pub url: String,
    /// `GET` …
    pub method: String,
    /// It becomes what the whole tab shows.
    pub is_page: bool,
    /// The address that the tab shows now.
    pub from: String,
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent.
    Pass,
    /// It is not; the page that asked stays. The reason is for the reader.
    Refuse(String),
    /// It is answered here, and nothing is sent.
    Serve(ServedFile),
}

/// An answer that comes from no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedFile {
    /// `200` …
    pub status: u16,
    /// `text/html; charset=utf-8` …
    pub content_type: String,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// A verdict that may take as long as a person thinks.
pub type Judging<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// Sees every document before anything of it is sent, and every request of a page to this machine, to which
/// [`SERVED_HOST`] belongs.
pub trait RequestJudge: Send + Sync {
    /// What becomes of `request`.
    fn judge<'a>(&'a self, request: &'a BrowserRequest) -> Judging<'a>;
}

/// Requests to this host are answered by the judge; no name server knows it.
pub const SERVED_HOST: &str = "haft.localhost";

/// Lets all pass and serves nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassAll;

impl RequestJudge for PassAll {
    fn judge<'a>(&'a self, _: &'a BrowserRequest) -> Judging<'a> {
        Box::pin(std::future::ready(Verdict::Pass))
    }
}

impl<J: RequestJudge + ?Sized> RequestJudge for Arc<J> {
    fn judge<'a>(&'a self, request: &'a BrowserRequest) -> Judging<'a> {
        (**self).judge(request)
    }
}
