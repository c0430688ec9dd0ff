//! What must not break: links, modes, attributes; what must not happen: blocking, litter.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use haft_journal::Journal;
use haft_journal::edit::EditRequest;
use rustix::fs::{CWD, Mode, XattrFlags, getxattr, mkfifoat, setxattr};

use crate::{Desk, assert_says};

fn set_mode(desk: &Desk, name: &str, mode: u32) {
    fs::set_permissions(desk.path(name), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_link_stays_a_link_and_its_target_changes() {
    let desk = Desk::with_read("a\n"); // 73
    symlink("file", desk.path("link")).unwrap();
    desk.edit("link", "a", "b").unwrap();
    assert_eq!(desk.get("file"), b"b\n");
    assert!(
        fs::symlink_metadata(desk.path("link"))
            .unwrap()
            .is_symlink()
    );
    desk.write("link", "c\n").unwrap();
    assert_eq!(desk.get("file"), b"c\n");
    assert_eq!(desk.names(), ["file", "link"]);
}

#[test]
fn a_dangling_link_creates_its_target() {
    let desk = Desk::new();
    symlink("made/target", desk.path("link")).unwrap();
    desk.write("link", "x\n").unwrap();
    assert_eq!(desk.get("made/target"), b"x\n");
    assert!(
        fs::symlink_metadata(desk.path("link"))
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn hard_links_stay_one_file() {
    let desk = Desk::with_read("a long line\nb\n"); // 74
    fs::hard_link(desk.path("file"), desk.path("twin")).unwrap();
    let inode = fs::metadata(desk.path("file")).unwrap().ino();
    desk.edit("file", "a long line", "c").unwrap();
    assert_eq!(desk.get("twin"), b"c\nb\n");
    assert_eq!(fs::metadata(desk.path("file")).unwrap().ino(), inode);
    assert_eq!(fs::metadata(desk.path("twin")).unwrap().ino(), inode);
    assert_eq!(desk.names(), ["file", "twin"]);
}

#[test]
fn v075_mode_and_attributes_are_kept() {
    for mode in [0o755, 0o600, 0o640, 0o4755] {
        let desk = Desk::with_read("a\n");
        set_mode(&desk, "file", mode);
        let path = desk.path("file");
        let supported = setxattr(&path, "user.k", b"value", XattrFlags::empty()).is_ok();
        desk.edit("file", "a", "b").unwrap();
        desk.write("file", "c\n").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        if supported {
            let mut value = [0; 16];
            let length = getxattr(&path, "user.k", &mut value).unwrap();
            assert_eq!(&value[..length], b"value");
        }
    }
}

#[test]
fn the_owner_is_kept_if_we_may_set_it() {
    let desk = Desk::with_read("a\n");
    if std::os::unix::fs::chown(desk.path("file"), Some(12_345), Some(54_321)).is_err() {
        return; // only root may give files away
    }
    desk.edit("file", "a", "b").unwrap();
    let found = fs::metadata(desk.path("file")).unwrap();
    assert_eq!((found.uid(), found.gid()), (12_345, 54_321));
}

#[test]
fn a_new_file_gets_the_mode_any_program_would_give_it() {
    let desk = Desk::new();
    File::create(desk.path("plain")).unwrap();
    desk.write("ours", "x").unwrap();
    let mode = |name| fs::metadata(desk.path(name)).unwrap().mode() & 0o7777;
    assert_eq!(mode("ours"), mode("plain"));
}

#[test]
fn a_read_only_file_is_left_alone_even_by_root() {
    let desk = Desk::with_read("a\n"); // 76
    set_mode(&desk, "file", 0o444);
    assert_says(desk.edit("file", "a", "b"), &["read-only", "chmod"]);
    assert_says(desk.write("file", "b\n"), &["read-only"]);
    assert_says(desk.journal.check_write(&desk.path("file")), &["read-only"]);
    assert_eq!(desk.get("file"), b"a\n");
    assert_eq!(desk.names(), ["file"]);
}

#[test]
fn a_file_in_a_directory_that_cannot_be_written_is_written_in_place() {
    let desk = Desk::new();
    fs::create_dir(desk.path("closed")).unwrap();
    desk.put("closed/file", "a\n");
    desk.read("closed/file").unwrap();
    set_mode(&desk, "closed", 0o555);
    if File::create(desk.path("closed/probe")).is_ok() {
        return; // root may write everywhere
    }
    desk.edit("closed/file", "a", "b").unwrap();
    assert_eq!(desk.get("closed/file"), b"b\n");
    assert_says(desk.write("closed/new", "x"), &["cannot create"]);
    set_mode(&desk, "closed", 0o755);
}

#[test]
fn pipes_sockets_and_devices_are_refused_without_blocking() {
    let desk = Desk::new(); // 79
    mkfifoat(CWD, desk.path("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    let _listener = UnixListener::bind(desk.path("socket")).unwrap();
    symlink("/dev/zero", desk.path("device")).unwrap();
    symlink("pipe", desk.path("link")).unwrap();
    fs::create_dir(desk.path("directory")).unwrap();
    let cases = [
        ("pipe", "named pipe"),
        ("link", "named pipe"),
        ("socket", "socket"),
        ("device", "character device"),
        ("directory", "is a directory"),
    ];
    for (name, kind) in cases {
        assert_says(desk.read(name), &[kind]);
        assert_says(desk.edit(name, "a", "b"), &[kind]);
        assert_says(desk.write(name, "x"), &[kind]);
        assert_says(desk.journal.check_write(&desk.path(name)), &[kind]);
    }
}

#[test]
fn parallel_edits_of_one_file_all_land() {
    const EDITS: usize = 24; // 72
    let content: String = (0..EDITS)
        .map(|line| format!("line {line:02}\n\n\n"))
        .collect();
    let desk = Arc::new(Desk::with_read(content));
    std::thread::scope(|scope| {
        for line in 0..EDITS {
            let desk = Arc::clone(&desk);
            scope.spawn(move || {
                desk.edit(
                    "file",
                    &format!("line {line:02}"),
                    &format!("done {line:02}"),
                )
                .unwrap()
            });
        }
    });
    let expected: String = (0..EDITS)
        .map(|line| format!("done {line:02}\n\n\n"))
        .collect();
    assert_eq!(String::from_utf8(desk.get("file")).unwrap(), expected);
    assert_eq!(desk.names(), ["file"]);
}

#[test]
fn two_sessions_do_not_overwrite_each_other() {
    let desk = Desk::with_read("a\nb\n");
    let other = Journal::new(None);
    other
        .read(&desk.path("file"), &haft_journal::PageRequest::default())
        .unwrap();
    other
        .edit(
            &crate::ticket(),
            &desk.path("file"),
            &EditRequest {
                old: "a",
                new: "A",
                replace_all: false,
            },
        )
        .unwrap();
    assert_says(desk.write("file", "lost\n"), &["modified since", "-a\n+A"]);
    assert_eq!(desk.get("file"), b"A\nb\n");
}

#[test]
fn a_lock_of_another_holder_is_waited_for() {
    let desk = Desk::with_read("a\n");
    let holder = File::open(desk.path("file")).unwrap();
    holder.lock().unwrap();
    std::thread::scope(|scope| {
        let edit = scope.spawn(|| desk.edit("file", "a", "b").map(|_| ()));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(desk.get("file"), b"a\n");
        holder.unlock().unwrap();
        edit.join().unwrap().unwrap();
    });
    assert_eq!(desk.get("file"), b"b\n");
}

#[test]
fn failures_leave_no_litter() {
    let desk = Desk::with_read("a\n");
    desk.put("blocker", "");
    assert!(
        desk.write(&format!("x/y/{}", "n".repeat(300)), "z")
            .is_err()
    );
    assert!(desk.write("blocker/below/file", "z").is_err());
    assert!(desk.edit("file", "missing", "z").is_err());
    assert_eq!(desk.names(), ["blocker", "file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn v078_a_full_disk_changes_nothing() {
    let desk = Desk::new();
    fs::create_dir(desk.path("small")).unwrap();
    let mounted = haft_testkit::command("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(desk.path("small"))
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        haft_testkit::skip("a full disk: only root may mount a tiny one");
        return;
    }
    desk.put("small/file", "a\n");
    desk.read("small/file").unwrap();
    let edited = desk.edit("small/file", "a", &"b".repeat(1 << 20));
    let written = desk.write("small/new/file", &"b".repeat(1 << 20));
    fs::hard_link(desk.path("small/file"), desk.path("small/twin")).unwrap();
    let in_place = desk.edit("small/file", "a", &"b".repeat(1 << 20));
    let (content, names) = (desk.get("small/file"), crate::names_in(&desk.path("small")));
    // Detached: a process that another test starts has copies of all open files until it is executed.
    let unmounted = haft_testkit::command("umount")
        .arg("--lazy")
        .arg(desk.path("small"))
        .output();
    assert!(unmounted.is_ok_and(|output| output.status.success()));
    assert_says(edited, &["disk full"]);
    assert_says(written, &["disk full"]);
    assert_says(in_place, &["disk full"]);
    assert_eq!(content, b"a\n");
    assert_eq!(names, ["file", "twin"]);
}

/// Above 64 MB what is not UTF-8 is only shown with U+FFFD: that never reaches the file.
#[test]
fn a_large_file_that_was_shown_lossily_is_edited_byte_for_byte_or_not_at_all() {
    let (head, tail) = (b"\x81 caf\xe9 au lait\n", b"last caf\xe9\n");
    let content = |last: &[u8]| {
        let mut content = head.to_vec();
        content.resize(64 << 20, b'.');
        content.extend_from_slice(b"\n");
        content.extend_from_slice(last);
        content
    };
    let before = content(tail);
    let desk = Desk::new();
    desk.put("file", &before);
    let page = desk.read("file").unwrap();
    assert!(page.facts.lossy && page.read_record.hash.is_none());
    assert!(page.lines[0].text.starts_with("\u{fffd} caf\u{fffd} au"));
    assert_says(
        desk.edit("file", "last caf\u{fffd}", "last tea"), // as it was shown
        &["not UTF-8"],
    );
    assert_says(desk.edit("file", "last", "derni\u{e8}re"), &["not UTF-8"]);
    assert!(desk.get("file") == before);
    desk.edit("file", "last", "first and last").unwrap();
    assert!(desk.get("file") == content(b"first and last caf\xe9\n"));
}
