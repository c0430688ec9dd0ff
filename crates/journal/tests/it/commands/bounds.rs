//! What is too much, and what is done about it; and what it costs.

use super::*;

#[test]
fn what_is_over_the_budget_is_named_and_the_rest_restored() {
    let desk = Desk::with_limits(SnapshotLimits {
        file: 1 << 20,
        bytes: 3 << 20,
        ..limits()
    });
    desk.put(".gitignore", "ignored*\n");
    desk.put("large", vec![b'x'; 2 << 20]);
    for name in ["one", "two", "ignored1", "ignored2"] {
        desk.put(name, vec![b'y'; 1 << 20]);
    }
    let before = desk.exact();
    let changed = desk.run("echo x | tee -a one two large ignored1 ignored2 > new");
    let why: BTreeMap<String, String> = changed
        .not_restorable
        .iter()
        .map(|(path, why)| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                why.clone(),
            )
        })
        .collect();
    // What git ignores comes last.
    let names: Vec<&str> = why.keys().map(String::as_str).collect();
    assert_eq!(names, ["ignored1", "ignored2", "large"]);
    assert!(why["large"].contains("larger than 1 MB"), "{why:?}");
    assert!(why["ignored1"].contains("more than 3 MB"), "{why:?}");
    let undone = desk.take(UndoSelection::Last).unwrap();
    assert_eq!(undone.left.len(), 3);
    let after = desk.exact();
    for name in ["one", "two", ".gitignore"] {
        assert_eq!(after.get(Path::new(name)), before.get(Path::new(name)));
    }
    assert!(!desk.path("new").exists());
    // Modes and moves of what is not kept need no content.
    desk.there_and_back("chmod 600 large");
    desk.there_and_back("mv large larger");
    desk.there_and_back("mkdir sub && mv large sub/ && echo small > large");
    fs::create_dir(desk.path("dir")).unwrap();
    shell(desk.dir.path(), "mv large dir && echo x > dir/x");
    desk.there_and_back("mv dir other");
    shell(desk.dir.path(), "mv dir/large .");
    // Nothing of it can be restored: said, and not passed over in silence.
    desk.run("echo y >> large");
    let error = desk.take(UndoSelection::Last).unwrap_err();
    assert!(
        matches!(error, JournalError::Undo(UndoError::NotCovered { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("larger than 1 MB"), "{error}");
}

#[test]
fn hints_come_first_and_reach_outside() {
    let desk = Desk::with_limits(SnapshotLimits {
        bytes: 1 << 20,
        ..limits()
    });
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("file");
    fs::write(&file, "outside\n").unwrap();
    for name in ["a", "b", "c"] {
        desk.put(name, vec![b'y'; 1 << 19]);
    }
    desk.put("named", vec![b'z'; 1 << 20]);
    let mut sweep = desk.sweep();
    sweep.hints = vec![
        desk.path("named"),
        file.clone(),
        outside.path().join("new/dir"),
    ];
    fs::write(desk.path("named"), vec![b'z'; (1 << 20) - 100]).unwrap();
    let (before, beyond) = (desk.exact(), exact(outside.path()));
    let script = format!(
        "echo x >> named; cd {}; echo y >> file; mkdir -p new/dir/deep; echo z > new/dir/file",
        outside.path().display()
    );
    let changed = desk.run_with(&sweep, &script);
    assert_eq!(changed.not_restorable, []);
    desk.take(UndoSelection::Last).unwrap();
    assert_same(&desk.exact(), &before, "inside");
    assert_same(&exact(outside.path()), &beyond, "outside");
}

#[test]
fn too_many_files_are_said_and_what_is_named_is_covered() {
    let mut desk = Desk::with_limits(SnapshotLimits {
        entries: 50,
        ..limits()
    });
    fs::create_dir(desk.path("many")).unwrap();
    for number in 0..60 {
        desk.put(&format!("many/{number}"), "x\n");
    }
    desk.put("file", "old\n");
    let changed = desk.run("echo new > file");
    let why = changed.uncovered.unwrap();
    assert!(why.contains("more than 50 files"), "{why}");
    assert_says(
        desk.take(UndoSelection::Last),
        &["does not cover", "more than 50 files"],
    );
    let mut sweep = desk.sweep();
    sweep.hints = vec![desk.path("file")];
    let changed = desk.run_with(&sweep, "echo newer > file");
    assert!(
        changed
            .uncovered
            .unwrap()
            .contains("only what the command line names")
    );
    desk.take(UndoSelection::Unit(changed.unit.unwrap()))
        .unwrap();
    assert_eq!(desk.get("file"), b"new\n");
    // What is ignored does not stand in the way of the rest.
    desk.journal = desk.fresh_journal(SnapshotLimits {
        entries: 50,
        ..limits()
    });
    desk.put(".gitignore", "many/\n");
    let changed = desk.run("echo newest > file; mv many moved");
    assert_eq!(changed.uncovered, None);
    let names: Vec<&str> = changed
        .not_restorable
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!((names[0], names.len()), ("many", 61), "{names:?}");
    shell(desk.dir.path(), "mv moved many");
    let undone = desk.take(UndoSelection::Last).unwrap();
    assert!(undone.left[0].1.contains("not scanned"), "{undone:?}");
    assert_eq!(desk.get("file"), b"new\n");
}

#[test]
fn a_new_directory_with_very_much_in_it_goes_as_one() {
    let desk = project();
    let before = desk.exact();
    let script = "mkdir -p out/deep; for i in $(seq 1 600); do echo $i > out/deep/$i; done";
    let changed = desk.run(script);
    assert_eq!(changed.created, [desk.path("out").canonicalize().unwrap()]);
    desk.put("out/deep/7", "theirs\n");
    assert_says(desk.take(UndoSelection::Last), &["out"]);
    let changed = desk.run("rm -r out");
    assert_eq!(changed.not_restorable, []);
    desk.take(UndoSelection::Last).unwrap();
    shell(desk.dir.path(), "rm -r out");
    let touched = desk.run(script);
    desk.take(UndoSelection::Unit(touched.unit.unwrap()))
        .unwrap();
    let (mut now, mut then) = (desk.exact(), before);
    now.remove(Path::new(""));
    then.remove(Path::new("")); // its time is someone else's now
    assert_same(&now, &then, "undo of very much");
}

#[test]
fn what_was_moved_in_from_elsewhere_is_never_removed() {
    let desk = Desk::with_limits(SnapshotLimits {
        entries: 700,
        bytes: 1 << 10,
        ..limits()
    });
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), "the only copy\n").unwrap();
    desk.put(".gitignore", "unseen\n");
    for (directory, count) in [("unseen", 701), ("unkept", 600)] {
        fs::create_dir(desk.path(directory)).unwrap();
        for number in 0..count {
            desk.put(&format!("{directory}/{number}"), "x\n".repeat(300));
        }
    }
    // Then the times of all files are told apart from those that follow.
    until_file_time(desk.dir.path(), Duration::from_millis(60));
    let script = format!(
        "mv {}/precious . && mv unseen seen && mv unkept other && echo new > new",
        outside.path().display()
    );
    let changed = desk.run(&script);
    assert!(changed.unit.is_some(), "{changed:?}");
    let undone = desk.take(UndoSelection::Last).unwrap();
    assert!(!desk.path("new").exists());
    assert_eq!(desk.get("precious"), b"the only copy\n");
    assert_eq!(crate::names_in(&desk.path("seen")).len(), 701);
    assert_eq!(crate::names_in(&desk.path("unkept")).len(), 600);
    assert!(!desk.path("other").exists());
    let why = |name: &str| {
        let path = desk.path(name).canonicalize().unwrap();
        let mut left = undone.left.iter();
        left.find(|(one, _)| *one == path)
            .map(|(_, why)| why.clone())
    };
    assert!(
        why("precious").unwrap().contains("moved here"),
        "{:?}",
        undone.left
    );
}

#[test]
fn the_oldest_commands_are_dropped_for_room() {
    let mut desk = Desk::of_commands();
    let folder = desk.session.path().join("undo");
    let few = UndoLimits {
        bytes: 3 << 20,
        min_age: Duration::ZERO,
        ..UndoLimits::default()
    };
    desk.journal = Journal::new(None).with_undo(&folder).with_undo_limits(few);
    let mut units = Vec::new();
    for byte in b'a'..b'g' {
        desk.put("file", vec![byte; 1 << 20]);
        units.push(desk.run("echo x > file").unit.unwrap());
    }
    assert_says(
        desk.take(UndoSelection::Unit(units[0].clone())),
        &["dropped"],
    );
    desk.take(UndoSelection::Last).unwrap();
    assert_eq!(desk.get("file"), vec![b'f'; 1 << 20]);
    let kept: u64 = fs::read_dir(folder.join("blobs"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(kept <= 4 << 20, "{kept}");
}

/// Prints what a sweep costs. `cargo test --release ... what_a_sweep_costs -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn what_a_sweep_costs() {
    let count = |name: &str, default: usize| {
        let text = std::env::var(name).unwrap_or_default();
        text.parse().unwrap_or(default)
    };
    let (files, size) = (count("FILES", 120_000), count("SIZE", 2_000));
    let desk = Desk::with_limits(SnapshotLimits::default());
    for number in 0..files {
        let directory = desk.path(&format!("{}/{}", number % 40, number % 1000));
        if number < 1000 {
            fs::create_dir_all(&directory).unwrap();
        }
        let text = format!("{number}\n").repeat(size / 6);
        fs::write(directory.join(number.to_string()), text).unwrap();
    }
    let timed = |what: &str, start: std::time::Instant| {
        eprintln!("{what}: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    };
    for round in 1..=6 {
        let start = std::time::Instant::now();
        let before = desk.journal.before_command(&desk.sweep());
        timed(
            &format!("{round}. before ({:?} looked at, kept)", before.cost()),
            start,
        );
        if let Some(why) = before.uncovered() {
            eprintln!("{why}");
        }
        shell(
            desk.dir.path(),
            "echo x >> 1/1/1; rm -rf 2/2; mkdir 2/2; echo y > 2/2/y",
        );
        let start = std::time::Instant::now();
        let changed = desk
            .journal
            .after_command(before, &ticket(), "", &|_| false);
        let (removed, left) = (changed.removed.len(), changed.not_restorable.len());
        timed(
            &format!("{round}. after ({removed} removed, {left} not restorable)"),
            start,
        );
        let start = std::time::Instant::now();
        match desk.take(UndoSelection::Last) {
            Ok(_) => timed(&format!("{round}. undo"), start),
            Err(error) => eprintln!("{error}"),
        }
    }
}
