//! Checks the headers of messages.
//!
//! The stateless revision repeats parts of the body in headers, for intermediaries that route
//! messages without reading them. Both must agree; otherwise an intermediary would decide based on
//! values that differ from the actual request.

use hyper::HeaderMap;
use serde_json::Value;

use crate::{Revision, RpcError, message::code, revision::meta::PROTOCOL_VERSION};

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";
pub(super) const LAST_EVENT: &str = "last-event-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Returns whether a request uses the stateless revision.
pub(super) fn is_stateless(headers: &HeaderMap, method: &str, params: &Value) -> bool {
    if method == "server/discover" || params["_meta"].get(PROTOCOL_VERSION).is_some() {
        return true;
    }
    let said = text(headers, VERSION).and_then(Revision::parse);
    method != "initialize" && said.is_some_and(|revision| !revision.has_initialize())
}

/// Checks that the headers of a stateless request agree with its body.
pub(super) fn check(headers: &HeaderMap, method: &str, params: &Value) -> Result<(), RpcError> {
    let version = params["_meta"].get(PROTOCOL_VERSION);
    let version = version
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params(format!("`_meta` lacks {PROTOCOL_VERSION:?}")))?;
    same(headers, VERSION, version)?;
    same(headers, METHOD, method)?;
    let named = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    };
    match named.and_then(Value::as_str) {
        Some(named) => same(headers, NAME, named),
        None => Ok(()),
    }
}

/// Checks that the headers of a call agree with the parameters that the schema marks as headers.
pub(super) fn check_parameters(
    headers: &HeaderMap,
    schema: &Value,
    arguments: &Value,
) -> Result<(), RpcError> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        let Some(header) = property["x-mcp-header"].as_str() else {
            continue;
        };
        let header = format!("mcp-param-{}", header.to_ascii_lowercase());
        let value = match arguments.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ if headers.contains_key(&header) => {
                let words = format!("the header {header} does not match the body");
                return Err(RpcError::new(code::HEADER_MISMATCH, words));
            }
            _ => continue,
        };
        same(headers, &header, &value)?;
    }
    Ok(())
}

/// Checks that the revision in the header of a session's message is supported.
pub(super) fn version_of_session(headers: &HeaderMap) -> Result<(), RpcError> {
    match text(headers, VERSION) {
        Some(version) if Revision::parse(version).is_none() => Err(RpcError::new(
            code::INVALID_REQUEST,
            format!("the protocol revision {version:?} is not supported (MCP-Protocol-Version)"),
        )),
        _ => Ok(()),
    }
}

/// Returns the session id of a message. For a message with two ids, returns an empty text, which is
/// not a valid id.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    let mut named = headers.get_all(SESSION).iter();
    let first = named.next()?.to_str().unwrap_or_default();
    Some(match named.next() {
        None => first,
        Some(_) => "",
    })
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Checks that a header occurs exactly once with this value.
fn same(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), RpcError> {
    let values: Vec<_> = headers.get_all(name).iter().collect();
    let wrong = |why: String| Err(RpcError::new(code::HEADER_MISMATCH, why));
    let [value] = values.as_slice() else {
        return wrong(format!("the header {name} must occur exactly once"));
    };
    let said = value.to_str().ok().and_then(decoded);
    match said {
        Some(said) if said == expected => Ok(()),
        _ => wrong(format!("the header {name} does not match the body")),
    }
}

/// Decodes a header value. Values that a header cannot hold are encoded as Base64.
fn decoded(value: &str) -> Option<String> {
    let wrapped = value.strip_prefix("=?base64?");
    let Some(wrapped) = wrapped.and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(value.to_owned());
    };
    let bytes = data_encoding::BASE64.decode(wrapped.as_bytes()).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            let name: hyper::header::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn headers_and_body_agree() {
        let body = json!({"name": "Größe", "_meta": {PROTOCOL_VERSION: "2026-07-28"}});
        let right = [
            (VERSION, "2026-07-28"),
            (METHOD, "tools/call"),
            (NAME, "=?base64?R3LDtsOfZQ==?="),
        ];
        assert_eq!(check(&headers(&right), "tools/call", &body), Ok(()));
        for (at, wrong) in ["2025-11-25", "tools/list", "Size"].into_iter().enumerate() {
            let mut all = right;
            all[at].1 = wrong;
            let error = check(&headers(&all), "tools/call", &body).unwrap_err();
            assert_eq!(error.code, code::HEADER_MISMATCH, "{wrong}");
            let mut missing = right.to_vec();
            missing.remove(at);
            assert!(check(&headers(&missing), "tools/call", &body).is_err());
            let mut twice = right.to_vec();
            twice.push(right[at]);
            assert!(check(&headers(&twice), "tools/call", &body).is_err());
        }
    }

    #[test]
    fn which_requests_are_stateless() {
        let none = headers(&[]);
        let new = headers(&[(VERSION, "2026-07-28")]);
        let old = headers(&[(VERSION, "2025-06-18")]);
        let body = json!({"_meta": {PROTOCOL_VERSION: "2026-07-28"}});
        assert!(is_stateless(&none, "server/discover", &Value::Null));
        assert!(is_stateless(&new, "tools/list", &Value::Null));
        assert!(is_stateless(&old, "tools/list", &body));
        assert!(!is_stateless(&old, "tools/list", &Value::Null));
        assert!(!is_stateless(&new, "initialize", &Value::Null));
    }
}
