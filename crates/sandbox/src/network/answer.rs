//! What the proxy itself answers to HTTP, when it does not pass a request on.

use std::io::ErrorKind;

use super::{dial::Failure, line::ReadError};

/// An answer of our own.
pub(super) struct ProxyReply {
    status: u16,
    text: String,
    /// The answer to HEAD ends with its head.
    bodiless: bool,
}

impl ProxyReply {
    pub(super) fn new(status: u16, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            bodiless: false,
        }
    }

    /// As the answer to HEAD.
    pub(super) fn without_body(self) -> Self {
        Self {
            bodiless: true,
            ..self
        }
    }

    /// The request cannot be read, or not in one way only.
    pub(super) fn malformed(error: &ReadError) -> Self {
        let text = format!("The sandbox's proxy cannot take this request: {error}.\n");
        Self::new(400, text)
    }

    /// The same of what the server said.
    pub(super) fn bad_gateway(error: &ReadError) -> Self {
        let text = format!("The sandbox's proxy cannot take the server's answer: {error}.\n");
        Self::new(502, text)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let reason = match self.status {
            400 => "Bad Request",
            403 => "Forbidden",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            504 => "Gateway Timeout",
            _ => "Bad Gateway",
        };
        let body = if self.bodiless { "" } else { &self.text };
        format!(
            "HTTP/1.1 {} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.status,
            self.text.len(),
        )
        .into_bytes()
    }
}

impl From<Failure> for ProxyReply {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(text) => Self::new(403, text),
            Failure::Unreachable(text, ErrorKind::TimedOut) => Self::new(504, text),
            Failure::Unresolved(text) | Failure::Unreachable(text, _) => Self::new(502, text),
        }
    }
}
