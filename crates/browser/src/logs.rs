//! The console output and the network requests of a page, up to a maximum number.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use crate::text::one_line;

const MAX_CONSOLE: usize = 500;
const MAX_REQUESTS: usize = 1_000;
const MAX_TEXT: usize = 1_000;
const MAX_URL: usize = 2_000;
const MAX_HEADERS: usize = 100;

/// The severity of a console line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsoleLevel {
    /// Errors, exceptions, failed assertions.
    Error,
    /// Warnings.
    Warning,
    /// All other lines.
    Info,
}

/// A line of the console, with the number of its repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleLine {
    /// The severity.
    pub level: ConsoleLevel,
    /// The text.
    pub text: String,
    /// The address and line of the script that logged it.
    pub place: String,
    /// The number of times it was logged.
    pub times: u64,
}

/// The console since the last navigation.
#[derive(Default)]
pub(crate) struct ConsoleLog {
    lines: VecDeque<ConsoleLine>,
    pub(crate) dropped: u64,
}

impl ConsoleLog {
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn lines(&self, worst: ConsoleLevel) -> Vec<ConsoleLine> {
        let wanted = |line: &&ConsoleLine| line.level <= worst;
        self.lines.iter().filter(wanted).cloned().collect()
    }

    pub(crate) fn add(&mut self, level: ConsoleLevel, text: &str, place: String) {
        let text = one_line(text, MAX_TEXT);
        let same = |line: &&mut ConsoleLine| {
            line.level == level && line.text == text && line.place == place
        };
        if let Some(line) = self.lines.iter_mut().rev().take(50).find(same) {
            line.times += 1;
            return;
        }
        if self.lines.len() == MAX_CONSOLE {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back(ConsoleLine {
            level,
            text,
            place,
            times: 1,
        });
    }

    pub(crate) fn called(&mut self, params: &Value) {
        let level = match params["type"].as_str().unwrap_or_default() {
            "error" | "assert" => ConsoleLevel::Error,
            "warning" => ConsoleLevel::Warning,
            "clear" => return,
            _ => ConsoleLevel::Info,
        };
        let arguments = params["args"].as_array().map_or(&[][..], Vec::as_slice);
        let text: Vec<String> = arguments.iter().take(20).map(argument).collect();
        let frame = &params["stackTrace"]["callFrames"][0];
        self.add(
            level,
            &text.join(" "),
            place(&frame["url"], &frame["lineNumber"]),
        );
    }

    pub(crate) fn thrown(&mut self, params: &Value) {
        let details = &params["exceptionDetails"];
        let text = exception_text(details);
        self.add(
            ConsoleLevel::Error,
            &text,
            place(&details["url"], &details["lineNumber"]),
        );
    }

    pub(crate) fn logged(&mut self, params: &Value) {
        let entry = &params["entry"];
        let level = match entry["level"].as_str().unwrap_or_default() {
            "error" => ConsoleLevel::Error,
            "warning" => ConsoleLevel::Warning,
            _ => ConsoleLevel::Info,
        };
        let text = entry["text"].as_str().unwrap_or_default();
        self.add(level, text, place(&entry["url"], &entry["lineNumber"]));
    }
}

/// Returns the first line of an exception.
pub(crate) fn exception_text(details: &Value) -> String {
    let described = details["exception"]["description"]
        .as_str()
        .and_then(|text| text.lines().next());
    let value = &details["exception"]["value"];
    match (described, value) {
        (Some(line), _) => line.to_owned(),
        (None, Value::Null) => details["text"]
            .as_str()
            .unwrap_or("an exception")
            .to_owned(),
        (None, value) => format!("Uncaught {value}"),
    }
}

pub(crate) fn place(url: &Value, line: &Value) -> String {
    match (url.as_str().filter(|url| !url.is_empty()), line.as_u64()) {
        (Some(url), Some(line)) => format!("{}:{}", one_line(url, 200), line + 1),
        (Some(url), None) => one_line(url, 200),
        (None, _) => String::new(),
    }
}

fn argument(value: &Value) -> String {
    if let Some(text) = value["value"].as_str() {
        return text.chars().take(MAX_TEXT + 1).collect();
    }
    if let Some(properties) = value["preview"]["properties"].as_array() {
        let fields: Vec<String> = properties
            .iter()
            .take(10)
            .map(|field| {
                let name = field["name"].as_str().unwrap_or_default();
                format!("{name}: {}", field["value"].as_str().unwrap_or_default())
            })
            .collect();
        let (open, close) = match value["subtype"].as_str() {
            Some("array") => ("[", "]"),
            Some("error") => return described(value),
            _ => ("{", "}"),
        };
        return format!("{open}{}{close}", fields.join(", "));
    }
    match &value["value"] {
        Value::Null => described(value),
        plain => plain.to_string(),
    }
}

fn described(value: &Value) -> String {
    let text = value["description"].as_str().or(value["type"].as_str());
    text.unwrap_or_default()
        .chars()
        .take(MAX_TEXT + 1)
        .collect()
}

/// A request of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkEntry {
    /// The number of the request in this tab.
    pub id: u32,
    /// `GET` …
    pub method: String,
    /// The address.
    pub url: String,
    /// `Document`, `Script`, `Fetch` …
    pub kind: String,
    /// The HTTP status of the response.
    pub status: Option<u16>,
    /// The reason for a failure.
    pub failure: Option<String>,
    /// The number of bytes received.
    pub bytes: u64,
    /// True until the response has been received completely or the request has failed.
    pub pending: bool,
    /// The request headers; secrets are masked.
    pub request_headers: Vec<(String, String)>,
    /// The response headers; secrets are masked.
    pub response_headers: Vec<(String, String)>,
    pub(crate) request: String,
}

/// The requests of a tab.
#[derive(Default)]
pub(crate) struct RequestLog {
    entries: VecDeque<NetworkEntry>,
    next: u32,
    /// Maps Chromium's request id to the number of the newest entry.
    numbers: HashMap<String, u32>,
    /// The open requests that the page waits for.
    pub(crate) open: HashSet<String>,
    pub(crate) dropped: u64,
}

impl RequestLog {
    /// Removes all requests except `keep`, the one that loads the new document.
    pub(crate) fn clear(&mut self, keep: Option<&str>) {
        let open = std::mem::take(&mut self.open);
        self.entries
            .retain(|entry| Some(entry.request.as_str()) == keep);
        self.numbers
            .retain(|request, _| Some(request.as_str()) == keep);
        self.open = open
            .into_iter()
            .filter(|id| Some(id.as_str()) == keep)
            .collect();
        self.dropped = 0;
    }

    pub(crate) fn list(&self) -> Vec<NetworkEntry> {
        self.entries.iter().cloned().collect()
    }

    pub(crate) fn total_bytes(&self) -> (usize, u64) {
        let bytes = self.entries.iter().map(|entry| entry.bytes).sum();
        (self.entries.len(), bytes)
    }

    fn entry(&mut self, request: &str) -> Option<&mut NetworkEntry> {
        let id = *self.numbers.get(request)?;
        let at = self.entries.binary_search_by_key(&id, |entry| entry.id);
        self.entries.get_mut(at.ok()?)
    }

    pub(crate) fn sent(&mut self, params: &Value) {
        let Some(request) = params["requestId"].as_str() else {
            return;
        };
        if let Some(redirect) = params.get("redirectResponse") {
            let status = status_of(redirect);
            if let Some(entry) = self.entry(request) {
                entry.status = status;
                entry.pending = false;
            }
        }
        let url = params["request"]["url"].as_str().unwrap_or_default();
        if url.starts_with("data:") {
            return;
        }
        self.next += 1;
        if self.entries.len() == MAX_REQUESTS {
            self.dropped += 1;
            if let Some(old) = self.entries.pop_front() {
                self.open.remove(&old.request);
                if self.numbers.get(&old.request) == Some(&old.id) {
                    self.numbers.remove(&old.request);
                }
            }
        }
        let kind = params["type"].as_str().unwrap_or("Other").to_owned();
        // These kinds stay open indefinitely.
        if !matches!(kind.as_str(), "EventSource" | "WebSocket" | "Media") {
            self.open.insert(request.to_owned());
        }
        self.numbers.insert(request.to_owned(), self.next);
        self.entries.push_back(NetworkEntry {
            id: self.next,
            method: one_line(params["request"]["method"].as_str().unwrap_or_default(), 20),
            url: one_line(url, MAX_URL),
            kind,
            status: None,
            failure: None,
            bytes: 0,
            pending: true,
            request_headers: headers(&params["request"]["headers"]),
            response_headers: Vec::new(),
            request: request.to_owned(),
        });
    }

    pub(crate) fn answered(&mut self, params: &Value) {
        let response = &params["response"];
        let (status, headers) = (status_of(response), headers(&response["headers"]));
        let Some(request) = params["requestId"].as_str() else {
            return;
        };
        if let Some(entry) = self.entry(request) {
            entry.status = status;
            entry.response_headers = headers;
            // A script that never reads the body would keep the request open indefinitely.
            if entry.kind == "Fetch" {
                self.open.remove(request);
            }
        }
    }

    pub(crate) fn finished(&mut self, params: &Value) {
        let Some(request) = params["requestId"].as_str() else {
            return;
        };
        self.open.remove(request);
        if let Some(entry) = self.entry(request) {
            entry.pending = false;
            let bytes = params["encodedDataLength"].as_f64().unwrap_or(0.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count"
            )]
            let bytes = bytes.max(0.0) as u64;
            entry.bytes = bytes;
        }
    }

    pub(crate) fn failed(&mut self, params: &Value) {
        let Some(request) = params["requestId"].as_str() else {
            return;
        };
        self.open.remove(request);
        let why = one_line(params["errorText"].as_str().unwrap_or("failed"), 200);
        if let Some(entry) = self.entry(request) {
            entry.pending = false;
            entry.failure = Some(why);
        }
    }

    pub(crate) fn websocket(&mut self, params: &Value) {
        let Some(request) = params["requestId"].as_str() else {
            return;
        };
        let url = params["url"].as_str().unwrap_or_default();
        self.sent(&serde_json::json!({
            "requestId": request, "type": "WebSocket", "request": {"url": url, "method": "GET"},
        }));
    }
}

fn status_of(response: &Value) -> Option<u16> {
    response["status"]
        .as_u64()
        .and_then(|status| u16::try_from(status).ok())
}

const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "cookie",
    "set-cookie",
    "proxy-authorization",
];

fn headers(fields: &Value) -> Vec<(String, String)> {
    let Some(fields) = fields.as_object() else {
        return Vec::new();
    };
    fields
        .iter()
        .take(MAX_HEADERS)
        .map(|(name, value)| {
            let is_secret = SECRET_HEADERS
                .iter()
                .any(|secret| name.eq_ignore_ascii_case(secret));
            let value = match (is_secret, value.as_str()) {
                (true, _) => "(masked)".to_owned(),
                (false, text) => one_line(text.unwrap_or_default(), 500),
            };
            (one_line(name, 100), value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_lines_are_counted_and_old_ones_dropped() {
        let mut console = ConsoleLog::default();
        for _ in 0..1_000 {
            console.add(ConsoleLevel::Error, "same", String::new());
        }
        assert_eq!(console.lines(ConsoleLevel::Error)[0].times, 1_000);
        for number in 0..2_000 {
            console.add(ConsoleLevel::Info, &number.to_string(), String::new());
        }
        assert_eq!(console.lines(ConsoleLevel::Info).len(), MAX_CONSOLE);
        assert_eq!(console.lines(ConsoleLevel::Warning).len(), 0);
        assert_eq!(console.dropped, 1_501);
    }

    #[test]
    fn requests_are_bounded_and_secrets_masked() {
        let mut requests = RequestLog::default();
        for number in 0..3_000 {
            requests.sent(&json!({
                "requestId": number.to_string(), "type": "Fetch",
                "request": {"url": "http://a/", "method": "GET", "headers": {"Cookie": "s=1", "Accept": "*/*"}},
            }));
        }
        requests.answered(&json!({"requestId": "2999", "response": {"status": 204, "headers": {"Set-Cookie": "s=2"}}}));
        requests.finished(&json!({"requestId": "2999", "encodedDataLength": 12.0}));
        requests.failed(&json!({"requestId": "2998", "errorText": "net::ERR_FAILED"}));
        requests.finished(&json!({"requestId": "0", "encodedDataLength": 12.0}));
        let list = requests.list();
        assert_eq!(list.len(), MAX_REQUESTS);
        assert_eq!(requests.open.len(), MAX_REQUESTS - 2);
        let last = &list[list.len() - 1];
        assert_eq!(
            (last.id, last.status, last.bytes, last.pending),
            (3_000, Some(204), 12, false)
        );
        assert_eq!(last.request_headers[0].1, "(masked)");
        assert_eq!(last.request_headers[1].1, "*/*");
        assert_eq!(last.response_headers[0].1, "(masked)");
        assert_eq!(
            list[list.len() - 2].failure.as_deref(),
            Some("net::ERR_FAILED")
        );
    }
}
