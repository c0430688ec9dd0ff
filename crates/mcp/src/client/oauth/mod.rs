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

use haft_contract::{HttpMethod, HttpRequest, HttpResponse, HttpStreams};
use serde_json::Value;

/// The maximum size of a response in bytes.
const LONGEST: usize = 1024 * 1024;

/// Returns the JSON document at an address, if any.
async fn get_json(http: &dyn HttpStreams, url: &str) -> Result<Option<Value>, String> {
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
    let bytes = response.body.bytes(LONGEST).await?;
    Ok(serde_json::from_slice(&bytes).ok().filter(Value::is_object))
}

/// Sends a POST request and returns the status and the JSON of the response, whatever the status.
async fn post(
    http: &dyn HttpStreams,
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
    let bytes = response.body.bytes(LONGEST).await?;
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
    // Other parsers may interpret such an address differently.
    if url.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control()) {
        return Err(format!("{url:?} is no address"));
    }
    let plain = url.starts_with("http://").then(|| host(url));
    match plain {
        None if url.starts_with("https://") => Ok(()),
        Some("localhost" | "127.0.0.1" | "::1") => Ok(()),
        _ => Err(format!(
            "{url} is not HTTPS, so that anyone on the way could read what is sent there"
        )),
    }
}

/// Returns the host of an address.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Returns whether an address is on this machine.
fn is_local(url: &str) -> bool {
    let host = host(url).trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
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
            ("ftp://a", false),
        ];
        for (url, expected) in cases {
            assert_eq!(secure(url).is_ok(), expected, "{url}");
        }
    }
}
