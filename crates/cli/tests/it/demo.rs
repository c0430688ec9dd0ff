//! The first thing a newcomer runs.

use std::{fs, process::Command};

use crate::binary::{haft, run};

/// The demo with nothing at home and no network at all, where that can be had.
fn demo(home: &std::path::Path, flags: &[&str]) -> Command {
    let plain = {
        let mut plain = haft(home);
        plain.env("TMPDIR", home);
        plain
    };
    let alone = ["--user", "--map-root-user", "--net"];
    let can_be_alone = haft_testkit::command("unshare")
        .args(alone)
        .arg("true")
        .output();
    let mut command = match can_be_alone.is_ok_and(|tried| tried.status.success()) {
        true => {
            let mut command = haft_testkit::command("unshare");
            command.args(alone).arg(plain.get_program()).env_clear();
            for (name, value) in plain.get_envs() {
                command.env(name, value.unwrap());
            }
            command.current_dir(home);
            command
        }
        false => plain,
    };
    command.args(["demo", "--fast"]).args(flags);
    command
}

#[test]
fn it_needs_no_home_and_no_network_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let ran = run(&mut demo(home.path(), &[]), b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
    let here = fs::canonicalize(home.path()).unwrap();
    let shown = ran.stdout.replace(&here.display().to_string(), "TMP");
    assert!(shown.lines().all(|line| line.chars().count() <= 80));
    insta::with_settings!({filters => vec![(r"TMP/haft-demo-[0-9a-f]+", "TMP/haft-demo"), (r"agent id: [\w-]+", "agent id: ID")]}, {
        insta::assert_snapshot!(shown);
    });
    let left: Vec<_> = fs::read_dir(&here).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_changes_are_real() {
    let home = tempfile::tempdir().unwrap();
    let ran = run(&mut demo(home.path(), &["--keep"]), b"");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kept = fs::read_dir(home.path()).unwrap().next().unwrap().unwrap();
    let project = kept.path().join("till");
    // Changed, and taken back.
    let price = fs::read_to_string(project.join("price.sh")).unwrap();
    assert!(price.contains("-gt 5000"), "{price}");
    let log = fs::read_dir(kept.path().join("state/undo")).unwrap();
    assert!(log.count() > 0);
    let test = haft_testkit::command("./test.sh")
        .current_dir(&project)
        .output();
    let said = String::from_utf8(test.unwrap().stdout).unwrap();
    assert!(said.contains("FAIL  exactly 50.00"), "{said}");
    assert!(ran.stdout.contains("ok    exactly 50.00"), "{}", ran.stdout);
}
