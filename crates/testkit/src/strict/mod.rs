//! What providers refuse: requests are held to what real servers hold them to, so that a request that only a
//! lenient fake would take fails the test.
//!
//! The checks were written from the providers' documentation of their APIs, one sentence each.

mod anthropic;
mod openai;

use serde_json::Value;

use crate::http::{HttpAsked, HttpReply, header};

/// The refusal that a real server would answer with; `None` for requests that it would take, and for those
/// that are not for a provider at all.
pub fn refusal(asked: &HttpAsked) -> Option<HttpReply> {
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

/// Only these keys.
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
