//! Reads a line as the answer to a question, without input that was typed before the user could
//! read the question.
//!
//! Input that is already buffered in the terminal when a question appears was meant for something
//! else. It is discarded, and so is everything until no key was pressed for [`QUIET_TIME`]. Only then
//! does the prompt appear, and only input after it is used. Several lines in quick succession were
//! pasted or come from a key that is held down; they are not accepted as an answer.

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read},
    termios::{QueueSelector, tcflush},
};

use crate::show;

/// The time without input that must pass before the prompt appears.
const QUIET_TIME: Duration = Duration::from_millis(400);

/// A second line that follows within this time was not typed, so neither line is accepted.
const TOGETHER: Duration = Duration::from_millis(50);

/// The source of the user's input. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum AnswerSource {
    Stdin,
    /// The controlling terminal of this process, used if stdin is something else.
    Tty(Arc<File>),
}

impl AnswerSource {
    /// Returns stdin if it is a terminal.
    pub(crate) fn from_stdin() -> Option<Self> {
        io::stdin().is_terminal().then_some(Self::Stdin)
    }

    /// Returns stdin if it is a terminal, otherwise the controlling terminal if any.
    pub(crate) fn from_stdin_or_tty() -> Option<Self> {
        Self::from_stdin().or_else(|| {
            let tty = File::open("/dev/tty").ok()?;
            Some(Self::Tty(Arc::new(tty)))
        })
    }
}

impl AsFd for AnswerSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            // Bypasses the buffer of `io::stdin()`: its contents were typed before the question.
            Self::Stdin => rustix::stdio::stdin(),
            Self::Tty(tty) => tty.as_fd(),
        }
    }
}

/// The outcome of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineInput {
    Line(String),
    /// The end of the input.
    Ended,
    /// No input within the timeout.
    TooLate,
}

/// The outcome of waiting for input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputWait {
    Ready,
    Nothing,
    /// The terminal was closed.
    Gone,
}

/// Asks for a line and waits for it until the timeout, if any.
pub(crate) fn read_answer(
    source: &AnswerSource,
    prompt: &str,
    timeout: Option<Duration>,
) -> LineInput {
    let stdin = source.as_fd();
    let is_terminal = stdin.is_terminal();
    loop {
        if is_terminal {
            discard(&stdin);
        }
        show::prompt(prompt);
        if timeout.is_some() && wait(&stdin, timeout) == InputWait::Nothing {
            return LineInput::TooLate;
        }
        let heard = read_line(&stdin);
        let is_line = matches!(heard, LineInput::Line(_));
        if is_terminal && is_line && wait(&stdin, Some(TOGETHER)) == InputWait::Ready {
            show::warn("  several lines arrived together, so none is used as the answer");
            continue;
        }
        return heard;
    }
}

/// Discards typed input until no more comes for [`QUIET_TIME`].
fn discard(stdin: &impl AsFd) {
    loop {
        // Also discards a line that was begun but not ended.
        let _ = tcflush(stdin, QueueSelector::IFlush);
        if wait(stdin, Some(QUIET_TIME)) != InputWait::Ready {
            break;
        }
    }
    let _ = tcflush(stdin, QueueSelector::IFlush);
}

/// Waits until input is available. Without a `limit`, waits indefinitely.
pub(crate) fn wait(stdin: &impl AsFd, limit: Option<Duration>) -> InputWait {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    loop {
        let mut waiting = [PollFd::new(stdin, PollFlags::IN)];
        match poll(&mut waiting, limit.as_ref()) {
            Err(Errno::INTR) => {}
            Ok(0) => return InputWait::Nothing,
            Ok(_) if waiting[0].revents().contains(PollFlags::IN) => {
                let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
                return match waiting[0].revents().intersects(gone) {
                    true => InputWait::Gone,
                    false => InputWait::Ready,
                };
            }
            // The next read reports the error.
            Ok(_) | Err(_) => return InputWait::Gone,
        }
    }
}

fn read_line(stdin: &impl AsFd) -> LineInput {
    let mut line = Vec::new();
    let mut byte = [0_u8];
    loop {
        match read(stdin, &mut byte) {
            Err(Errno::INTR) => {}
            Ok(1) if byte == *b"\n" => break,
            Ok(1) => line.push(byte[0]),
            Ok(_) if !line.is_empty() => break,
            Ok(_) | Err(_) => return LineInput::Ended,
        }
    }
    LineInput::Line(String::from_utf8_lossy(&line).into_owned())
}
