//! The thread that reads the terminal. It passes the bytes on with the time of their arrival, and
//! pauses while another program uses the terminal.

use std::{
    fmt, io,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, read, write},
    pipe::{PipeFlags, pipe_with},
};

/// The result of one read.
#[derive(Debug)]
pub struct InputChunk {
    /// The bytes. Empty at the end: the terminal no longer exists.
    pub bytes: Vec<u8>,
    /// The time of the read.
    pub read_at: Instant,
}

/// The maximum time to wait for the thread to end.
const ENDING: Duration = Duration::from_millis(200);

/// A thread that reads a terminal. Dropping it ends the thread.
pub struct InputReader {
    shared: Arc<ReaderShared>,
    /// Wakes the thread from its wait.
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct ReaderShared {
    state: Mutex<ReaderState>,
    changed: Condvar,
}

#[derive(Default)]
struct ReaderState {
    target_mode: ReaderMode,
    /// Whether the thread has stopped reading and waits for another mode.
    is_parked: bool,
}

#[derive(Default, PartialEq, Eq, Clone, Copy)]
enum ReaderMode {
    #[default]
    Read,
    Pause,
    End,
}

impl fmt::Debug for InputReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("InputReader")
            .finish_non_exhaustive()
    }
}

impl InputReader {
    /// Starts to read. Input is passed to `on_input` on the thread; the callback must only pass it
    /// on.
    ///
    /// # Errors
    /// If the process has too many open files or threads.
    pub fn start(
        terminal: impl AsFd,
        on_input: impl FnMut(InputChunk) + Send + 'static,
    ) -> io::Result<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC)?;
        let shared = Arc::new(ReaderShared::default());
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("terminal input".into())
            .spawn(move || for_thread.run(&terminal, &woken, on_input))?;
        Ok(Self {
            shared,
            wake,
            thread: Some(thread),
        })
    }

    /// Stops reading until [`InputReader::resume`]; returns when the thread has stopped.
    pub fn pause(&self) {
        self.set_mode(ReaderMode::Pause);
        let mut state = self.shared.lock();
        while !state.is_parked && !self.is_finished() {
            let wait = self.shared.changed.wait(state);
            state = wait.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Continues reading.
    pub fn resume(&self) {
        self.set_mode(ReaderMode::Read);
    }

    fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn set_mode(&self, wanted: ReaderMode) {
        self.shared.lock().target_mode = wanted;
        self.shared.changed.notify_all();
        // A full pipe wakes the thread as well.
        let _ = write(&self.wake, b"w");
    }
}

impl Drop for InputReader {
    fn drop(&mut self) {
        self.set_mode(ReaderMode::End);
        let state = self.shared.lock();
        let reads = |state: &mut ReaderState| !state.is_parked;
        let waited = self.shared.changed.wait_timeout_while(state, ENDING, reads);
        let has_ended = waited.is_ok_and(|(_, waited)| !waited.timed_out());
        // The code that restores the terminal may read what the thread was about to read, as during
        // a panic. The thread then waits for the next key and is not joined.
        if let Some(thread) = self.thread.take().filter(|_| has_ended) {
            let _ = thread.join();
        }
    }
}

impl ReaderShared {
    fn lock(&self) -> MutexGuard<'_, ReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, terminal: &OwnedFd, woken: &OwnedFd, mut on_input: impl FnMut(InputChunk)) {
        let mut buffer = vec![0; 64 * 1024];
        while self.may_read() {
            let mut fds = [
                PollFd::new(terminal, PollFlags::IN),
                PollFd::new(woken, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            let (input, wake) = (fds[0].revents(), fds[1].revents());
            if !wake.is_empty() {
                let _ = read(woken, &mut [0; 64][..]);
                continue;
            }
            if input.is_empty() {
                continue;
            }
            let bytes = match read(terminal, &mut buffer[..]) {
                Ok(count) => buffer[..count].to_vec(),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(_) => Vec::new(),
            };
            let is_end = bytes.is_empty();
            on_input(InputChunk {
                bytes,
                read_at: Instant::now(),
            });
            if is_end {
                break;
            }
        }
        self.lock().is_parked = true;
        self.changed.notify_all();
    }

    /// Waits until a pause ends. Returns `false` if the thread must end.
    fn may_read(&self) -> bool {
        let mut state = self.lock();
        while state.target_mode == ReaderMode::Pause {
            state.is_parked = true;
            self.changed.notify_all();
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.is_parked = false;
        state.target_mode == ReaderMode::Read
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn bytes_are_passed_on_but_not_during_a_pause() {
        let (input, output) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (sender, receiver) = mpsc::channel();
        let reader =
            InputReader::start(&input, move |chunk| drop(sender.send(chunk.bytes))).unwrap();
        write(&output, b"one").unwrap();
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), b"one");
        reader.pause();
        write(&output, b"two").unwrap();
        assert!(receiver.try_recv().is_err());
        reader.resume();
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), b"two");
        drop(output);
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), b"", "the end");
        reader.pause();
    }
}
