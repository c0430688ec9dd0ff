//! One session over a pipe: each message is a line.

use std::{
    future::ready,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_contract::{BoxFuture, CancellationToken};
use tokio::{
    io::{AsyncBufRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc::{self, error::TrySendError},
};

use super::{
    parked::ParkedRequests,
    service::{LogLevel, OpenSession, SessionNotifier},
    session::{McpSession, ReplyChannel},
};
use crate::{
    Revision, RpcError, RpcMessage,
    frames::{FrameReader, LineFrame},
    message::code,
    peer::ids_in,
};

/// The maximum number of messages that wait to be written. If a client reads none, it is no longer
/// served.
const WAITING: usize = 1_024;
/// The time limit for requests in progress after the input has ended.
const GRACE: Duration = Duration::from_secs(1);
/// The number of bytes from which no further message is added to a write.
const WRITTEN: usize = 64 * 1024;

/// Serves one client until its input ends or `stop` is cancelled. Messages may have at most
/// `longest` bytes. The error says why no session was opened, or what failed.
pub async fn serve_lines(
    open: &dyn OpenSession,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    longest: usize,
    stop: CancellationToken,
) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let writing = haft_contract::spawn_boxed(write_all(receiver, output, stop.clone()));
    let lines = Arc::new(LineChannel(sender));
    let known: Arc<Mutex<Option<Arc<McpSession>>>> = Arc::default();
    let notifier = notifier(&lines, &known);
    let service = open.open(notifier).await.map_err(io::Error::other)?;
    let session = McpSession::new(service, Arc::new(ParkedRequests::default()));
    *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session));
    let mut frames = FrameReader::new(input, longest);
    let channel: Arc<dyn ReplyChannel> = Arc::clone(&lines) as _;
    let ended = loop {
        let frame = tokio::select! {
            biased;
            () = stop.cancelled() => break Ok(()),
            frame = frames.next() => frame,
        };
        let taken = async {
            match frame {
                Ok(Some(LineFrame::Line(line))) => take(&session, &line, &channel).await,
                Ok(Some(LineFrame::TooLong { ends, length })) => {
                    refuse_long(&channel, &ends, length, longest).await;
                }
                Ok(None) => return Some(Ok(())),
                Err(error) => return Some(Err(error)),
            }
            None
        };
        // A client that reads no answers may block this.
        let ended = tokio::select! {
            biased;
            ended = taken => ended,
            () = stop.cancelled() => Some(Ok(())),
        };
        if let Some(ended) = ended {
            break ended;
        }
    };
    let until = tokio::time::Instant::now() + GRACE;
    while session.is_busy() && !stop.is_cancelled() && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    session.close().await;
    *known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    drop((session, channel, lines));
    // No sender is left. A client that does not read delays the end by at most `GRACE`.
    let _ = tokio::time::timeout(GRACE, writing).await;
    ended
}

fn notifier(
    lines: &Arc<LineChannel>,
    known: &Arc<Mutex<Option<Arc<McpSession>>>>,
) -> SessionNotifier {
    let (lines, known) = (Arc::downgrade(lines), Arc::clone(known));
    SessionNotifier::new(move |method, params| {
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(lines), Some(session)) = (lines.upgrade(), known.as_ref()) else {
            return;
        };
        // Clients of the stateless revision expect no unsolicited messages.
        let level = params["level"].as_str().and_then(LogLevel::parse);
        let is_wanted = level.is_none_or(|level| session.wants_log(level));
        if session.revision().is_some() && is_wanted {
            lines.try_send(RpcMessage::notification(method, params));
        }
    })
}

/// Processes the messages of a line.
async fn take(session: &Arc<McpSession>, line: &[u8], to: &Arc<dyn ReplyChannel>) {
    let is_batch = line.trim_ascii_start().first() == Some(&b'[');
    match RpcMessage::parse_all(line) {
        Err(error) => {
            to.send(unreadable(error)).await;
        }
        Ok(_) if is_batch && session.revision() != Some(Revision::V2025_03_26) => {
            let why = "only the revision 2025-03-26 has batches; send one message a line";
            let error = RpcError::new(code::INVALID_REQUEST, why);
            to.send(unreadable(error)).await;
        }
        // The answers to a batch need not be sent together.
        Ok(messages) => {
            for message in messages {
                let answer = match message {
                    Ok(message) => session.receive(message, to),
                    Err(error) => Some(unreadable(error)),
                };
                if let Some(answer) = answer {
                    to.send(answer).await;
                }
            }
        }
    }
}

async fn refuse_long(to: &Arc<dyn ReplyChannel>, ends: &[u8], length: usize, longest: usize) {
    let words = format!("the message has {length} bytes; the limit is {longest}");
    let error = RpcError::new(code::INVALID_REQUEST, words);
    // The id is included if it is visible; the first one is the most likely.
    let id = ids_in(ends).into_iter().next();
    to.send(RpcMessage::Answer {
        id,
        result: Err(error),
    })
    .await;
}

/// Returns the answer to an unreadable message.
pub(super) fn unreadable(error: RpcError) -> RpcMessage {
    RpcMessage::Answer {
        id: None,
        result: Err(error),
    }
}

struct LineChannel(mpsc::Sender<RpcMessage>);

impl ReplyChannel for LineChannel {
    fn send(&self, message: RpcMessage) -> BoxFuture<'_, bool> {
        // There is nearly always room.
        match self.0.try_send(message) {
            Ok(()) => Box::pin(ready(true)),
            Err(TrySendError::Closed(_)) => Box::pin(ready(false)),
            Err(TrySendError::Full(message)) => {
                Box::pin(async { self.0.send(message).await.is_ok() })
            }
        }
    }

    fn try_send(&self, message: RpcMessage) -> bool {
        self.0.try_send(message).is_ok()
    }
}

/// Writes messages as they come; queued messages are written together.
async fn write_all(
    mut messages: mpsc::Receiver<RpcMessage>,
    mut output: impl AsyncWrite + Unpin,
    stop: CancellationToken,
) {
    let mut text = Vec::new();
    while let Some(message) = messages.recv().await {
        text.clear();
        message.write_line(&mut text);
        while text.len() < WRITTEN
            && let Ok(message) = messages.try_recv()
        {
            message.write_line(&mut text);
        }
        let written = async {
            output.write_all(&text).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            // The client can no longer receive answers.
            tracing::debug!(%error, "the client has disconnected");
            stop.cancel();
            return;
        }
        text.shrink_to(WRITTEN);
    }
}
