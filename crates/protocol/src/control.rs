//! Requests and responses between session and client, on the same streams as the conversation.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{RequestId, lenient};

/// A request of either side with the content `R`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "R: From<Value>"))]
pub struct ControlRequest<R> {
    /// The id that the response repeats.
    #[serde(default)]
    pub request_id: RequestId,
    /// The content.
    #[serde(default = "absent", deserialize_with = "lenient::any")]
    pub request: R,
}

/// Returns the content of a request that has none.
fn absent<R: From<Value>>() -> R {
    Value::Null.into()
}

/// The response to a request, with the payload `P`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: From<Value>"))]
pub struct ControlResponse<P> {
    /// The outcome.
    #[serde(default)]
    pub response: ControlOutcome<P>,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum ControlOutcome<P> {
    /// The request succeeded.
    Success {
        /// The id of the request.
        request_id: RequestId,
        /// The payload.
        response: P,
    },
    /// The request failed.
    Error {
        /// The id of the request.
        request_id: RequestId,
        /// A human-readable reason.
        error: String,
    },
}

/// The sender withdraws a request and no longer waits for its response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlCancel {
    /// The id of the request.
    #[serde(default)]
    pub request_id: RequestId,
}

impl<P> ControlOutcome<P> {
    /// The reason of a response that is neither a success nor contains an error message.
    const NO_REASON: &'static str = "it failed";

    /// Returns the id of the request.
    pub fn request_id(&self) -> &RequestId {
        match self {
            Self::Success { request_id, .. } | Self::Error { request_id, .. } => request_id,
        }
    }

    /// Returns the payload or the reason of the failure.
    pub fn into_result(self) -> Result<P, String> {
        match self {
            Self::Success { response, .. } => Ok(response),
            Self::Error { error, .. } => Err(error),
        }
    }

    /// Creates the response to a request.
    pub fn new(request_id: RequestId, served: Result<P, String>) -> Self {
        match served {
            Ok(response) => Self::Success {
                request_id,
                response,
            },
            Err(error) => Self::Error { request_id, error },
        }
    }
}

impl<P> Default for ControlOutcome<P> {
    /// Returns a failure without details.
    fn default() -> Self {
        Self::Error {
            request_id: RequestId::default(),
            error: Self::NO_REASON.to_owned(),
        }
    }
}

impl<P: From<Value>> From<Map<String, Value>> for ControlOutcome<P> {
    /// Reads a response. Any subtype other than `success` is a failure.
    fn from(mut fields: Map<String, Value>) -> Self {
        let mut take = |name: &str| fields.get_mut(name).map(Value::take).unwrap_or_default();
        let request_id = RequestId::from(take("request_id"));
        if take("subtype") == "success" {
            return Self::Success {
                request_id,
                response: take("response").into(),
            };
        }
        let error = match take("error") {
            Value::String(error) => error,
            _ => Self::NO_REASON.to_owned(),
        };
        Self::Error { request_id, error }
    }
}

impl<'de, P: From<Value>> Deserialize<'de> for ControlOutcome<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields: Map<String, Value> = lenient::or_default(deserializer)?;
        Ok(fields.into())
    }
}
