//! The bounded output of an interpreter, and the detection of the end of each call's output.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_sandbox::CommandOutput;
use memchr::memmem;
use tokio::{io::AsyncReadExt, sync::Notify};

use crate::shell::command_output;

/// The maximum size of the stored beginning and of the stored end, in bytes each.
const EACH: usize = 16 << 10;
/// The maximum size of a progress report, in bytes. It contains the end of the new output.
const NEWS: usize = 4 << 10;
/// The maximum output of a call, in bytes. An interpreter that prints more is ended.
const FLOOD: u64 = 200 << 20;

/// The output since it was last taken. Shared with the task that reads the pipe.
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
    /// The mark that ends the output of the call.
    mark: Option<Vec<u8>>,
    /// The last bytes read, which may be the beginning of the mark.
    held: Vec<u8>,
    is_over: bool,
}

impl PrintedOutput {
    /// Reads the output until all writers have closed the pipe.
    pub(super) async fn read_output(self: Arc<Self>, mut output: CommandOutput) {
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
        state.store(&held);
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
                // Bytes that may be the beginning of the mark are held back.
                let begun = (1..mark.len().min(bytes.len() + 1))
                    .rev()
                    .find(|length| bytes.ends_with(&mark[..*length]));
                state.held = bytes.split_off(bytes.len() - begun.unwrap_or(0));
            }
        }
        state.store(&bytes);
        drop(state);
        self.came.notify_one();
    }

    /// Begins a call whose output ends with this mark.
    pub(super) fn begin(&self, mark: &str) {
        self.state().mark = Some(mark.as_bytes().to_vec());
    }

    /// Waits until all output of the call has arrived.
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

    /// Returns whether the call has printed too much.
    pub(super) fn is_flood(&self) -> bool {
        self.state().total > FLOOD
    }

    /// Returns the new output since the last call of this function, or only the end of it.
    pub(super) fn news(&self) -> Option<String> {
        let news = std::mem::take(&mut self.state().news);
        (!news.is_empty()).then(|| command_output::part(&news))
    }

    /// Takes the whole output. The middle of a long output is left out.
    pub(super) fn take(&self) -> String {
        let mut state = self.state();
        let head = std::mem::take(&mut state.head);
        let tail = Vec::from(std::mem::take(&mut state.tail));
        let total = std::mem::take(&mut state.total);
        state.news.clear();
        drop(state);
        let kept = (head.len() + tail.len()) as u64;
        if kept == total {
            return command_output::plain(&[head, tail].concat());
        }
        let (head, tail) = (command_output::plain(&head), command_output::plain(&tail));
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
    fn store(&mut self, bytes: &[u8]) {
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
