//! Access control for HTTP clients.
//!
//! A web page in a browser can send requests to this machine, and can let its own host name resolve
//! to this machine (DNS rebinding). So the requested host and the page's origin must be this
//! machine or a configured host name. In addition, a token is required, except with
//! [`HttpAccess::open`].

use std::net::{IpAddr, SocketAddr};

use hyper::{HeaderMap, StatusCode, Uri, header, http::uri::Authority};

use super::{ServerResponse, reply};
use crate::server::parked::random_name;

/// The access control of a server.
#[derive(Clone)]
pub struct HttpAccess {
    /// `None` allows every client.
    tokens: Option<Vec<String>>,
    hosts: Vec<String>,
}

/// Identifies a token holder by the index of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenHolder(usize);

impl HttpAccess {
    /// Allows clients with this token.
    pub fn token(token: impl Into<String>) -> Self {
        Self::tokens([token.into()])
    }

    /// Allows clients with one of these tokens. The sessions of one holder are not accessible to
    /// the others.
    pub fn tokens(tokens: impl IntoIterator<Item = String>) -> Self {
        Self {
            tokens: Some(tokens.into_iter().collect()),
            hosts: Vec::new(),
        }
    }

    /// Allows clients with a new random token, and returns the token.
    pub fn new_token() -> (Self, String) {
        let token = random_name();
        (Self::token(token.as_str()), token)
    }

    /// Allows every client that can reach the address: for loopback only.
    pub fn open() -> Self {
        Self {
            tokens: None,
            hosts: Vec::new(),
        }
    }

    /// Also accepts this host name, besides the address itself and `localhost`.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Checks a request. The error is the response.
    pub(super) fn check(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        address: SocketAddr,
    ) -> Result<TokenHolder, Box<ServerResponse>> {
        let host = one(headers, &header::HOST);
        // An absolute address in the request line names the host too.
        let named = uri.authority().map(Authority::as_str);
        let mut hosts = host.into_iter().chain(named);
        if host.is_none() || !hosts.all(|host| self.is_ours(host, address)) {
            let words = "this host name is not allowed (Host)";
            return Err(Box::new(reply::error(StatusCode::FORBIDDEN, words)));
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = one(headers, &header::ORIGIN);
            let host = origin.and_then(host_of_origin);
            if !host.is_some_and(|host| self.is_ours(host, address)) {
                let words = "requests from pages of other sites are not allowed (Origin)";
                return Err(Box::new(reply::error(StatusCode::FORBIDDEN, words)));
            }
        }
        let Some(tokens) = &self.tokens else {
            return Ok(TokenHolder(0));
        };
        let shown = one(headers, &header::AUTHORIZATION);
        let shown = shown.and_then(|shown| {
            let (scheme, token) = shown.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let holder = shown.and_then(|shown| holder_of(shown, tokens));
        match holder {
            Some(holder) => Ok(holder),
            None => {
                let words = "a token is needed: Authorization: Bearer TOKEN";
                let mut refused = reply::error(StatusCode::UNAUTHORIZED, words);
                let wanted = header::HeaderValue::from_static("Bearer");
                refused
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, wanted);
                Err(Box::new(refused))
            }
        }
    }

    fn is_ours(&self, host: &str, address: SocketAddr) -> bool {
        let (name, port) = split_port(host);
        // With a configured host name, the server may be reached through another port.
        if self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return true;
        }
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let Ok(asked) = name.trim_matches(['[', ']']).parse::<IpAddr>() else {
            return false;
        };
        asked.is_loopback()
            || (asked == address.ip() && port.is_none_or(|port| port == address.port()))
    }
}

impl std::fmt::Debug for HttpAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpAccess")
            .field("needs_token", &self.tokens.is_some())
            .field("hosts", &self.hosts)
            .finish()
    }
}

/// Returns the value of a header that occurs exactly once, as text.
fn one<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn host_of_origin(origin: &str) -> Option<&str> {
    let rest = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))?;
    (!rest.contains(['/', '@', '?', '#'])).then_some(rest)
}

/// Splits `name:port`. The port may be missing, and the name may be an address in brackets.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (host, None),
        },
        _ => (host, None),
    }
}

/// Returns the holder of a token. All tokens are compared, so that the duration reveals nothing
/// about them.
fn holder_of(shown: &str, tokens: &[String]) -> Option<TokenHolder> {
    let mut holder = None;
    for (at, token) in tokens.iter().enumerate() {
        if is_same(shown.as_bytes(), token.as_bytes()) {
            holder = Some(TokenHolder(at));
        }
    }
    holder
}

/// Compares in a time that does not depend on the position of the difference.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(access: &HttpAccess, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: header::HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let address = "127.0.0.1:8000".parse().unwrap();
        match access.check(&Uri::from_static("/mcp"), &map, address) {
            Ok(_) => 200,
            Err(refused) => refused.status().as_u16(),
        }
    }

    #[test]
    fn hosts_and_origins() {
        let open = HttpAccess::open().with_host("box.example");
        type Headers = &'static [(&'static str, &'static str)];
        let cases: [(&str, Headers, u16); 16] = [
            ("no host", &[], 403),
            ("ours", &[("host", "127.0.0.1:8000")], 200),
            ("by name", &[("host", "localhost:8000")], 200),
            ("by another name", &[("host", "Box.Example")], 200),
            ("v6", &[("host", "[::1]:8000")], 200),
            ("rebound", &[("host", "evil.example:8000")], 403),
            (
                "looks like ours",
                &[("host", "localhost.evil.example")],
                403,
            ),
            (
                "twice",
                &[("host", "localhost"), ("host", "evil.example")],
                403,
            ),
            (
                "a page of ours",
                &[("host", "localhost"), ("origin", "http://localhost:3000")],
                200,
            ),
            (
                "a page elsewhere",
                &[("host", "localhost"), ("origin", "https://evil.example")],
                403,
            ),
            (
                "no page at all",
                &[("host", "localhost"), ("origin", "null")],
                403,
            ),
            (
                "a file",
                &[("host", "localhost"), ("origin", "file://")],
                403,
            ),
            (
                "an address in it",
                &[
                    ("host", "localhost"),
                    ("origin", "http://localhost@evil.example"),
                ],
                403,
            ),
            ("another address", &[("host", "10.0.0.1:8000")], 403),
            ("any of loopback", &[("host", "127.0.0.2")], 200),
            ("no port there", &[("host", "localhost:x")], 403),
        ];
        for (what, headers, expected) in cases {
            assert_eq!(check(&open, headers), expected, "{what}");
        }
    }

    #[test]
    fn a_whole_address_in_the_first_line_must_be_ours_as_well() {
        let (open, address) = (HttpAccess::open(), "127.0.0.1:8000".parse().unwrap());
        let headers = HeaderMap::from_iter([(header::HOST, "127.0.0.1:8000".parse().unwrap())]);
        for (uri, expected) in [
            ("http://127.0.0.1:8000/mcp", true),
            ("http://evil.example/mcp", false),
            ("http://localhost@evil.example/mcp", false),
        ] {
            let uri = Uri::from_static(uri);
            assert_eq!(
                open.check(&uri, &headers, address).is_ok(),
                expected,
                "{uri}"
            );
        }
    }

    #[test]
    fn tokens() {
        let access = HttpAccess::token("secret");
        let with = |value: &str| check(&access, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(check(&access, &[("host", "localhost")]), 401);
        assert_eq!(with("Bearer secret"), 200);
        assert_eq!(with("bearer secret"), 200);
        for wrong in [
            "Bearer secre",
            "Bearer secrets",
            "Basic secret",
            "secret",
            "Bearer ",
        ] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        // Clients from elsewhere do not even learn that there is a token.
        assert_eq!(check(&access, &[("host", "evil.example")]), 403);
        assert_eq!(
            format!("{access:?}"),
            "HttpAccess { needs_token: true, hosts: [] }"
        );
    }
}
