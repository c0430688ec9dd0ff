use std::{fs::File, mem::MaybeUninit};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use serde_json::json;
use tempfile::tempdir;

use crate::binary::Conversation;

#[test]
fn a_signal_ends_it_with_the_code_that_says_so() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let dir = tempdir().unwrap();
        let mut talk = Conversation::new(dir.path());
        // Once it has answered it listens to signals; stdin stays open.
        let answer = talk.ask(&json!({"name": "LS", "input": {}}));
        assert_eq!(answer["is_error"], false, "{answer}");
        talk.signal(signal);
        assert_eq!(talk.child.wait().unwrap().code(), Some(code), "{signal}");
    }
}

#[test]
fn what_runs_is_cancelled_and_answered_before_the_end() {
    let dir = tempdir().unwrap();
    // A terabyte of nothing: made at once, and searched for longer than anyone waits.
    let file = dir.path().join("endless");
    File::create(&file).unwrap().set_len(1 << 40).unwrap();
    // Not by looking at its open files: those of a process that shows itself to no one are root's.
    let queue = inotify::init(CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&queue, &file, WatchFlags::OPEN).unwrap();
    let mut talk = Conversation::new(dir.path());
    talk.say(&json!({"id": 1, "name": "Grep", "input": {"pattern": "x", "path": "endless"}}));
    let mut buffer = [MaybeUninit::uninit(); 256];
    let mut events = inotify::Reader::new(&queue, &mut buffer);
    let opened = events.next().unwrap();
    assert!(opened.events().contains(ReadFlags::OPEN));
    talk.signal("INT");
    let answer = talk.hear();
    assert_eq!(answer["id"], 1);
    assert_eq!(
        answer["content"],
        "[Request interrupted by user for tool use]"
    );
    assert_eq!(talk.end(), 130);
}
