//! A line that a person types as an answer, and nothing that they typed before they could read the
//! question.
//!
//! Whatever waits in the terminal when a question comes up was meant for something else: it is thrown
//! away, and so is what comes in the moment that a person needs to see that there is a question. Only
//! then the prompt appears, and what is typed behind it counts. Lines that come together were pasted,
//! or a key was held down: none of them is an answer.

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

/// Nothing must come for this long before an answer is taken.
const PAUSE: Duration = Duration::from_millis(400);

/// A second line that comes this soon was not typed after the first.
const TOGETHER: Duration = Duration::from_millis(50);

/// Where a person types. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum AnswerSource {
    Stdin,
    /// The terminal that this process belongs to: stdin is something else.
    Tty(Arc<File>),
}

impl AnswerSource {
    /// Stdin, if that is a terminal.
    pub(crate) fn of_stdin() -> Option<Self> {
        io::stdin().is_terminal().then_some(Self::Stdin)
    }

    /// Stdin, or the terminal behind whatever it is.
    pub(crate) fn of_person() -> Option<Self> {
        Self::of_stdin().or_else(|| {
            let tty = File::open("/dev/tty").ok()?;
            Some(Self::Tty(Arc::new(tty)))
        })
    }
}

impl AsFd for AnswerSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            // Not through its buffer: what waits there was typed before.
            Self::Stdin => rustix::stdio::stdin(),
            Self::Tty(tty) => tty.as_fd(),
        }
    }
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Line(String),
    /// Nothing more comes.
    Ended,
    /// Nothing came in time.
    TooLate,
}

/// What waiting for input led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Ready,
    Nothing,
    /// The terminal is gone.
    Gone,
}

/// Asks for a line, and waits for it no longer than that.
pub(crate) fn hear(source: &AnswerSource, prompt: &str, patience: Option<Duration>) -> Heard {
    let stdin = source.as_fd();
    let is_terminal = stdin.is_terminal();
    loop {
        if is_terminal {
            discard(&stdin);
        }
        show::prompt(prompt);
        if patience.is_some() && wait(&stdin, patience) == Waited::Nothing {
            return Heard::TooLate;
        }
        let heard = read_line(&stdin);
        let is_line = matches!(heard, Heard::Line(_));
        if is_terminal && is_line && wait(&stdin, Some(TOGETHER)) == Waited::Ready {
            show::warn("  several lines came at once, so none is taken as the answer");
            continue;
        }
        return heard;
    }
}

/// Throws away what was typed, until nothing more comes.
fn discard(stdin: &impl AsFd) {
    loop {
        // Also what stands in a line that was not ended.
        let _ = tcflush(stdin, QueueSelector::IFlush);
        if wait(stdin, Some(PAUSE)) != Waited::Ready {
            break;
        }
    }
    let _ = tcflush(stdin, QueueSelector::IFlush);
}

/// `None`: for as long as it takes.
pub(crate) fn wait(stdin: &impl AsFd, limit: Option<Duration>) -> Waited {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    loop {
        let mut waiting = [PollFd::new(stdin, PollFlags::IN)];
        match poll(&mut waiting, limit.as_ref()) {
            Err(Errno::INTR) => {}
            Ok(0) => return Waited::Nothing,
            Ok(_) if waiting[0].revents().contains(PollFlags::IN) => {
                let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
                return match waiting[0].revents().intersects(gone) {
                    true => Waited::Gone,
                    false => Waited::Ready,
                };
            }
            // The reading says what is wrong.
            Ok(_) | Err(_) => return Waited::Gone,
        }
    }
}

fn read_line(stdin: &impl AsFd) -> Heard {
    let mut line = Vec::new();
    let mut byte = [0_u8];
    loop {
        match read(stdin, &mut byte) {
            Err(Errno::INTR) => {}
            Ok(1) if byte == *b"\n" => break,
            Ok(1) => line.push(byte[0]),
            Ok(_) if !line.is_empty() => break,
            Ok(_) | Err(_) => return Heard::Ended,
        }
    }
    Heard::Line(String::from_utf8_lossy(&line).into_owned())
}
