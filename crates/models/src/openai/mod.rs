//! OpenAI's chat completions API and the many compatible servers.

mod body;
mod calls;
mod endpoints;
mod quirks;
mod repair_json;
mod schema;
mod stream;
mod text_tool_calls;
mod think_splitter;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use haft_contract::{CancellationToken, secrets};
use reqwest::{
    Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};

use crate::{
    ErrorKind, EventStream, Http, KeyHelper, Model, ModelError, ModelEvent, ModelRequest, http,
    key,
    stream_block::{StreamSender, generate},
};
use body::AcceptedFields;
pub use quirks::{EchoReasoning, Quirks};
use stream::StreamOutcome;

/// The default base URL of the API.
pub const BASE_URL: &str = "https://api.openai.com/v1";

/// A client for OpenAI or a compatible server.
#[derive(Debug, Clone)]
pub struct OpenAi {
    http: Http,
    options: OpenAiOptions,
    refused: Arc<RefusedFields>,
}

/// The server and the credentials of a client.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct OpenAiOptions {
    /// The base URL. `/v1` is added only if the URL has no path. If empty, [`BASE_URL`] is used.
    pub base_url: String,
    /// The API key. Local servers do not need one.
    pub api_key: Option<String>,
    /// Whether the key is sent in the header `api-key` (Azure) instead of as a bearer token.
    pub api_key_header: bool,
    /// The query parameter `api-version`.
    pub api_version: Option<String>,
    /// More headers, one `Name: value` per line.
    pub custom_headers: String,
    /// The quirks of the server. `None` derives them from its address.
    pub quirks: Option<Quirks>,
    /// Fetches the key if no key is set.
    pub key_helper: Option<Arc<dyn KeyHelper>>,
}

// Written by hand, so that no key ends up in a log.
impl std::fmt::Debug for OpenAiOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiOptions")
            .field("base_url", &self.base_url)
            .field("api_version", &self.api_version)
            .field("quirks", &self.quirks)
            .finish_non_exhaustive()
    }
}

/// The optional fields that this server has rejected. They are not sent again.
#[derive(Debug, Default)]
struct RefusedFields {
    stream_options: AtomicBool,
    /// Whether the server expects the other name of the token limit.
    limit_name: AtomicBool,
}

impl OpenAiOptions {
    /// Sets the base URL. `/v1` is added only if the URL has no path.
    #[must_use]
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// Sets the API key. Local servers do not need one.
    #[must_use]
    pub fn api_key(mut self, api_key: impl Into<String>) -> Self {
        self.api_key = Some(api_key.into());
        self
    }

    /// Sets the quirks of the server.
    #[must_use]
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = Some(quirks);
        self
    }

    /// Reads the options from the environment.
    pub fn from_env() -> Self {
        Self::from_variables(secrets::variable)
    }

    /// Like [`from_env`](Self::from_env), but reads the variables with this function.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).filter(|value| !value.trim().is_empty());
        Self {
            base_url: set("OPENAI_BASE_URL").unwrap_or_default(),
            api_key: set("OPENAI_API_KEY"),
            ..Self::default()
        }
    }

    fn base(&self) -> &str {
        match self.base_url.as_str() {
            "" => BASE_URL,
            base => base,
        }
    }

    fn url(&self, path: &str) -> Result<Url, ModelError> {
        let base = self.base();
        let bare = Url::parse(base).is_ok_and(|url| matches!(url.path(), "" | "/"));
        let mut url = http::join(base, if bare { "v1" } else { "" }, path)?;
        if let Some(version) = &self.api_version {
            url.query_pairs_mut().append_pair("api-version", version);
        }
        Ok(url)
    }

    /// Returns the headers of a request. If no key is set, the helper fetches it; `is_refused`
    /// means that the server rejected the last key.
    async fn headers(
        &self,
        is_refused: bool,
        cancel: &CancellationToken,
    ) -> Result<HeaderMap, ModelError> {
        if self.api_key.is_some() {
            return self.headers_with(self.api_key.as_ref());
        }
        let key = key::fetch(self.key_helper.as_ref(), is_refused, cancel).await?;
        self.headers_with(key.as_ref())
    }

    fn headers_with(&self, key: Option<&String>) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        match key {
            Some(key) if self.api_key_header => {
                http::insert_secret_header(&mut headers, "api-key", key)?
            }
            Some(key) => {
                http::insert_secret_header(
                    &mut headers,
                    "authorization",
                    &format!("Bearer {}", key.trim()),
                )?;
            }
            None if self.base_url.is_empty() && self.custom_headers.is_empty() => {
                let message = "No API key. Set OPENAI_API_KEY, or the base URL of a server that needs \
                               none.";
                return Err(ModelError::new(ErrorKind::Auth, message));
            }
            None => {}
        }
        http::custom(&mut headers, &self.custom_headers)?;
        Ok(headers)
    }
}

impl OpenAi {
    /// Creates a client. The HTTP client is built and connects only for the first request.
    pub fn new(http: Http, mut options: OpenAiOptions) -> Self {
        if options.quirks.is_none() {
            options.quirks = Some(Quirks::for_server(options.base()));
        }
        Self {
            http,
            options,
            refused: Arc::default(),
        }
    }

    fn accepted(&self, quirks: &Quirks) -> AcceptedFields {
        AcceptedFields {
            stream_options: !self.refused.stream_options.load(Relaxed),
            max_completion_tokens: quirks.max_completion_tokens
                != self.refused.limit_name.load(Relaxed),
        }
    }

    /// Remembers a field that the server has rejected. Returns whether the next body would be
    /// different.
    fn record_refused_field(
        &self,
        error: &ModelError,
        sent: AcceptedFields,
        quirks: &Quirks,
    ) -> bool {
        if error.kind != ErrorKind::BadRequest {
            return false;
        }
        let names = |field| error.message.contains(field);
        let limit = match sent.max_completion_tokens {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        // An error about a limit that is too high does not mean that its name is wrong.
        let is_value = names("too large") || names("at most");
        if sent.stream_options && names("stream_options") {
            self.refused.stream_options.store(true, Relaxed);
        } else if names(limit) && !is_value {
            self.refused.limit_name.store(true, Relaxed);
        }
        self.accepted(quirks) != sent
    }

    /// Sends a request. Returns the response and the length of the request's body in bytes.
    async fn send(
        &self,
        request: &ModelRequest,
        quirks: &Quirks,
        cancel: &CancellationToken,
    ) -> Result<(Response, usize), ModelError> {
        let url = self.options.url("chat/completions")?;
        let mut is_refused = false;
        loop {
            let sent = self.accepted(quirks);
            let body = body::body(request, quirks, sent);
            let asked = body.len();
            let headers = self.options.headers(is_refused, cancel).await?;
            let response = self.http.post(&url, headers, body, cancel).await?;
            if response.status().is_success() {
                return Ok((response, asked));
            }
            let error = http::error_response::refusal(&self.http, response, cancel).await;
            let can_renew = self.options.key_helper.is_some() && self.options.api_key.is_none();
            if error.kind == ErrorKind::Auth && can_renew && !is_refused {
                is_refused = true;
                continue;
            }
            if !self.record_refused_field(&error, sent, quirks) {
                return Err(error);
            }
        }
    }

    async fn run(
        self,
        request: ModelRequest,
        cancel: CancellationToken,
        out: StreamSender,
    ) -> Result<(), ModelError> {
        let quirks = self.options.quirks.clone().unwrap_or_default();
        for attempt in 1.. {
            let (response, asked) = self.send(&request, &quirks, &cancel).await?;
            let is_json = http::error_response::is_json(&response);
            let options = self.http.options();
            let stream = Box::pin(response.bytes_stream());
            let body = http::body::ResponseBody::new(stream, options, cancel.clone());
            let ended = if is_json {
                let longest = options.max_event_bytes;
                stream::read_whole(body, longest, &quirks, asked, &out).await?
            } else {
                stream::read(body, &quirks, asked, &out).await?
            };
            match ended {
                StreamOutcome::Whole => break,
                StreamOutcome::Empty if attempt == 1 => out.send(ModelEvent::Discard).await,
                StreamOutcome::Empty => {
                    let message = "the reply contains only a tool call without a name";
                    return Err(ModelError::protocol(message));
                }
            }
        }
        Ok(())
    }
}

impl Model for OpenAi {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let model = self.clone();
        generate(move |out| model.run(request, cancel, out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_key_nobody_is_asked_unless_it_is_a_server_of_ones_own() {
        let mut options = OpenAiOptions::default();
        assert_eq!(
            options.headers_with(None).unwrap_err().to_string(),
            "No API key. Set OPENAI_API_KEY, or the base URL of a server that needs none."
        );
        options.base_url = "http://localhost:8080".to_owned();
        assert!(options.headers_with(None).is_ok());
    }

    #[test]
    fn what_is_known_of_servers_by_their_address() {
        let of = Quirks::for_server;
        assert!(of(BASE_URL).max_completion_tokens && !of(BASE_URL).think_tags);
        assert!(of("https://my.openai.azure.com/openai").developer_role);
        assert!(of("https://api.mistral.ai/v1").nine_character_ids);
        assert_eq!(
            of("https://api.deepseek.com").echo_reasoning,
            EchoReasoning::Content
        );
        assert_eq!(
            of("https://openrouter.ai/api/v1").echo_reasoning,
            EchoReasoning::Details
        );
        assert!(of("https://generativelanguage.googleapis.com/v1beta/openai").plain_schemas);
        assert!(of("http://localhost:11434/v1").think_tags);
        // Only the host counts, and all of it.
        assert!(!of("https://mistral.ai.example/v1").nine_character_ids);
    }
}
