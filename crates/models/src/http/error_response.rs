//! Reads error responses: their status, headers and body.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::{
    Response,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde_json::Value;

use super::{Http, body::ResponseBody};
use crate::{ErrorKind, ModelError};
use haft_contract::{CalendarTime, CancellationToken};

/// The maximum number of bytes that are read from an error response.
const MAX_REFUSAL: usize = 64 * 1024;

/// The maximum number of characters that are quoted from an unknown response.
const QUOTED: usize = 200;

/// Returns whether the response is one JSON document, from a server that does not stream.
pub(crate) fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind == "application/json" || kind.ends_with("+json")
    })
}

/// Converts a response with an error status into an error.
pub(crate) async fn refusal(
    http: &Http,
    response: Response,
    cancel: &CancellationToken,
) -> ModelError {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let stream = Box::pin(response.bytes_stream());
    let mut body = ResponseBody::new(stream, http.options(), cancel.clone());
    let text = match body.all(MAX_REFUSAL).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind == ErrorKind::Cancelled => return error,
        // The part that arrived explains more than the error about the connection.
        Err(_) => std::mem::take(&mut body.head),
    };
    let mut error = from_body(Some(status), &String::from_utf8_lossy(&text));
    if (300..400).contains(&status)
        && let Some(to) = header(&headers, "location")
    {
        error.message = format!("the server points to {to}; set the base URL to that");
    }
    error.retry_after = retry_after(&headers);
    error.should_retry = match header(&headers, "x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    let id = header(&headers, "request-id").or(header(&headers, "x-request-id"));
    error.request_id = id.map(str::to_owned).or(error.request_id);
    error
}

/// Returns the error that a body describes. The body is an HTTP response or an event in a stream.
pub(crate) fn from_body(status: Option<u16>, text: &str) -> ModelError {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let detail = match &value["error"] {
        Value::Null => &value,
        detail => detail,
    };
    let name = |key: &str| match &detail[key] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let mut message = match (detail, &detail["message"], &detail["detail"]) {
        (Value::String(text), ..) | (_, Value::String(text), _) | (_, _, Value::String(text)) => {
            text.clone()
        }
        (_, _, Value::Null) => describe_body(status, text),
        (_, _, other) => other.to_string(),
    };
    let parameter = name("param");
    if !message.contains(&parameter) {
        message = format!("{message} ({parameter})");
    }
    let (kind_name, code) = (name("type"), name("code"));
    // In a stream the status, if any, is part of the body.
    let status = status.or_else(|| code.parse().ok().filter(|code| (400..600).contains(code)));
    let mut error = ModelError::new(kind(status, &kind_name, &code, &message), message);
    error.status = status;
    error.request_id = value["request_id"].as_str().map(str::to_owned);
    // llama.cpp sends its context window.
    error.context_window = detail["n_ctx"].as_u64().filter(|window| *window > 0);
    error
}

fn kind(status: Option<u16>, name: &str, code: &str, message: &str) -> ErrorKind {
    use ErrorKind::*;
    let by_name = match (name, code) {
        (_, "insufficient_quota") | ("insufficient_quota", _) => Some(Billing),
        (_, "context_length_exceeded") | ("exceed_context_size_error", _) => Some(ContextTooLong),
        (_, "invalid_api_key") => Some(Auth),
        (_, "model_not_found") => Some(NotFound),
        (_, "rate_limit_exceeded") => Some(RateLimited),
        ("authentication_error", _) => Some(Auth),
        ("permission_error", _) => Some(Permission),
        ("billing_error", _) => Some(Billing),
        ("not_found_error", _) => Some(NotFound),
        ("request_too_large", _) => Some(TooLarge),
        ("rate_limit_error", _) => Some(RateLimited),
        ("overloaded_error", _) => Some(Overloaded),
        ("api_error" | "timeout_error" | "server_error", _) => Some(Server),
        _ => None,
    };
    let by_status = match status {
        Some(401) => Auth,
        Some(402) => Billing,
        Some(403) => Permission,
        Some(404) => NotFound,
        Some(408 | 409) => Server,
        Some(413) => TooLarge,
        Some(429) => RateLimited,
        Some(529) => Overloaded,
        Some(500..) => Server,
        Some(400..) => BadRequest,
        Some(_) => Protocol,
        None if name == "invalid_request_error" => BadRequest,
        None => Server,
    };
    match by_name.unwrap_or(by_status) {
        BadRequest if mentions_length(message) => ContextTooLong,
        // Older versions of llama.cpp report a full context window as a server error.
        Server if message.contains("exceeds the available context size") => ContextTooLong,
        kind => kind,
    }
}

fn mentions_length(message: &str) -> bool {
    let message = message.to_lowercase();
    let words = [
        "context length",
        "maximum context",
        "context limit",
        "context size",
        "context window",
        "too long",
    ];
    !message.contains("image") && words.iter().any(|words| message.contains(words))
}

/// Describes a response that is not a JSON error.
pub(crate) fn describe_body(status: Option<u16>, text: &str) -> String {
    let text = text.trim();
    if is_page(text) {
        let title = page_title(text).map_or(String::new(), |title| format!(" ({title:?})"));
        return format!(
            "the server sent a web page{title} instead of an API's answer; \
             check the base URL and any proxy"
        );
    }
    match (text, status) {
        ("", Some(status)) => format!("status {status} without a message"),
        ("", None) => "it is empty".to_owned(),
        (_, Some(_)) => quoted(text),
        (_, None) => format!(
            "the server sent {:?}, which is not a response of this API; check the base URL",
            quoted(text)
        ),
    }
}

/// Returns the beginning of a text on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut line: String = text.chars().take(QUOTED).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ")
}

fn is_page(text: &str) -> bool {
    let head: String = text.chars().take(100).collect::<String>().to_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html") || head.contains("<html")
}

fn page_title(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let end = start + lower[start..].find("</title>")?;
    Some(quoted(text[start..end].trim()))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| {
        let value: f64 = header(headers, name)?.trim().parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    if let Some(millis) = number("retry-after-ms") {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    if let Some(seconds) = number("retry-after") {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = http_date(header(headers, "retry-after")?)?;
    // The server's clock is preferred, because the local one may be wrong.
    let now = header(headers, "date").and_then(http_date).or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(now.as_secs()).ok()
    })?;
    Some(Duration::from_secs(u64::try_from(then - now).unwrap_or(0)))
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`, the only format that servers may send, to seconds since
/// 1970.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = i64::try_from(MONTHS.iter().position(|month| *month == name)?).ok()? + 1;
    let year: i64 = words
        .next()?
        .parse()
        .ok()
        .filter(|year| (1970..10_000).contains(year))?;
    let time: Vec<i64> = words
        .next()?
        .split(':')
        .map_while(|part| part.parse().ok())
        .collect();
    let [hour, minute, second] = time[..] else {
        return None;
    };
    let time = CalendarTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
        millisecond: 0,
    };
    time.to_unix_seconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http() {
        let cases = [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("tomorrow", None),
        ];
        for (text, seconds) in cases {
            assert_eq!(http_date(text), seconds, "{text}");
        }
    }

    #[test]
    fn how_long_to_wait() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<u64>);
        let cases: &[Case<'_>] = &[
            ("seconds", &[("retry-after", "2")], Some(2000)),
            (
                "milliseconds win",
                &[("retry-after", "2"), ("retry-after-ms", "1500")],
                Some(1500),
            ),
            (
                "a date, by the server's clock",
                &[
                    ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    ("date", "Sun, 06 Nov 1994 08:49:30 GMT"),
                ],
                Some(7000),
            ),
            (
                "a date long past",
                &[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")],
                Some(0),
            ),
            ("nonsense", &[("retry-after", "-1")], None),
            ("more than there is", &[("retry-after", "1e300")], None),
            ("nothing", &[], None),
        ];
        for (what, pairs, millis) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in *pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            assert_eq!(
                retry_after(&headers),
                millis.map(Duration::from_millis),
                "{what}"
            );
        }
    }

    #[test]
    fn what_a_refusal_means() {
        use ErrorKind::*;
        let cases: &[(Option<u16>, &str, ErrorKind)] = &[
            (
                Some(400),
                r#"{"error":{"type":"invalid_request_error","message":"bad"}}"#,
                BadRequest,
            ),
            (
                Some(400),
                r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 3 > 2"}}"#,
                ContextTooLong,
            ),
            (
                Some(400),
                r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
                ContextTooLong,
            ),
            (
                Some(400),
                r#"{"error":{"message":"This model's maximum context length is 8"}}"#,
                ContextTooLong,
            ),
            (
                Some(400),
                r#"{"error":{"code":400,"message":"request (5120 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5120,"n_ctx":4096}}"#,
                ContextTooLong,
            ),
            (
                Some(500),
                r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}"#,
                ContextTooLong,
            ),
            (
                None,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
                ContextTooLong,
            ),
            (
                Some(400),
                r#"{"error":{"message":"Requested tokens (5120) exceed context window of 4096"}}"#,
                ContextTooLong,
            ),
            (
                Some(401),
                r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
                Auth,
            ),
            (Some(402), "", Billing),
            (Some(403), "", Permission),
            (Some(404), "", NotFound),
            (Some(408), "", Server),
            (Some(409), "", Server),
            (
                Some(413),
                r#"{"error":{"type":"request_too_large","message":"x"}}"#,
                TooLarge,
            ),
            (
                Some(429),
                r#"{"error":{"message":"x","code":"insufficient_quota"}}"#,
                Billing,
            ),
            (
                Some(429),
                r#"{"error":{"message":"x","code":null}}"#,
                RateLimited,
            ),
            (Some(500), "", Server),
            (
                Some(504),
                r#"{"error":{"type":"timeout_error","message":"x"}}"#,
                Server,
            ),
            (
                Some(529),
                r#"{"error":{"type":"overloaded_error","message":"x"}}"#,
                Overloaded,
            ),
            (Some(302), "", Protocol),
            (
                None,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
                Overloaded,
            ),
            (None, r#"{"error":{"message":"x","code":429}}"#, RateLimited),
            (None, r#"{"error":{"message":"x","code":"502"}}"#, Server),
            (None, r#"{"error":{"message":"x"}}"#, Server),
        ];
        for (status, body, kind) in cases {
            assert_eq!(from_body(*status, body).kind, *kind, "{status:?} {body}");
        }
    }

    #[test]
    fn what_a_refusal_says() {
        let cases = [
            (r#"{"error":{"message":"from error"}}"#, "from error"),
            (r#"{"error":"just text"}"#, "just text"),
            (
                r#"{"error":{"message":"unknown","param":"stream_options"}}"#,
                "unknown (stream_options)",
            ),
            (
                r#"{"error":{"message":"unknown n","param":"n"}}"#,
                "unknown n",
            ),
            (r#"{"detail":"from detail"}"#, "from detail"),
            (r#"{"message":"from message"}"#, "from message"),
            (r#"{"detail":[{"loc":["x"]}]}"#, r#"[{"loc":["x"]}]"#),
            ("plain\n text", "plain text"),
            ("", "status 400 without a message"),
            (
                "<!DOCTYPE html><html><head><title>Sign in</title></head>",
                "the server sent a web page (\"Sign in\") instead of an API's answer; check the base URL and any proxy",
            ),
        ];
        for (body, message) in cases {
            assert_eq!(from_body(Some(400), body).message, message, "{body}");
        }
    }
}
