//! All HTTP clients of haft: for providers ([`Http`]), web pages ([`WebClient`]) and WebSockets
//! ([`WebSockets`]). [`Http`] and [`WebClient`] are built on first use, because loading
//! certificates takes time.
//!
//! The time of a whole response is not limited, because it may legitimately take long. There are
//! limits on connecting, on silence and on keep-alives without content ([`HttpOptions`]).

pub(crate) mod body;
pub(crate) mod error_response;
mod fetch;
pub(crate) mod get_json;
mod post_text;
mod proxy;
mod streams;
mod websocket;

use std::{
    error::Error,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use haft_contract::CancellationToken;
use reqwest::{
    Client, ClientBuilder, RequestBuilder, Response, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};

use crate::{ErrorKind, ModelError};
pub use fetch::WebClient;
pub use proxy::ProxyVariables;
pub use websocket::WebSockets;

/// The limits and proxy settings of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// The timeout for connecting.
    pub connect_timeout: Duration,
    /// The longest time without any byte after a response has begun. Keep-alives are bytes.
    pub idle_timeout: Duration,
    /// The longest time until the first byte, and after that between pieces of content (keep-alives
    /// are not content). A local server may need minutes to process the conversation before
    /// it answers.
    pub content_timeout: Duration,
    /// The maximum length of a response in bytes.
    pub max_response_bytes: usize,
    /// The maximum length of an event in bytes.
    pub max_event_bytes: usize,
    /// Whether proxies may be used at all.
    pub proxies: bool,
    /// The proxies to use. `None` reads them from the process's environment.
    pub proxy: Option<ProxyVariables>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(90),
            content_timeout: Duration::from_secs(600),
            max_response_bytes: 256 * 1024 * 1024,
            max_event_bytes: 64 * 1024 * 1024,
            proxies: true,
            proxy: None,
        }
    }
}

impl HttpOptions {
    /// Reads the options from the environment: `API_TIMEOUT_MS` sets the time limit until the first
    /// byte and between pieces of content. `HTTPS_PROXY` and the other proxy variables set the
    /// proxies.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Like [`from_env`](Self::from_env), but reads the variables with this function.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let millis = variable("API_TIMEOUT_MS");
        let millis = millis.and_then(|value| value.trim().parse().ok());
        let usual = Self::default();
        Self {
            content_timeout: millis.map_or(usual.content_timeout, Duration::from_millis),
            proxy: Some(ProxyVariables::from_variables(variable)),
            ..usual
        }
    }
}

impl HttpOptions {
    /// Returns whether a plain HTTP address may be reached through a proxy.
    fn goes_through_proxy(&self) -> bool {
        let named = self.proxy.as_ref().map(ProxyVariables::is_for_plain);
        self.proxies && named.unwrap_or_else(has_plain_proxy)
    }
}

/// The HTTP client that all providers share.
#[derive(Debug, Clone, Default)]
pub struct Http {
    inner: Arc<HttpClients>,
}

#[derive(Debug, Default)]
struct HttpClients {
    options: HttpOptions,
    client: OnceLock<Client>,
    /// The client for `http://` addresses. It loads no certificates, so it is available
    /// immediately.
    plain: OnceLock<Client>,
}

impl Http {
    /// Creates a client with these options.
    pub fn new(options: HttpOptions) -> Self {
        Self {
            inner: Arc::new(HttpClients {
                options,
                client: OnceLock::new(),
                plain: OnceLock::new(),
            }),
        }
    }

    pub(crate) fn options(&self) -> &HttpOptions {
        &self.inner.options
    }

    /// Sends JSON. Returns the response when its headers have arrived, with any status.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let request = self
            .client(url)?
            .post(url.clone())
            .headers(headers)
            .body(body);
        self.send(url, request, cancel).await
    }

    /// Sends a GET request. Returns the response when its headers have arrived, with any status.
    pub(crate) async fn get(
        &self,
        url: &Url,
        headers: HeaderMap,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let request = self.client(url)?.get(url.clone()).headers(headers);
        self.send(url, request, cancel).await
    }

    /// Like [`post`](Self::post), but connects only to one of these addresses, without a proxy.
    /// Each call builds a new client.
    pub(crate) async fn post_to(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        addresses: &[IpAddr],
    ) -> Result<Response, ModelError> {
        let port = url.port_or_known_default().unwrap_or_default();
        let addresses: Vec<SocketAddr> = addresses
            .iter()
            .map(|address| SocketAddr::new(*address, port))
            .collect();
        let host = url.host_str().unwrap_or_default();
        let client = self
            .builder(url.scheme() == "http")
            .and_then(|builder| {
                builder
                    .no_proxy()
                    .resolve_to_addrs(host, &addresses)
                    .build()
            })
            .map_err(|error| ModelError::local(format!("cannot set up HTTPS: {}", root(&error))))?;
        let request = client.post(url.clone()).headers(headers).body(body);
        self.send(url, request, &CancellationToken::new()).await
    }

    async fn send(
        &self,
        url: &Url,
        request: RequestBuilder,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let sent = tokio::time::timeout(self.options().content_timeout, request.send());
        match until_cancelled(cancel, sent).await? {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(unreachable(url, error)),
            Err(_) => Err(ModelError::connection(format!(
                "{} did not begin to answer within {} s",
                host_and_port(url),
                self.options().content_timeout.as_secs_f64()
            ))),
        }
    }

    fn client(&self, url: &Url) -> Result<&Client, ModelError> {
        // The connection to a proxy may use HTTPS even for a plain address.
        let is_plain = url.scheme() == "http" && !self.options().goes_through_proxy();
        let kept = match is_plain {
            true => &self.inner.plain,
            false => &self.inner.client,
        };
        if let Some(client) = kept.get() {
            return Ok(client);
        }
        let client = self
            .build(is_plain)
            .map_err(|error| ModelError::local(format!("cannot set up HTTPS: {}", root(&error))))?;
        Ok(kept.get_or_init(|| client))
    }

    fn build(&self, is_plain: bool) -> reqwest::Result<Client> {
        self.builder(is_plain)?.build()
    }

    fn builder(&self, is_plain: bool) -> reqwest::Result<ClientBuilder> {
        // Fails only if a TLS crypto provider is already installed; then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = self.options();
        let mut builder = Client::builder()
            .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(options.connect_timeout)
            .tcp_keepalive(Duration::from_secs(30))
            // A redirect would send the key to another host.
            .redirect(redirect::Policy::none());
        builder = match &options.proxy {
            _ if !options.proxies => builder.no_proxy(),
            Some(proxy) => proxy.on(builder)?,
            None => builder,
        };
        if is_plain {
            builder = builder.tls_certs_only([]);
        }
        Ok(builder)
    }
}

/// Returns whether the environment sets a proxy for plain HTTP.
fn has_plain_proxy() -> bool {
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Waits for the future, or returns an error when the token is cancelled.
pub(crate) async fn until_cancelled<T>(
    cancel: &CancellationToken,
    future: impl Future<Output = T>,
) -> Result<T, ModelError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ModelError::cancelled()),
        value = future => Ok(value),
    }
}

/// Returns host and port only: the rest of an address may contain secrets.
pub(crate) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the server");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Appends the version (unless the base already ends with it) and the path to the base URL.
pub(crate) fn join(base: &str, version: &str, path: &str) -> Result<Url, ModelError> {
    let bad = |why: &str| ModelError::local(format!("the base URL {base:?} cannot be used: {why}"));
    let mut url = Url::parse(base.trim()).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it must begin with http:// or https://"));
    }
    let root = url.path().trim_end_matches('/').to_owned();
    url.set_path(&match version {
        "" => format!("{root}/{path}"),
        version if root.ends_with(&format!("/{version}")) => format!("{root}/{path}"),
        version => format!("{root}/{version}/{path}"),
    });
    Ok(url)
}

/// Adds a header with a key. If the key is not a valid header value, the error does not contain it.
pub(crate) fn insert_secret_header(
    headers: &mut HeaderMap,
    name: &str,
    value: &str,
) -> Result<(), ModelError> {
    let unusable = || {
        ModelError::new(
            ErrorKind::Auth,
            "the key holds characters that cannot be sent, such as a line break; set another",
        )
    };
    let name = HeaderName::try_from(name).map_err(|_| unusable())?;
    let mut value = HeaderValue::try_from(value.trim()).map_err(|_| unusable())?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// Adds the user's headers, one `Name: value` per line.
pub(crate) fn custom(headers: &mut HeaderMap, lines: &str) -> Result<(), ModelError> {
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let pair = line.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::try_from(name.trim()).ok()?;
            Some((name, HeaderValue::try_from(value.trim()).ok()?))
        });
        // The value may be a secret, so the line is not shown.
        let Some((name, mut value)) = pair else {
            return Err(ModelError::local(
                "a custom header cannot be sent: write one `Name: value` per line",
            ));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(())
}

fn unreachable(url: &Url, error: reqwest::Error) -> ModelError {
    let kind = match refused(&error) {
        true => ErrorKind::Refused,
        false => ErrorKind::Connection,
    };
    let mut why = root(&error.without_url());
    // The error of rustls if the server answers in plain HTTP.
    if why.contains("InvalidContentType") {
        "it does not support TLS; use http:// in the base URL".clone_into(&mut why);
    }
    ModelError::new(
        kind,
        format!("{} cannot be reached: {why}", host_and_port(url)),
    )
}

fn refused(error: &(dyn Error + 'static)) -> bool {
    let own = error.downcast_ref::<io::Error>();
    own.is_some_and(|own| own.kind() == io::ErrorKind::ConnectionRefused)
        || error.source().is_some_and(refused)
}

/// Returns the innermost cause: the outer errors only say that the request failed.
pub(crate) fn root(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}
