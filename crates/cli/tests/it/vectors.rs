//! The vectors of file-tools.md §8 that take a process of their own: one to be killed, and one whose
//! memory is measured.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use serde_json::json;
use tempfile::tempdir;

use crate::binary::{Conversation, haft};

/// What an edit makes of the other; 1 MB.
fn content(word: &str) -> String {
    format!("{word}\n{}", "the same line\n".repeat(75_000))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Killed while a temporary file lies there, and at moments that no one chose. A kill before every
/// single system call is tried in the journal; this is the whole binary.
#[test]
fn v077_killed_at_any_moment_a_file_is_the_old_or_the_new_one_after_the_next_start() {
    let dir = tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("file"), content("old")).unwrap();
    // A file with two names is written in place.
    fs::write(work.join("twin"), content("old")).unwrap();
    fs::hard_link(work.join("twin"), work.join("other")).unwrap();
    // Sessions are kept outside of where the work is.
    let start = || {
        let mut command = haft(&work);
        command.env("HOME", dir.path());
        command.args(["--permission-mode", "acceptEdits"]);
        Conversation::of(&mut command)
    };
    let is_littered = || names(&work).len() > 3;
    let mut has_littered = false;
    for round in 0..40 {
        let mut talk = start();
        let names_of = ["file", "twin"];
        for name in names_of {
            let read = json!({"name": "Read", "input": {"file_path": name, "limit": 1}});
            assert_eq!(talk.ask(&read)["is_error"], false);
        }
        for edit in 0..20 {
            for (old, new) in [("old", "new"), ("new", "old")] {
                talk.say(&json!({"name": "Edit", "input": {
                    "file_path": names_of[edit % 2],
                    "old_string": format!("{old}\n"),
                    "new_string": format!("{new}\n"),
                }}));
            }
        }
        let noise = SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos() % 200;
        let (by_chance, patience) = (Duration::from_millis(noise.into()), Duration::from_secs(5));
        let begun = Instant::now();
        match round % 2 {
            0 => std::thread::sleep(by_chance),
            _ => while begun.elapsed() < patience && !is_littered() {},
        }
        talk.child.kill().unwrap();
        talk.child.wait().unwrap();
        has_littered |= is_littered();

        let mut next = start();
        assert_eq!(next.ask(&json!({"name": "LS"}))["is_error"], false);
        assert_eq!(next.end(), 0);
        assert_eq!(names(&work), ["file", "other", "twin"], "no litter");
        for name in names_of {
            let found = fs::read_to_string(work.join(name)).unwrap();
            let whole = [content("old"), content("new")].contains(&found);
            assert!(whole, "{name} is neither: {} bytes", found.len());
        }
        if round >= 8 && has_littered {
            return;
        }
    }
    panic!("none of 40 kills left a temporary file for the next start to remove");
}

/// Ten million lines, then nothing up to 4 GB, which takes no room on the disk.
#[test]
fn v087_a_line_deep_in_4_gigabytes_is_found_in_little_memory() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("huge.txt");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    for line in 1..=10_000_100_u32 {
        writeln!(file, "{line:x}").unwrap();
    }
    let file = file.into_inner().unwrap();
    file.set_len(4 << 30).unwrap();
    let mut talk = Conversation::new(dir.path());
    let answer = talk.ask(&json!({"name": "Read", "input": {
        "file_path": "huge.txt", "offset": 10_000_000, "limit": 3
    }}));
    assert_eq!(
        answer["content"],
        "10000000\t989680\n10000001\t989681\n10000002\t989682\n\
         [lines 10000000–10000002; continue with offset 10000003]"
    );
    let status = fs::read_to_string(format!("/proc/{}/status", talk.child.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes: u64 = peak
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|number| number.parse().ok())
        .expect("the peak of resident memory");
    assert!(kilobytes < 64 << 10, "{kilobytes} kB");
    assert_eq!(talk.end(), 0);
}
