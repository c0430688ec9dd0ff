//! Anthropic's Messages API.

mod body;
mod endpoints;
mod stream;
mod web_search;

use std::sync::Arc;

use haft_contract::{CancellationToken, secrets};
use reqwest::{
    Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};

use crate::{
    ErrorKind, EventStream, Http, KeyHelper, Model, ModelError, ModelRequest, http, key,
    model_listing::split_window,
    stream_block::{StreamSender, generate},
};

/// The default base URL of the API.
pub const BASE_URL: &str = "https://api.anthropic.com";

/// The beta feature that a model with a suffix such as `[1m]` requires.
const LONG_CONTEXT: &str = "context-1m-2025-08-07";
const LONG: u64 = 1_000_000;

/// A client for Anthropic or a compatible server.
#[derive(Debug, Clone)]
pub struct Anthropic {
    http: Http,
    options: AnthropicOptions,
}

/// The server, the credentials and the features of a client.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct AnthropicOptions {
    /// The base URL of the API, with or without `/v1`. If empty, [`BASE_URL`] is used.
    pub base_url: String,
    /// The key that is sent as `x-api-key`.
    pub api_key: Option<String>,
    /// The token that is sent as a bearer token. If it is set, the key is not sent.
    pub auth_token: Option<String>,
    /// Beta features that the API must enable.
    pub betas: Vec<String>,
    /// More headers, one `Name: value` per line.
    pub custom_headers: String,
    /// Whether the prompt cache stores its entries for an hour instead of five minutes.
    pub cache_for_an_hour: bool,
    /// Fetches the key if no key is set.
    pub key_helper: Option<Arc<dyn KeyHelper>>,
}

// Written by hand, so that no key ends up in a log.
impl std::fmt::Debug for AnthropicOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnthropicOptions")
            .field("base_url", &self.base_url)
            .field("betas", &self.betas)
            .field("cache_for_an_hour", &self.cache_for_an_hour)
            .finish_non_exhaustive()
    }
}

impl AnthropicOptions {
    /// Sets the base URL of the API, with or without `/v1`.
    #[must_use]
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// Sets the key that is sent as `x-api-key`.
    #[must_use]
    pub fn api_key(mut self, api_key: impl Into<String>) -> Self {
        self.api_key = Some(api_key.into());
        self
    }

    /// Sets the bearer token. If it is set, the key is not sent.
    #[must_use]
    pub fn auth_token(mut self, auth_token: impl Into<String>) -> Self {
        self.auth_token = Some(auth_token.into());
        self
    }

    /// Sets the beta features that the API must enable.
    #[must_use]
    pub fn betas(mut self, betas: impl IntoIterator<Item = String>) -> Self {
        self.betas = betas.into_iter().collect();
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
            base_url: set("ANTHROPIC_BASE_URL").unwrap_or_default(),
            api_key: set("ANTHROPIC_API_KEY"),
            auth_token: set("ANTHROPIC_AUTH_TOKEN"),
            custom_headers: set("ANTHROPIC_CUSTOM_HEADERS").unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns the headers of a request to this model. If no key is set, the helper fetches it;
    /// `is_refused` means that the provider rejected the last key.
    async fn headers(
        &self,
        model: &str,
        is_refused: bool,
        cancel: &CancellationToken,
    ) -> Result<HeaderMap, ModelError> {
        if self.auth_token.is_some() || self.api_key.is_some() {
            return self.headers_with(model, None);
        }
        let key = key::fetch(self.key_helper.as_ref(), is_refused, cancel).await?;
        self.headers_with(model, key.as_deref())
    }

    /// Returns whether a new key can be fetched after the provider has rejected one.
    fn can_renew(&self) -> bool {
        self.key_helper.is_some() && self.auth_token.is_none() && self.api_key.is_none()
    }

    fn headers_with(&self, model: &str, fetched: Option<&str>) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        match (&self.auth_token, &self.api_key) {
            // It is unknown which of the two headers a gateway reads.
            (None, None) if fetched.is_some() => {
                let key = fetched.unwrap_or_default().trim();
                http::insert_secret_header(&mut headers, "x-api-key", key)?;
                http::insert_secret_header(
                    &mut headers,
                    "authorization",
                    &format!("Bearer {key}"),
                )?;
            }
            (Some(token), _) => {
                http::insert_secret_header(
                    &mut headers,
                    "authorization",
                    &format!("Bearer {}", token.trim()),
                )?;
            }
            (None, Some(key)) => http::insert_secret_header(&mut headers, "x-api-key", key)?,
            (None, None) if self.base_url.is_empty() && self.custom_headers.is_empty() => {
                let message =
                    "No API key. Run `haft login`, or set ANTHROPIC_API_KEY or OPENAI_API_KEY.";
                return Err(ModelError::new(ErrorKind::Auth, message));
            }
            // A private server may need no key; if it does, its response says so.
            (None, None) => {}
        }
        let mut betas: Vec<&str> = self.betas.iter().map(String::as_str).collect();
        let is_long = split_window(model).1.is_some_and(|tokens| tokens >= LONG);
        if is_long && !betas.contains(&LONG_CONTEXT) {
            betas.push(LONG_CONTEXT);
        }
        if !betas.is_empty() {
            let betas = betas.join(",");
            http::custom(&mut headers, &format!("anthropic-beta: {betas}"))?;
        }
        http::custom(&mut headers, &self.custom_headers)?;
        Ok(headers)
    }
}

impl Anthropic {
    /// Creates a client. The HTTP client is built and connects only for the first request.
    pub fn new(http: Http, options: AnthropicOptions) -> Self {
        Self { http, options }
    }

    fn base_url(&self) -> &str {
        match self.options.base_url.as_str() {
            "" => BASE_URL,
            base => base,
        }
    }

    async fn send(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let url = http::join(self.base_url(), "v1", "messages")?;
        let body = body::body(request, self.options.cache_for_an_hour);
        let mut is_refused = false;
        loop {
            let headers = self.options.headers(&request.model, is_refused, cancel);
            let headers = headers.await?;
            let body = body.clone();
            let response = self.http.post(&url, headers, body, cancel).await?;
            if response.status().is_success() {
                return Ok(response);
            }
            let error = http::error_response::refusal(&self.http, response, cancel).await;
            if is_refused || error.kind != ErrorKind::Auth || !self.options.can_renew() {
                return Err(error);
            }
            is_refused = true;
        }
    }

    async fn run(
        self,
        request: ModelRequest,
        cancel: CancellationToken,
        out: StreamSender,
    ) -> Result<(), ModelError> {
        let response = self.send(&request, &cancel).await?;
        let is_json = http::error_response::is_json(&response);
        let stream = Box::pin(response.bytes_stream());
        let options = self.http.options();
        let body = http::body::ResponseBody::new(stream, options, cancel);
        match is_json {
            true => stream::read_whole(body, options.max_event_bytes, &out).await,
            false => stream::read(body, &out).await,
        }
    }
}

impl Model for Anthropic {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let model = self.clone();
        generate(move |out| model.run(request, cancel, out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_wins_over_a_key_and_neither_is_ever_shown() {
        let options = AnthropicOptions::from_variables(|name| match name {
            "ANTHROPIC_API_KEY" => Some("key-1".to_owned()),
            "ANTHROPIC_AUTH_TOKEN" => Some("token-1".to_owned()),
            "ANTHROPIC_CUSTOM_HEADERS" => Some("X-One: 1\nX-Two:2\n".to_owned()),
            _ => Some(String::new()),
        });
        let headers = options.headers_with("", None).unwrap();
        assert_eq!(headers["authorization"], "Bearer token-1");
        assert!(!headers.contains_key("x-api-key"));
        assert_eq!(
            (&headers["x-one"], &headers["x-two"]),
            (&"1".parse().unwrap(), &"2".parse().unwrap())
        );
        let shown = format!("{options:?} {headers:?}");
        assert!(
            !shown.contains("key-1") && !shown.contains("token-1"),
            "{shown}"
        );
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_said_to_be_wrong_without_showing_it() {
        let options = AnthropicOptions {
            api_key: Some("sk\n1".to_owned()),
            ..AnthropicOptions::default()
        };
        let error = options.headers_with("", None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the key holds characters that cannot be sent, such as a line break; set another"
        );
    }

    #[test]
    fn without_a_key_nobody_is_asked_unless_it_is_a_server_of_ones_own() {
        let mut options = AnthropicOptions::default();
        assert_eq!(
            options.headers_with("", None).unwrap_err().to_string(),
            "No API key. Run `haft login`, or set ANTHROPIC_API_KEY or OPENAI_API_KEY."
        );
        options.base_url = "http://localhost:8080".to_owned();
        assert!(options.headers_with("", None).is_ok());
    }
}
