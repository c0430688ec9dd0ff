//! What goes wrong between us and a model, said for the person who can do something about it.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// Why there is no (whole) reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelError {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// The provider's words, or ours.
    pub message: String,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's name for the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How long the provider asks us to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The provider's own word on whether trying again makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    /// How many tokens the model can read, where the refusal says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// Sorts of failure, by what can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing or wrong.
    Auth,
    /// The key is right, but not for this.
    Permission,
    /// No one pays.
    Billing,
    /// No such model, or no such address.
    NotFound,
    /// The provider does not accept the request.
    BadRequest,
    /// The conversation is longer than the model can read.
    ContextTooLong,
    /// The request has too many bytes.
    TooLarge,
    /// Too many requests.
    RateLimited,
    /// The provider has too much to do.
    Overloaded,
    /// The provider failed.
    Server,
    /// No connection, or it was lost.
    Connection,
    /// The machine is there, and no one listens.
    Refused,
    /// The answer is not one this provider gives.
    Protocol,
    /// We were asked to stop.
    Cancelled,
    /// Something on this machine: a script, a recording, a setting.
    Local,
}

impl ModelError {
    /// An error of this kind.
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

    /// We were asked to stop.
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

    /// May the same request succeed later?
    pub fn is_retryable(&self) -> bool {
        use ErrorKind::*;
        match self.kind {
            // Whatever a header says: no one asks again for what was cancelled or is broken here.
            Cancelled | Local => false,
            kind => self.should_retry.unwrap_or(matches!(
                kind,
                RateLimited | Overloaded | Server | Connection | Refused
            )),
        }
    }

    /// The failure's name in stream-json messages.
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
            // No request was sent, and the message says what to do.
            Auth if self.status.is_none() => return f.write_str(&self.message),
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
            // A page instead of an answer says so itself.
            NotFound if self.message.contains("base URL") => "",
            NotFound => "; `haft models` lists the available models",
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
