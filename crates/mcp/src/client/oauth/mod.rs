//! OAuth 2.1 for remote servers: one login in a browser; after that, tokens are refreshed
//! automatically.
//!
//! - `discovery`: finds the authorization server; `login`: gets a token through the user's browser
//! - `store`: tokens in a file that only its owner can read, refreshed before they expire; `form`:
//!   encoding
//!
//! **Invariants.** Only PKCE with S256 is used. A token is sent only to the server that it was
//! issued for. An address that a server names is used only if it is HTTPS or on this machine.

mod discovery;
mod form;
mod login;
mod store;

pub use login::{LoginRequest, OAuthClient, login};
pub use store::TokenStore;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use haft_contract::{HttpMethod, HttpRequest, HttpResponse, HttpTransport};
use haft_sandbox::network::{Host, SpecialAddress};
use serde_json::Value;

/// The maximum size of a response in bytes.
const MAX_LENGTH: usize = 1024 * 1024;

/// Returns the JSON document at an address, if any.
async fn get_json(http: &dyn HttpTransport, url: &str) -> Result<Option<Value>, String> {
    secure(url)?;
    let request = HttpRequest {
        method: HttpMethod::Get,
        url: url.to_owned(),
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        body: Vec::new(),
    };
    let mut response = http.open(request).await.map_err(|failed| failed.message)?;
    if response.status != 200 {
        return Ok(None);
    }
    let bytes = response.body.bytes(MAX_LENGTH).await?;
    Ok(serde_json::from_slice(&bytes).ok().filter(Value::is_object))
}

/// Sends a POST request. Returns the status, which may be any, and the JSON of the response.
async fn post(
    http: &dyn HttpTransport,
    url: &str,
    kind: &str,
    more: &[(String, String)],
    body: String,
) -> Result<(u16, Value), String> {
    secure(url)?;
    let mut headers = vec![
        ("content-type".to_owned(), kind.to_owned()),
        ("accept".to_owned(), "application/json".to_owned()),
    ];
    headers.extend_from_slice(more);
    let request = HttpRequest {
        method: HttpMethod::Post,
        url: url.to_owned(),
        headers,
        body: body.into_bytes(),
    };
    let response = http.open(request).await.map_err(|failed| failed.message)?;
    read(response).await
}

async fn read(mut response: HttpResponse) -> Result<(u16, Value), String> {
    let bytes = response.body.bytes(MAX_LENGTH).await?;
    Ok((
        response.status,
        serde_json::from_slice(&bytes).unwrap_or_default(),
    ))
}

/// Returns the description of an error response.
fn problem(status: u16, answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let words = [text("error"), text("error_description")];
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    match words.is_empty() {
        true => format!("HTTP {status}"),
        false => format!("HTTP {status}: {}", words.join(": ")),
    }
}

/// Checks whether secrets may be sent to an address.
fn secure(url: &str) -> Result<(), String> {
    // Other parsers may interpret an address with these characters differently.
    if url.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control()) {
        return Err(format!("{url:?} is not a valid URL"));
    }
    let plain = || -> Result<bool, String> {
        let host = host(url)?;
        let is_this_machine =
            matches!(host.address(), Some(address) if THIS_MACHINE.contains(&address));
        Ok(host.name() == Some("localhost") || is_this_machine)
    };
    let is_secure = match url.split_once("://") {
        Some(("https", _)) => host(url).map(|_| true)?,
        Some(("http", _)) => plain()?,
        _ => false,
    };
    match is_secure {
        true => Ok(()),
        false => Err(format!(
            "{url} is not HTTPS: the network could read what is sent to it"
        )),
    }
}

const THIS_MACHINE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// Returns the host of an address. A host that programs could interpret differently, such as
/// `127.1` or `%6cocalhost`, is an error.
fn host(url: &str) -> Result<Host, String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let named = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let end = match named.find(']') {
        Some(bracket) => bracket + 1,
        None => named.find(':').unwrap_or(named.len()),
    };
    let (host, port) = named.split_at(end);
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_port {
        return Err(format!("{url:?} has an invalid host"));
    }
    Host::parse(host.as_bytes()).map_err(|why| format!("{url:?} has an invalid host: {why}"))
}

/// The distance of a host from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HostScope {
    ThisMachine,
    /// An IP address that is not public. Host names that resolve to one are not recognized.
    OwnNetwork,
    Public,
}

fn nearness(url: &str) -> Result<HostScope, String> {
    let host = host(url)?;
    let special = host.address().and_then(SpecialAddress::classify);
    let is_named_so = |name: &str| name == "localhost" || name.ends_with(".localhost");
    Ok(match special {
        Some(SpecialAddress::Loopback | SpecialAddress::Unspecified) => HostScope::ThisMachine,
        Some(_) => HostScope::OwnNetwork,
        None if host.name().is_some_and(is_named_so) => HostScope::ThisMachine,
        None => HostScope::Public,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_https_or_stay_on_this_machine() {
        let cases = [
            ("https://a.example/x", true),
            ("http://localhost:80/x", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:9/x", true),
            ("http://a.example", false),
            ("http://localhost.evil.example", false),
            ("http://localhost@evil.example/", false),
            ("http://evil.example\\@localhost/", false),
            ("http://evil.example\t@localhost/", false),
            ("http://[::1]evil.example/", false),
            ("http://127.0.0.2/", false),
            ("https:///evil.example/", false),
            ("https://%6cocalhost/", false),
            ("https://127.1/", false),
            ("https://evil.example:80:90/", false),
            ("https://", false),
            ("HTTPS://a.example", false),
            ("ftp://a", false),
        ];
        for (url, expected) in cases {
            assert_eq!(secure(url).is_ok(), expected, "{url}");
        }
    }
}
