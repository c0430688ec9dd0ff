//! Reads stdin and writes stdout if both are pipes to another program.

use std::{
    fs, io,
    num::NonZero,
    os::{fd::AsFd, unix::fs::FileTypeExt},
    pin::Pin,
    task::{Context, Poll, ready},
    thread::available_parallelism,
    time::{Duration, Instant},
};

use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::unix::pipe,
};

/// The time after input during which the pipe is polled instead of waited for. A client that sends
/// requests one after the other sends the next one before a sleeping thread would have been woken.
const EAGER: Duration = Duration::from_micros(200);

/// The minimum time that a client needs before it sends the next request. No read is attempted
/// during this time.
const ANSWERING: Duration = Duration::from_micros(30);

/// Returns stdin and stdout if both are pipes.
pub(crate) fn pipes() -> Option<(EagerPipe, pipe::Sender)> {
    let input = fs::File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let output = fs::File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    let is_pipe = |file: &fs::File| {
        let facts = file.metadata();
        facts.is_ok_and(|facts| facts.file_type().is_fifo())
    };
    // Converts both or neither, since a converted file is switched to non-blocking mode.
    if !is_pipe(&input) || !is_pipe(&output) {
        return None;
    }
    let input = pipe::Receiver::from_file(input).ok()?;
    Some((EagerPipe::new(input), pipe::Sender::from_file(output).ok()?))
}

/// A pipe that is polled for a short time after each message instead of sleeping. Other tasks
/// continue to run.
#[derive(Debug)]
pub(crate) struct EagerPipe {
    pipe: pipe::Receiver,
    /// The end of the polling phase.
    eager_until: Option<Instant>,
    /// Whether there is more than one processor, so that the client can write while this process
    /// polls.
    may_be_eager: bool,
}

impl EagerPipe {
    fn new(pipe: pipe::Receiver) -> Self {
        Self {
            pipe,
            eager_until: None,
            may_be_eager: available_parallelism().is_ok_and(|count| count > NonZero::<usize>::MIN),
        }
    }

    /// Reads available data that the runtime has not been notified of yet. Returns `false`
    /// without such data.
    fn read_available(&self, buffer: &mut ReadBuf<'_>) -> io::Result<bool> {
        match rustix::io::read(&self.pipe, buffer.initialize_unfilled()) {
            Ok(length) => {
                buffer.advance(length);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsyncRead for EagerPipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self
            .eager_until
            .map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            if left > EAGER - ANSWERING || !self.read_available(buffer)? {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        } else {
            self.eager_until = None;
            ready!(Pin::new(&mut self.pipe).poll_read(context, buffer))?;
        }
        self.eager_until = self.may_be_eager.then(|| Instant::now() + EAGER);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    use super::*;

    #[tokio::test]
    async fn every_line_comes_whether_it_is_waited_for_or_not() {
        let (mut sender, receiver) = pipe::pipe().unwrap();
        let mut lines = BufReader::new(EagerPipe::new(receiver)).lines();
        for number in 0..50 {
            // The first of each pair comes at once, the second when the eager moment is over.
            for pause in [Duration::ZERO, 2 * EAGER] {
                let write = async {
                    tokio::time::sleep(pause).await;
                    sender.write_all(format!("{number}\n").as_bytes()).await
                };
                let (written, line) = tokio::join!(write, lines.next_line());
                written.unwrap();
                assert_eq!(line.unwrap(), Some(number.to_string()));
            }
        }
        drop(sender);
        assert_eq!(lines.next_line().await.unwrap(), None);
    }

    #[tokio::test]
    async fn it_sleeps_when_nothing_comes() {
        let (mut sender, receiver) = pipe::pipe().unwrap();
        let mut pipe = EagerPipe::new(receiver);
        sender.write_all(b"x").await.unwrap();
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        std::future::poll_fn(|context| Pin::new(&mut pipe).poll_read(context, &mut buffer))
            .await
            .unwrap();
        pipe.eager_until = Some(Instant::now());
        let mut byte = [0];
        let mut none = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(
            Pin::new(&mut pipe)
                .poll_read(&mut context, &mut none)
                .is_pending()
        );
        assert_eq!(pipe.eager_until, None);
    }
}
