//! An engine that keeps its tree, on file systems of other kinds and on what is mounted into it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kept::{Both, some_files};
use crate::tree::Tree;

#[test]
fn changes_on_tmpfs_are_seen() {
    let path = Path::new("/dev/shm");
    if !path.is_dir() {
        haft_testkit::skip("no tmpfs to write to");
        return;
    }
    let (tree, both) = (Tree::below(path), Both::new());
    change_and_check(&tree, &both);
    assert!(both.is_kept(&tree));
}

fn change_and_check(tree: &Tree, both: &Both) {
    for round in 0..5 {
        tree.write("a.txt", format!("needle {round}\n"));
        assert!(both.has(tree, "a.txt"));
        tree.write("sub/b.txt", "needle\n");
        both.check(tree);
        tree.write("a.txt", "noodle\n");
        assert!(!both.has(tree, "a.txt"));
        fs::remove_dir_all(tree.root.join("sub")).unwrap();
        both.check(tree);
    }
}

/// Something mounted, until the test ends.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    pub(crate) fn new(arguments: &[&str], on: PathBuf) -> Option<Self> {
        let mount = haft_testkit::command("mount")
            .args(arguments)
            .arg(&on)
            .output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(Self(on));
        }
        haft_testkit::skip("nothing may be mounted here");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = haft_testkit::command("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}

#[test]
fn what_is_mounted_and_unmounted_is_seen() {
    let (tree, outside, both) = (some_files(), Tree::new(), Both::new());
    outside.write("inside.txt", "needle\n");
    both.check(&tree);
    let from = outside.root.to_str().unwrap();
    let Some(mounted) = Mounted::new(&["--bind", from], tree.root.join("sub")) else {
        return;
    };
    assert!(both.has(&tree, "sub/inside.txt"));
    outside.write("inside.txt", "noodle\n");
    assert!(!both.has(&tree, "sub/inside.txt"), "by its other name");
    tree.write("sub/new.txt", "needle\n");
    assert!(both.has(&tree, "sub/new.txt"));
    // The same folder twice in one tree.
    let many = tree.root.join("many");
    fs::create_dir(tree.root.join("twice")).unwrap();
    let Some(twice) = Mounted::new(&["--bind", many.to_str().unwrap()], tree.root.join("twice"))
    else {
        return;
    };
    both.check(&tree);
    tree.write("many/9.txt", "needle\n");
    assert!(both.has(&tree, "twice/9.txt"));
    tree.write("twice/8.txt", "needle\n");
    assert!(both.has(&tree, "many/8.txt"));
    drop((mounted, twice));
    both.check(&tree);
    assert!(!both.has(&tree, "sub/new.txt"));
}

#[test]
fn changes_on_overlayfs_are_seen() {
    let (tree, both) = (Tree::new(), Both::new());
    // An overlay cannot lie on an overlay.
    for (path, text) in [
        ("lower/a.txt", "hay\n"),
        ("lower/sub/c.txt", "needle\n"),
        ("upper/x", ""),
        ("work/x", ""),
    ] {
        tree.write(path, text);
    }
    fs::remove_file(tree.root.join("work/x")).unwrap();
    fs::create_dir(tree.root.join("merged")).unwrap();
    let at = |name: &str| tree.root.join(name).display().to_string();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    let arguments = ["-t", "overlay", "overlay", "-o", &options];
    let Some(_mounted) = Mounted::new(&arguments, tree.root.join("merged")) else {
        return;
    };
    let merged = Tree::at(tree.root.join("merged"));
    both.check(&merged);
    assert!(both.is_kept(&merged));
    change_and_check(&merged, &both);
}
