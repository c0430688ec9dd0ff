//! Requests and answers between the two programs, on the same lines as the conversation.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{RequestId, lenient};

/// A request of either side. `R` is what is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "R: From<Value>"))]
pub struct ControlRequest<R> {
    /// What the answer names.
    #[serde(default)]
    pub request_id: RequestId,
    /// What is asked.
    #[serde(default = "absent", deserialize_with = "lenient::any")]
    pub request: R,
}

/// What is asked where nothing is.
fn absent<R: From<Value>>() -> R {
    Value::Null.into()
}

/// The answer to a request. `P` is what a good one holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: From<Value>"))]
pub struct ControlResponse<P> {
    /// The answer.
    #[serde(default)]
    pub response: ControlOutcome<P>,
}

/// How a request was answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum ControlOutcome<P> {
    /// It was served.
    Success {
        /// The request.
        request_id: RequestId,
        /// What it is answered.
        response: P,
    },
    /// It was not.
    Error {
        /// The request.
        request_id: RequestId,
        /// Why, for people.
        error: String,
    },
}

/// A request is withdrawn: nothing waits for its answer any more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlCancel {
    /// Which.
    #[serde(default)]
    pub request_id: RequestId,
}

impl<P> ControlOutcome<P> {
    /// What is said where an answer is neither good nor says what is wrong.
    const NO_REASON: &'static str = "it failed";

    /// The request that is answered.
    pub fn request_id(&self) -> &RequestId {
        match self {
            Self::Success { request_id, .. } | Self::Error { request_id, .. } => request_id,
        }
    }

    /// The answer, or why there is none.
    pub fn into_result(self) -> Result<P, String> {
        match self {
            Self::Success { response, .. } => Ok(response),
            Self::Error { error, .. } => Err(error),
        }
    }

    /// The answer to a request.
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
    /// An answer that says nothing.
    fn default() -> Self {
        Self::Error {
            request_id: RequestId::default(),
            error: Self::NO_REASON.to_owned(),
        }
    }
}

impl<P: From<Value>> From<Map<String, Value>> for ControlOutcome<P> {
    /// Whatever is not a success is a failure.
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
