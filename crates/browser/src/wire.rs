//! The pipe: JSON messages ended by NUL, each way. A message over the bound is skipped, not kept; the
//! call it would have answered fails, and what comes after it is read as always.

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
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
};

use crate::error::{ChromiumError, Result};

/// A picture of a whole page as base64 fits; a page that logs a text of a gigabyte does not.
const MOST_MESSAGE: usize = 48 << 20;
/// How much of a message that is too long is looked at for the call it answers.
const HEAD: usize = 64;

/// Calls and their answers.
pub(crate) struct Wire {
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    out: mpsc::Sender<Vec<u8>>,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, oneshot::Sender<Result<Vec<u8>>>>,
    ended: bool,
}

/// What a message is, without what it carries.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    id: Option<u64>,
    method: Option<String>,
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct Answer<T> {
    result: Option<T>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    params: Value,
}

/// Something that happened, of one session or of the whole browser.
pub(crate) struct Happening {
    pub(crate) session: Option<String>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl Wire {
    /// Starts to write what calls send. It ends, and with it the pipe, when the wire is dropped.
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

    /// Sends a command and reads its answer as `T`. Dropped, it waits no more.
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
        let _forget = Forget { wire: self, id };
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        if self.out.send(bytes).await.is_err() {
            return Err(ChromiumError::Ended);
        }
        let bytes = answer.await.map_err(|_| ChromiumError::Ended)??;
        let refused = |message: String| ChromiumError::Protocol {
            method: method.to_owned(),
            message,
        };
        let answer: Answer<T> = serde_json::from_slice(&bytes)
            .map_err(|error| refused(format!("an answer that cannot be read: {error}")))?;
        match (answer.result, answer.error) {
            (_, Some(failure)) => Err(refused(failure.message)),
            (Some(result), None) => Ok(result),
            (None, None) => Err(refused("an answer without a result".to_owned())),
        }
    }

    /// Sends a command and does not wait for its answer. Commands are taken in the order in which they are sent.
    pub(crate) async fn post(&self, session: &str, method: &str, params: Value) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let message = json!({"id": id, "method": method, "params": params, "sessionId": session});
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        // Where it cannot be sent any more, the next call says so.
        drop(self.out.send(bytes).await);
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes one message: an answer goes to its call, an event is returned.
    pub(crate) fn take(&self, message: Incoming) -> Option<Happening> {
        match message {
            Incoming::Whole(bytes) => {
                let head: Head = serde_json::from_slice(&bytes).ok()?;
                if let Some(id) = head.id {
                    self.answer(id, Ok(bytes));
                    return None;
                }
                let event: Event = serde_json::from_slice(&bytes).ok()?;
                Some(Happening {
                    session: head.session_id,
                    method: head.method?,
                    params: event.params,
                })
            }
            Incoming::TooLong(start) => {
                if let Some(id) = id_of(&start) {
                    let too_long = ChromiumError::TooLong {
                        megabytes: MOST_MESSAGE >> 20,
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

    /// Every call that waits fails, as does every later one.
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

/// A call that waits no more is forgotten.
struct Forget<'a> {
    wire: &'a Wire,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.wire.waiting().calls.remove(&self.id);
    }
}

/// `{"id":12,…`: Chromium writes the number first.
fn id_of(start: &[u8]) -> Option<u64> {
    let rest = start.strip_prefix(b"{\"id\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// One message as it came.
pub(crate) enum Incoming {
    Whole(Vec<u8>),
    /// Only its beginning.
    TooLong(Vec<u8>),
}

/// Splits what comes at NULs.
pub(crate) struct Messages<R> {
    reader: R,
    chunk: Vec<u8>,
    at: usize,
    filled: usize,
    most: usize,
}

impl<R: AsyncRead + Unpin> Messages<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self::bounded(reader, MOST_MESSAGE)
    }

    fn bounded(reader: R, most: usize) -> Self {
        Self {
            reader,
            chunk: vec![0; 64 << 10],
            at: 0,
            filled: 0,
            most,
        }
    }

    /// The next message; none when the other end is closed.
    pub(crate) async fn next(&mut self) -> Option<Incoming> {
        let mut message = Vec::new();
        let mut skipping = false;
        loop {
            if self.at == self.filled {
                self.filled = self.reader.read(&mut self.chunk).await.ok()?;
                self.at = 0;
                if self.filled == 0 {
                    return None;
                }
            }
            let fresh = &self.chunk[self.at..self.filled];
            let end = fresh.iter().position(|&byte| byte == 0);
            let part = &fresh[..end.unwrap_or(fresh.len())];
            if !skipping {
                message.extend_from_slice(part);
                if message.len() > self.most {
                    skipping = true;
                    message.truncate(HEAD);
                    message.shrink_to_fit();
                }
            }
            self.at += part.len() + usize::from(end.is_some());
            if end.is_some() {
                return Some(if skipping {
                    Incoming::TooLong(message)
                } else {
                    Incoming::Whole(message)
                });
            }
        }
    }
}

/// Waits for the answer no longer than `limit`.
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

/// An answer of which nothing is wanted.
pub(crate) type Nothing = IgnoredAny;

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], most: usize) -> Vec<String> {
        let mut messages = Messages::bounded(bytes, most);
        let mut found = Vec::new();
        while let Some(message) = messages.next().await {
            found.push(match message {
                Incoming::Whole(bytes) => String::from_utf8(bytes).unwrap(),
                Incoming::TooLong(start) => format!("long {:?}", id_of(&start)),
            });
        }
        found
    }

    #[tokio::test]
    async fn messages_end_at_nul_and_long_ones_are_skipped() {
        assert_eq!(all(b"{}\0{\"a\":1}\0half", 100).await, ["{}", "{\"a\":1}"]);
        let long = format!(
            "{{\"id\":17,\"result\":\"{}\"}}\0{{}}\0",
            "x".repeat(200_000)
        );
        assert_eq!(all(long.as_bytes(), 100).await, ["long Some(17)", "{}"]);
    }

    #[tokio::test]
    async fn an_answer_goes_to_its_call_and_the_end_to_all() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let wire = Wire::new(ours);
        let call = wire.call::<Value>(Some("s"), "A.b", json!({"x": 1}));
        let other = async {
            let mut sent = [0; 200];
            let many = theirs.read(&mut sent).await.unwrap();
            assert_eq!(
                std::str::from_utf8(&sent[..many]).unwrap(),
                "{\"id\":1,\"method\":\"A.b\",\"params\":{\"x\":1},\"sessionId\":\"s\"}\0"
            );
            let answer = b"{\"id\":1,\"result\":{\"y\":2}}".to_vec();
            assert!(wire.take(Incoming::Whole(answer)).is_none());
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
