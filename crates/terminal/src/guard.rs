//! The terminal as it was, whatever happens: panic, signal, exit, and the end by `kill -9`.
//!
//! Nothing here installs anything. [`RestoreState`] is shared with the writer's thread and always knows what
//! must be undone and draws no more once it was; the program calls [`RestoreState::restore`] from its panic hook, on SIGTERM, SIGHUP and
//! SIGINT, before it is stopped, and when it leaves. A guard process, in a session of its own, is given the
//! terminal, [`crate::input::SavedModes::encode`] and the reading end of a pipe, and calls [`watch`].

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

/// How long the answer to the last question is waited for…
const FAREWELL: Duration = Duration::from_millis(100);
/// …and how long where a terminal is known to be slow.
const SLOW_FAREWELL: Duration = Duration::from_secs(1);

/// What must be undone to leave a terminal as it was.
#[derive(Debug, Default)]
pub struct RestoreState {
    /// The modes were entered.
    modes: AtomicBool,
    title: AtomicBool,
    /// It was restored: nothing more may be drawn.
    is_closed: AtomicBool,
    view: AtomicBool,
    /// Rows from the cursor up to the first of the live region, and how many there are.
    up: AtomicUsize,
    rows: AtomicUsize,
    /// How long the terminal took to answer, in milliseconds.
    answered_after: AtomicU64,
}

impl RestoreState {
    /// Nothing to undo yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// [`TerminalControl::EnterModes`] is about to be sent, or [`TerminalControl::LeaveModes`] was. The writer's
    /// thread calls it for what it sends.
    pub fn set_modes(&self, entered: bool) {
        self.modes.store(entered, Ordering::SeqCst);
    }

    /// A title was pushed, or popped; called like [`RestoreState::set_modes`].
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

    /// How long it took from [`TerminalControl::Queries`] to the last of the answers: over a slow connection the
    /// last question takes as long.
    pub fn set_answered_after(&self, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.answered_after.store(took, Ordering::SeqCst);
    }

    /// How long the answer to the last question is waited for.
    fn farewell(&self) -> Duration {
        let took = Duration::from_millis(self.answered_after.load(Ordering::SeqCst));
        took.saturating_mul(2).clamp(FAREWELL, SLOW_FAREWELL)
    }

    /// Was the terminal restored? The writer's thread draws nothing any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// The program goes on after all, for example after a panic that it caught.
    pub fn reopen(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }

    /// Takes what must be undone, as bytes. A second call finds nothing: the first one does it. From now on
    /// nothing is drawn.
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

    /// Restores a terminal: undoes what was done, discards what it still answers, and sets the modes last.
    ///
    /// # Errors
    /// If the terminal is gone. Everything was tried all the same.
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

    /// Reads and drops what comes until the terminal answers a last question: answers to earlier ones must not
    /// be typed into the shell. Waits for 100 ms, where the terminal is slow for a second at most.
    pub fn discard_answers(&self, terminal: impl AsFd) {
        let terminal = terminal.as_fd();
        if write_all(terminal, b"\x1b[c").is_err() {
            return;
        }
        // Another thread may read as well, as when we panic: what it takes is not waited for.
        if let Ok(mut modes) = tcgetattr(terminal) {
            modes.special_codes[SpecialCodeIndex::VMIN] = 0;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = tcsetattr(terminal, OptionalActions::Now, &modes);
        }
        let until = Instant::now() + self.farewell();
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
            // Another program left it in a mode in which a full terminal refuses.
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(terminal, PollFlags::OUT)];
                retry_on_intr(|| poll(&mut fds, None))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What a program tells its guard, one byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardMessage {
    /// A view is on the alternate screen.
    EnterView,
    /// It is not any more.
    LeaveView,
    /// The title was pushed.
    PushTitle,
    /// Everything was restored: there is nothing to do.
    Goodbye,
}

impl GuardMessage {
    /// As a byte.
    pub fn encode(self) -> u8 {
        match self {
            Self::EnterView => b'V',
            Self::LeaveView => b'v',
            Self::PushTitle => b'T',
            Self::Goodbye => b'G',
        }
    }
}

/// What a guard process does: waits for the end of the pipe and, if no goodbye came before it, restores the
/// terminal. The shell may have the terminal by then. So bracketed paste stays as the shell set it, nothing
/// is erased and nothing is asked, and the modes are set only if they are still raw.
///
/// # Errors
/// If the terminal is gone.
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
            assert_eq!(state.farewell(), Duration::from_millis(expected), "{took}");
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
