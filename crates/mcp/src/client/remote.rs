//! Access to a remote server. Each request is sent with the headers of the entry, the headers that
//! a helper command prints, and a token.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_contract::{BoxFuture, HttpRequest, HttpResponse, HttpTransport};
use serde_json::{Map, Value};
use tokio::{process::Command, time::timeout};

use super::RemoteServer;
use crate::peer::PeerError;

/// The time limit for the helper command.
const HELPER: Duration = Duration::from_secs(10);
/// The maximum size in bytes of the output of the helper command.
const MAX_HELP: usize = 256 * 1024;
/// The maximum number of redirects within a server to follow.
const MAX_REDIRECTS: usize = 3;

/// A source of tokens for servers.
pub trait ServerTokens: Send + Sync {
    /// Returns the current token, if any; refreshes it if it is about to expire.
    fn token<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Option<String>>;

    /// Returns a new token after the server refused this one, if any.
    fn renewed<'a>(&'a self, url: &'a str, refused: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// The parameters for reaching a remote server.
pub(crate) struct RemoteAccess {
    pub(crate) name: String,
    pub(crate) server: RemoteServer,
    pub(crate) streams: Arc<dyn HttpTransport>,
    pub(crate) tokens: Option<Arc<dyn ServerTokens>>,
    /// The environment of the helper command.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// The headers that the helper command printed.
    pub(crate) printed: Mutex<Option<BTreeMap<String, String>>>,
}

impl RemoteAccess {
    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    /// Sends a request with all its headers. If the server refuses the request with 401 or 403,
    /// runs the helper command again; with 401 also refreshes the token. Then sends the request a
    /// second time.
    pub(crate) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, PeerError> {
        let token = self.token().await;
        let response = self
            .follow_redirects(request.clone(), token.as_deref())
            .await?;
        if !matches!(response.status, 401 | 403) {
            return Ok(response);
        }
        let mut is_new = false;
        if self.server.headers_helper.is_some() {
            *self.printed() = None;
            is_new = true;
        }
        let mut token = token;
        if let (Some(tokens), Some(refused), 401) = (&self.tokens, &token, response.status) {
            let renewed = tokens.renewed(self.url(), refused).await;
            is_new |= renewed.is_some();
            token = renewed;
        }
        match is_new {
            true => self.follow_redirects(request, token.as_deref()).await,
            false => Ok(response),
        }
    }

    async fn token(&self) -> Option<String> {
        let is_given = self
            .server
            .headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"));
        match &self.tokens {
            Some(tokens) if !is_given => tokens.token(self.url()).await,
            _ => None,
        }
    }

    /// Follows redirects, but only within the same server, because another server would receive the
    /// headers.
    async fn follow_redirects(
        &self,
        mut request: HttpRequest,
        token: Option<&str>,
    ) -> Result<HttpResponse, PeerError> {
        let mut own: BTreeMap<String, String> = BTreeMap::new();
        let lower = |name: &String| name.to_ascii_lowercase();
        own.extend(
            self.server
                .headers
                .iter()
                .map(|(name, value)| (lower(name), value.clone())),
        );
        own.extend(
            self.helper_headers()
                .await?
                .iter()
                .map(|(name, value)| (lower(name), value.clone())),
        );
        if let Some(token) = token {
            own.entry("authorization".to_owned())
                .or_insert_with(|| format!("Bearer {token}"));
        }
        request.headers.retain(|(name, _)| !own.contains_key(name));
        request.headers.extend(own);
        for _ in 0..MAX_REDIRECTS {
            let response =
                self.streams.open(request.clone()).await.map_err(|failed| {
                    match failed.is_transient {
                        true => PeerError::Closed(failed.message),
                        false => PeerError::Transport(failed.message),
                    }
                })?;
            let to = response.header("location").map(str::to_owned);
            match (response.status, to) {
                (307 | 308, Some(to)) => match within(&request.url, &to) {
                    Some(url) => request.url = url,
                    None => {
                        let why =
                            format!("it redirects to {to}; set `url` to that if you trust it");
                        return Err(PeerError::Transport(why));
                    }
                },
                _ => return Ok(response),
            }
        }
        Err(PeerError::Transport("it redirects too often".to_owned()))
    }

    /// Returns the headers that the helper command prints.
    async fn helper_headers(&self) -> Result<BTreeMap<String, String>, PeerError> {
        let Some(helper) = &self.server.headers_helper else {
            return Ok(BTreeMap::new());
        };
        if let Some(printed) = &*self.printed() {
            return Ok(printed.clone());
        }
        let wrong = |why: String| PeerError::Transport(format!("headersHelper: {why}"));
        let running = Command::new("/bin/sh")
            .args(["-c", helper])
            .env_clear()
            .envs(&self.environment)
            .env("CLAUDE_CODE_MCP_SERVER_NAME", &self.name)
            .env("CLAUDE_CODE_MCP_SERVER_URL", self.url())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(HELPER, running).await;
        let output = output.map_err(|_| wrong(format!("it did not end within {HELPER:?}")))?;
        let output = output.map_err(|error| wrong(error.to_string()))?;
        if !output.status.success() || output.stdout.len() > MAX_HELP {
            return Err(wrong(format!("it ended with {}", output.status)));
        }
        let read: Option<Map<String, Value>> = serde_json::from_slice(&output.stdout).ok();
        let texts = read.and_then(|read| {
            let texts = read
                .into_iter()
                .map(|(name, value)| Some((name, value.as_str()?.to_owned())));
            texts.collect::<Option<BTreeMap<_, _>>>()
        });
        let texts = texts
            .ok_or_else(|| wrong("it did not print a JSON object with string values".to_owned()))?;
        *self.printed() = Some(texts.clone());
        Ok(texts)
    }

    fn printed(&self) -> std::sync::MutexGuard<'_, Option<BTreeMap<String, String>>> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the target of a redirect, if it is on the same server.
pub(super) fn within(from: &str, to: &str) -> Option<String> {
    let origin = origin(from)?;
    if to.starts_with('/') && !to.starts_with("//") {
        return Some(format!("{origin}{to}"));
    }
    (self::origin(to)? == origin).then(|| to.to_owned())
}

/// Returns the scheme, host and port of an address.
pub(super) fn origin(url: &str) -> Option<&str> {
    let after = url.find("://")? + 3;
    let end = url[after..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |end| after + end);
    Some(&url[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_within_one_server() {
        let from = "https://a.example:8443/mcp?x=1";
        let cases = [
            ("/mcp/", Some("https://a.example:8443/mcp/")),
            ("https://a.example:8443/b", Some("https://a.example:8443/b")),
            ("https://a.example/b", None),
            ("https://a.example:8443.evil.example/", None),
            ("//evil.example/", None),
            ("http://a.example:8443/b", None),
        ];
        for (to, expected) in cases {
            assert_eq!(within(from, to).as_deref(), expected, "{to}");
        }
    }
}
