//! JSON-RPC, one message per line: output to a client, input from it, and requests that wait for
//! responses.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use haft_contract::CancellationToken;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::error::AcpError;

/// The maximum length of an input line in bytes.
const MAX_INPUT_LINE: usize = 32 << 20;
/// The maximum length of an output line in bytes.
const MAX_OUTPUT_LINE: usize = 1_000_000;
/// The maximum number of unread bytes. A client with more is treated as disconnected.
const MAX_UNREAD: usize = 256 << 20;

/// The request that makes an editor write a file.
const WRITES: &str = "fs/write_text_file";
/// The maximum length of an error message from the client in characters.
const MAX_REASON: usize = 300;

/// An input message.
pub(crate) enum EditorMessage {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Note {
        method: String,
        params: Value,
    },
    Answer {
        id: i64,
        outcome: Result<Value, Value>,
    },
    /// An invalid message, with its id if it has one.
    Bad {
        id: Value,
        error: AcpError,
    },
    /// A message that can be ignored.
    Nothing,
}

impl EditorMessage {
    fn read(line: &[u8]) -> Self {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Self::Nothing;
        }
        match serde_json::from_slice(line) {
            Ok(Value::Object(message)) => Self::from_value(Value::Object(message)),
            Ok(_) => Self::Bad {
                id: Value::Null,
                error: AcpError::bad_request(
                    "a message must be an object; batches are not supported",
                ),
            },
            Err(error) => Self::Bad {
                id: Value::Null,
                error: AcpError::no_json(error),
            },
        }
    }

    fn from_value(mut message: Value) -> Self {
        let params = message["params"].take();
        let id = message.get_mut("id").map(Value::take);
        let method = message["method"].as_str().map(str::to_owned);
        match (id, method) {
            (Some(id), Some(method)) if id.is_string() || id.is_number() => {
                Self::Request { id, method, params }
            }
            (None, Some(method)) => Self::Note { method, params },
            (Some(id), None)
                if message.get("result").is_some() || message.get("error").is_some() =>
            {
                let Some(id) = id.as_i64() else {
                    return Self::Nothing;
                };
                let error = message["error"].take();
                let outcome = match error.is_null() {
                    true => Ok(message["result"].take()),
                    false => Err(error),
                };
                Self::Answer { id, outcome }
            }
            (id, _) => Self::Bad {
                id: id
                    .filter(|id| id.is_string() || id.is_number())
                    .unwrap_or_default(),
                error: AcpError::bad_request("neither a request, a notification nor an answer"),
            },
        }
    }
}

/// Reads the messages of a client.
pub(crate) struct IncomingLines<R> {
    input: R,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> IncomingLines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
        }
    }

    /// Returns the next message, or `None` at the end of the input. Cancel-safe: a partial line is
    /// stored.
    pub(crate) async fn next(&mut self) -> io::Result<Option<EditorMessage>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                let last = std::mem::take(&mut self.line);
                return Ok((!last.is_empty()).then(|| EditorMessage::read(&last)));
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            // Of a line that is too long, at most one byte more than the limit is stored.
            let room = (MAX_INPUT_LINE + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(match line.len() > MAX_INPUT_LINE {
                    true => EditorMessage::Bad {
                        id: Value::Null,
                        error: AcpError::bad_request(format!(
                            "a message of more than {MAX_INPUT_LINE} bytes"
                        )),
                    },
                    false => EditorMessage::read(&line),
                }));
            }
        }
    }
}

/// The connection to a client. Cheap to clone; all clones share the connection.
#[derive(Clone)]
pub(crate) struct AcpClient(Arc<ClientState>);

struct ClientState {
    lines: mpsc::UnboundedSender<String>,
    /// The number of bytes that the client has not read yet.
    unread: Arc<AtomicUsize>,
    next: AtomicI64,
    open_requests: Mutex<HashMap<i64, oneshot::Sender<Result<Value, Value>>>>,
    disconnected: CancellationToken,
}

/// The reason why a request to the client failed.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The client responded with an error; contains its message.
    Refused(String),
    /// The request is longer than a message may be.
    TooLong,
    Gone,
}

impl AcpClient {
    /// Creates a connection that writes to `output` until the client disconnects.
    pub(crate) fn new(output: impl AsyncWrite + Unpin + Send + 'static) -> (Self, WriteBarrier) {
        let (lines, waiting) = mpsc::unbounded_channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let gone = CancellationToken::new();
        let written =
            haft_contract::spawn_boxed(write(output, waiting, Arc::clone(&unread), gone.clone()));
        let state = ClientState {
            lines,
            unread,
            next: AtomicI64::new(1),
            open_requests: Mutex::default(),
            disconnected: gone,
        };
        (Self(Arc::new(state)), WriteBarrier(written))
    }

    /// Returns the token that is cancelled when the client disconnects.
    pub(crate) fn disconnect_token(&self) -> &CancellationToken {
        &self.0.disconnected
    }

    pub(crate) fn notify(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn answer(&self, id: Value, outcome: Result<Value, AcpError>) {
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        match outcome {
            Ok(result) => message["result"] = result,
            Err(error) => message["error"] = error.to_json(),
        }
        self.send(message);
    }

    /// Sends a request and waits for the response. Dropping the future withdraws the request.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, RequestFailure> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        // The content of a file must not be truncated.
        if method == WRITES && message.to_string().len() > MAX_OUTPUT_LINE {
            return Err(RequestFailure::TooLong);
        }
        let (sender, answer) = oneshot::channel();
        self.open_requests().insert(id, sender);
        let open = RequestGuard { id, client: self };
        self.send(message);
        tokio::select! {
            answer = answer => {
                drop(open);
                answer.map_err(|_| RequestFailure::Gone)?.map_err(|error| {
                    let words = error["message"].as_str().unwrap_or("it gave no reason");
                    RequestFailure::Refused(words.chars().take(MAX_REASON).collect())
                })
            }
            () = self.0.disconnected.cancelled() => Err(RequestFailure::Gone),
        }
    }

    /// Delivers the client's response to a request.
    pub(crate) fn on_response(&self, id: i64, outcome: Result<Value, Value>) {
        if let Some(asked) = self.open_requests().remove(&id) {
            let _ = asked.send(outcome);
        }
    }

    fn open_requests(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Result<Value, Value>>>> {
        self.0
            .open_requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: Value) {
        if self.0.disconnected.is_cancelled() {
            return;
        }
        let line = line(message);
        let unread = self.0.unread.fetch_add(line.len(), Ordering::Relaxed);
        if unread > MAX_UNREAD || self.0.lines.send(line).is_err() {
            self.0.disconnected.cancel();
        }
    }
}

/// A request that waits for its response. If it is dropped early, the request is withdrawn.
struct RequestGuard<'a> {
    id: i64,
    client: &'a AcpClient,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        if self.client.open_requests().remove(&self.id).is_some() {
            self.client
                .notify("$/cancel_request", json!({"requestId": self.id}));
        }
    }
}

/// Waits until all messages are written or the client has disconnected.
pub(crate) struct WriteBarrier(tokio::task::JoinHandle<()>);

impl WriteBarrier {
    /// Waits at most for `most`, in case the client does not read.
    pub(crate) async fn wait(self, most: Duration) {
        let _ = timeout(most, self.0).await;
    }
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::UnboundedReceiver<String>,
    unread: Arc<AtomicUsize>,
    gone: CancellationToken,
) {
    while let Some(line) = lines.recv().await {
        let writing = async {
            output.write_all(line.as_bytes()).await?;
            // The output is flushed only when no line waits, so that many lines need only one
            // write.
            match lines.is_empty() {
                true => output.flush().await,
                false => Ok(()),
            }
        };
        let written = tokio::select! {
            written = writing => written,
            () = gone.cancelled() => return,
        };
        unread.fetch_sub(line.len(), Ordering::Relaxed);
        if written.is_err() {
            gone.cancel();
            return;
        }
    }
}

/// Formats a message as a line. If it is too long, its longest texts are truncated: an editor that
/// fails on a line shows nothing at all.
fn line(mut message: Value) -> String {
    let mut text = message.to_string();
    if text.len() > MAX_OUTPUT_LINE {
        if let Some(update) = message
            .pointer_mut("/params/update")
            .and_then(Value::as_object_mut)
        {
            update.remove("rawOutput");
        }
        text = message.to_string();
        let mut longest = MAX_OUTPUT_LINE / 4;
        while text.len() > MAX_OUTPUT_LINE && longest > 100 {
            cut(&mut message, longest);
            text = message.to_string();
            longest /= 4;
        }
    }
    text.push('\n');
    text
}

fn cut(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) if text.len() > longest => {
            let left = text.len() - text.floor_char_boundary(longest);
            text.truncate(text.floor_char_boundary(longest));
            text.push_str(&format!("\n… {left} bytes more"));
        }
        Value::Array(all) => all.iter_mut().for_each(|one| cut(one, longest)),
        Value::Object(all) => all.values_mut().for_each(|one| cut(one, longest)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8]) -> Vec<String> {
        let mut lines = IncomingLines::new(text);
        let mut seen = Vec::new();
        while let Some(message) = lines.next().await.unwrap() {
            seen.push(match message {
                EditorMessage::Request { id, method, .. } => format!("request {id} {method}"),
                EditorMessage::Note { method, .. } => format!("note {method}"),
                EditorMessage::Answer { id, outcome } => format!("answer {id} {}", outcome.is_ok()),
                EditorMessage::Bad { error, .. } => format!("bad {}", error.code),
                EditorMessage::Nothing => continue,
            });
        }
        seen
    }

    #[tokio::test]
    async fn lines_are_requests_notes_answers_or_bad() {
        let text = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n\n{\"method\":\"b\"}\r\n{\"id\":3,\"result\":null}\n\
            {\"id\":4,\"error\":{\"code\":1}}\nnot json\n[]\n{\"id\":null,\"method\":\"c\"}\n{\"id\":\"x\",\"method\":\"d\"}";
        assert_eq!(
            read(text).await,
            [
                "request 1 a",
                "note b",
                "answer 3 true",
                "answer 4 false",
                "bad -32700",
                "bad -32600",
                "bad -32600",
                "request \"x\" d"
            ]
        );
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_refused_and_the_next_is_read() {
        let mut text = vec![b'x'; MAX_INPUT_LINE + 5];
        text.extend_from_slice(b"\n{\"method\":\"b\"}\n");
        assert_eq!(read(&text).await, ["bad -32600", "note b"]);
    }

    #[test]
    fn long_messages_lose_their_longest_texts() {
        let long = "ä".repeat(MAX_OUTPUT_LINE);
        let update = json!({"update": {"title": "t", "rawOutput": long, "content": [{"text": long}, {"text": "short"}]}});
        let line = line(json!({"params": update}));
        assert!(line.len() <= MAX_OUTPUT_LINE + 1);
        let read: Value = serde_json::from_str(&line).unwrap();
        let update = &read["params"]["update"];
        assert!(update.get("rawOutput").is_none());
        assert_eq!(update["content"][1]["text"], "short");
        assert_eq!(update["title"], "t");
    }
}
