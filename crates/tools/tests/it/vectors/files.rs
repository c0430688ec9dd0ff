//! Vectors 65–82 of file-tools.md §8: what the session knows of a file, and what kind of file it is.

use std::{
    fs::{self, File, FileTimes},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    time::{Duration, SystemTime},
};

use serde_json::json;
use tokio::time::timeout;

use super::{edit, read, write};
use crate::session::Session;

#[tokio::test]
async fn v065_an_unread_file_is_not_edited() {
    let session = Session::new([("f", "a\nb\n")]);
    let error = session.say("Edit", edit("f", "a", "c")).await.refused();
    assert!(error.contains("Read it first"), "{error}");
    assert_eq!(session.project.read("f"), "a\nb\n");
}

#[tokio::test]
async fn v066_a_touch_is_no_change() {
    let session = Session::new([("f", "a\n")]);
    read(&session, "f").await;
    session.set_modified("f", 2_000_000_000);
    session.say("Edit", edit("f", "a", "c")).await.ok();
    assert_eq!(session.project.read("f"), "c\n");
}

#[tokio::test]
async fn v067_an_edit_far_from_an_outside_change_is_made_and_tells_of_it() {
    let lines: String = (1..=50).map(|line| format!("line {line}\n")).collect();
    let session = Session::new([("f", lines.as_str())]);
    read(&session, "f").await;
    let outside = lines.replace("line 40\n", "LINE 40\n");
    session.project.write("f", &outside);
    let input = edit("f", "line 2\n", "LINE 2\n");
    let text = session.say("Edit", input).await.ok();
    assert!(text.contains("-line 40\n+LINE 40"), "{text}");
    let expected = outside.replace("line 2\n", "LINE 2\n");
    assert_eq!(session.project.read("f"), expected);
}

#[tokio::test]
async fn v068_an_outside_change_of_the_very_line_is_shown_and_kept() {
    let session = Session::new([("f", "a\nb\nc\n")]);
    read(&session, "f").await;
    session.project.write("f", "a\nB\nc\n");
    let error = session.say("Edit", edit("f", "b", "x")).await.refused();
    assert!(error.contains("modified since"), "{error}");
    assert!(error.contains("-b\n+B"), "{error}");
    assert_eq!(session.project.read("f"), "a\nB\nc\n");
}

#[tokio::test]
async fn v069_a_change_behind_the_same_size_and_time_stops_a_write() {
    let session = Session::new([]);
    let path = session.project.path("f");
    let old = SystemTime::now() - Duration::from_secs(3_600);
    let put = |content: &str| {
        fs::write(&path, content).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(old)).unwrap();
    };
    put("one\n");
    read(&session, "f").await;
    put("two\n");
    let error = session.say("Write", write("f", "three\n")).await.refused();
    assert!(error.contains("modified since"), "{error}");
    assert!(error.contains("-one\n+two"), "{error}");
    assert_eq!(session.project.read("f"), "two\n");
}

#[tokio::test]
async fn v070_a_file_deleted_since_is_not_made_again() {
    let session = Session::new([("f", "a\n")]);
    read(&session, "f").await;
    fs::remove_file(session.project.path("f")).unwrap();
    let error = session.say("Edit", edit("f", "a", "b")).await.refused();
    assert!(error.contains("does not exist"), "{error}");
    assert!(!session.project.path("f").exists());
}

#[tokio::test]
async fn v071_what_was_written_need_not_be_read() {
    let session = Session::new([]);
    session.say("Write", write("f", "a\nb\n")).await.ok();
    session.say("Edit", edit("f", "a", "c")).await.ok();
    assert_eq!(session.project.read("f"), "c\nb\n");
}

#[tokio::test]
async fn v072_two_edits_of_one_file_at_once_are_both_made() {
    let session = Session::new([("f", "one\ntwo\n")]);
    read(&session, "f").await;
    let (first, second) = tokio::join!(
        session.say("Edit", edit("f", "one", "1")),
        session.say("Edit", edit("f", "two", "2")),
    );
    first.ok();
    second.ok();
    assert_eq!(session.project.read("f"), "1\n2\n");
}

#[tokio::test]
async fn v073_a_link_stays_a_link_and_its_target_changes() {
    let session = Session::new([("target", "a\n")]);
    symlink("target", session.project.path("link")).unwrap();
    read(&session, "link").await;
    session.say("Edit", edit("link", "a", "b")).await.ok();
    assert_eq!(session.project.read("target"), "b\n");
    assert!(session.project.path("link").is_symlink());
}

#[tokio::test]
async fn v074_hard_links_stay_one_file() {
    let session = Session::new([("a", "old\n")]);
    let (a, b) = (session.project.path("a"), session.project.path("b"));
    fs::hard_link(&a, &b).unwrap();
    let inode = fs::metadata(&a).unwrap().ino();
    read(&session, "a").await;
    session.say("Edit", edit("a", "old", "new")).await.ok();
    assert_eq!(session.project.read("b"), "new\n");
    for path in [a, b] {
        assert_eq!(fs::metadata(path).unwrap().ino(), inode);
    }
}

#[tokio::test]
async fn v076_a_read_only_file_is_left_alone() {
    let session = Session::new([("f", "a\n")]);
    read(&session, "f").await;
    let mode = fs::Permissions::from_mode(0o444);
    fs::set_permissions(session.project.path("f"), mode).unwrap();
    for (tool, input) in [("Edit", edit("f", "a", "b")), ("Write", write("f", "b\n"))] {
        let error = session.say(tool, input).await.refused();
        assert!(error.contains("read-only"), "{tool}: {error}");
    }
    assert_eq!(session.project.read("f"), "a\n");
}

#[tokio::test]
async fn v079_pipes_and_devices_are_refused_at_once() {
    let session = Session::new([]);
    let pipe = session.project.path("pipe");
    let made = haft_testkit::command("mkfifo").arg(pipe).status().unwrap();
    assert!(made.success());
    symlink("pipe", session.project.path("link")).unwrap();
    symlink("/dev/zero", session.project.path("zero")).unwrap();
    let calls = async {
        for name in ["pipe", "link", "zero", "/dev/zero", "/dev/tty"] {
            for (tool, input) in [
                ("Read", json!({"file_path": name})),
                ("Edit", edit(name, "a", "b")),
                ("Write", write(name, "x")),
            ] {
                let error = session.say(tool, input).await.error();
                assert!(
                    error.contains("not a regular file"),
                    "{tool} {name}: {error}"
                );
            }
        }
    };
    // Whatever blocks, blocks for good; a loaded machine is given time.
    timeout(Duration::from_secs(30), calls).await.unwrap();
}

#[tokio::test]
async fn v080_a_new_file_gets_exactly_the_given_bytes_and_its_directories() {
    let session = Session::new([]);
    session.say("Write", write("d/e/f", "x\r\n")).await.ok();
    assert_eq!(session.project.read("d/e/f"), "x\r\n");
}

#[tokio::test]
async fn v081_crlf_is_kept_and_said() {
    let session = Session::new([("f", "a\r\nb\r\n")]);
    read(&session, "f").await;
    let text = session.say("Write", write("f", "a\nc\n")).await.ok();
    assert!(text.contains("CRLF line breaks were kept"), "{text}");
    assert_eq!(session.project.read("f"), "a\r\nc\r\n");
}

#[tokio::test]
async fn v082_an_unread_file_is_not_overwritten() {
    let session = Session::new([("f", "a\n")]);
    let error = session.say("Write", write("f", "b\n")).await.refused();
    assert!(error.contains("has not been read yet"), "{error}");
    assert_eq!(session.project.read("f"), "a\n");
}

/// §4: a Write keeps the encoding, too.
#[tokio::test]
async fn utf_16_is_kept_and_said() {
    let session = Session::new([]);
    session.project.write("wide", b"\xff\xfen\0\n\0");
    let text = read(&session, "wide").await;
    assert!(text.contains("the file is UTF-16LE"), "{text}");
    let text = session.say("Write", write("wide", "é\n")).await.ok();
    assert!(text.contains("encoding was kept: UTF-16LE"), "{text}");
    let after = fs::read(session.project.path("wide")).unwrap();
    assert_eq!(after, b"\xff\xfe\xe9\0\n\0");
}
