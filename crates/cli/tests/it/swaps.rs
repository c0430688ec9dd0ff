//! The binary answers thousands of calls while links are swapped in and out of its way: as the one who
//! runs the tests, and as an ordinary user where that is someone else.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use serde_json::{Value, json};

use crate::binary::{haft, run};

/// In every file that may not be seen.
const SECRET: &str = "s3cret-content";
const ORDINARY: u32 = 65_534;

/// Swaps `path` for a link to `to` and back until it is told that all is done.
fn swap(path: &Path, to: &Path, done: &AtomicBool, swaps: &AtomicU64) {
    let (link, kept) = (path.with_extension("link"), path.with_extension("kept"));
    symlink(to, &link).unwrap();
    while !done.load(Ordering::Relaxed) {
        fs::rename(path, &kept).unwrap();
        fs::rename(&link, path).unwrap();
        thread::yield_now();
        fs::rename(path, &link).unwrap();
        fs::rename(&kept, path).unwrap();
        swaps.fetch_add(1, Ordering::Relaxed);
    }
}

fn calls() -> Vec<Value> {
    let call = |name: &str, input: Value| json!({"name": name, "input": input});
    let grep = |path: &str| {
        let input = json!({"pattern": "text", "path": path, "output_mode": "content"});
        call("Grep", input)
    };
    let mut lines = Vec::new();
    for _ in 0..300 {
        lines.push(call("Read", json!({"file_path": "a.txt"})));
        lines.push(call("Read", json!({"file_path": "b.txt"})));
        lines.push(call("Read", json!({"file_path": "dir/f.txt"})));
        lines.push(grep("a.txt"));
        lines.push(grep("dir"));
        lines.push(grep("."));
        lines.push(call("Glob", json!({"pattern": "**/*"})));
        lines.push(call("LS", json!({"path": "dir"})));
    }
    lines
}

fn attack(binary: impl Fn(&Path) -> Command, owner: Option<u32>) {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let root = dir.path().canonicalize().unwrap();
    let work = root.join("work");
    fs::create_dir_all(work.join("dir")).unwrap();
    for name in ["a.txt", "b.txt", "dir/f.txt"] {
        fs::write(work.join(name), "open text\n").unwrap();
    }
    for folder in [root.join("outside"), work.join("denied")] {
        fs::create_dir(&folder).unwrap();
        for name in ["f.txt", SECRET] {
            fs::write(folder.join(name), format!("text: {SECRET}\n")).unwrap();
        }
    }
    let settings = json!({"permissions": {"deny": ["Read(./denied/**)"]}}).to_string();
    fs::create_dir(work.join(".claude")).unwrap();
    fs::write(work.join(".claude/settings.json"), settings).unwrap();
    if owner.is_some() {
        chown(&work, owner, owner).unwrap();
    }
    let lines: String = calls().iter().map(|line| format!("{line}\n")).collect();
    let (done, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let ran = thread::scope(|scope| {
        let targets = [
            ("a.txt", root.join("outside/f.txt")),
            ("b.txt", work.join("denied/f.txt")),
            ("dir", root.join("outside")),
        ];
        for (name, to) in targets {
            let (path, done, swaps) = (work.join(name), &done, &swaps);
            scope.spawn(move || swap(&path, &to, done, swaps));
        }
        let ran = run(binary(&work).arg("exec"), lines.as_bytes());
        done.store(true, Ordering::Relaxed);
        ran
    });
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), calls().len());
    assert!(swaps.load(Ordering::Relaxed) > 0);
    let leaks: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.contains(SECRET))
        .collect();
    assert!(
        leaks.is_empty(),
        "{} leaks, such as {}",
        leaks.len(),
        leaks[0]
    );
}

#[test]
fn nothing_is_shown_through_links_that_are_swapped_in() {
    attack(haft, None);
}

#[test]
fn nothing_is_shown_to_an_ordinary_user_either() {
    if !rustix::process::geteuid().is_root() {
        return; // the other test has just shown it
    }
    // Where the tests are built, that user may not be able to go.
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = place.path().join("haft");
    fs::copy(env!("CARGO_BIN_EXE_haft"), &copy).unwrap();
    let ordinary = |cwd: &Path| {
        let mut command = haft_testkit::command(&copy);
        command
            .current_dir(cwd)
            .env_clear()
            .env("HOME", cwd)
            .env("PATH", "/usr/bin:/bin")
            .uid(ORDINARY)
            .gid(ORDINARY);
        command
    };
    attack(ordinary, Some(ORDINARY));
}
