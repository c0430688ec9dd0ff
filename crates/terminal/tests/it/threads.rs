//! The thread that writes, and what must be restored.

use std::{
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use haft_terminal::{
    FrameWriter, GuardMessage, LiveRegion, RestoreState, TextLine,
    input::{RawMode, SavedModes},
    paint::TerminalControl,
    restore_guard::{self},
    screen::WriterEvent,
};
use rustix::{
    fs::{Mode, OFlags},
    pipe::pipe,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use crate::emulator::{Emulator, region, screen, verbatim};

const LONG: Duration = Duration::from_secs(60);

/// A terminal that takes a write only when it is let.
struct SlowTerminal {
    permits: Receiver<()>,
    written: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Write for SlowTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.permits.recv_timeout(LONG).map_err(io::Error::other)?;
        self.written.lock().unwrap().push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Started {
    writer: FrameWriter,
    permit: Sender<()>,
    written: Arc<Mutex<Vec<Vec<u8>>>>,
    events: Receiver<WriterEvent>,
    restore: Arc<RestoreState>,
}

fn start() -> Started {
    let (permit, permits) = channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let (sender, events) = channel();
    let restore = Arc::new(RestoreState::new());
    let terminal = SlowTerminal {
        permits,
        written: Arc::clone(&written),
    };
    let on_event = move |event| drop(sender.send(event));
    let writer =
        FrameWriter::start(screen(40, 10), terminal, Arc::clone(&restore), on_event).unwrap();
    Started {
        writer,
        permit,
        written,
        events,
        restore,
    }
}

fn stamped(rows: &[&str], stamp: u64) -> LiveRegion {
    LiveRegion {
        stamp,
        ..region(rows)
    }
}

fn next_stamp(started: &Started) -> u64 {
    match started.events.recv_timeout(LONG).unwrap() {
        WriterEvent::Written { stamp, .. } => stamp,
        other => panic!("{other:?}"),
    }
}

#[test]
fn history_is_complete_and_in_order_and_of_regions_the_latest_wins() {
    let started = start();
    started.writer.show(stamped(&["> first"], 1));
    for number in 2..50 {
        started.writer.print([verbatim(&format!("line {number}"))]);
        started
            .writer
            .show(stamped(&[&format!("> draft {number}")], number));
    }
    for _ in 0..100 {
        started.permit.send(()).unwrap();
    }
    assert!(started.writer.flush(LONG));
    let frames = started.written.lock().unwrap().clone();
    assert!(frames.len() <= 3, "{} writes for 49 regions", frames.len());
    let mut terminal = Emulator::new(40, 10);
    frames.iter().for_each(|frame| terminal.write(frame));
    let mut expected: Vec<String> = (2..50).map(|number| format!("line {number}")).collect();
    expected.push("> draft 49".into());
    assert_eq!(terminal.logical(), expected);
    let mut last = 0;
    while last != 49 {
        let stamp = next_stamp(&started);
        assert!(stamp > last, "reported in order");
        last = stamp;
    }
}

#[test]
fn a_region_is_reported_only_when_it_is_written() {
    let started = start();
    started.writer.show(stamped(&["? question"], 7));
    assert!(!started.writer.flush(Duration::from_millis(50)));
    assert!(started.events.try_recv().is_err());
    started.permit.send(()).unwrap();
    assert_eq!(next_stamp(&started), 7);
    // One that changes nothing is on the screen already.
    started.writer.show(stamped(&["? question"], 8));
    assert_eq!(next_stamp(&started), 8);
    assert_eq!(started.written.lock().unwrap().len(), 1);
}

#[test]
fn during_a_view_history_waits() {
    let started = start();
    for _ in 0..20 {
        started.permit.send(()).unwrap();
    }
    started.writer.show(stamped(&["> x"], 1));
    started.writer.show_view(vec![TextLine::plain("view")]);
    assert!(started.writer.flush(LONG));
    started.writer.print([verbatim("line")]);
    assert!(started.writer.flush(LONG));
    let all =
        |started: &Started| String::from_utf8(started.written.lock().unwrap().concat()).unwrap();
    assert!(all(&started).contains("view") && !all(&started).contains("line"));
    started.writer.leave_view();
    assert!(started.writer.flush(LONG));
    assert!(
        all(&started)
            .split("\x1b[?1049l")
            .nth(1)
            .unwrap()
            .contains("line")
    );
}

#[test]
fn a_terminal_that_is_gone_is_reported() {
    let started = start();
    drop(started.permit);
    started.writer.show(stamped(&["> x"], 1));
    let event = started.events.recv_timeout(LONG).unwrap();
    assert!(matches!(event, WriterEvent::Failed(_)), "{event:?}");
    assert!(!started.writer.flush(LONG));
}

#[test]
fn what_is_on_the_screen_is_erased_and_stays_erased() {
    let started = start();
    for _ in 0..20 {
        started.permit.send(()).unwrap();
    }
    started.writer.print([verbatim("history")]);
    started
        .writer
        .show(stamped(&["working", "> draft", " status"], 1));
    started.writer.send([TerminalControl::EnterModes]);
    started.restore.set_modes(true);
    assert!(started.writer.flush(LONG));
    let mut terminal = Emulator::new(40, 10);
    started
        .written
        .lock()
        .unwrap()
        .iter()
        .for_each(|frame| terminal.write(frame));
    assert_eq!(
        terminal.logical(),
        ["history", "working", "> draft", " status"]
    );
    terminal.write(&started.restore.take_sequence());
    assert_eq!(terminal.logical(), ["history"]);
    assert_eq!(terminal.cursor(), Some((0, 1)));
    // And nothing is drawn over what the shell prints now.
    let before = started.written.lock().unwrap().len();
    started.writer.show(stamped(&["> late"], 2));
    assert!(started.writer.flush(LONG));
    assert_eq!(started.written.lock().unwrap().len(), before);
}

fn pty() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (master, slave)
}

fn modes(terminal: &OwnedFd) -> String {
    SavedModes::from_terminal(terminal).unwrap().encode()
}

#[test]
fn a_terminal_is_restored_with_its_modes_last_and_answers_are_dropped() {
    let (master, slave) = pty();
    let before = modes(&slave);
    let raw = RawMode::enter(&slave).unwrap();
    let restore = RestoreState::new();
    restore.set_modes(true);
    // Answers to earlier questions, and to the last.
    rustix::io::write(&master, b"\x1b]11;rgb:0/0/0\x1b\\\x1b[?62c").unwrap();
    restore.restore(&slave, raw.saved()).unwrap();
    assert_eq!(modes(&slave), before);
    let mut seen = [0; 256];
    let count = rustix::io::read(&master, &mut seen[..]).unwrap();
    let seen = String::from_utf8(seen[..count].to_vec()).unwrap();
    assert!(
        seen.starts_with("\x1b[<u\x1b[>4m") && seen.ends_with("\x1b[c"),
        "{seen:?}"
    );
}

#[test]
fn a_guard_restores_only_without_a_goodbye_and_only_what_is_still_ours() {
    let (_master, slave) = pty();
    let before = modes(&slave);
    let run = |messages: &[GuardMessage], is_raw: bool| {
        let raw = RawMode::enter(&slave).unwrap();
        let saved = SavedModes::decode(&raw.saved().encode(), &slave).unwrap();
        if !is_raw {
            raw.suspend().unwrap();
        }
        let (input, output) = pipe().unwrap();
        let bytes: Vec<u8> = messages.iter().map(|message| message.encode()).collect();
        rustix::io::write(&output, &bytes).unwrap();
        drop(output);
        let mut written = Vec::new();
        let acted = restore_guard::watch(
            std::fs::File::from(input),
            &mut written,
            slave.as_fd(),
            &saved,
        )
        .unwrap();
        let now = modes(&slave);
        (acted, String::from_utf8(written).unwrap(), now)
    };
    let (acted, written, now) = run(&[GuardMessage::EnterView], true);
    assert!(acted && written.starts_with("\x1b[?1049l\x1b[<u") && now == before);
    assert!(!written.contains("?2004l"), "the shell has set it anew");
    let (acted, written, _) = run(&[GuardMessage::EnterView, GuardMessage::LeaveView], false);
    assert!(acted && !written.contains("?1049l"));
    let (acted, written, _) = run(&[GuardMessage::Goodbye], true);
    assert!(!acted && written.is_empty());
}
