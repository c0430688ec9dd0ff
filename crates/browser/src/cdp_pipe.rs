//! The pipe: messages in both directions, encoded by `cbor`. A message over the size limit is
//! skipped, not stored. The call that it would have answered fails, and the following messages are
//! read as usual.

use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot},
};

use crate::{
    cbor,
    error::{ChromiumError, Result},
};

/// The maximum size of a message in bytes. A screenshot of a whole page fits; a page that logs a
/// string of a gigabyte does not.
const MAX_MESSAGE_BYTES: usize = 48 << 20;
/// The number of bytes of an oversized message that are inspected for the id of the call it
/// answers.
const HEAD: usize = 64;

/// Sends calls and assigns answers to them.
pub(crate) struct CdpConnection {
    next: AtomicU64,
    waiting: Mutex<PendingCalls>,
    out: mpsc::Sender<Vec<u8>>,
}

#[derive(Default)]
struct PendingCalls {
    calls: HashMap<u64, oneshot::Sender<Result<Vec<u8>>>>,
    ended: bool,
}

/// The header fields of a message, without its content.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CdpHeader {
    id: Option<u64>,
    method: Option<String>,
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct CdpResponse<T> {
    result: Option<T>,
    error: Option<CdpError>,
}

#[derive(Deserialize)]
struct CdpError {
    message: String,
}

#[derive(Deserialize)]
struct CdpEventBody {
    #[serde(default)]
    params: Value,
}

/// An event of a session or of the whole browser.
pub(crate) struct CdpEvent {
    pub(crate) session: Option<String>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl CdpConnection {
    /// Creates a connection and starts the task that writes its calls. When the connection is
    /// dropped, the task ends and the pipe closes.
    pub(crate) fn new(mut writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (out, mut messages) = mpsc::channel::<Vec<u8>>(64);
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                if writer.write_all(&message).await.is_err() || writer.flush().await.is_err() {
                    return;
                }
            }
        });
        Self {
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            out,
        }
    }

    /// Sends a command and decodes its answer as `T`. Dropping the future stops the wait.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<T> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let (done, answer) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if waiting.ended {
                return Err(ChromiumError::Ended);
            }
            waiting.calls.insert(id, done);
        }
        let _forget = CdpCallGuard { wire: self, id };
        if self.out.send(cbor::write(&message)).await.is_err() {
            return Err(ChromiumError::Ended);
        }
        let bytes = answer.await.map_err(|_| ChromiumError::Ended)??;
        let refused = |message: String| ChromiumError::Protocol {
            method: method.to_owned(),
            message,
        };
        let answer: CdpResponse<T> = cbor::read(&bytes)
            .map_err(|error| refused(format!("the answer cannot be parsed: {error}")))?;
        match (answer.result, answer.error) {
            (_, Some(failure)) => Err(refused(failure.message)),
            (Some(result), None) => Ok(result),
            (None, None) => Err(refused("the answer has no result".to_owned())),
        }
    }

    /// Sends a command without waiting for its answer. Commands are processed in the order in which
    /// they are sent.
    pub(crate) async fn post(&self, session: &str, method: &str, params: Value) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let message = json!({"id": id, "method": method, "params": params, "sessionId": session});
        // If the pipe is closed, the next call reports it.
        drop(self.out.send(cbor::write(&message)).await);
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, PendingCalls> {
        self.waiting
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Processes one message: an answer is passed to its call, an event is returned.
    pub(crate) fn take(&self, message: CdpMessage) -> Option<CdpEvent> {
        match message {
            CdpMessage::Whole(bytes) => {
                let head: CdpHeader = cbor::read(&bytes).ok()?;
                if let Some(id) = head.id {
                    self.answer(id, Ok(bytes));
                    return None;
                }
                let event: CdpEventBody = cbor::read(&bytes).ok()?;
                Some(CdpEvent {
                    session: head.session_id,
                    method: head.method?,
                    params: event.params,
                })
            }
            CdpMessage::TooLong(start) => {
                if let Some(id) = cbor::id_of(&start) {
                    let too_long = ChromiumError::TooLong {
                        megabytes: MAX_MESSAGE_BYTES >> 20,
                    };
                    self.answer(id, Err(too_long));
                }
                None
            }
        }
    }

    fn answer(&self, id: u64, bytes: Result<Vec<u8>>) {
        if let Some(call) = self.waiting().calls.remove(&id) {
            drop(call.send(bytes));
        }
    }

    /// Fails every pending call and every later one.
    pub(crate) fn end(&self) {
        let calls = {
            let mut waiting = self.waiting();
            waiting.ended = true;
            std::mem::take(&mut waiting.calls)
        };
        for call in calls.into_values() {
            drop(call.send(Err(ChromiumError::Ended)));
        }
    }

    pub(crate) fn ended(&self) -> bool {
        self.waiting().ended
    }
}

/// Removes a call from the pending ones when its future is dropped.
struct CdpCallGuard<'a> {
    wire: &'a CdpConnection,
    id: u64,
}

impl Drop for CdpCallGuard<'_> {
    fn drop(&mut self) {
        self.wire.waiting().calls.remove(&self.id);
    }
}

/// A received message.
pub(crate) enum CdpMessage {
    Whole(Vec<u8>),
    /// Only the beginning of the message.
    TooLong(Vec<u8>),
}

/// Splits the input into messages.
pub(crate) struct CdpMessageReader<R> {
    reader: BufReader<R>,
    most: usize,
}

impl<R: AsyncRead + Unpin> CdpMessageReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self::bounded(reader, MAX_MESSAGE_BYTES)
    }

    fn bounded(reader: R, most: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            most,
        }
    }

    /// Returns the next message, or `None` if the other end is closed or the input is invalid.
    pub(crate) async fn next(&mut self) -> Option<CdpMessage> {
        let mut head = [0; cbor::ENVELOPE_HEAD];
        self.reader.read_exact(&mut head).await.ok()?;
        let length = cbor::message_length(head)?;
        let kept = if length > self.most { HEAD } else { length };
        let mut message = vec![0; kept.min(length)];
        let (start, rest) = message.split_at_mut(head.len());
        start.copy_from_slice(&head);
        self.reader.read_exact(rest).await.ok()?;
        if length <= self.most {
            return Some(CdpMessage::Whole(message));
        }
        let skipped = (length - message.len()) as u64;
        let mut skipped = (&mut self.reader).take(skipped);
        tokio::io::copy(&mut skipped, &mut tokio::io::sink())
            .await
            .ok()?;
        Some(CdpMessage::TooLong(message))
    }
}

/// Awaits an answer for at most `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    what: &str,
    answer: impl Future<Output = Result<T>>,
) -> Result<T> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(ChromiumError::Timeout {
            what: what.to_owned(),
            after: limit,
        }),
    }
}

/// An answer whose content is ignored.
pub(crate) type IgnoredResult = IgnoredAny;

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], most: usize) -> Vec<String> {
        let mut messages = CdpMessageReader::bounded(bytes, most);
        let mut found = Vec::new();
        while let Some(message) = messages.next().await {
            found.push(match message {
                CdpMessage::Whole(bytes) => cbor::read::<Value>(&bytes).unwrap().to_string(),
                CdpMessage::TooLong(start) => format!("long {:?}", cbor::id_of(&start)),
            });
        }
        found
    }

    #[tokio::test]
    async fn messages_have_a_length_and_long_ones_are_skipped() {
        let message = |value: Value| cbor::write(&value);
        let mut bytes = [message(json!({})), message(json!({"a": 1}))].concat();
        bytes.extend_from_slice(&message(json!({"half": 1}))[..9]);
        assert_eq!(all(&bytes, 100).await, ["{}", "{\"a\":1}"]);
        let long = json!({"id": 170_000, "result": "x".repeat(200_000)});
        let bytes = [message(long), message(json!({}))].concat();
        assert_eq!(all(&bytes, 100).await, ["long Some(170000)", "{}"]);
        assert_eq!(all(b"Something else\0", 100).await, [""; 0]);
    }

    #[tokio::test]
    async fn an_answer_goes_to_its_call_and_the_end_to_all() {
        let (ours, theirs) = tokio::io::duplex(4096);
        let mut theirs = CdpMessageReader::new(theirs);
        let wire = CdpConnection::new(ours);
        let call = wire.call::<Value>(Some("s"), "A.b", json!({"x": 1}));
        let other = async {
            let Some(CdpMessage::Whole(sent)) = theirs.next().await else {
                panic!("nothing was sent");
            };
            assert_eq!(
                cbor::read::<Value>(&sent),
                Ok(json!({"id": 1, "method": "A.b", "params": {"x": 1}, "sessionId": "s"}))
            );
            let answer = cbor::write(&json!({"id": 1, "result": {"y": 2}}));
            assert!(wire.take(CdpMessage::Whole(answer)).is_none());
        };
        let (answer, ()) = tokio::join!(call, other);
        assert_eq!(answer, Ok(json!({"y": 2})));
        let late = wire.call::<Value>(None, "A.c", json!({}));
        let end = async { wire.end() };
        let (late, ()) = tokio::join!(late, end);
        assert_eq!(late, Err(ChromiumError::Ended));
        assert!(wire.ended());
    }
}
