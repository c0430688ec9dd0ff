//! The output of a command.

use std::{
    io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{UnixStream, unix::pipe},
};

use crate::protocol::{COVERED, COVERED_TO_THE_END, UNCOVERED};

/// The maximum size in bytes of a piece of output that is checked in one step.
const PIECE: usize = 256 << 10;

/// The standard output and standard error of a command: one pipe, in order.
///
/// If files are hidden from the command, no output is returned that was written after one of them
/// became readable: reading fails with [`PermissionDenied`](io::ErrorKind::PermissionDenied) then.
pub struct CommandOutput {
    pipe: Option<pipe::Receiver>,
    fence: Option<OutputFence>,
}

impl CommandOutput {
    pub(crate) fn new(pipe: pipe::Receiver, fence: Option<UnixStream>) -> Self {
        Self::from_optional_pipe(Some(pipe), fence)
    }

    /// Like [`CommandOutput::new`], but without a pipe the output is empty.
    pub(crate) fn from_optional_pipe(
        pipe: Option<pipe::Receiver>,
        fence: Option<UnixStream>,
    ) -> Self {
        Self {
            pipe,
            fence: fence.map(OutputFence::new),
        }
    }

    /// Moves the output into a new value, so that it can be read by another task than the one that
    /// waits for the command. This value is empty afterwards.
    #[must_use]
    pub fn take(&mut self) -> Self {
        Self {
            pipe: self.pipe.take(),
            fence: self.fence.take(),
        }
    }
}

impl AsyncRead for CommandOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { pipe, fence } = &mut *self;
        let Some(pipe) = pipe else {
            return Poll::Ready(Ok(()));
        };
        match fence {
            None => Pin::new(pipe).poll_read(cx, buffer),
            Some(fence) => fence.poll_read(pipe, cx, buffer),
        }
    }
}

/// Withholds output until the guard has confirmed that no hidden file was readable.
struct OutputFence {
    guard: UnixStream,
    /// The buffer for output; empty before the first read.
    room: Vec<u8>,
    /// The part of the buffer that was not returned yet.
    piece: Range<usize>,
    state: FenceState,
}

#[derive(Clone, Copy)]
enum FenceState {
    /// The piece may be returned.
    Open,
    /// The guard must be asked about the piece.
    Asks,
    /// The guard was asked.
    Waits,
    /// The guard need not be asked any longer.
    Over,
    /// No more output is returned.
    Shut,
}

impl OutputFence {
    fn new(guard: UnixStream) -> Self {
        Self {
            guard,
            room: Vec::new(),
            piece: 0..0,
            state: FenceState::Open,
        }
    }

    fn poll_read(
        &mut self,
        pipe: &mut pipe::Receiver,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.state {
                FenceState::Open | FenceState::Over => {
                    if !self.piece.is_empty() {
                        let rest = &self.room[self.piece.clone()];
                        let count = rest.len().min(buffer.remaining());
                        buffer.put_slice(&rest[..count]);
                        self.piece.start += count;
                        return Poll::Ready(Ok(()));
                    }
                    if matches!(self.state, FenceState::Over) {
                        return Pin::new(pipe).poll_read(cx, buffer);
                    }
                    ready!(self.poll_piece(pipe, cx))?;
                    if self.piece.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                    self.state = FenceState::Asks;
                }
                FenceState::Asks => {
                    // If the guard has exited, its last answer is still in the socket.
                    let _ = ready!(Pin::new(&mut self.guard).poll_write(cx, b"?"));
                    self.state = FenceState::Waits;
                }
                FenceState::Waits => {
                    let mut answer = [0];
                    let mut answered = ReadBuf::new(&mut answer);
                    let read = ready!(Pin::new(&mut self.guard).poll_read(cx, &mut answered));
                    self.state = match answered.filled() {
                        [COVERED] if read.is_ok() => FenceState::Open,
                        [COVERED_TO_THE_END] if read.is_ok() => FenceState::Over,
                        [UNCOVERED] if read.is_ok() => FenceState::Shut,
                        // The guard was killed, so its answer is unknown.
                        _ => FenceState::Shut,
                    };
                }
                FenceState::Shut => {
                    let text = "the rest is withheld: a file that the command may not read was, or may \
                                have been, replaced from outside while it ran";
                    let error = io::Error::new(io::ErrorKind::PermissionDenied, text);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    fn poll_piece(
        &mut self,
        pipe: &mut pipe::Receiver,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.room.resize(PIECE, 0);
        let mut room = ReadBuf::new(&mut self.room);
        let read = Pin::new(pipe).poll_read(cx, &mut room);
        self.piece = 0..room.filled().len();
        read
    }
}
