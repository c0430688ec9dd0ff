//! Reads a response body with limits, timeouts and cancellation.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use haft_contract::CancellationToken;
use tokio::time::{Instant, timeout, timeout_at};

use super::{HttpOptions, root, until_cancelled};
use crate::{
    ModelError,
    sse::{ServerEvent, SseParser},
};

/// The number of bytes at the start of a response that are stored for error messages.
const HEAD: usize = 512;

/// The body of a response.
pub(crate) struct ResponseBody<S> {
    stream: S,
    options: HttpOptions,
    cancel: CancellationToken,
    read: usize,
    /// The first bytes of the body.
    pub(crate) head: Vec<u8>,
    /// The deadline for the next content.
    content_deadline: Instant,
}

impl<S, E> ResponseBody<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::error::Error,
{
    pub(crate) fn new(stream: S, options: &HttpOptions, cancel: CancellationToken) -> Self {
        Self {
            stream,
            content_deadline: Instant::now() + options.content_timeout,
            options: options.clone(),
            cancel,
            read: 0,
            head: Vec::new(),
        }
    }

    /// Restarts the content timeout after content other than a keep-alive.
    fn restart_content_timeout(&mut self) {
        self.content_deadline = Instant::now() + self.options.content_timeout;
    }

    /// Returns the next bytes, or `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let silence = Instant::now() + self.options.idle_timeout;
        let next = timeout_at(silence.min(self.content_deadline), self.stream.next());
        let chunk = match until_cancelled(&self.cancel, next).await? {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(error))) => {
                let why = root(&error);
                return Err(ModelError::connection(format!("it was lost: {why}")));
            }
            Err(_) => {
                let (what, limit) = if silence < self.content_deadline {
                    ("nothing", self.options.idle_timeout)
                } else {
                    ("only keep-alives", self.options.content_timeout)
                };
                let limit = limit.as_secs_f64();
                return Err(ModelError::connection(format!("{what} came for {limit} s")));
            }
        };
        self.read += chunk.len();
        if self.read > self.options.max_response_bytes {
            return Err(ModelError::protocol(format!(
                "it is longer than {} bytes and does not end",
                self.options.max_response_bytes
            )));
        }
        let room = HEAD.saturating_sub(self.head.len()).min(chunk.len());
        self.head.extend_from_slice(&chunk[..room]);
        Ok(Some(chunk))
    }

    /// Returns the whole body, truncated to `limit` bytes.
    pub(crate) async fn all(&mut self, limit: usize) -> Result<Vec<u8>, ModelError> {
        let mut all = Vec::new();
        while all.len() < limit
            && let Some(chunk) = self.chunk().await?
        {
            all.extend_from_slice(&chunk[..chunk.len().min(limit - all.len())]);
        }
        Ok(all)
    }
}

/// The time that the reader waits for the end of a complete response.
const GOODBYE: Duration = Duration::from_millis(20);
/// The time that a background task then waits for the end.
const LONG_GOODBYE: Duration = Duration::from_secs(2);

impl<S, E> ResponseBody<S>
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    E: Send,
{
    /// Reads the end of a response whose content is complete. The end usually arrives immediately.
    /// A connection whose response was not read to the end is closed, and the next request would
    /// have to open a new one.
    pub(crate) async fn drain_end(mut self) {
        let mut rest = Box::pin(async move { while let Some(Ok(_)) = self.stream.next().await {} });
        if timeout(GOODBYE, &mut rest).await.is_err() {
            haft_contract::spawn_boxed(timeout(LONG_GOODBYE, rest));
        }
    }
}

/// The server-sent events of a response.
pub(crate) struct ResponseEvents<S> {
    pub(crate) body: ResponseBody<S>,
    parser: SseParser,
    ended: bool,
}

/// An event of a stream.
pub(crate) struct ReadEvent {
    pub(crate) event: ServerEvent,
    /// Whether the stream ended without the end of this event, so that it may be cut off.
    pub(crate) open: bool,
}

impl<S, E> ResponseEvents<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::error::Error,
{
    pub(crate) fn new(body: ResponseBody<S>) -> Self {
        let parser = SseParser::new(body.options.max_event_bytes);
        Self {
            body,
            parser,
            ended: false,
        }
    }

    /// Returns the next event, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<ReadEvent>, ModelError> {
        let unreadable = |error: crate::sse::SseError| ModelError::protocol(error.to_string());
        loop {
            let event = if self.ended {
                self.parser.finish()
            } else {
                self.parser.next()
            };
            if let Some(event) = event {
                let event = event.map_err(unreadable)?;
                // Pings keep the connection alive, but do not extend the content timeout.
                if event.name != "ping" {
                    self.body.restart_content_timeout();
                }
                let open = self.ended;
                return Ok(Some(ReadEvent { event, open }));
            }
            if self.ended {
                return Ok(None);
            }
            match self.body.chunk().await? {
                Some(chunk) => self.parser.push(&chunk),
                None => self.ended = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;
    use crate::ErrorKind;

    fn options() -> HttpOptions {
        HttpOptions {
            idle_timeout: Duration::from_secs(90),
            content_timeout: Duration::from_secs(600),
            max_response_bytes: 1000,
            ..HttpOptions::default()
        }
    }

    /// The chunk again and again, with a pause before each; then silence.
    fn pulsing(
        chunk: &'static [u8],
        pause: u64,
        times: usize,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
        let pulses = stream::iter(0..times).then(move |_| async move {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            Ok(Bytes::from_static(chunk))
        });
        Box::pin(pulses.chain(stream::pending()))
    }

    async fn read(
        stream: impl Stream<Item = Result<Bytes, Infallible>> + Unpin,
    ) -> (usize, ModelError) {
        let mut events = ResponseEvents::new(ResponseBody::new(
            stream,
            &options(),
            CancellationToken::new(),
        ));
        let mut count = 0;
        loop {
            match events.next().await {
                Ok(Some(_)) => count += 1,
                Ok(None) => panic!("it ended"),
                Err(error) => return (count, error),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_an_answer_and_pings_do_not_count_as_silence() {
        let (count, error) = read(pulsing(b"event: ping\ndata: {}\n\n", 80, 3)).await;
        assert_eq!((count, error.kind), (3, ErrorKind::Connection));
        assert_eq!(error.message, "nothing came for 90 s");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_read_also_when_it_comes_too_late_to_be_waited_for() {
        for late in [0, 1000] {
            let (sender, ended) = tokio::sync::oneshot::channel();
            let end = async move {
                tokio::time::sleep(Duration::from_millis(late)).await;
                let _ = sender.send(());
            };
            let stream = Box::pin(
                stream::once(end).filter_map(|()| async { None::<Result<Bytes, Infallible>> }),
            );
            let began = Instant::now();
            let body = ResponseBody::new(stream, &options(), CancellationToken::new());
            body.drain_end().await;
            assert!(began.elapsed() <= GOODBYE + Duration::from_millis(1));
            ended.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pings_alone_are_not_enough_for_ever() {
        let (count, error) = read(pulsing(b"event: ping\ndata: {}\n\n", 80, 30)).await;
        assert_eq!((count, error.kind), (7, ErrorKind::Connection));
        assert_eq!(error.message, "only keep-alives came for 600 s");
    }

    #[tokio::test(start_paused = true)]
    async fn comments_count_as_keep_alives_too() {
        let (count, error) = read(pulsing(b": keep-alive\n\n", 80, 30)).await;
        assert_eq!(
            (count, error.message.as_str()),
            (0, "only keep-alives came for 600 s")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn content_may_come_for_as_long_as_it_likes_up_to_a_size() {
        let (count, error) = read(pulsing(b"data: 0123\n\n", 80, 200)).await;
        assert_eq!((count, error.kind), (83, ErrorKind::Protocol));
        assert_eq!(
            error.message,
            "it is longer than 1000 bytes and does not end"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn being_told_to_stop_ends_the_wait() {
        let cancel = CancellationToken::new();
        let stream = stream::pending::<Result<Bytes, Infallible>>();
        let mut events = ResponseEvents::new(ResponseBody::new(stream, &options(), cancel.clone()));
        let (ended, ()) = tokio::join!(events.next(), async { cancel.cancel() });
        assert_eq!(
            ended.err().map(|error| error.kind),
            Some(ErrorKind::Cancelled)
        );
    }
}
