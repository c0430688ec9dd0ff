//! JSON-RPC 2.0 messages. Parameters and results stay unchanged.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

/// Error codes.
pub mod code {
    /// Invalid JSON.
    pub const PARSE: i64 = -32700;
    /// Invalid message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Unknown method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Invalid parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Internal error.
    pub const INTERNAL: i64 = -32603;
    /// Unknown resource (before 2026-07-28).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// A URL must be visited first; `data` contains it.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// The headers contradict the body (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client lacks a required capability (2026-07-28).
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The revision is not supported (2026-07-28); `data` lists the supported ones.
    pub const UNSUPPORTED_REVISION: i64 = -32022;
}

/// The maximum number of values in a message: each takes some dozen times the memory of its
/// text.
const MAX_VALUES: usize = 1_000_000;

/// Returns an upper bound for the number of values in a JSON text.
fn count_values(text: &[u8]) -> usize {
    let (mut count, mut in_string, mut at) = (1, false, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' if in_string => at += 1, // skip the escaped character
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
        at += 1;
    }
    count
}

/// The id of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum RpcId {
    /// A number.
    Number(i64),
    /// A string.
    Text(String),
}

/// The maximum length of an id in bytes.
const MAX_ID: usize = 16 * 1_024;

impl RpcId {
    /// Parses an id. Returns `None` unless it is an integer or a string of reasonable length.
    pub fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            // The id is repeated in the answer, which may have to wait.
            Value::String(text) if text.len() <= MAX_ID => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    /// Converts the id to JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
        }
    }
}

impl fmt::Display for RpcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// The error object of a response.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// The error code.
    pub code: i64,
    /// The error message.
    pub message: String,
    /// Additional machine-readable data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Adds data to the error.
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Creates the error for an unknown method.
    pub fn no_method(method: &str) -> Self {
        let words = format!("unknown method {method:?}");
        Self::new(code::METHOD_NOT_FOUND, words)
    }

    /// Creates the error for invalid parameters.
    pub fn invalid_params(why: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, why)
    }

    fn parse(value: Value) -> Self {
        match value {
            Value::Object(mut error) => Self {
                code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
                message: match error.remove("message") {
                    Some(Value::String(message)) => message,
                    _ => "an error without a message".to_owned(),
                },
                data: error.remove("data"),
            },
            other => Self::new(0, other.to_string()),
        }
    }
}

/// A JSON-RPC message.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcMessage {
    /// A message that needs an answer.
    Request {
        /// The id for the answer.
        id: RpcId,
        /// The method.
        method: String,
        /// The parameters; `Null` if absent.
        params: Value,
    },
    /// A message without an answer.
    Notification {
        /// The method.
        method: String,
        /// The parameters; `Null` if absent.
        params: Value,
    },
    /// The answer to a request.
    Answer {
        /// The id of the request; `None` if it could not be read.
        id: Option<RpcId>,
        /// The result or the error.
        result: Result<Value, RpcError>,
    },
}

impl RpcMessage {
    /// Creates a request.
    pub fn request(id: RpcId, method: impl Into<String>, params: Value) -> Self {
        Self::Request {
            id,
            method: method.into(),
            params,
        }
    }

    /// Creates a notification.
    pub fn notification(method: impl Into<String>, params: Value) -> Self {
        Self::Notification {
            method: method.into(),
            params,
        }
    }

    /// Creates an answer.
    pub fn answer(id: RpcId, result: Result<Value, RpcError>) -> Self {
        Self::Answer {
            id: Some(id),
            result,
        }
    }

    /// Parses a text as one message or as a batch. An error must be sent as the answer.
    pub fn parse_all(text: &[u8]) -> Result<Vec<Result<Self, RpcError>>, RpcError> {
        if text.len() > MAX_VALUES && count_values(text) > MAX_VALUES {
            let why = format!("more than {MAX_VALUES} values in one message");
            return Err(RpcError::new(code::INVALID_REQUEST, why));
        }
        // The usual case is a single message. Only its known fields are parsed.
        let is_one = text.trim_ascii_start().first() == Some(&b'{');
        if is_one {
            match serde_json::from_slice(text) {
                Ok(parts) => return Ok(vec![Self::from_parts(parts)]),
                // A duplicate key is rejected, because another program that inspected the message
                // may have used the other value.
                Err(twice) if twice.is_data() => {
                    let why = format!("a message is invalid: {twice}");
                    return Err(RpcError::new(code::INVALID_REQUEST, why));
                }
                Err(_) => {}
            }
        }
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| RpcError::new(code::PARSE, format!("no JSON: {error}")))?;
        match value {
            Value::Array(batch) if batch.is_empty() => Err(RpcError::new(
                code::INVALID_REQUEST,
                "a batch without messages",
            )),
            Value::Array(batch) => Ok(batch.into_iter().map(Self::parse).collect()),
            one => Ok(vec![Self::parse(one)]),
        }
    }

    /// Parses a message. An error must be sent as the answer.
    pub fn parse(value: Value) -> Result<Self, RpcError> {
        let Value::Object(mut message) = value else {
            let why = "a message is an object";
            return Err(RpcError::new(code::INVALID_REQUEST, why));
        };
        let mut part = |name: &str| message.remove(name);
        Self::from_parts(MessageParts {
            id: part("id"),
            method: part("method"),
            params: part("params"),
            result: part("result"),
            error: part("error"),
        })
    }

    fn from_parts(parts: MessageParts) -> Result<Self, RpcError> {
        let wrong = |why: &str| Err(RpcError::new(code::INVALID_REQUEST, why));
        let id = match &parts.id {
            None => None,
            // Only the answer to an unreadable request has a null id.
            Some(Value::Null) if parts.method.is_none() => None,
            Some(id) => match RpcId::parse(id) {
                Some(id) => Some(id),
                None => return wrong("an id is an integer or a string"),
            },
        };
        if let Some(method) = parts.method {
            let Value::String(method) = method else {
                return wrong("a method is a string");
            };
            let params = parts.params.unwrap_or_default();
            return Ok(match id {
                Some(id) => Self::request(id, method, params),
                None => Self::notification(method, params),
            });
        }
        let result = match (parts.error, parts.result) {
            (Some(error), _) if !error.is_null() => Err(RpcError::parse(error)),
            (_, Some(result)) => Ok(result),
            _ => return wrong("a message has a `method`, a `result` or an `error`"),
        };
        Ok(Self::Answer { id, result })
    }

    /// Converts the message to JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default() // serializing JSON values cannot fail
    }

    /// Returns the message as JSON text.
    pub fn to_json(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(256);
        self.write(&mut text);
        text
    }

    /// Returns the message as one line, with its line end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = self.to_json();
        line.push(b'\n');
        line
    }

    /// Appends the message as one line with its line end.
    pub fn write_line(&self, text: &mut Vec<u8>) {
        self.write(text);
        text.push(b'\n');
    }

    fn write(&self, text: &mut Vec<u8>) {
        // Serializing JSON values cannot fail and escapes line ends, and writing to memory cannot
        // fail.
        let _ = serde_json::to_writer(text, self);
    }
}

/// The known fields of a message. `None` means absent, as opposed to `null`.
#[derive(Deserialize)]
struct MessageParts {
    #[serde(default, deserialize_with = "there")]
    id: Option<Value>,
    #[serde(default, deserialize_with = "there")]
    method: Option<Value>,
    #[serde(default, deserialize_with = "there")]
    params: Option<Value>,
    #[serde(default, deserialize_with = "there")]
    result: Option<Value>,
    #[serde(default, deserialize_with = "there")]
    error: Option<Value>,
}

fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Serialize for RpcMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("jsonrpc", "2.0")?;
        match self {
            Self::Request { id, method, params } => {
                message.serialize_entry("id", id)?;
                message.serialize_entry("method", method)?;
                if !params.is_null() {
                    message.serialize_entry("params", params)?;
                }
            }
            Self::Notification { method, params } => {
                message.serialize_entry("method", method)?;
                if !params.is_null() {
                    message.serialize_entry("params", params)?;
                }
            }
            Self::Answer { id, result } => {
                message.serialize_entry("id", id)?;
                match result {
                    Ok(result) => message.serialize_entry("result", result)?,
                    Err(error) => message.serialize_entry("error", error)?,
                }
            }
        }
        message.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let id = || RpcId::Number(7);
        let messages = [
            RpcMessage::request(
                id(),
                "tools/call",
                json!({"name": "a\nb", "arguments": {"z": 1, "a": 2}}),
            ),
            RpcMessage::request(RpcId::Text("x".to_owned()), "ping", Value::Null),
            RpcMessage::notification("notifications/initialized", Value::Null),
            RpcMessage::answer(id(), Ok(json!({"odd": [1, {"more": null}]}))),
            RpcMessage::answer(id(), Ok(Value::Null)),
            RpcMessage::answer(
                id(),
                Err(RpcError::new(code::INTERNAL, "no").with_data(json!({"why": 1}))),
            ),
        ];
        for message in messages {
            let line = message.to_line();
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let read = RpcMessage::parse_all(&line).unwrap();
            assert_eq!(read, [Ok(message)]);
        }
    }

    #[test]
    fn what_is_no_message_says_why() {
        let cases = [
            (
                "{",
                "no JSON: EOF while parsing an object at line 1 column 1",
            ),
            ("[]", "a batch without messages"),
            (
                r#"{"id": 1, "method": "ping", "method": "tools/call"}"#,
                "a message is invalid: duplicate field `method` at line 1 column 36",
            ),
        ];
        for (text, why) in cases {
            assert_eq!(
                RpcMessage::parse_all(text.as_bytes()).unwrap_err().message,
                why
            );
        }
        let cases = [
            (json!(1), "a message is an object"),
            (
                json!({"id": 1.5, "method": "x"}),
                "an id is an integer or a string",
            ),
            (
                json!({"id": null, "method": "x"}),
                "an id is an integer or a string",
            ),
            (json!({"id": 1, "method": 2}), "a method is a string"),
            (
                json!({"id": 1}),
                "a message has a `method`, a `result` or an `error`",
            ),
        ];
        for (value, why) in cases {
            assert_eq!(RpcMessage::parse(value).unwrap_err().message, why);
        }
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        let refused = RpcMessage::parse_all(many.as_bytes()).unwrap_err();
        assert_eq!(refused.message, "more than 1000000 values in one message");
        // A text of any length is one value.
        let long = format!(
            r#"{{"method": "a", "params": {{"t": "{}\""}}}}"#,
            ",[".repeat(MAX_VALUES)
        );
        assert!(RpcMessage::parse_all(long.as_bytes()).unwrap()[0].is_ok());
        let batch = br#"[{"method": "a"}, 5]"#;
        let read = RpcMessage::parse_all(batch).unwrap();
        assert!(read[0].is_ok() && read[1].is_err());
    }
}
