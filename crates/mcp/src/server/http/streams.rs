//! The responses to the posts of a session, stored until the client has received them.
//!
//! A connection may break at any time, and that cancels nothing. The messages for a post are stored
//! in its stream, each event with its own id. The client requests the rest by sending the last id
//! that it has received (`Last-Event-ID`).

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use haft_contract::BoxFuture;
use tokio::sync::watch;

use super::reply::ALIVE;
use crate::{RpcMessage, server::session::ReplyChannel};

/// The maximum number of stored events of a stream; beyond it, the oldest that are not answers are
/// dropped.
const MAX_EVENTS: usize = 256;
/// The maximum number of finished streams stored for clients that have not read them to the end.
const MAX_FINISHED: usize = 32;
/// The maximum size in bytes of the events of all finished streams that are stored.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The time in milliseconds that a client should wait before it resumes.
const RETRY: u64 = 500;

/// The streams of a session.
#[derive(Default)]
pub(super) struct ReplyStreams {
    next: AtomicU64,
    /// The streams that clients may resume, oldest first.
    all: Mutex<VecDeque<Arc<ReplyStream>>>,
}

/// The messages for one post, or for none.
pub(super) struct ReplyStream {
    number: u64,
    state: Mutex<StreamState>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct StreamState {
    events: VecDeque<ReplyEvent>,
    /// The number of events so far.
    event_count: u64,
    /// The number of the last event that was sent to a client.
    delivered: u64,
    /// True if no further events will come.
    is_over: bool,
    /// The number of the current reader; a new reader replaces it.
    reader: u64,
    /// True if the next reader is disconnected immediately.
    is_away: bool,
}

/// A message in its serialized form.
#[derive(Clone)]
pub(super) struct ReplyEvent {
    number: u64,
    pub(super) json: Bytes,
    pub(super) is_answer: bool,
    pub(super) is_error: bool,
}

impl ReplyStreams {
    /// Opens a stream for the messages of a post, and returns it with its writer.
    pub(super) fn open(&self) -> (Arc<ReplyStream>, Arc<StreamWriter>) {
        let number = 1 + self.next.fetch_add(1, Ordering::Relaxed);
        let stream = ReplyStream::new(number);
        let mut all = self.all();
        all.push_back(Arc::clone(&stream));
        forget_old(&mut all);
        let writer = Arc::new(StreamWriter(Arc::clone(&stream)));
        (stream, writer)
    }

    /// Returns the stream with this number.
    pub(super) fn find(&self, number: u64) -> Option<Arc<ReplyStream>> {
        let all = self.all();
        all.iter().find(|stream| stream.number == number).cloned()
    }

    /// Removes a stream that no client will resume.
    pub(super) fn remove(&self, stream: &ReplyStream) {
        let mut all = self.all();
        all.retain(|one| one.number != stream.number);
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Arc<ReplyStream>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the oldest finished streams.
fn forget_old(all: &mut VecDeque<Arc<ReplyStream>>) {
    let (mut over, mut bytes) = (0, 0);
    let mut kept: Vec<bool> = Vec::with_capacity(all.len());
    for stream in all.iter().rev() {
        let state = stream.state();
        if state.is_over {
            over += 1;
            bytes += state
                .events
                .iter()
                .map(|event| event.json.len())
                .sum::<usize>();
        }
        kept.push(!state.is_over || (over <= MAX_FINISHED && bytes <= MAX_BYTES));
    }
    let mut kept = kept.into_iter().rev();
    all.retain(|_| kept.next().unwrap_or(true));
}

impl ReplyStream {
    /// Creates a stream. The number `0` belongs to the stream without a post.
    pub(super) fn new(number: u64) -> Arc<Self> {
        Arc::new(Self {
            number,
            state: Mutex::default(),
            changed: watch::Sender::new(()),
        })
    }

    /// Adds a message. Returns `false` if a message that is not an answer does not fit.
    pub(super) fn push(&self, message: &RpcMessage) -> bool {
        let (is_answer, is_error) = match message {
            RpcMessage::Answer { result, .. } => (true, result.is_err()),
            RpcMessage::Request { .. } | RpcMessage::Notification { .. } => (false, false),
        };
        {
            let mut state = self.state();
            if state.events.len() >= MAX_EVENTS {
                let oldest = state.events.iter().position(|event| !event.is_answer);
                match oldest {
                    Some(at) => drop(state.events.remove(at)),
                    None if is_answer => {}
                    None => return false,
                }
            }
            state.event_count += 1;
            let number = state.event_count;
            state.events.push_back(ReplyEvent {
                number,
                json: message.to_json().into(),
                is_answer,
                is_error,
            });
        }
        self.changed.send_replace(());
        true
    }

    /// Waits for the first event without removing it. Returns `None` if no event will come, or if
    /// the reader must disconnect.
    pub(super) async fn first(&self) -> Option<ReplyEvent> {
        let mut changed = self.changed.subscribe();
        loop {
            {
                let state = self.state();
                if let Some(first) = state.events.front() {
                    return Some(first.clone());
                }
                if state.is_over || state.is_away {
                    return None;
                }
            }
            changed.changed().await.ok()?;
        }
    }

    /// Returns the number of the last event that was sent.
    pub(super) fn delivered(&self) -> u64 {
        self.state().delivered
    }

    /// Disconnects the current reader, or the first future one, so that it resumes later.
    fn disconnect_reader(&self) {
        {
            let mut state = self.state();
            state.is_away = state.reader == 0;
            state.reader += 1;
        }
        self.changed.send_replace(());
    }

    /// Returns the events with a number greater than `last_seen` as text, until the stream ends or
    /// another reader replaces this one. If `primes` is set, the client first receives an id to
    /// resume with. `held` is dropped with the stream.
    pub(super) fn read<T: Send + 'static>(
        self: Arc<Self>,
        last_seen: u64,
        primes: bool,
        held: T,
    ) -> impl Stream<Item = Result<hyper::body::Frame<Bytes>, Infallible>> + Send {
        let reader = {
            let mut state = self.state();
            state.reader += 1;
            match std::mem::take(&mut state.is_away) {
                true => state.reader - 1,
                false => state.reader,
            }
        };
        self.changed.send_replace(());
        let reading = StreamReader {
            changed: self.changed.subscribe(),
            stream: self,
            reader,
            last_sent: last_seen,
            primes,
        };
        stream::unfold((reading, held), |(mut reading, held)| async move {
            let text = reading.next().await?;
            Some((Ok(hyper::body::Frame::data(text)), (reading, held)))
        })
    }

    fn end(&self) {
        self.state().is_over = true;
        self.changed.send_replace(());
    }

    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self, event: &ReplyEvent) -> Bytes {
        let head = format!(
            "id: {}-{}\nevent: message\ndata: ",
            self.number, event.number
        );
        let mut text = head.into_bytes();
        text.extend_from_slice(&event.json);
        text.extend_from_slice(b"\n\n");
        text.into()
    }
}

/// A reader of a stream.
struct StreamReader {
    stream: Arc<ReplyStream>,
    changed: watch::Receiver<()>,
    reader: u64,
    last_sent: u64,
    primes: bool,
}

impl StreamReader {
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.primes) {
            let (number, after) = (self.stream.number, self.last_sent);
            let text = format!("id: {number}-{after}\nretry: {RETRY}\ndata: \n\n");
            return Some(text.into());
        }
        loop {
            {
                let mut state = self.stream.state();
                if state.reader != self.reader {
                    return None;
                }
                let next = state
                    .events
                    .iter()
                    .find(|event| event.number > self.last_sent);
                if let Some(event) = next.cloned() {
                    self.last_sent = event.number;
                    state.delivered = state.delivered.max(event.number);
                    drop(state);
                    return Some(self.stream.text(&event));
                }
                if state.is_over {
                    return None;
                }
            }
            match tokio::time::timeout(ALIVE, self.changed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }
}

/// Writes the messages for a post. Dropping it finishes the stream.
pub(super) struct StreamWriter(Arc<ReplyStream>);

impl ReplyChannel for StreamWriter {
    fn send(&self, message: RpcMessage) -> BoxFuture<'_, bool> {
        let sent = self.0.push(&message);
        Box::pin(async move { sent })
    }

    fn try_send(&self, message: RpcMessage) -> bool {
        self.0.push(&message)
    }

    fn disconnect(&self) {
        self.0.disconnect_reader();
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Parses the stream number and event number of a `Last-Event-ID`.
pub(super) fn last_event(text: &str) -> Option<(u64, u64)> {
    let (stream, event) = text.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use serde_json::json;

    use super::*;

    fn note(number: u64) -> RpcMessage {
        RpcMessage::notification("n", json!({"number": number}))
    }

    /// All events after one; the stream must be over.
    async fn read(stream: &Arc<ReplyStream>, after: u64, primes: bool) -> Vec<String> {
        let events = Arc::clone(stream).read(after, primes, ());
        let texts = events.map(|frame| {
            let data = frame.unwrap().into_data().unwrap();
            String::from_utf8(data.to_vec()).unwrap()
        });
        texts.collect().await
    }

    #[tokio::test]
    async fn what_was_not_read_is_read_by_the_one_who_comes_back() {
        let streams = ReplyStreams::default();
        let (stream, writer) = streams.open();
        for number in 0..3 {
            assert!(writer.try_send(note(number)));
        }
        let answer = RpcMessage::answer(crate::RpcId::Number(7), Ok(json!({})));
        assert!(writer.send(answer).await);
        drop(writer);
        let all = read(&stream, 0, true).await;
        assert_eq!(all.len(), 5, "{all:?}");
        assert_eq!(all[0], "id: 1-0\nretry: 500\ndata: \n\n");
        assert!(all[1].starts_with("id: 1-1\nevent: message\ndata: {"));
        let (number, after) = last_event("1-2").unwrap();
        let found = streams.find(number).unwrap();
        let rest = read(&found, after, false).await;
        assert_eq!(rest, all[3..]);
        assert!(streams.find(2).is_none());
        for wrong in ["", "1", "-", "1-", "a-b", "1-2-3", "-1-2"] {
            assert_eq!(last_event(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn one_reader_takes_over_from_another_and_one_may_be_sent_away() {
        let (stream, writer) = ReplyStreams::default().open();
        let mut first = Box::pin(Arc::clone(&stream).read(0, false, ()));
        writer.try_send(note(1));
        assert!(first.next().await.is_some());
        let mut second = Box::pin(Arc::clone(&stream).read(1, false, ()));
        assert!(first.next().await.is_none());
        writer.disconnect();
        assert!(second.next().await.is_none());
        writer.try_send(note(2));
        drop(writer);
        assert_eq!(read(&stream, 1, false).await.len(), 1);
        // Before anyone reads: the one who asked is told how to come back, and no more.
        let (stream, writer) = ReplyStreams::default().open();
        writer.disconnect();
        writer.try_send(note(1));
        drop(writer);
        assert_eq!(read(&stream, 0, true).await.len(), 1);
        assert_eq!(read(&stream, 0, true).await.len(), 2);
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_answers_go_last() {
        let streams = ReplyStreams::default();
        let (stream, writer) = streams.open();
        writer.try_send(RpcMessage::answer(crate::RpcId::Number(1), Ok(json!({}))));
        for number in 0..1_000 {
            assert!(writer.try_send(note(number)));
        }
        drop(writer);
        let kept = read(&stream, 0, false).await;
        assert_eq!(kept.len(), MAX_EVENTS);
        assert!(kept[0].contains("\"id\":1"), "{}", kept[0]);
        for _ in 0..100 {
            drop(streams.open());
        }
        assert_eq!(streams.all().len(), MAX_FINISHED + 1);
        assert!(streams.find(1).is_none());
    }
}
