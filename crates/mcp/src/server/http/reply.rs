//! HTTP responses.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Response, StatusCode,
    body::Frame,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use tokio::sync::mpsc;

use super::{ServerResponse, full_body};
use crate::{RpcError, RpcMessage, message::code, server::stdio::unreadable};

/// The interval of keep-alive comments on an idle stream, which reveal that the client has
/// disconnected.
pub(super) const ALIVE: Duration = Duration::from_secs(15);

pub(super) fn plain(status: StatusCode, text: &'static str) -> ServerResponse {
    typed(status, "text/plain; charset=utf-8", text)
}

pub(super) fn not_allowed(allowed: &'static str) -> ServerResponse {
    let words = "this path does not support this method";
    let mut reply = plain(StatusCode::METHOD_NOT_ALLOWED, words);
    let allowed = HeaderValue::from_static(allowed);
    reply.headers_mut().insert(ALLOW, allowed);
    reply
}

/// Returns the response to messages without a request.
pub(super) fn accepted() -> ServerResponse {
    let mut reply = Response::new(full_body(""));
    *reply.status_mut() = StatusCode::ACCEPTED;
    reply
}

/// Returns an error that belongs to no request.
pub(super) fn error(status: StatusCode, words: &str) -> ServerResponse {
    message(
        status,
        &unreadable(RpcError::new(code::INVALID_REQUEST, words)),
    )
}

/// Returns one message.
pub(super) fn message(status: StatusCode, message: &RpcMessage) -> ServerResponse {
    json(status, message.to_json())
}

/// Returns one message that is already serialized.
pub(super) fn json(status: StatusCode, message: impl Into<Bytes>) -> ServerResponse {
    typed(status, "application/json", message)
}

/// Returns a stream of this message and all that follow. `held` is dropped with the stream.
pub(super) fn events<T: Send + 'static>(
    first: Option<RpcMessage>,
    messages: mpsc::Receiver<RpcMessage>,
    held: T,
) -> ServerResponse {
    event_stream(stream::unfold(
        (first, messages, held),
        |(mut first, mut messages, held)| async move {
            let text = match first.take() {
                Some(message) => event(&message),
                None => match tokio::time::timeout(ALIVE, messages.recv()).await {
                    Ok(Some(message)) => event(&message),
                    Ok(None) => return None,
                    Err(_) => Bytes::from_static(b": still here\n\n"),
                },
            };
            Some((
                Ok::<_, Infallible>(Frame::data(text)),
                (None, messages, held),
            ))
        },
    ))
}

/// Returns a stream of events.
pub(super) fn event_stream(
    events: impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static,
) -> ServerResponse {
    let mut reply = Response::new(StreamBody::new(Box::pin(events)).boxed_unsync());
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    reply
}

fn event(message: &RpcMessage) -> Bytes {
    let mut text = b"event: message\ndata: ".to_vec();
    message.write_line(&mut text);
    text.push(b'\n');
    Bytes::from(text)
}

fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> ServerResponse {
    let mut reply = Response::new(full_body(body));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
