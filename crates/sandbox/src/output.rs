//! What a command writes.

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

/// How much is asked about at once, in bytes.
const PIECE: usize = 256 << 10;

/// What a command writes to standard output and standard error: one pipe, in order.
///
/// Where files are hidden from the command, nothing comes out that it wrote after one of them could be
/// read: reading fails with [`PermissionDenied`](io::ErrorKind::PermissionDenied) then.
pub struct CommandOutput {
    pipe: Option<pipe::Receiver>,
    fence: Option<Fence>,
}

impl CommandOutput {
    pub(crate) fn new(pipe: pipe::Receiver, fence: Option<UnixStream>) -> Self {
        Self::of(Some(pipe), fence)
    }

    /// The same, or one from which nothing comes.
    pub(crate) fn of(pipe: Option<pipe::Receiver>, fence: Option<UnixStream>) -> Self {
        Self {
            pipe,
            fence: fence.map(Fence::new),
        }
    }

    /// The same for another reader, beside the one who waits for the command; nothing comes from here any
    /// more.
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

/// Holds back what was read until the guard has vouched for it.
struct Fence {
    guard: UnixStream,
    /// Room for what was read; none before something is.
    room: Vec<u8>,
    /// What of it was read and is not handed on yet.
    piece: Range<usize>,
    state: FenceState,
}

#[derive(Clone, Copy)]
enum FenceState {
    /// The piece may be handed on.
    Open,
    /// The guard is to be asked about the piece.
    Asks,
    /// The guard was asked.
    Waits,
    /// There is no need to ask any more.
    Over,
    /// No more is handed on.
    Shut,
}

impl Fence {
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
                    // A guard that does not listen any more has said its last word.
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
                        // It was ended from outside: what it would have said is not known.
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
