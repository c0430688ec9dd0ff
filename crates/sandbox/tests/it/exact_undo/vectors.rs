//! Single commands through a real guard, with the numbers of the vectors that they show.

use std::{
    env,
    fs::{self, File, OpenOptions},
    path::Path,
};

use haft_journal::{Journal, UndoHistory, UndoSelection};
use haft_sandbox::Mechanism;
use rustix::fs::{
    FallocateFlags, copy_file_range, fallocate, inotify, inotify::WatchFlags, ioctl_ficlone,
};
use tokio::time::timeout;

use super::{check, folder, operations, project, run, start_process, tree, undo};
use crate::{
    lifetime::sandbox,
    outside::{marked, until},
    setting::LONG,
};

/// The variable that selects the change of [`changes_a_file_in_place`].
const CHANGE: &str = "EXACT_UNDO_CHANGE";
const CHANGES: [&str; 5] = ["map", "truncate", "punch", "range", "clone"];

#[test]
#[ignore = "started by another test, in a sandbox"]
fn changes_a_file_in_place() {
    let Ok(change) = env::var(CHANGE) else {
        return;
    };
    let open = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).open("a").unwrap()
    };
    let source = File::open("source").unwrap();
    match change.as_str() {
        "map" => operations::map(Path::new("a")).unwrap(),
        "truncate" => open().set_len(10).unwrap(),
        "punch" => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(open(), flags, 0, 4096).unwrap();
        }
        "range" => {
            copy_file_range(source, None, open(), None, 4096).unwrap();
        }
        "clone" => {
            // Not every file system can share blocks. `cp` then copies.
            if ioctl_ficlone(open(), &source).is_err() {
                fs::copy("source", "a").unwrap();
            }
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn w6_changes_through_an_open_file_are_undone() {
    let folder = folder();
    let root = project(folder.path());
    let sandbox = sandbox(folder.path(), Mechanism::Namespaces);
    let journal = Journal::new(None).with_undo(folder.path().join("undo"));
    let program = env::current_exe().unwrap();
    for change in CHANGES {
        fs::write(root.join("a"), "a".repeat(8192)).unwrap();
        fs::write(root.join("source"), "s".repeat(8192)).unwrap();
        let before = tree(&root);
        let text = format!(
            "{CHANGE}={change} '{}' --exact exact_undo::vectors::changes_a_file_in_place --ignored >/dev/null 2>&1",
            program.display()
        );
        if !run(folder.path(), &sandbox, &journal, text).await {
            return;
        }
        let after = tree(&root);
        assert_ne!(after, before, "{change} changed nothing");
        let history = journal.history().unwrap();
        let unit = undo(history, &UndoSelection::Last, 0).unwrap();
        check(change, 0, &before, &root);
        let redone = undo(history, &UndoSelection::Unit(unit), 0).unwrap();
        check(change, 0, &after, &root);
        undo(history, &UndoSelection::Unit(redone), 0).unwrap();
    }
    sandbox.close().await;
}

#[tokio::test]
async fn w15_what_the_user_saves_meanwhile_is_not_in_the_unit() {
    let folder = folder();
    let root = project(folder.path());
    let sandbox = sandbox(folder.path(), Mechanism::Namespaces);
    let journal = Journal::new(None).with_undo(folder.path().join("undo"));
    if !run(folder.path(), &sandbox, &journal, "true".to_owned()).await {
        return;
    }
    for name in ["a", "b"] {
        fs::write(root.join(name), "old").unwrap();
    }
    let text = "echo new > b; until [ -e saved ]; do sleep 0.01; done".to_owned();
    let saves = async {
        until("the command changed its file", || {
            fs::read_to_string(root.join("b")).is_ok_and(|text| text == "new\n")
        })
        .await;
        fs::write(root.join("a"), "saved").unwrap();
        fs::write(root.join("saved"), "").unwrap();
    };
    let both = async { tokio::join!(run(folder.path(), &sandbox, &journal, text), saves) };
    timeout(LONG, both).await.unwrap();
    let history = journal.history().unwrap();
    let listed = history.list(10).unwrap();
    let files: Vec<&Path> = listed[0].files.iter().map(|file| &*file.real).collect();
    assert_eq!(files, [root.join("b")]);
    undo(history, &UndoSelection::Last, 0).unwrap();
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "saved");
    assert_eq!(fs::read_to_string(root.join("b")).unwrap(), "old");
    sandbox.close().await;
}

#[tokio::test]
async fn w18_a_removal_that_was_killed_half_way_is_undone() {
    let folder = folder();
    let root = project(folder.path());
    let modules = root.join("modules");
    let count = 5_000;
    for number in 0..50 {
        fs::create_dir_all(modules.join(number.to_string())).unwrap();
    }
    for number in 0..count {
        let name = format!("{}/f{number}", number % 50);
        fs::write(modules.join(name), format!("module {number}")).unwrap();
    }
    let before = tree(&root);
    let mut process = start_process(folder.path(), "rm -rf modules; sleep 1000");
    // Some directory has been removed, and most have not.
    let left = || fs::read_dir(&modules).map_or(0, Iterator::count);
    let begun = timeout(LONG, async {
        while left() == 50 && process.try_wait().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    });
    begun.await.unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    until("no process is left", || {
        marked(&folder.path().display().to_string()).is_empty()
    })
    .await;
    let history = UndoHistory::open(folder.path().join("undo"));
    history.recover().unwrap();
    let listed = history.list(10).unwrap();
    if listed.is_empty() {
        haft_testkit::skip("a removal that was killed: guards cannot mediate here");
        return;
    }
    assert_eq!(listed[0].left, []);
    undo(&history, &UndoSelection::Last, 0).unwrap();
    check("after death and undo", 0, &before, &root);
}

/// Neither guard nor journal reads directories that the command did not touch: the cost of a command
/// does not grow with the tree (W20).
#[tokio::test]
async fn w20_a_command_costs_nothing_for_files_that_it_does_not_touch() {
    let folder = folder();
    let root = project(folder.path());
    let sandbox = sandbox(folder.path(), Mechanism::Namespaces);
    let journal = Journal::new(None).with_undo(folder.path().join("undo"));
    if !run(folder.path(), &sandbox, &journal, "true".to_owned()).await {
        return;
    }
    let notifier = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    let directories: Vec<_> = (0..40)
        .map(|number| root.join(format!("d{number}")))
        .collect();
    for directory in &directories {
        fs::create_dir(directory).unwrap();
        for number in 0..50 {
            fs::write(directory.join(format!("f{number}")), "").unwrap();
        }
        let flags = WatchFlags::OPEN | WatchFlags::ACCESS;
        inotify::add_watch(&notifier, directory, flags).unwrap();
    }
    let accessed = || rustix::io::read(&notifier, &mut [0; 4096]);
    for text in ["echo x > f", "echo y > f", "mv f g", "rm g"] {
        run(folder.path(), &sandbox, &journal, text.to_owned()).await;
        let unit = undo(journal.history().unwrap(), &UndoSelection::Last, 0).unwrap();
        undo(journal.history().unwrap(), &UndoSelection::Unit(unit), 0);
        assert_eq!(accessed(), Err(rustix::io::Errno::AGAIN), "{text}");
    }
    // The test notices such reads.
    assert_eq!(fs::read_dir(&directories[7]).unwrap().count(), 50);
    assert!(accessed().is_ok());
    sandbox.close().await;
}
