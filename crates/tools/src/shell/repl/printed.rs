//! What an interpreter prints, kept within bounds, and where the output of one call ends.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_sandbox::CommandOutput;
use memchr::memmem;
use tokio::{io::AsyncReadExt, sync::Notify};

use crate::shell::answer;

/// So much of the beginning and of the end is kept, in bytes each.
const EACH: usize = 16 << 10;
/// So much of what is new is reported while it runs, in bytes: the end of it.
const NEWS: usize = 4 << 10;
/// A call that prints more is ended, in bytes.
const FLOOD: u64 = 200 << 20;

/// What was printed since it was last taken. Shared with the one who reads the pipe.
#[derive(Default)]
pub(super) struct PrintedOutput {
    state: Mutex<PrintedState>,
    came: Notify,
}

#[derive(Default)]
struct PrintedState {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    news: Vec<u8>,
    /// Where the output of the call ends.
    mark: Option<Vec<u8>>,
    /// The end of what was read, which may be the beginning of the mark.
    held: Vec<u8>,
    is_over: bool,
}

impl PrintedOutput {
    /// Reads all that is printed, until no one can print any more.
    pub(super) async fn follow(self: Arc<Self>, mut output: CommandOutput) {
        let mut room = vec![0; 64 << 10];
        loop {
            match output.read(&mut room).await {
                Ok(0) => break,
                Ok(read) => self.push(&room[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let mut state = self.state();
        let held = std::mem::take(&mut state.held);
        state.keep(&held);
        state.is_over = true;
        drop(state);
        self.came.notify_one();
    }

    fn push(&self, bytes: &[u8]) {
        let mut state = self.state();
        let mut bytes = [std::mem::take(&mut state.held).as_slice(), bytes].concat();
        if let Some(mark) = state.mark.clone() {
            if let Some(at) = memmem::find(&bytes, &mark) {
                bytes.drain(at..at + mark.len());
                state.mark = None;
            } else {
                // As much as may be its beginning waits for what comes next.
                let begun = (1..mark.len().min(bytes.len() + 1))
                    .rev()
                    .find(|length| bytes.ends_with(&mark[..*length]));
                state.held = bytes.split_off(bytes.len() - begun.unwrap_or(0));
            }
        }
        state.keep(&bytes);
        drop(state);
        self.came.notify_one();
    }

    /// A call begins, whose output ends with this.
    pub(super) fn begin(&self, mark: &str) {
        self.state().mark = Some(mark.as_bytes().to_vec());
    }

    /// Waits until all is there that the call printed before its end.
    pub(super) async fn until_marked(&self) {
        loop {
            {
                let state = self.state();
                if state.mark.is_none() || state.is_over {
                    return;
                }
            }
            self.came.notified().await;
        }
    }

    /// Does it print more than anyone could read?
    pub(super) fn is_flood(&self) -> bool {
        self.state().total > FLOOD
    }

    /// What is new since this was asked the last time, the end of it.
    pub(super) fn news(&self) -> Option<String> {
        let news = std::mem::take(&mut self.state().news);
        (!news.is_empty()).then(|| answer::part(&news))
    }

    /// All that was printed, with its middle left out where it is too long.
    pub(super) fn take(&self) -> String {
        let mut state = self.state();
        let head = std::mem::take(&mut state.head);
        let tail = Vec::from(std::mem::take(&mut state.tail));
        let total = std::mem::take(&mut state.total);
        state.news.clear();
        drop(state);
        let kept = (head.len() + tail.len()) as u64;
        if kept == total {
            return answer::plain(&[head, tail].concat());
        }
        let (head, tail) = (answer::plain(&head), answer::plain(&tail));
        format!(
            "{head}\n\n... [{} bytes left out] ...\n\n{tail}",
            total - kept
        )
    }

    fn state(&self) -> MutexGuard<'_, PrintedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrintedState {
    fn keep(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.news.extend_from_slice(bytes);
        let surplus = self.news.len().saturating_sub(NEWS);
        self.news.drain(..surplus);
        let room = EACH.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(EACH)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(EACH);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_found_however_the_bytes_are_split() {
        let text = b"one\0haft\0two\0mark x\0\nthree";
        for at in 0..text.len() {
            for to in at..text.len() {
                let printed = PrintedOutput::default();
                printed.begin("\0mark x\0\n");
                for part in [&text[..at], &text[at..to], &text[to..]] {
                    printed.push(part);
                }
                assert!(printed.state().mark.is_none(), "{at} {to}");
                let mut all = printed.state().head.clone();
                all.extend(printed.state().held.iter());
                assert_eq!(all, b"one\0haft\0twothree", "{at} {to}");
            }
        }
    }

    #[test]
    fn of_a_long_output_beginning_and_end_are_kept() {
        let printed = PrintedOutput::default();
        printed.push(b"first\n");
        for _ in 0..1_000 {
            printed.push(&[b'x'; 1_000]);
        }
        printed.push(b"\nlast");
        let text = printed.take();
        assert!(text.starts_with("first\nxxx") && text.ends_with("xxx\nlast"));
        assert!(text.contains(" bytes left out] ..."), "{}", text.len());
        assert!(text.len() < 2 * EACH + 100);
        assert_eq!(printed.take(), "");
        printed.push(b"next");
        assert_eq!(printed.news().as_deref(), Some("next"));
        assert_eq!((printed.news(), printed.take().as_str()), (None, "next"));
    }
}
