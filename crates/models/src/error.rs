//! Errors of a model request, worded for the user who can fix them.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// The reason why a request failed or its reply is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The provider's message, or ours.
    pub message: String,
    /// The HTTP status, if a response arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's id of the request, for a report to its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The wait that the provider asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The provider's own statement on whether a retry makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// The context window of the model in tokens, if the error message names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// Kinds of failure, grouped by what the user or the program can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing or wrong.
    Auth,
    /// The key is valid but lacks the permission for this request.
    Permission,
    /// The account has no credit.
    Billing,
    /// The model or the address does not exist.
    NotFound,
    /// The provider rejects the request as invalid.
    BadRequest,
    /// The conversation is longer than the model's context window.
    ContextTooLong,
    /// The request has too many bytes.
    TooLarge,
    /// Too many requests.
    RateLimited,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Server,
    /// The connection failed or was lost.
    Connection,
    /// The host rejected the connection: no server listens on the port.
    Refused,
    /// The response does not follow the provider's protocol.
    Protocol,
    /// The caller cancelled the request.
    Cancelled,
    /// A failure on this machine: a script, a recording or a setting.
    Local,
}

impl ModelError {
    /// Creates an error without details.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            request_id: None,
            retry_after: None,
            should_retry: None,
            context_window: None,
        }
    }

    /// Returns the error of a cancelled request.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "cancelled")
    }

    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Connection, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn local(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Local, message)
    }

    /// Returns whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        use ErrorKind::*;
        match self.kind {
            // The provider's header does not matter here: retrying cannot help.
            Cancelled | Local => false,
            kind => self.should_retry.unwrap_or(matches!(
                kind,
                RateLimited | Overloaded | Server | Connection | Refused
            )),
        }
    }

    /// Returns the name of the failure in stream-json messages.
    pub fn code(&self) -> &'static str {
        use ErrorKind::*;
        match self.kind {
            Auth | Permission => "authentication_failed",
            Billing => "billing_error",
            NotFound => "model_not_found",
            BadRequest | ContextTooLong | TooLarge => "invalid_request",
            RateLimited => "rate_limit",
            Overloaded => "overloaded",
            Server | Connection | Refused => "server_error",
            Protocol | Cancelled | Local => "unknown",
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ErrorKind::*;
        let what = match self.kind {
            // No request was sent, and the message says what to do.
            Auth if self.status.is_none() => return f.write_str(&self.message),
            Auth => "the provider refused the key",
            Permission => "the key may not do this",
            Billing => "the account cannot pay for this",
            NotFound => "unknown model or address",
            BadRequest => "the provider refused the request",
            ContextTooLong => "the conversation is too long for this model",
            TooLarge => "the request is too large",
            RateLimited => "too many requests",
            Overloaded => "the provider is overloaded",
            Server => "the provider failed",
            Connection | Refused => "the connection failed",
            Protocol => "the answer cannot be used",
            Cancelled | Local => return f.write_str(&self.message),
        };
        f.write_str(what)?;
        if let Some(status) = self.status {
            write!(f, " ({status})")?;
        }
        write!(f, ": {}", self.message.trim_end_matches('.'))?;
        if let Some(wait) = self.retry_after {
            write!(f, "; it asks to wait {} s", wait.as_secs_f64().ceil())?;
        }
        let next = match self.kind {
            Auth => "; check the API key",
            Billing => "; check the account's credit",
            // If the server sent a web page instead of an API response, the message already says
            // so.
            NotFound if self.message.contains("base URL") => "",
            NotFound if self.message.contains("model") => {
                "; `haft models` lists the available models"
            }
            NotFound => "; check the model's name and the base URL",
            ContextTooLong => "; compact it or start a new one",
            Refused => "; check the base URL, and that a server runs there",
            TooLarge => "; send fewer or smaller images and documents",
            _ => "",
        };
        f.write_str(next)?;
        if let Some(id) = &self.request_id {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

impl std::error::Error for ModelError {}
