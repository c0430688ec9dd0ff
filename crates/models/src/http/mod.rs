//! The only HTTP client: built when first needed, because loading certificates takes time.
//!
//! There is no limit on the whole of an answer, which may take long for good reasons; there are limits
//! on connecting, on silence, and on going on without saying anything ([`HttpOptions`]).

pub(crate) mod answer;
pub(crate) mod body;
mod fetch;
mod plain;
mod proxy;
pub(crate) mod short;
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

/// Limits and ways of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// For connecting.
    pub connect: Duration,
    /// Without any byte once an answer has begun; keep-alives count as bytes.
    pub silence: Duration,
    /// Without a first byte, and after that without any content between keep-alives. A local server
    /// may read the conversation for minutes before it says a word.
    pub patience: Duration,
    /// Bytes of one answer.
    pub longest_answer: usize,
    /// Bytes of one event in it.
    pub longest_event: usize,
    /// Go through proxies at all.
    pub proxies: bool,
    /// These, where variables were given; else those of the process's environment.
    pub proxy: Option<ProxyVariables>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            silence: Duration::from_secs(90),
            patience: Duration::from_secs(600),
            longest_answer: 256 * 1024 * 1024,
            longest_event: 64 * 1024 * 1024,
            proxies: true,
            proxy: None,
        }
    }
}

impl HttpOptions {
    /// With what the environment says: `API_TIMEOUT_MS` is the patience, `HTTPS_PROXY` and its like the
    /// proxies.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// The same with what these variables say.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let millis = variable("API_TIMEOUT_MS");
        let millis = millis.and_then(|value| value.trim().parse().ok());
        let usual = Self::default();
        Self {
            patience: millis.map_or(usual.patience, Duration::from_millis),
            proxy: Some(ProxyVariables::from_variables(variable)),
            ..usual
        }
    }
}

impl HttpOptions {
    /// May a plain address be reached through a proxy?
    fn goes_through_proxy(&self) -> bool {
        let named = self.proxy.as_ref().map(ProxyVariables::is_for_plain);
        self.proxies && named.unwrap_or_else(names_proxy)
    }
}

/// The client, shared by everything that talks to a provider.
#[derive(Debug, Clone, Default)]
pub struct Http {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    options: HttpOptions,
    client: OnceLock<Client>,
    /// For addresses that begin with http://: it knows no certificates, so no one waits for them.
    plain: OnceLock<Client>,
}

impl Http {
    /// With these limits.
    pub fn new(options: HttpOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                client: OnceLock::new(),
                plain: OnceLock::new(),
            }),
        }
    }

    pub(crate) fn options(&self) -> &HttpOptions {
        &self.inner.options
    }

    /// Sends JSON; gives the answer when its head is there, whatever its status.
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

    /// Asks for something; gives the answer when its head is there, whatever its status.
    pub(crate) async fn get(
        &self,
        url: &Url,
        headers: HeaderMap,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let request = self.client(url)?.get(url.clone()).headers(headers);
        self.send(url, request, cancel).await
    }

    /// The same to one of these addresses, and through no proxy: another client for each.
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
        let sent = tokio::time::timeout(self.options().patience, request.send());
        match until_cancelled(cancel, sent).await? {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(unreachable(url, error)),
            Err(_) => Err(ModelError::connection(format!(
                "{} did not begin to answer within {} s",
                place(url),
                self.options().patience.as_secs_f64()
            ))),
        }
    }

    fn client(&self, url: &Url) -> Result<&Client, ModelError> {
        // The way to a proxy may be HTTPS, wherever that leads.
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
        // Fails only if there is one already, and then there is one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = self.options();
        let mut builder = Client::builder()
            .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(options.connect)
            .tcp_keepalive(Duration::from_secs(30))
            // A redirect would carry the key to wherever it points.
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

/// Does the environment name a proxy?
fn names_proxy() -> bool {
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// What comes first: the end of the future, or being asked to stop.
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

/// Host and port: the rest of an address may hold secrets.
pub(crate) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the server");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// An address to send to: the base, and the rest below it.
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

/// Adds a header; a key that cannot be one is said to be wrong, and never shown.
pub(crate) fn secret(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), ModelError> {
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

/// Adds headers that a person wrote, one `Name: value` a line.
pub(crate) fn custom(headers: &mut HeaderMap, lines: &str) -> Result<(), ModelError> {
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let pair = line.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::try_from(name.trim()).ok()?;
            Some((name, HeaderValue::try_from(value.trim()).ok()?))
        });
        // The value may be a secret, so the line is not shown.
        let Some((name, mut value)) = pair else {
            return Err(ModelError::local(
                "a custom header cannot be sent: write one `Name: value` a line",
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
    // What rustls says when it is answered in plain HTTP.
    if why.contains("InvalidContentType") {
        "it does not speak TLS; use http:// in the base URL".clone_into(&mut why);
    }
    ModelError::new(kind, format!("{} cannot be reached: {why}", place(url)))
}

fn refused(error: &(dyn Error + 'static)) -> bool {
    let own = error.downcast_ref::<io::Error>();
    own.is_some_and(|own| own.kind() == io::ErrorKind::ConnectionRefused)
        || error.source().is_some_and(refused)
}

/// The cause of the cause: the layers above it only say that something failed.
pub(crate) fn root(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}
