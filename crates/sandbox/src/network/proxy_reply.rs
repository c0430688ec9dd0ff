//! HTTP responses that the proxy itself sends instead of forwarding a request.

use std::io::ErrorKind;

use super::{dialer::DialFailure, line::ReadError};

/// A response of the proxy.
pub(super) struct ProxyReply {
    status: u16,
    text: String,
    /// The response to a HEAD request has no body.
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

    /// Returns the response without its body, for a HEAD request.
    pub(super) fn without_body(self) -> Self {
        Self {
            bodiless: true,
            ..self
        }
    }

    /// Returns the response to a request that is malformed or ambiguous.
    pub(super) fn malformed(error: &ReadError) -> Self {
        let text = format!("The sandbox's proxy cannot take this request: {error}.\n");
        Self::new(400, text)
    }

    /// Returns the response for a server response that is malformed or ambiguous.
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

impl From<DialFailure> for ProxyReply {
    fn from(failure: DialFailure) -> Self {
        match failure {
            DialFailure::Refused(text) => Self::new(403, text),
            DialFailure::Unreachable(text, ErrorKind::TimedOut) => Self::new(504, text),
            DialFailure::Unresolved(text) | DialFailure::Unreachable(text, _) => {
                Self::new(502, text)
            }
        }
    }
}
