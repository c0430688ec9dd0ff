//! Rejects requests that real providers would reject, so that a test fails if only a lenient fake
//! accepts the request.
//!
//! The checks follow the API documentation of the providers.

mod anthropic;
mod openai;

use serde_json::Value;

use crate::http::{HttpReply, RecordedHttpRequest, header};

/// Returns the error response of a real server, or `None` if the server would accept the request or
/// the request is not for a provider.
pub fn refusal(asked: &RecordedHttpRequest) -> Option<HttpReply> {
    let (method, path) = asked.target();
    if method != "POST" {
        return None;
    }
    if path.ends_with("/messages") {
        if header(&asked.head, "anthropic-version").is_none() {
            return Some(invalid("anthropic-version: header is required"));
        }
        return anthropic::check(&asked.body).err().map(|why| invalid(&why));
    }
    if path.ends_with("/chat/completions") {
        return openai::check(&asked.body).err().map(|message| {
            let error = serde_json::json!({"error": {
                "message": message, "type": "invalid_request_error", "param": null, "code": null,
            }});
            HttpReply::new(400, "application/json", error.to_string())
        });
    }
    None
}

fn invalid(message: &str) -> HttpReply {
    HttpReply::error(400, "invalid_request_error", message)
}

/// Returns an error if the object has other keys than the allowed ones.
fn only(value: &Value, allowed: &[&str], place: &str) -> Result<(), String> {
    let Some(object) = value.as_object() else {
        return Err(format!("{place}: Input should be an object"));
    };
    match object.keys().find(|key| !allowed.contains(&key.as_str())) {
        Some(key) => Err(format!("{place}.{key}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

fn is_name(text: &str, longest: usize) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=longest).contains(&text.len()) && text.chars().all(allowed)
}

fn text<'a>(value: &'a Value, key: &str, place: &str) -> Result<&'a str, String> {
    value[key]
        .as_str()
        .ok_or_else(|| format!("{place}.{key}: Input should be a valid string"))
}

fn list<'a>(value: &'a Value, place: &str) -> Result<&'a [Value], String> {
    let list = value.as_array().map(Vec::as_slice);
    list.ok_or_else(|| format!("{place}: Input should be a valid list"))
}
