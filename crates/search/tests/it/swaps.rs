//! Others change the tree in the middle of a walk: nothing outside of it is read or named.
//!
//! What a search must leave out is asked for each entry, after its directory was listed and before
//! anything is opened: that is the instant at which these tests swap.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use haft_search::{
    Exclusions, GlobQuery, GrepMatches, GrepMode, GrepQuery, IndexSettings, SearchEngine,
    SearchError, SkipReason, StopCondition, list_directory,
};
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::tree::{CONTENT, Tree};

const SECRET: &str = "s3cret";

/// A tree, and beside it a directory with secrets.
fn trees() -> (Tree, Tree) {
    let (tree, outside) = (Tree::new(), Tree::new());
    tree.write("dir/f.txt", "needle\n");
    tree.write("dir/deep/f.txt", "needle\n");
    tree.write("a.txt", "needle\n");
    outside.write("f.txt", format!("needle {SECRET}\n"));
    outside.write("deep/f.txt", format!("needle {SECRET}\n"));
    outside.write(format!("{SECRET}.txt"), format!("needle {SECRET}\n"));
    outside.write(".gitignore", format!("{{{SECRET}\n"));
    (tree, outside)
}

/// One whose answers are not compared with later ones: the tree has changed by then.
fn engine() -> SearchEngine {
    SearchEngine::with(IndexSettings::default())
}

/// Puts a link in the place of `name` when the walk has found it.
fn swap_when_found(tree: &Tree, name: &str, to: &Path) -> Exclusions {
    let path = tree.root.join(name);
    let aside = tree.root.join(format!("{name}.aside").replace('/', "_"));
    let to = to.to_path_buf();
    let pending = Mutex::new(true);
    Exclusions::from_fn(move |found| {
        if found == path && std::mem::take(&mut *pending.lock().unwrap()) {
            fs::rename(&path, &aside).unwrap();
            symlink(&to, &path).unwrap();
        }
        false
    })
}

#[test]
fn a_link_in_the_place_of_what_was_listed_is_not_followed() {
    for (name, to) in [
        ("dir", ""),
        ("dir/deep", "deep"),
        ("a.txt", "f.txt"),
        ("dir/f.txt", "f.txt"),
    ] {
        for mode in [CONTENT, GrepMode::FilesWithMatches, GrepMode::Count] {
            let (tree, outside) = trees();
            let to = outside.root.join(to);
            let query = GrepQuery {
                mode,
                leave_out: swap_when_found(&tree, name, &to),
                ..GrepQuery::new("needle", &tree.root)
            };
            let report = engine().grep(&query, &StopCondition::never()).unwrap();
            let text = format!("{report:?}");
            assert!(!text.contains(SECRET), "{name}: {text}");
            let swapped = format!("{:?}", tree.root.join(name));
            let is_named = match &report.found {
                GrepMatches::Rows(rows) => {
                    rows.iter().any(|row| format!("{:?}", row.path) == swapped)
                }
                GrepMatches::Files(files) => {
                    files.iter().any(|file| format!("{file:?}") == swapped)
                }
                GrepMatches::Counts(counts) => {
                    counts.iter().any(|it| format!("{:?}", it.path) == swapped)
                }
            };
            assert!(!is_named, "{name}: {text}");
        }
        let (tree, outside) = trees();
        let to = outside.root.join(to);
        let query = GlobQuery {
            leave_out: swap_when_found(&tree, name, &to),
            ..GlobQuery::new("**/*", &tree.root)
        };
        let report = engine().glob(&query, &StopCondition::never()).unwrap();
        assert!(
            !format!("{report:?}").contains(SECRET),
            "{name}: {report:?}"
        );
    }
}

#[test]
fn a_pipe_in_the_place_of_what_was_listed_holds_nothing_up() {
    let (tree, _) = trees();
    let path = tree.root.join("a.txt");
    let query = GrepQuery {
        leave_out: Exclusions::from_fn(move |found| {
            if found == path {
                fs::remove_file(&path).unwrap();
                mkfifoat(CWD, &path, Mode::RWXU).unwrap();
            }
            false
        }),
        ..GrepQuery::new("needle", &tree.root)
    };
    let report = engine().grep(&query, &StopCondition::never()).unwrap();
    assert_eq!(report.tally.files, 2);
    assert_eq!(report.skipped.total(), 0);
}

#[test]
fn a_root_that_leads_elsewhere_than_it_was_judged_is_not_searched() {
    let (tree, outside) = trees();
    let link = tree.root.join("link");
    symlink(tree.root.join("dir"), &link).unwrap();
    let judged = Some(tree.root.join("dir"));
    let grep = || {
        let query = GrepQuery {
            authorized_path: judged.clone(),
            ..GrepQuery::new("needle", &link)
        };
        engine().grep(&query, &StopCondition::never())
    };
    let glob = || {
        let query = GlobQuery {
            authorized_path: judged.clone(),
            ..GlobQuery::new("*", &link)
        };
        engine().glob(&query, &StopCondition::never())
    };
    let list = || list_directory(&link, judged.as_deref(), &tree.root);
    assert_eq!(grep().unwrap().tally.files, 2);
    assert_eq!(glob().unwrap().total, 2);
    assert_eq!(list().unwrap().names.len(), 2);
    fs::remove_file(&link).unwrap();
    symlink(&outside.root, &link).unwrap();
    assert!(matches!(grep(), Err(SearchError::LeadsElsewhere { .. })));
    assert!(matches!(glob(), Err(SearchError::LeadsElsewhere { .. })));
    assert!(matches!(list(), Err(SearchError::LeadsElsewhere { .. })));
}

#[test]
fn ignore_files_that_are_pipes_or_lead_outside_are_no_ignore_files() {
    let (tree, outside) = trees();
    fs::create_dir(tree.root.join(".git")).unwrap();
    for name in [".gitignore", ".ignore", ".rgignore"] {
        mkfifoat(CWD, tree.root.join(name), Mode::RWXU).unwrap();
        // Its one line would leave the file out, and is no pattern either.
        let secret = outside.root.join("lines");
        fs::write(&secret, format!("f.txt\n{{{SECRET}\n")).unwrap();
        symlink(&secret, tree.root.join("dir").join(name)).unwrap();
    }
    let report = engine()
        .grep(
            &GrepQuery::new("needle", &tree.root),
            &StopCondition::never(),
        )
        .unwrap();
    assert_eq!(report.tally.files, 3, "{report:?}");
    assert!(!format!("{report:?}").contains(SECRET), "{report:?}");
    // Inside the tree a link is as good as what it leads to; what is wrong in it is not quoted.
    tree.write("dir/shared", format!("f.txt\n{{{SECRET}\n"));
    fs::remove_file(tree.root.join("dir/.ignore")).unwrap();
    symlink("shared", tree.root.join("dir/.ignore")).unwrap();
    let report = engine()
        .grep(
            &GrepQuery::new("needle", &tree.root),
            &StopCondition::never(),
        )
        .unwrap();
    assert_eq!(report.tally.files, 1, "{report:?}");
    let messages: Vec<_> = report
        .skipped
        .samples
        .iter()
        .map(|skip| match &skip.reason {
            SkipReason::IgnoreFile { message } => message.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(messages, ["line 2: not a valid pattern"]);
}

#[test]
fn thousands_of_walks_while_a_directory_is_swapped_show_nothing() {
    let (tree, outside) = trees();
    let done = AtomicBool::new(false);
    let [dir, kept, link] = ["dir", "kept", "link"].map(|name| tree.root.join(name));
    symlink(&outside.root, &link).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&dir, &kept).unwrap();
                fs::rename(&link, &dir).unwrap();
                thread::yield_now();
                fs::rename(&dir, &link).unwrap();
                fs::rename(&kept, &dir).unwrap();
            }
        });
        let engine = engine();
        let walks = || {
            for _ in 0..1500 {
                let query = GrepQuery {
                    mode: CONTENT,
                    ..GrepQuery::new("needle", &tree.root)
                };
                let report = engine.grep(&query, &StopCondition::never()).unwrap();
                assert!(!format!("{report:?}").contains(SECRET), "{report:?}");
                let query = GlobQuery::new("**/*.txt", &tree.root);
                let report = engine.glob(&query, &StopCondition::never()).unwrap();
                assert!(!format!("{report:?}").contains(SECRET), "{report:?}");
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(walks));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn a_file_that_is_cut_off_while_it_is_searched_ends_there() {
    let tree = Tree::new();
    let path = tree.write("a.txt", "needle\n".repeat(50_000));
    let cut = path.clone();
    let query = GrepQuery {
        mode: GrepMode::Count,
        ..GrepQuery::new("needle", &path)
    };
    // Asked before each piece is read.
    let asked = AtomicUsize::new(0);
    let stop = StopCondition::never().or_if(move || {
        if asked.fetch_add(1, Ordering::Relaxed) == 1 {
            let file = fs::OpenOptions::new().write(true).open(&cut).unwrap();
            file.set_len(100).unwrap();
        }
        false
    });
    let report = engine().grep(&query, &stop).unwrap();
    let GrepMatches::Counts(counts) = &report.found else {
        panic!("counts were asked for");
    };
    assert!(counts[0].count < 50_000, "{counts:?}");
    assert_eq!(report.skipped.total(), 0);
}
