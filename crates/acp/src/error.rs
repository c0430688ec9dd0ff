//! The errors of requests.

use serde_json::{Value, json};

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AcpError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl AcpError {
    /// The model's provider needs an API key, or the key is invalid.
    pub(crate) const NEEDS_KEY: i64 = -32000;
    const NO_SUCH_SESSION: i64 = -32002;
    const NO_JSON: i64 = -32700;
    const BAD_REQUEST: i64 = -32600;
    const NO_SUCH_METHOD: i64 = -32601;
    const BAD_PARAMS: i64 = -32602;
    const FAILED: i64 = -32603;
    const CANCELLED: i64 = -32800;

    fn new(code: i64, message: impl Into<String>, data: Option<Value>) -> Self {
        Self {
            code,
            message: message.into(),
            data,
        }
    }

    pub(crate) fn no_json(why: impl std::fmt::Display) -> Self {
        Self::new(Self::NO_JSON, format!("not JSON: {why}"), None)
    }

    pub(crate) fn bad_request(why: impl Into<String>) -> Self {
        Self::new(Self::BAD_REQUEST, why, None)
    }

    pub(crate) fn no_such_method(method: &str) -> Self {
        Self::new(
            Self::NO_SUCH_METHOD,
            format!("unknown method {method:?}"),
            None,
        )
    }

    /// Creates the error for an invalid field.
    pub(crate) fn bad(field: &str, why: impl std::fmt::Display) -> Self {
        let data = json!({"field": field});
        Self::new(Self::BAD_PARAMS, format!("{field}: {why}"), Some(data))
    }

    pub(crate) fn no_such_session(id: &str) -> Self {
        let data = json!({"sessionId": id});
        Self::new(
            Self::NO_SUCH_SESSION,
            format!("Session not found: {id}"),
            Some(data),
        )
    }

    pub(crate) fn needs_key(details: &str) -> Self {
        let data = json!({"details": details});
        Self::new(Self::NEEDS_KEY, "Authentication required", Some(data))
    }

    /// Creates the error for a failure of the model or the engine. Editors show the details.
    pub(crate) fn failed(details: &str) -> Self {
        let data = json!({"details": details});
        Self::new(Self::FAILED, "Internal error", Some(data))
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(Self::CANCELLED, "the request was cancelled", None)
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}
