//! Proxies from environment variables.

use std::fmt;

use reqwest::{ClientBuilder, NoProxy, Proxy, Url};

/// The proxy settings of the environment. Addresses may contain passwords, so `Debug` does not
/// print them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyVariables {
    http: Option<String>,
    https: Option<String>,
    all: Option<String>,
    except: Option<String>,
}

impl fmt::Debug for ProxyVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyVariables").finish_non_exhaustive()
    }
}

impl ProxyVariables {
    /// Reads the settings from these variables. By convention lower-case names take priority.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| {
            let value = variable(&name.to_lowercase()).or_else(|| variable(name));
            value.filter(|value| !value.trim().is_empty())
        };
        Self {
            http: set("HTTP_PROXY"),
            https: set("HTTPS_PROXY"),
            all: set("ALL_PROXY"),
            except: set("NO_PROXY"),
        }
    }

    /// Returns whether plain HTTP addresses are reached through a proxy.
    pub(super) fn is_for_plain(&self) -> bool {
        self.http.is_some() || self.all.is_some()
    }

    /// Returns the hosts of the proxies.
    pub(super) fn hosts(&self) -> Vec<String> {
        let named = [&self.http, &self.https, &self.all].into_iter().flatten();
        let hosts = named.filter_map(|address| {
            let address = match address.contains("://") {
                true => address.clone(),
                false => format!("http://{address}"),
            };
            Url::parse(&address).ok()?.host_str().map(str::to_owned)
        });
        hosts.collect()
    }

    /// Configures a client to use these proxies and no others.
    pub(super) fn on(&self, builder: ClientBuilder) -> reqwest::Result<ClientBuilder> {
        let mut builder = builder.no_proxy();
        let except = self.except.as_deref().and_then(NoProxy::from_string);
        let named = [
            self.http.as_deref().map(Proxy::http),
            self.https.as_deref().map(Proxy::https),
            self.all.as_deref().map(Proxy::all),
        ];
        for proxy in named.into_iter().flatten() {
            builder = builder.proxy(proxy?.no_proxy(except.clone()));
        }
        Ok(builder)
    }
}
