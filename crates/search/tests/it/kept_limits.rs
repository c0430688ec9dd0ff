//! Where the kernel gives few watches or none, and what an engine costs while no one asks it. Each in a
//! process of its own, whose limits and figures are its own.

use std::fs;
use std::process::Output;
use std::time::Duration;

use haft_search::{GrepMode, IndexSettings, SearchEngine, StopCondition};
use haft_testkit::until_blocking;

use crate::kept::{Both, some_files};
use crate::tree::Tree;

const CHILD: &str = "HAFT_TEST_SEARCH_CHILD";

/// Runs one test of this program by itself; `limits` are set for it by a shell in a user namespace.
fn alone(name: &str, limits: &str) -> Option<Output> {
    let program = std::env::current_exe().unwrap();
    let test = ["--exact", name, "--nocapture"];
    let mut command = match limits {
        "" => haft_testkit::command(program.to_str().unwrap()),
        limits => {
            let mut command = haft_testkit::command("unshare");
            let script = format!("{limits} && exec \"$0\" \"$@\"");
            command
                .args(["--user", "--map-root-user", "sh", "-c", &script])
                .arg(program);
            command
        }
    };
    let output = command.args(test).env(CHILD, name).output();
    let text = |output: &Output| {
        let all = [&*output.stdout, &*output.stderr].concat();
        String::from_utf8_lossy(&all).into_owned()
    };
    match output {
        Ok(output) if output.status.success() => Some(output),
        // The test itself has begun: then it has failed.
        Ok(output) if text(&output).contains("running 1 test") => panic!("{}", text(&output)),
        _ => {
            haft_testkit::skip("no user namespace with limits of its own");
            None
        }
    }
}

fn is_child(name: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|it| it == name)
}

/// More directories than the limit below.
fn many_folders() -> Tree {
    let tree = some_files();
    for number in 0..60 {
        tree.write(format!("folders/{number}/f.txt"), "hay\n");
    }
    tree
}

fn change_and_check(tree: &Tree, both: &Both) {
    let outside = Tree::new();
    both.check(tree);
    for path in ["folders/3/f.txt", "folders/59/f.txt", "many/7.txt", "b.txt"] {
        tree.write(path, "needle\n");
        assert!(both.has(tree, path), "{path}");
        tree.write(path, "noodle\n");
        assert!(!both.has(tree, path), "{path}");
        // By a name outside, without any event of a directory.
        let other = outside.root.join("other");
        fs::hard_link(tree.root.join(path), &other).unwrap();
        both.check(tree);
        fs::write(&other, "needle\n").unwrap();
        assert!(both.has(tree, path), "{path}");
        fs::remove_file(&other).unwrap();
        tree.write("folders/new/deep/f.txt", "needle\n");
        assert!(both.has(tree, "folders/new/deep/f.txt"));
        fs::remove_dir_all(tree.root.join("folders/new")).unwrap();
        both.check(tree);
    }
}

#[test]
fn fewer_watches_than_directories_child() {
    if is_child("kept_limits::fewer_watches_than_directories_child") {
        let (tree, both) = (many_folders(), Both::new());
        change_and_check(&tree, &both);
        assert_eq!(both.is_watched(&tree), Some(false));
    }
}

#[test]
fn fewer_watches_than_directories_hide_nothing() {
    let limits = "echo 40 > /proc/sys/user/max_inotify_watches";
    alone("kept_limits::fewer_watches_than_directories_child", limits);
}

#[test]
fn fewer_watches_than_files_child() {
    if is_child("kept_limits::fewer_watches_than_files_child") {
        let (tree, both) = (many_folders(), Both::new());
        change_and_check(&tree, &both);
        assert_eq!(both.is_watched(&tree), Some(true));
    }
}

#[test]
fn fewer_watches_than_files_hide_nothing() {
    let limits = "echo 200 > /proc/sys/user/max_inotify_watches";
    alone("kept_limits::fewer_watches_than_files_child", limits);
}

#[test]
fn no_watching_at_all_child() {
    if is_child("kept_limits::no_watching_at_all_child") {
        let (tree, both) = (many_folders(), Both::new());
        change_and_check(&tree, &both);
        assert!(!both.is_kept(&tree), "there is nothing to follow it by");
    }
}

#[test]
fn no_watching_at_all_hides_nothing() {
    let limits = "echo 0 > /proc/sys/user/max_inotify_instances";
    alone("kept_limits::no_watching_at_all_child", limits);
}

/// A figure of this process, as the kernel counts it.
fn figure(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.trim_start_matches(':').split_whitespace().next());
    number.unwrap().parse().unwrap()
}

/// What this process has used of the processor, in ticks of 10 ms.
fn ticks() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let rest = text.rsplit(')').next().unwrap();
    let both = rest.split_whitespace().skip(11).take(2);
    both.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

fn queues() -> usize {
    let folder = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = folder.filter_map(|entry| fs::read_link(entry.path()).ok());
    links
        .filter(|link| link.to_string_lossy().contains("inotify"))
        .count()
}

#[test]
fn what_is_never_asked_child() {
    if !is_child("kept_limits::what_is_never_asked_child") {
        return;
    }
    let place = Tree::new();
    let folder = place.root.join("cache");
    let (memory, threads) = (figure("VmRSS"), figure("Threads"));
    let engines: Vec<_> = (0..20)
        .map(|_| {
            SearchEngine::with(IndexSettings {
                cache_folder: Some(folder.clone()),
                ..IndexSettings::default()
            })
        })
        .collect();
    let grown = figure("VmRSS").saturating_sub(memory);
    assert!(grown < 2000, "20 engines that are not asked: {grown} KB");
    assert_eq!(figure("Threads"), threads);
    assert_eq!(queues(), 0);
    assert!(!folder.exists(), "nothing is written either");
    drop(engines);
}

#[test]
fn an_engine_that_is_never_asked_takes_nothing() {
    assert!(alone("kept_limits::what_is_never_asked_child", "").is_some());
}

#[test]
fn what_is_idle_child() {
    if !is_child("kept_limits::what_is_idle_child") {
        return;
    }
    let (tree, place) = (some_files(), Tree::new());
    let engine = SearchEngine::with(IndexSettings {
        few_files: 3,
        cache_folder: Some(place.root.join("cache")),
        ..IndexSettings::default()
    });
    let ask = || {
        let query = tree.query("needle", GrepMode::Count);
        let report = engine.grep(&query, &StopCondition::never()).unwrap();
        report.tally.files
    };
    until_blocking("all is indexed", || {
        ask();
        engine.index_status().iter().any(|it| it.indexed > 400)
    });
    // What is behind the last answer comes to its end.
    until_blocking("it is idle", || {
        let before = ticks();
        std::thread::sleep(Duration::from_millis(300));
        ticks() == before
    });
    // What others write costs nothing before the next question.
    let before = ticks();
    let done = haft_testkit::command("sh")
        .args([
            "-c",
            "for i in $(seq 3000); do echo needle > many/n$i; done",
        ])
        .current_dir(&tree.root)
        .status();
    assert!(done.is_ok_and(|it| it.success()));
    std::thread::sleep(Duration::from_millis(500));
    let used = ticks() - before;
    assert!(used <= 1, "{used} ticks while only others did anything");
    assert_eq!(ask(), 3001);
}

#[test]
fn an_engine_that_is_not_asked_does_nothing() {
    assert!(alone("kept_limits::what_is_idle_child", "").is_some());
}
