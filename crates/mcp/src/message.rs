//! JSON-RPC 2.0 messages. Parameters and results are kept as they came.

use std::fmt;

use serde_json::{Map, Value, json};

/// Codes of errors.
pub mod code {
    /// It is no JSON.
    pub const PARSE: i64 = -32700;
    /// It is no message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Its parameters are wrong.
    pub const INVALID_PARAMS: i64 = -32602;
    /// It failed.
    pub const INTERNAL: i64 = -32603;
    /// There is no such resource (before 2026-07-28).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// A URL must be visited first; its `data` says which.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// The headers do not say what the body says (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The one who asks cannot do what it takes (2026-07-28).
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The revision is not spoken here (2026-07-28); its `data` names those that are.
    pub const UNSUPPORTED_REVISION: i64 = -32022;
}

/// The id of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RpcId {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

impl RpcId {
    /// From JSON; `None` for what is neither a whole number nor a text.
    pub fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    /// As JSON.
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

/// What went wrong with a request, as it is sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// Its kind.
    pub code: i64,
    /// In words.
    pub message: String,
    /// For programs.
    pub data: Option<Value>,
}

impl RpcError {
    /// Without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// With data.
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// There is no such method.
    pub fn no_method(method: &str) -> Self {
        let words = format!("the method {method:?} is not known here");
        Self::new(code::METHOD_NOT_FOUND, words)
    }

    /// Its parameters are wrong.
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

    fn to_value(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), json!(self.code));
        error.insert("message".to_owned(), json!(self.message));
        if let Some(data) = &self.data {
            error.insert("data".to_owned(), data.clone());
        }
        Value::Object(error)
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcMessage {
    /// Wants an answer.
    Request {
        /// What the answer is to name.
        id: RpcId,
        /// What is asked for.
        method: String,
        /// With what; `Null` where there are none.
        params: Value,
    },
    /// Wants none.
    Notification {
        /// What happened.
        method: String,
        /// With what; `Null` where there are none.
        params: Value,
    },
    /// The answer to a request.
    Answer {
        /// The request; `None` where it could not be read.
        id: Option<RpcId>,
        /// What came of it.
        result: Result<Value, RpcError>,
    },
}

impl RpcMessage {
    /// A request.
    pub fn request(id: RpcId, method: impl Into<String>, params: Value) -> Self {
        Self::Request {
            id,
            method: method.into(),
            params,
        }
    }

    /// A notification.
    pub fn notification(method: impl Into<String>, params: Value) -> Self {
        Self::Notification {
            method: method.into(),
            params,
        }
    }

    /// An answer.
    pub fn answer(id: RpcId, result: Result<Value, RpcError>) -> Self {
        Self::Answer {
            id: Some(id),
            result,
        }
    }

    /// The messages of a text: one, or the several of a batch. The error is what to answer.
    pub fn parse_all(text: &[u8]) -> Result<Vec<Result<Self, RpcError>>, RpcError> {
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

    /// A message. The error is what to answer.
    pub fn parse(value: Value) -> Result<Self, RpcError> {
        let wrong = |why: &str| Err(RpcError::new(code::INVALID_REQUEST, why));
        let Value::Object(mut message) = value else {
            return wrong("a message is an object");
        };
        let id = match message.get("id") {
            None | Some(Value::Null) => None,
            Some(id) => match RpcId::parse(id) {
                Some(id) => Some(id),
                None => return wrong("an id is a whole number or a text"),
            },
        };
        if let Some(method) = message.remove("method") {
            let Value::String(method) = method else {
                return wrong("a method is a text");
            };
            let params = message.remove("params").unwrap_or_default();
            return Ok(match id {
                Some(id) => Self::request(id, method, params),
                None => Self::notification(method, params),
            });
        }
        let result = match (message.remove("error"), message.remove("result")) {
            (Some(error), _) if !error.is_null() => Err(RpcError::parse(error)),
            (_, Some(result)) => Ok(result),
            _ => return wrong("a message has a `method`, a `result` or an `error`"),
        };
        Ok(Self::Answer { id, result })
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        let mut message = Map::new();
        let mut put = |name: &str, value: Value| message.insert(name.to_owned(), value);
        put("jsonrpc", json!("2.0"));
        match self {
            Self::Request { id, method, params } => {
                put("id", id.to_value());
                put("method", json!(method));
                if !params.is_null() {
                    put("params", params.clone());
                }
            }
            Self::Notification { method, params } => {
                put("method", json!(method));
                if !params.is_null() {
                    put("params", params.clone());
                }
            }
            Self::Answer { id, result } => {
                put("id", id.as_ref().map_or(Value::Null, RpcId::to_value));
                match result {
                    Ok(result) => put("result", result.clone()),
                    Err(error) => put("error", error.to_value()),
                };
            }
        }
        Value::Object(message)
    }

    /// As one line, with its end.
    pub fn to_line(&self) -> Vec<u8> {
        // JSON of values cannot fail, and escapes line ends.
        let mut line = self.to_value().to_string().into_bytes();
        line.push(b'\n');
        line
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
                "an id is a whole number or a text",
            ),
            (json!({"id": 1, "method": 2}), "a method is a text"),
            (
                json!({"id": 1}),
                "a message has a `method`, a `result` or an `error`",
            ),
        ];
        for (value, why) in cases {
            assert_eq!(RpcMessage::parse(value).unwrap_err().message, why);
        }
        let batch = br#"[{"method": "a"}, 5]"#;
        let read = RpcMessage::parse_all(batch).unwrap();
        assert!(read[0].is_ok() && read[1].is_err());
    }
}
