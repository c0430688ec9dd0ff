//! Closes an event queue that holds more events than can be applied one by one.
//!
//! Queueing events slows down the writing process: about 2 µs per file, up to a fifth of the time
//! to write a small file. A build that writes thousands of files would pay this without any
//! benefit, because the tree is then read again anyway. A thread checks the size of the queue, but
//! only while files are written, and closes the queue when it is too large. From then on there are
//! no events and no cost.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;

use super::watch::EventQueue;

/// The queue size in bytes at which the queue is closed: about 12,000 events with short names,
/// which is more than are applied one by one.
const FLOOD: u64 = 384 << 10;

/// The shortest and longest pause between two checks of the queue. A check is not free, because the
/// kernel counts every queued event.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

/// The reasons why the thread wakes up.
const NEW_EVENTS: u64 = 0;
const END: u64 = 1;

/// Ends its thread when dropped.
#[derive(Debug)]
pub(crate) struct FloodGuard {
    end: Arc<OwnedFd>,
}

impl FloodGuard {
    pub(crate) fn new(queue: &Arc<EventQueue>) -> io::Result<Self> {
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Edge-triggered: reported once per change, not for as long as the queue is not empty.
        let when_new = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(NEW_EVENTS);
        queue.with(|queue| epoll::add(&epoll, queue, data, when_new))?;
        let data = epoll::EventData::new_u64(END);
        epoll::add(&epoll, &end, data, epoll::EventFlags::IN)?;
        let (queue, its_end) = (Arc::clone(queue), Arc::clone(&end));
        let builder = thread::Builder::new().name("search-flood".into());
        builder
            .stack_size(64 << 10)
            .spawn(move || guard(&queue, &epoll, &its_end))?;
        Ok(Self { end })
    }
}

impl Drop for FloodGuard {
    fn drop(&mut self) {
        // This fails only if the counter is full, and then the thread ends as well.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
    }
}

fn guard(queue: &EventQueue, epoll: &OwnedFd, end: &OwnedFd) {
    let mut events = Vec::with_capacity(2);
    let (mut pause, mut before) = (PAUSES.0, 0);
    loop {
        let waits = Instant::now();
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        if events.drain(..).any(|event| event.data.u64() == END) {
            return;
        }
        let held = match queue.with(|queue| rustix::io::ioctl_fionread(queue)) {
            Ok(held) if held < FLOOD => held,
            _ => return queue.end(),
        };
        pause = match waits.elapsed() > PAUSES.1 {
            true => PAUSES.0,
            false => next_pause(pause, held.saturating_sub(before), FLOOD - held),
        };
        before = held;
        if has_ended_within(end, pause) {
            return;
        }
    }
}

/// Returns the pause until the next check, from the bytes that came during the last pause and the
/// room that is left: a quarter of the time until the queue is full at the same rate. At most twice
/// the last pause, because the rate may rise.
fn next_pause(last: Duration, came: u64, room: u64) -> Duration {
    let fills = last.as_secs_f64() * room as f64 / came.max(1) as f64;
    let longest = PAUSES.1.min(last * 2);
    Duration::from_secs_f64((fills / 4.0).clamp(PAUSES.0.as_secs_f64(), longest.as_secs_f64()))
}

fn has_ended_within(end: &OwnedFd, pause: Duration) -> bool {
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: pause.subsec_nanos().into(),
    };
    let mut asked = [PollFd::new(end, PollFlags::IN)];
    // A signal may shorten the pause.
    matches!(poll(&mut asked, Some(&pause)), Ok(1..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_often_only_where_much_is_written() {
        let mut pauses = vec![PAUSES.0];
        let slowly = |last| next_pause(last, 1000, FLOOD);
        while pauses.len() < 6 {
            pauses.push(slowly(pauses[pauses.len() - 1]));
        }
        assert_eq!(
            pauses.iter().map(Duration::as_millis).collect::<Vec<_>>(),
            [20, 40, 80, 160, 250, 250]
        );
        assert_eq!(
            next_pause(PAUSES.1, FLOOD / 2, FLOOD / 2).as_micros(),
            62_500
        );
        assert_eq!(next_pause(PAUSES.1, FLOOD - 1, 1), PAUSES.0);
        assert_eq!(next_pause(PAUSES.0, 0, FLOOD), PAUSES.0 * 2);
    }
}
