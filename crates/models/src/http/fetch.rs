//! The client for web pages. Each request connects only to addresses that were checked before.
//!
//! A host name is resolved once, by the caller that checks the addresses. So this client's resolver
//! returns only the addresses that were given with a request in flight. It never queries the DNS
//! again, because a second answer could differ.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use haft_contract::{BoxFuture, HttpFailure, HttpResponse, WebFetcher, WebRequest};
use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};

use super::{
    HttpOptions, host_and_port, root,
    streams::{headers, response_of},
};

/// The timeout for connecting to one address.
const CONNECT: Duration = Duration::from_secs(10);
/// The maximum number of headers in a response.
const MAX_HEADERS: usize = 200;

/// Fetches web pages. It shares neither connections nor keys with the client of the providers.
#[derive(Debug, Default)]
pub struct WebClient {
    options: HttpOptions,
    client: OnceLock<Client>,
    pins: Arc<AddressPins>,
}

impl WebClient {
    /// Creates a client that uses the proxies of these options. Their other limits apply only to
    /// providers.
    pub fn new(options: HttpOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    fn client(&self) -> reqwest::Result<&Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Fails only if a TLS crypto provider is already installed; then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!(
                "haft/",
                env!("CARGO_PKG_VERSION"),
                " (a program that reads pages for a person)"
            ))
            .connect_timeout(CONNECT)
            .redirect(redirect::Policy::none())
            .referer(false)
            .pool_max_idle_per_host(0)
            .http1_max_headers(MAX_HEADERS)
            .dns_resolver(Arc::clone(&self.pins));
        builder = match &self.options.proxy {
            Some(proxy) if self.options.proxies => {
                let _ = self.pins.proxies.set(proxy.hosts());
                proxy.on(builder)?
            }
            _ => builder.no_proxy(),
        };
        let client = builder.build()?;
        Ok(self.client.get_or_init(|| client))
    }

    async fn fetch(&self, request: WebRequest) -> Result<HttpResponse, HttpFailure> {
        let wrong = |message: String| HttpFailure {
            message,
            is_transient: false,
        };
        let url =
            Url::parse(&request.url).map_err(|error| wrong(format!("{}: {error}", request.url)))?;
        let is_web = matches!(url.scheme(), "http" | "https");
        if !is_web || !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(format!(
                "{} is not the address of a web page",
                request.url
            )));
        }
        let headers = headers(&request.headers).map_err(wrong)?;
        let client = self
            .client()
            .map_err(|error| wrong(format!("cannot set up HTTPS: {}", root(&error))))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let _pinned = self.pins.pin(&host, request.addresses);
        let sent = client.get(url.clone()).headers(headers).send().await;
        match sent {
            Ok(response) => Ok(response_of(response)),
            Err(error) => Err(HttpFailure {
                is_transient: error.is_connect() || error.is_timeout(),
                message: describe_failure(&url, error),
            }),
        }
    }
}

impl WebFetcher for WebClient {
    fn get(&self, request: WebRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>> {
        Box::pin(self.fetch(request))
    }

    fn has_proxy(&self) -> bool {
        let named = self.options.proxy.as_ref();
        self.options.proxies && named.is_some_and(|proxy| !proxy.hosts().is_empty())
    }
}

/// Describes the failure in one sentence.
fn describe_failure(url: &Url, error: reqwest::Error) -> String {
    let (host, is_connecting) = (host_and_port(url), error.is_connect());
    let is_timeout = error.is_timeout();
    let why = root(&error.without_url());
    if why.contains("certificate") || why.contains("Certificate") {
        return format!(
            "the certificate of {host} is not accepted ({why}). Its content cannot be trusted and was not read"
        );
    }
    if why.contains("InvalidContentType") || why.contains("corrupt message") {
        return format!("{host} does not support TLS at this port ({why})");
    }
    if is_timeout {
        return format!("{host} did not accept a connection in time");
    }
    if why.contains("message head is too large") || why.contains("too many headers") {
        return format!("the response headers of {host} are too large");
    }
    match is_connecting {
        true => format!("{host} cannot be reached: {why}"),
        false => format!("{host} gave no answer that can be read: {why}"),
    }
}

/// The checked addresses of hosts while requests to them are in flight.
#[derive(Debug, Default)]
struct AddressPins {
    /// By host: one list per request, because several requests to one host may have different
    /// addresses.
    known: Mutex<HashMap<String, Vec<Arc<[IpAddr]>>>>,
    proxies: OnceLock<Vec<String>>,
}

/// The addresses of one request. Dropping this removes them.
struct PinnedAddresses {
    pins: Arc<AddressPins>,
    host: String,
    addresses: Arc<[IpAddr]>,
}

impl AddressPins {
    fn pin(self: &Arc<Self>, host: &str, addresses: Vec<IpAddr>) -> PinnedAddresses {
        let pinned = PinnedAddresses {
            pins: Arc::clone(self),
            host: host.to_ascii_lowercase(),
            addresses: addresses.into(),
        };
        if !pinned.addresses.is_empty() {
            let mut known = self.known();
            let all = known.entry(pinned.host.clone()).or_default();
            all.push(Arc::clone(&pinned.addresses));
        }
        pinned
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<[IpAddr]>>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns addresses that were checked for this host.
    fn pinned_addresses(&self, host: &str) -> Option<Vec<SocketAddr>> {
        let known = self.known();
        let addresses = known.get(&host.to_ascii_lowercase())?.last()?.iter();
        Some(addresses.map(|one| SocketAddr::new(*one, 0)).collect())
    }

    fn is_proxy(&self, host: &str) -> bool {
        let proxies = self.proxies.get();
        proxies.is_some_and(|all| all.iter().any(|one| one.eq_ignore_ascii_case(host)))
    }
}

impl Drop for PinnedAddresses {
    fn drop(&mut self) {
        let mut known = self.pins.known();
        if let Some(all) = known.get_mut(&self.host) {
            all.retain(|one| !Arc::ptr_eq(one, &self.addresses));
            if all.is_empty() {
                known.remove(&self.host);
            }
        }
    }
}

impl Resolve for AddressPins {
    fn resolve(&self, name: Name) -> Resolving {
        let (pinned, is_proxy) = (
            self.pinned_addresses(name.as_str()),
            self.is_proxy(name.as_str()),
        );
        Box::pin(async move {
            let addresses = match pinned {
                Some(pinned) => pinned,
                // The user configured the proxy, so any address is fine.
                None if is_proxy => tokio::net::lookup_host((name.as_str(), 0)).await?.collect(),
                None => {
                    return Err(
                        format!("the addresses of {} were not checked", name.as_str()).into(),
                    );
                }
            };
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolved(pins: &AddressPins, name: &str) -> Result<Vec<SocketAddr>, String> {
        let found = pins.resolve(name.parse().unwrap()).await;
        found.map(Iterator::collect).map_err(|why| why.to_string())
    }

    #[tokio::test]
    async fn a_name_stands_for_what_was_checked_and_only_while_a_request_is_under_way() {
        let pins = Arc::new(AddressPins::default());
        let unknown = Err("the addresses of a.example were not checked".to_owned());
        assert_eq!(resolved(&pins, "a.example").await, unknown);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let other: IpAddr = "192.0.2.2".parse().unwrap();
        let first = pins.pin("A.example", vec![address]);
        let second = pins.pin("a.example", vec![other]);
        assert_eq!(
            resolved(&pins, "a.example").await,
            Ok(vec![(other, 0).into()])
        );
        drop(second);
        assert_eq!(
            resolved(&pins, "a.EXAMPLE").await,
            Ok(vec![(address, 0).into()])
        );
        drop(first);
        assert_eq!(resolved(&pins, "a.example").await, unknown);
        assert!(resolved(&pins, "localhost").await.is_err());
    }
}
