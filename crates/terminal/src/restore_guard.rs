//! Restores the terminal in every case: panic, signal, exit, and even `kill -9`.
//!
//! This module installs nothing. [`RestoreState`] is shared with the writer thread and always
//! records what must be undone. After the terminal was restored, no frame is drawn. The program
//! calls [`RestoreState::restore`] from its panic hook, on SIGTERM, SIGHUP and SIGINT, before it is
//! stopped, and when it exits. A guard process in its own session receives the terminal, the text
//! of [`crate::input::SavedModes::encode`] and the reading end of a pipe, and calls [`watch`].

use std::{
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, read, retry_on_intr, write},
    termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr},
};

use crate::{
    input::{InputEvent, InputParser, SavedModes, TerminalReply},
    paint::{TerminalControl, movement},
};

/// The shortest time to wait for the reply to the final query.
const FAREWELL: Duration = Duration::from_millis(100);
/// The longest time to wait for this reply, for terminals that have been slow to reply.
const SLOW_FAREWELL: Duration = Duration::from_secs(1);

/// The state that must be undone to restore a terminal.
#[derive(Debug, Default)]
pub struct RestoreState {
    /// True if the modes were entered.
    modes: AtomicBool,
    title: AtomicBool,
    /// True if the terminal was restored. No frame may be drawn then.
    is_closed: AtomicBool,
    view: AtomicBool,
    /// The number of rows from the cursor up to the first row of the live region.
    up: AtomicUsize,
    /// The number of rows of the live region.
    rows: AtomicUsize,
    /// The time the terminal took to reply, in milliseconds.
    answered_after: AtomicU64,
}

impl RestoreState {
    /// Creates an empty state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that [`TerminalControl::EnterModes`] is about to be sent, or that
    /// [`TerminalControl::LeaveModes`] was sent. The writer thread calls it for what it sends.
    pub fn set_modes(&self, entered: bool) {
        self.modes.store(entered, Ordering::SeqCst);
    }

    /// Records that a title was pushed or popped; called like [`RestoreState::set_modes`].
    pub fn set_title(&self, is_pushed: bool) {
        self.title.store(is_pushed, Ordering::SeqCst);
    }

    pub(crate) fn set_in_view(&self, in_view: bool) {
        self.view.store(in_view, Ordering::SeqCst);
    }

    pub(crate) fn set_region(&self, up: usize, rows: usize) {
        self.up.store(up, Ordering::SeqCst);
        self.rows.store(rows, Ordering::SeqCst);
    }

    /// Records the time from [`TerminalControl::Queries`] to the last reply: over a slow
    /// connection, the reply to the final query takes about as long.
    pub fn set_answered_after(&self, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.answered_after.store(took, Ordering::SeqCst);
    }

    /// Returns the time to wait for the reply to the final query.
    fn final_wait(&self) -> Duration {
        let took = Duration::from_millis(self.answered_after.load(Ordering::SeqCst));
        took.saturating_mul(2).clamp(FAREWELL, SLOW_FAREWELL)
    }

    /// Returns whether the terminal was restored. If so, the writer thread stops drawing.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Allows drawing again, for example after a panic that the program caught.
    pub fn reopen(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }

    /// Returns the bytes that undo everything, and clears the state: a second call returns nothing.
    /// From now on no frame is drawn.
    pub fn take_sequence(&self) -> Vec<u8> {
        self.is_closed.store(true, Ordering::SeqCst);
        let mut out = Vec::new();
        if self.view.swap(false, Ordering::SeqCst) {
            out.extend_from_slice(b"\x1b[?1049l");
        }
        let rows = self.rows.swap(0, Ordering::SeqCst);
        if rows > 0 {
            movement::up(self.up.swap(0, Ordering::SeqCst), &mut out);
            out.push(b'\r');
            movement::erase_rows(rows, &mut out);
        }
        if self.modes.swap(false, Ordering::SeqCst) {
            TerminalControl::LeaveModes.write(&mut out);
        }
        if self.title.swap(false, Ordering::SeqCst) {
            TerminalControl::PopTitle.write(&mut out);
        }
        out
    }

    /// Restores a terminal: undoes everything, discards replies that are still to come, and sets
    /// the saved modes last.
    ///
    /// # Errors
    /// If the terminal no longer exists. All steps were tried nevertheless.
    pub fn restore(&self, terminal: impl AsFd, modes: &SavedModes) -> io::Result<()> {
        let terminal = terminal.as_fd();
        let had_modes = self.modes.load(Ordering::SeqCst);
        let sequence = self.take_sequence();
        let written = write_all(terminal, &sequence);
        if had_modes && written.is_ok() {
            self.discard_answers(terminal);
        }
        modes.restore(terminal)?;
        written
    }

    /// Sends a final query, and discards all input until its reply: late replies to earlier queries
    /// must not end up in the shell. Waits up to 100 ms, or up to one second on a slow terminal.
    pub fn discard_answers(&self, terminal: impl AsFd) {
        let terminal = terminal.as_fd();
        if write_all(terminal, b"\x1b[c").is_err() {
            return;
        }
        // Another thread may be reading too, as during a panic. Reads must therefore not block.
        if let Ok(mut modes) = tcgetattr(terminal) {
            modes.special_codes[SpecialCodeIndex::VMIN] = 0;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = tcsetattr(terminal, OptionalActions::Now, &modes);
        }
        let until = Instant::now() + self.final_wait();
        let mut parser = InputParser::new();
        let mut buffer = [0; 1024];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else {
                return;
            };
            let mut fds = [PollFd::from_borrowed_fd(terminal, PollFlags::IN)];
            match poll(&mut fds, Some(&left)) {
                Ok(1..) => {}
                _ => return,
            }
            let Ok(count @ 1..) = read(terminal, &mut buffer[..]) else {
                return;
            };
            let is_answer = |event: &InputEvent| {
                matches!(event, InputEvent::Reply(TerminalReply::Attributes(_)))
            };
            if parser.feed(&buffer[..count]).iter().any(is_answer) {
                return;
            }
        }
    }
}

fn write_all(terminal: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match retry_on_intr(|| write(terminal, bytes)) {
            Ok(count) => bytes = &bytes[count..],
            // Another program left the terminal in non-blocking mode.
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(terminal, PollFlags::OUT)];
                retry_on_intr(|| poll(&mut fds, None))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A message from a program to its guard process, one byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardMessage {
    /// A view is on the alternate screen.
    EnterView,
    /// The view was left.
    LeaveView,
    /// The title was pushed.
    PushTitle,
    /// Everything was restored: the guard exits without restoring the terminal.
    Goodbye,
}

impl GuardMessage {
    /// Returns the message as a byte.
    pub fn encode(self) -> u8 {
        match self {
            Self::EnterView => b'V',
            Self::LeaveView => b'v',
            Self::PushTitle => b'T',
            Self::Goodbye => b'G',
        }
    }
}

/// Runs the guard process: waits for the end of the pipe and restores the terminal, unless
/// [`GuardMessage::Goodbye`] came before. The shell may already own the terminal by then. So
/// bracketed paste stays as the shell set it, nothing is erased or queried, and the modes are set
/// only if they are still raw. Returns whether the terminal was restored.
///
/// # Errors
/// If the terminal no longer exists.
pub fn watch(
    mut pipe: impl Read,
    mut output: impl Write,
    terminal: impl AsFd,
    modes: &SavedModes,
) -> io::Result<bool> {
    let (mut in_view, mut has_title) = (false, false);
    let mut byte = [0];
    while pipe.read(&mut byte)? == 1 {
        match byte[0] {
            b'V' => in_view = true,
            b'v' => in_view = false,
            b'T' => has_title = true,
            b'G' => return Ok(false),
            _ => {}
        }
    }
    let mut out = Vec::new();
    if in_view {
        out.extend_from_slice(b"\x1b[?1049l");
    }
    out.extend_from_slice(b"\x1b[<u\x1b[>4m\x1b[?1004l\x1b[?2031l\x1b[?2026l\x1b[?25h");
    if has_title {
        TerminalControl::PopTitle.write(&mut out);
    }
    let written = output.write_all(&out).and_then(|()| output.flush());
    modes.restore_if_raw(terminal)?;
    written.map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_terminal_is_waited_for_longer_and_not_forever() {
        let state = RestoreState::new();
        let cases = [(0, 100), (20, 100), (120, 240), (400, 800), (90_000, 1_000)];
        for (took, expected) in cases {
            state.set_answered_after(Duration::from_millis(took));
            assert_eq!(
                state.final_wait(),
                Duration::from_millis(expected),
                "{took}"
            );
        }
    }

    #[test]
    fn what_was_done_is_undone_once() {
        let state = RestoreState::new();
        assert!(state.take_sequence().is_empty());
        state.set_modes(true);
        state.set_title(true);
        state.set_in_view(true);
        state.set_region(1, 2);
        let sequence = String::from_utf8(state.take_sequence()).unwrap();
        assert_eq!(
            sequence,
            "\x1b[?1049l\x1b[A\r\x1b7\x1b[K\x1b[B\x1b[K\x1b8\
             \x1b[<u\x1b[>4m\x1b[?2004l\x1b[?1004l\x1b[?2031l\x1b[?2026l\x1b[?25h\x1b[23;2t"
        );
        assert!(state.take_sequence().is_empty());
    }
}
