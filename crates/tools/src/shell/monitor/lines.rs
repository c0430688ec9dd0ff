//! A bounded queue of output lines, which collects them until they are taken as an event.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::shell::command_output::plain;

/// The maximum length of a line, in bytes. The rest of a longer line is dropped.
const MAX_LINE: usize = 2_000;
/// The maximum size of the queued lines, in bytes. Further lines are only counted.
const MAX_WAITING: usize = 8_000;
/// The maximum number of events within [`WINDOW`].
const MAX_EVENTS: usize = 100;
/// The maximum number of bytes within [`WINDOW`].
const MAX_BYTES: u64 = 10 << 20;
/// The time window for [`MAX_EVENTS`] and [`MAX_BYTES`].
const WINDOW: Duration = Duration::from_secs(60);

/// The queued lines. Clones share the same queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineQueue(Arc<(Mutex<WaitingLines>, Notify)>);

#[derive(Debug, Default)]
struct WaitingLines {
    /// The current line, which has no line end yet.
    open: Vec<u8>,
    /// The current line exceeded the maximum length.
    is_cut: bool,
    lines: Vec<String>,
    waiting: usize,
    dropped: u64,
    bytes: u64,
}

/// The lines that one event of a monitor reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MonitorEvent {
    /// The lines. Empty if the output had no new lines but many bytes.
    pub(crate) text: String,
    /// The number of bytes since the last event, including dropped ones.
    pub(crate) bytes: u64,
}

impl LineQueue {
    /// Adds output.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut waiting = self.waiting();
        waiting.push(bytes);
        let is_any = waiting.is_any();
        drop(waiting);
        if is_any {
            self.0.1.notify_one();
        }
    }

    /// Ends the output. An unfinished line becomes a line.
    pub(crate) fn finish(&self) {
        let mut waiting = self.waiting();
        if !waiting.open.is_empty() || waiting.is_cut {
            waiting.end_line();
        }
    }

    /// Waits until an event is available.
    pub(crate) async fn any(&self) {
        while !self.waiting().is_any() {
            self.0.1.notified().await;
        }
    }

    /// Takes all queued lines as one event, if any.
    pub(crate) fn take(&self) -> Option<MonitorEvent> {
        self.waiting().take()
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingLines> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingLines {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.add(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.add(rest);
    }

    fn add(&mut self, part: &[u8]) {
        let room = MAX_LINE - self.open.len();
        self.open.extend_from_slice(&part[..part.len().min(room)]);
        // An endless line is shown once, as soon as it is too long. Its rest is dropped.
        if part.len() > room && !self.is_cut {
            self.is_cut = true;
            let line = mem::take(&mut self.open);
            self.queue_line(&line, " [the line continues]");
        } else if self.is_cut {
            self.open.clear();
        }
    }

    fn end_line(&mut self) {
        let line = mem::take(&mut self.open);
        if !mem::take(&mut self.is_cut) {
            self.queue_line(&line, "");
        }
    }

    fn queue_line(&mut self, line: &[u8], note: &str) {
        // Check the size before decoding: most lines of a flood are dropped here.
        if self.waiting + line.len() > MAX_WAITING {
            self.dropped += 1;
            return;
        }
        let text = plain(line);
        if text.trim().is_empty() {
            return;
        }
        self.waiting += text.len() + 1;
        self.lines.push(format!("{text}{note}"));
    }

    fn is_any(&self) -> bool {
        // Output without lines also becomes an event if it is too large.
        !self.lines.is_empty() || self.dropped > 0 || self.bytes > MAX_BYTES
    }

    fn take(&mut self) -> Option<MonitorEvent> {
        if !self.is_any() {
            return None;
        }
        let mut text = mem::take(&mut self.lines).join("\n");
        self.waiting = 0;
        match mem::take(&mut self.dropped) {
            0 => {}
            1 => text.push_str("\n[1 more line is not shown]"),
            more => text.push_str(&format!("\n[{more} more lines are not shown]")),
        }
        Some(MonitorEvent {
            text,
            bytes: mem::take(&mut self.bytes),
        })
    }
}

/// The number of events and bytes of a monitor within [`WINDOW`].
#[derive(Debug, Default)]
pub(crate) struct EventRate {
    events: VecDeque<(Instant, u64)>,
}

impl EventRate {
    /// Records an event. Returns the reason if there were too many events or bytes.
    pub(crate) fn record_event(&mut self, now: Instant, bytes: u64) -> Option<&'static str> {
        let is_old = |at: &Instant| now.saturating_duration_since(*at) >= WINDOW;
        while self.events.front().is_some_and(|(at, _)| is_old(at)) {
            self.events.pop_front();
        }
        self.events.push_back((now, bytes));
        let said: u64 = self.events.iter().map(|(_, bytes)| bytes).sum();
        if self.events.len() > MAX_EVENTS {
            return Some("it had more than 100 events in a minute");
        }
        (said > MAX_BYTES).then_some("it wrote more than 10 MiB in a minute")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let lines = LineQueue::default();
        for piece in pieces {
            lines.push(piece);
        }
        lines.finish();
        let event = lines.take();
        event.map_or_else(Vec::new, |event| {
            event.text.lines().map(str::to_owned).collect()
        })
    }

    #[test]
    fn output_is_cut_into_lines_wherever_its_pieces_end() {
        type Pieces = &'static [&'static [u8]];
        let cases: [(&str, Pieces, &[&str]); 7] = [
            ("nothing", &[b""], &[]),
            ("two lines", &[b"a\nb\n"], &["a", "b"]),
            ("a line in pieces", &[b"a", b"b", b"c\nd"], &["abc", "d"]),
            ("blank lines", &[b"\n \n\na\n\n"], &["a"]),
            ("line ends of others", &[b"a\r\nb\r\n"], &["a", "b"]),
            ("colours", &[b"\x1b[31mred\x1b[0m\n"], &["red"]),
            ("no text", &[b"\xff\xfe\n"], &["\u{fffd}\u{fffd}"]),
        ];
        for (what, pieces, expected) in cases {
            assert_eq!(lines(pieces), expected, "{what}");
        }
    }

    #[test]
    fn an_endless_line_is_shown_once_and_takes_no_room() {
        let lines = LineQueue::default();
        for _ in 0..1_000 {
            lines.push(&[b'x'; 100_000]);
        }
        let event = lines.take().unwrap();
        assert_eq!(event.bytes, 100_000_000);
        assert_eq!(event.text.len(), MAX_LINE + " [the line continues]".len());
        assert!(lines.take().is_none());
        lines.push(&vec![b'x'; 1 + MAX_BYTES as usize]);
        assert_eq!(lines.take().unwrap().text, "", "but it is too much");
        lines.push(b"still the same line\nanother\n");
        assert_eq!(lines.take().unwrap().text, "another");
        assert!(lines.waiting().open.capacity() <= 2 * MAX_LINE);
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let lines = LineQueue::default();
        for number in 0..1_000_000 {
            lines.push(format!("line {number}\n").as_bytes());
        }
        let event = lines.take().unwrap();
        assert!(event.text.len() < MAX_WAITING + 100, "{}", event.text.len());
        let shown = event.text.lines().count() - 1;
        let note = format!("[{} more lines are not shown]", 1_000_000 - shown);
        assert_eq!(event.text.lines().next_back(), Some(&*note));
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_a_line_and_not_by_less() {
        let lines = LineQueue::default();
        lines.push(b"not yet");
        let waiting = lines.any();
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            () = &mut waiting => panic!("there is no line"),
            () = tokio::task::yield_now() => {}
        }
        lines.push(b" now\n");
        waiting.await;
        assert_eq!(lines.take().unwrap().text, "not yet now");
    }

    #[test]
    fn the_hundred_and_first_event_of_a_minute_is_too_much() {
        let start = Instant::now();
        let mut rate = EventRate::default();
        for number in 0..100 {
            let at = start + Duration::from_millis(number * 500);
            assert_eq!(rate.record_event(at, 10), None);
        }
        let mut fast = EventRate {
            events: rate.events.clone(),
        };
        assert!(
            fast.record_event(start + Duration::from_secs(59), 10)
                .is_some()
        );
        // The first is forgotten by then.
        assert_eq!(rate.record_event(start + WINDOW, 10), None);
        let mut flood = EventRate::default();
        assert_eq!(flood.record_event(start, MAX_BYTES), None);
        assert!(flood.record_event(start, 1).is_some());
    }
}
