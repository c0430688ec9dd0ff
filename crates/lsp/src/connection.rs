//! A JSON-RPC connection: requests and their answers, and the server's own requests and
//! notifications.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout},
};

use crate::wire;

/// The maximum number of messages, and of bytes, that may wait to be written. If more are waiting,
/// the server no longer reads and is treated as ended.
const MAX_UNSENT: usize = 4096;
const MAX_UNSENT_BYTES: usize = 64 << 20;

/// The maximum number of unsolicited messages, and of their bytes, within `UNASKED_WITHIN`. A
/// server that sends more is flooding: its messages are useless, and reading them would keep a
/// processor busy.
const MAX_UNREQUESTED: usize = 50_000;
const MAX_UNREQUESTED_BYTES: usize = 128 << 20;
const UNASKED_WITHIN: Duration = Duration::from_secs(60);

/// The reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LspError {
    /// The server ended, or violated the protocol.
    #[error("the server ended")]
    Ended,
    /// The server did not answer in time.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The server answered with an error.
    #[error("{message}")]
    Refused {
        /// The error code.
        code: i64,
        /// The error message.
        message: String,
    },
}

/// Receives the server's notifications and requests. The methods are called in order and must not
/// block.
pub trait LspEvents: Send + Sync {
    /// Handles a notification of the server.
    fn on_notification(&self, method: &str, params: &Value);

    /// Handles a request of the server. Returns the answer, or `None` for an unknown method.
    fn on_request(&self, method: &str, params: &Value) -> Option<Value>;
}

/// A connection to a server. Cheap to clone; it ends with its last clone, or with the server.
#[derive(Clone)]
pub struct LspConnection(Arc<LspConnectionState>);

struct LspConnectionState {
    unsent: mpsc::Sender<Vec<u8>>,
    unsent_bytes: Arc<AtomicUsize>,
    pending_requests: Arc<LspPendingRequests>,
    next: AtomicI64,
    closed: watch::Sender<bool>,
    close_reason: Arc<OnceLock<String>>,
}

#[derive(Default)]
struct LspPendingRequests {
    answers: Mutex<HashMap<i64, oneshot::Sender<Result<Value, LspError>>>>,
    ended: AtomicBool,
}

impl LspPendingRequests {
    fn answers(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value, LspError>>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails every pending request and every later one.
    fn end(&self) {
        let mut answers = self.answers();
        self.ended.store(true, Ordering::SeqCst);
        answers.clear();
    }
}

impl LspConnection {
    /// Starts a connection over these streams.
    pub fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        events: Arc<dyn LspEvents>,
    ) -> Self {
        let (unsent, queue) = mpsc::channel(MAX_UNSENT);
        let unsent_bytes = Arc::<AtomicUsize>::default();
        let waiting = Arc::<LspPendingRequests>::default();
        let closed = watch::Sender::new(false);
        tokio::spawn(write(output, queue, Arc::clone(&unsent_bytes)));
        let close = closed.clone();
        let why_closed = Arc::<OnceLock<String>>::default();
        let why = Arc::clone(&why_closed);
        let answers = unsent.downgrade();
        let reader = Arc::clone(&waiting);
        tokio::spawn(async move {
            if let Err(error) = read(input, &reader, &answers, &*events).await {
                tracing::debug!(%error, "the output of a language server can no longer be read");
                why.get_or_init(|| error.to_string());
            }
            // Closed first, so that no caller whose request fails still considers the server
            // running.
            close.send_replace(true);
            reader.end();
        });
        Self(Arc::new(LspConnectionState {
            unsent,
            unsent_bytes,
            pending_requests: waiting,
            next: AtomicI64::new(1),
            closed,
            close_reason: why_closed,
        }))
    }

    /// Sends a request and waits for its answer. If the caller stops waiting, the request is
    /// cancelled on the server.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        within: Duration,
    ) -> Result<Value, LspError> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut answers = self.0.pending_requests.answers();
            if self.0.pending_requests.ended.load(Ordering::SeqCst) {
                return Err(LspError::Ended);
            }
            answers.insert(id, answer);
        }
        let mut given_up = CancelGuard {
            connection: self,
            id,
            is_answered: false,
        };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request)?;
        let answer = timeout(within, answered).await;
        given_up.is_answered = answer.is_ok();
        match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(LspError::Ended),
            Err(_) => Err(LspError::TimedOut(within)),
        }
    }

    /// Sends a notification to the server.
    pub fn notify(&self, method: &str, params: Value) -> Result<(), LspError> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Returns whether the server has ended.
    pub fn is_closed(&self) -> bool {
        *self.0.closed.borrow()
    }

    /// Returns the protocol error for which the connection was closed, if any.
    pub fn close_reason(&self) -> Option<String> {
        self.0.close_reason.get().cloned()
    }

    /// Waits until the server has ended.
    pub async fn closed(&self) {
        let mut closed = self.0.closed.subscribe();
        let _ = closed.wait_for(|closed| *closed).await; // or the sender was dropped
    }

    fn send(&self, message: &Value) -> Result<(), LspError> {
        let frame = wire::frame(message);
        let length = frame.len();
        let before = self.0.unsent_bytes.fetch_add(length, Ordering::Relaxed);
        let is_stuck = before > 0 && before + length > MAX_UNSENT_BYTES;
        if is_stuck || self.0.unsent.try_send(frame).is_err() {
            // The server no longer reads: treat it as ended, because messages for it must not fill
            // the memory.
            self.0.closed.send_replace(true);
            self.0.pending_requests.end();
            return Err(LspError::Ended);
        }
        Ok(())
    }
}

/// Cancels a request on the server when the caller stops waiting for its answer.
struct CancelGuard<'a> {
    connection: &'a LspConnection,
    id: i64,
    is_answered: bool,
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        let waited = self
            .connection
            .0
            .pending_requests
            .answers()
            .remove(&self.id);
        if !self.is_answered && waited.is_some() {
            let _ = self
                .connection
                .notify("$/cancelRequest", json!({"id": self.id}));
        }
    }
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    unsent_bytes: Arc<AtomicUsize>,
) {
    while let Some(frame) = queue.recv().await {
        let length = frame.len();
        let written = async {
            output.write_all(&frame).await?;
            output.flush().await
        };
        if written.await.is_err() {
            return; // the reader notices the end
        }
        // Answers to the server's requests were not counted when they were sent, so the count must
        // not go below zero.
        let _ = unsent_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |unsent| {
            Some(unsent.saturating_sub(length))
        });
    }
}

/// The recent unsolicited messages.
struct NotificationFlood {
    since: Instant,
    messages: usize,
    bytes: usize,
}

impl Default for NotificationFlood {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            messages: 0,
            bytes: 0,
        }
    }
}

impl NotificationFlood {
    /// Counts a message. Returns whether the limit is exceeded.
    fn is_flood(&mut self, length: usize) -> bool {
        if self.since.elapsed() > UNASKED_WITHIN {
            *self = Self::default();
        }
        self.messages += 1;
        self.bytes += length;
        self.messages > MAX_UNREQUESTED || self.bytes > MAX_UNREQUESTED_BYTES
    }
}

async fn read(
    input: impl AsyncRead + Unpin,
    waiting: &LspPendingRequests,
    answers: &mpsc::WeakSender<Vec<u8>>,
    events: &dyn LspEvents,
) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut unasked = NotificationFlood::default();
    while let Some((message, length)) = wire::read_sized(&mut input).await? {
        let method = message.get("method").and_then(Value::as_str);
        let id = message.get("id").filter(|id| !id.is_null());
        let params = message.get("params").unwrap_or(&Value::Null);
        if method.is_some() && unasked.is_flood(length) {
            return Err(io::Error::other(
                "it floods: it sends more messages than the limit allows",
            ));
        }
        match (method, id) {
            (Some(method), None) => events.on_notification(method, params),
            (Some(method), Some(id)) => {
                let answer = match events.on_request(method, params) {
                    Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    None => {
                        let error = json!({"code": -32601, "message": "not supported"});
                        json!({"jsonrpc": "2.0", "id": id, "error": error})
                    }
                };
                let Some(answers) = answers.upgrade() else {
                    return Ok(());
                };
                if answers.try_send(wire::frame(&answer)).is_err() {
                    return Err(io::Error::other("it does not read its input"));
                }
            }
            (None, Some(id)) => {
                let waiter = id.as_i64().and_then(|id| waiting.answers().remove(&id));
                if let Some(waiter) = waiter {
                    let _ = waiter.send(answer(&message)); // the caller may have stopped waiting
                }
            }
            (None, None) => {}
        }
    }
    Ok(())
}

fn answer(message: &Value) -> Result<Value, LspError> {
    match message.get("error").filter(|error| !error.is_null()) {
        Some(error) => Err(LspError::Refused {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
            message: error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("the server refused the request")
                .to_owned(),
        }),
        None => Ok(message.get("result").cloned().unwrap_or(Value::Null)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    struct Deaf;

    impl LspEvents for Deaf {
        fn on_notification(&self, _: &str, _: &Value) {}

        fn on_request(&self, _: &str, _: &Value) -> Option<Value> {
            None
        }
    }

    #[tokio::test]
    async fn a_server_that_reads_nothing_is_given_up_before_the_memory_is_full() {
        let (ours, theirs) = duplex(1024);
        let (input, output) = tokio::io::split(ours);
        let connection = LspConnection::new(input, output, Arc::new(Deaf));
        let long = "x".repeat(8 << 20);
        let mut sent = 0;
        while connection.notify("n", json!({"text": long})).is_ok() {
            sent += 1;
            assert!(sent <= MAX_UNSENT_BYTES >> 23, "{sent}");
        }
        assert!(sent > 4, "{sent}");
        assert!(connection.is_closed());
        let within = Duration::from_secs(60);
        let asked = connection.request("r", Value::Null, within).await;
        assert!(matches!(asked, Err(LspError::Ended)));
        drop(theirs);
    }

    #[tokio::test]
    async fn what_is_read_makes_room() {
        let (ours, mut theirs) = duplex(1024);
        let (input, output) = tokio::io::split(ours);
        let connection = LspConnection::new(input, output, Arc::new(Deaf));
        let long = "x".repeat(8 << 20);
        let mut room = vec![0; 1 << 20];
        for _ in 0..12 {
            connection.notify("n", json!({"text": long})).unwrap();
            let mut read = 0;
            while read < long.len() {
                read += theirs.read(&mut room).await.unwrap();
            }
        }
        assert!(!connection.is_closed());
    }
}
