//! An engine that is asked again and again while its tree changes: each answer is that of an engine
//! that is asked for the first time.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Stdio;

use haft_search::{
    Exclusions, GlobQuery, GrepMode, GrepQuery, IndexSettings, SearchEngine, StopCondition,
};

use crate::tree::{CONTENT, Tree};

/// Two engines: one that keeps everything at once, and one that keeps nothing.
pub(crate) struct Both {
    kept: SearchEngine,
    plain: SearchEngine,
}

impl Both {
    pub(crate) fn new() -> Self {
        Self::with(IndexSettings {
            at_once: true,
            few_files: 3,
            ..IndexSettings::default()
        })
    }

    pub(crate) fn with(settings: IndexSettings) -> Self {
        Self {
            kept: SearchEngine::with(settings),
            plain: SearchEngine::with(IndexSettings {
                enabled: false,
                ..IndexSettings::default()
            }),
        }
    }

    /// Asks both, and compares.
    pub(crate) fn grep(&self, query: &GrepQuery) -> String {
        let [kept, plain] = [&self.kept, &self.plain].map(|engine| {
            let report = engine.grep(query, &StopCondition::never());
            format!("{report:#?}")
        });
        assert_eq!(kept, plain, "{query:?}");
        kept
    }

    pub(crate) fn glob(&self, query: &GlobQuery) -> String {
        let [kept, plain] = [&self.kept, &self.plain].map(|engine| {
            let report = engine.glob(query, &StopCondition::never());
            format!("{report:#?}")
        });
        assert_eq!(kept, plain, "{query:?}");
        kept
    }

    /// Hands a content over, as our tools do.
    pub(crate) fn wrote(&self, path: &std::path::Path, content: &[u8]) {
        use std::os::unix::fs::MetadataExt;
        if let Ok(found) = fs::metadata(path) {
            let identity = haft_search::FileIdentity {
                device: found.dev(),
                inode: found.ino(),
                modified_ns: i128::from(found.mtime()) * 1_000_000_000
                    + i128::from(found.mtime_nsec()),
            };
            self.kept.on_file_written(path, content, &identity);
        }
    }

    /// Every kind of answer about a tree, for a text that some files have.
    pub(crate) fn check(&self, tree: &Tree) {
        for mode in [CONTENT, GrepMode::FilesWithMatches, GrepMode::Count] {
            self.grep(&tree.query("needle", mode));
        }
        self.grep(&GrepQuery {
            case_insensitive: true,
            ..tree.query("NEEDLE", CONTENT)
        });
        self.grep(&tree.query("e", GrepMode::Count));
        for pattern in ["**", "*.txt"] {
            self.glob(&GlobQuery::new(pattern, &tree.root));
        }
    }

    pub(crate) fn has(&self, tree: &Tree, path: &str) -> bool {
        let found = self.grep(&tree.query("needle", GrepMode::Count));
        found.contains(&format!("{:?}", tree.root.join(path)))
    }

    /// Are all its directories watched? Nothing if it is not kept.
    pub(crate) fn is_watched(&self, tree: &Tree) -> Option<bool> {
        let status = self.kept.index_status();
        let status = status.iter().find(|status| status.root == tree.root);
        status
            .filter(|status| status.is_ready)
            .map(|status| status.is_watched)
    }

    /// Is the answer one of the index? Then it is watched and known.
    pub(crate) fn is_kept(&self, tree: &Tree) -> bool {
        self.kept
            .index_status()
            .iter()
            .any(|status| status.root == tree.root && status.is_ready)
    }
}

pub(crate) fn some_files() -> Tree {
    let tree = Tree::with(&[
        ("a.txt", "needle in a\nother\n"),
        ("b.txt", "hay\n"),
        ("sub/c.txt", "hay\n"),
        ("sub/deep/d.txt", "Needle in d\n"),
        ("empty", ""),
    ]);
    for number in 0..400 {
        tree.write(
            format!("many/{number}.txt"),
            format!("text number {number}\n"),
        );
    }
    tree
}

#[test]
fn files_that_come_change_and_go_are_seen() {
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    assert!(both.is_kept(&tree));
    assert!(!both.has(&tree, "b.txt"));
    tree.write("b.txt", "a needle\n");
    assert!(both.has(&tree, "b.txt"));
    tree.write("new.txt", "needle\n");
    assert!(both.has(&tree, "new.txt"));
    fs::remove_file(tree.root.join("new.txt")).unwrap();
    assert!(!both.has(&tree, "new.txt"));
    fs::rename(tree.root.join("a.txt"), tree.root.join("sub/z.txt")).unwrap();
    assert!(both.has(&tree, "sub/z.txt"));
    let mut file = fs::File::options()
        .append(true)
        .open(tree.root.join("many/7.txt"))
        .unwrap();
    std::io::Write::write_all(&mut file, b"needle").unwrap();
    assert!(both.has(&tree, "many/7.txt"), "although it is still open");
    fs::write(tree.root.join("b.txt"), "hay\n").unwrap();
    assert!(!both.has(&tree, "b.txt"));
    both.check(&tree);
}

#[test]
fn a_file_that_is_replaced_with_the_same_size_and_time_is_seen() {
    let (tree, both) = (some_files(), Both::new());
    tree.set_time("b.txt", 5);
    both.check(&tree);
    tree.write("aside", "nee\n");
    tree.write("c.txt", "needle\n");
    tree.write("d.txt", "noodle\n");
    tree.set_time("c.txt", 7);
    tree.set_time("d.txt", 7);
    both.check(&tree);
    fs::rename(tree.root.join("d.txt"), tree.root.join("c.txt")).unwrap();
    assert!(!both.has(&tree, "c.txt"));
    // Written in place, and its time restored.
    fs::write(tree.root.join("c.txt"), "needle\n").unwrap();
    tree.set_time("c.txt", 7);
    assert!(both.has(&tree, "c.txt"));
}

#[test]
fn folders_that_come_move_and_go_are_seen_with_what_is_in_them() {
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    // Filled before it can be watched.
    for depth in 0..5 {
        let folder = format!("new/{}", "x/".repeat(depth));
        tree.write(format!("{folder}f.txt"), "needle\n");
    }
    assert!(both.has(&tree, "new/x/x/f.txt"));
    tree.write("new/x/x/g.txt", "needle\n");
    assert!(both.has(&tree, "new/x/x/g.txt"));
    fs::rename(tree.root.join("new"), tree.root.join("sub/moved")).unwrap();
    assert!(both.has(&tree, "sub/moved/x/x/g.txt"));
    tree.write("sub/moved/x/h.txt", "needle\n");
    assert!(
        both.has(&tree, "sub/moved/x/h.txt"),
        "watched in its new place"
    );
    both.check(&tree);
    // Out of the tree, changed there, and back again.
    let outside = Tree::new();
    let away = outside.root.join("away");
    fs::rename(tree.root.join("sub/moved"), &away).unwrap();
    both.check(&tree);
    fs::write(away.join("x/h.txt"), "hay\n").unwrap();
    fs::rename(&away, tree.root.join("back")).unwrap();
    assert!(!both.has(&tree, "back/x/h.txt"));
    assert!(both.has(&tree, "back/x/x/g.txt"));
    fs::remove_dir_all(tree.root.join("back")).unwrap();
    both.check(&tree);
    // A folder in the place of a file, and the other way round.
    fs::remove_file(tree.root.join("b.txt")).unwrap();
    tree.write("b.txt/inside", "needle\n");
    assert!(both.has(&tree, "b.txt/inside"));
    fs::remove_dir_all(tree.root.join("b.txt")).unwrap();
    tree.write("b.txt", "needle\n");
    assert!(both.has(&tree, "b.txt"));
    // Made anew, perhaps with the same number.
    for round in 0..3 {
        fs::remove_dir_all(tree.root.join("again")).ok();
        tree.write("again/f.txt", format!("needle {round}\n"));
        assert!(both.has(&tree, "again/f.txt"));
        tree.write("again/g.txt", format!("needle {round}\n"));
        assert!(both.has(&tree, "again/g.txt"));
    }
    // Two folders change places.
    fs::rename(tree.root.join("sub"), tree.root.join("other")).unwrap();
    fs::rename(tree.root.join("many"), tree.root.join("sub")).unwrap();
    fs::rename(tree.root.join("other"), tree.root.join("many")).unwrap();
    tree.write("many/deep/d.txt", "needle again\n");
    both.check(&tree);
    assert!(both.has(&tree, "many/deep/d.txt"));
}

#[test]
fn ignore_files_that_change_are_seen() {
    let (tree, both) = (some_files(), Both::new());
    fs::create_dir(tree.root.join(".git")).unwrap();
    both.check(&tree);
    tree.write(".gitignore", "sub/\n*.log\n");
    tree.write("x.log", "needle\n");
    both.check(&tree);
    assert!(!both.has(&tree, "x.log"));
    tree.write(".gitignore", "{broken\n");
    assert!(both.has(&tree, "x.log"));
    both.check(&tree);
    tree.write(".git/info/exclude", "a.txt\n");
    assert!(!both.has(&tree, "a.txt"));
    tree.write(".git/info/exclude", "b.txt\n");
    assert!(both.has(&tree, "a.txt"));
    tree.write("sub/.ignore", "deep\n");
    both.check(&tree);
    fs::remove_file(tree.root.join("sub/.ignore")).unwrap();
    both.check(&tree);
    // Above the directory that is searched.
    let below = |both: &Both| {
        let path = tree.root.join("sub");
        both.grep(&GrepQuery {
            mode: CONTENT,
            ..GrepQuery::new("(?i)needle", path)
        })
    };
    assert!(below(&both).contains("d.txt"));
    tree.write(".ignore", "d.txt\n");
    assert!(!below(&both).contains("d.txt"));
    fs::remove_file(tree.root.join(".ignore")).unwrap();
    assert!(below(&both).contains("d.txt"));
    // It is no repository any more.
    tree.write(".gitignore", "*.log\n");
    both.check(&tree);
    fs::remove_dir_all(tree.root.join(".git")).unwrap();
    assert!(both.has(&tree, "x.log"));
}

#[test]
fn excludes_of_a_worktree_and_linked_ignore_files_are_seen() {
    let (tree, both) = (some_files(), Both::new());
    let main = Tree::new();
    main.write("repo/info/exclude", "a.txt\n");
    main.write("repo/worktrees/w/commondir", "../..\n");
    let own = main.root.join("repo/worktrees/w");
    tree.write(".git", format!("gitdir: {}\n", own.display()));
    both.check(&tree);
    assert!(!both.has(&tree, "a.txt"));
    main.write("repo/info/exclude", "other.txt\n");
    assert!(both.has(&tree, "a.txt"));
    fs::remove_file(main.root.join("repo/info/exclude")).unwrap();
    both.check(&tree);
    tree.write("rules", "a.txt\n");
    symlink("rules", tree.root.join(".ignore")).unwrap();
    assert!(!both.has(&tree, "a.txt"));
    tree.write("rules", "none\n");
    assert!(both.has(&tree, "a.txt"));
    symlink("../rules", tree.root.join("sub/.ignore")).unwrap();
    tree.write("rules", "deep\n");
    both.check(&tree);
    let path = tree.root.join("sub");
    both.grep(&GrepQuery {
        mode: CONTENT,
        ..GrepQuery::new("(?i)needle", path)
    });
}

#[test]
fn a_file_written_by_another_name_outside_is_seen() {
    let (tree, outside, both) = (some_files(), Tree::new(), Both::new());
    let other = outside.root.join("other");
    fs::hard_link(tree.root.join("b.txt"), &other).unwrap();
    both.check(&tree);
    for round in 0..20 {
        fs::write(&other, "needle\n").unwrap();
        assert!(both.has(&tree, "b.txt"), "{round}");
        fs::write(&other, "noodle\n").unwrap();
        assert!(!both.has(&tree, "b.txt"), "{round}");
    }
    both.check(&tree);
}

/// Names that are made when the tree is known already, and writes by them alone.
#[test]
fn a_name_that_comes_later_outside_is_seen() {
    for watched_files in [None, Some(0), Some(100)] {
        let (tree, outside) = (some_files(), Tree::new());
        let both = Both::with(IndexSettings {
            at_once: true,
            few_files: 3,
            watched_files,
            ..IndexSettings::default()
        });
        both.check(&tree);
        both.check(&tree);
        for (round, path) in ["b.txt", "many/7.txt", "many/399.txt", "sub/c.txt"]
            .iter()
            .enumerate()
        {
            let other = outside.root.join(round.to_string());
            fs::hard_link(tree.root.join(path), &other).unwrap();
            fs::write(&other, "needle\n").unwrap();
            assert!(both.has(&tree, path), "{watched_files:?} {path}");
            fs::write(&other, "noodle\n").unwrap();
            assert!(!both.has(&tree, path), "{watched_files:?} {path}");
            both.check(&tree);
            // Opened by a name that is gone when it is written.
            let mut opened = fs::File::options().append(true).open(&other).unwrap();
            fs::remove_file(&other).unwrap();
            both.check(&tree);
            std::io::Write::write_all(&mut opened, b"needle\n").unwrap();
            assert!(both.has(&tree, path), "{watched_files:?} {path}");
            both.check(&tree);
        }
    }
}

/// A file that had no name when it was opened.
#[test]
fn a_file_that_gets_its_name_while_it_is_written_is_seen() {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use std::os::fd::AsRawFd;
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(file) = open(&tree.root, flags, Mode::RUSR | Mode::WUSR) else {
        haft_testkit::skip("the file system has no files without names");
        return;
    };
    let file = fs::File::from(file);
    std::io::Write::write_all(&mut &file, b"hay\n").unwrap();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let named = tree.root.join("named.txt");
    linkat(CWD, &path, CWD, &named, AtFlags::SYMLINK_FOLLOW).unwrap();
    assert!(!both.has(&tree, "named.txt"));
    both.check(&tree);
    // The kernel tells of this under a name that no one knows.
    std::io::Write::write_all(&mut &file, b"needle\n").unwrap();
    assert!(both.has(&tree, "named.txt"));
    both.check(&tree);
}

#[test]
fn several_names_inside_are_all_seen() {
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    // A second name inside, of a file that had one.
    fs::hard_link(tree.root.join("a.txt"), tree.root.join("sub/also")).unwrap();
    assert!(both.has(&tree, "sub/also"));
    fs::write(tree.root.join("sub/also"), "hay and hay\n").unwrap();
    both.check(&tree);
    fs::write(tree.root.join("sub/also"), "hay\n").unwrap();
    assert!(!both.has(&tree, "sub/also") && !both.has(&tree, "a.txt"));
}

#[test]
fn more_changes_than_the_kernel_keeps_are_seen() {
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    let limit: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(16_384);
    if limit > 100_000 {
        haft_testkit::skip("the kernel's queue is too long to fill");
        return;
    }
    for number in 0..limit {
        // Different names, so that none is left out as a repetition.
        fs::write(tree.root.join(format!("many/{}.txt", number % 2)), "x\n").unwrap();
    }
    tree.write("b.txt", "needle\n");
    tree.write("late/new.txt", "needle\n");
    assert!(both.has(&tree, "b.txt"));
    assert!(both.has(&tree, "late/new.txt"));
    tree.write("late/new.txt", "hay\n");
    assert!(!both.has(&tree, "late/new.txt"), "watched again");
    both.check(&tree);
}

#[test]
fn links_that_lead_elsewhere_are_seen() {
    let (tree, both) = (some_files(), Both::new());
    symlink("a.txt", tree.root.join("link")).unwrap();
    symlink("sub", tree.root.join("folder")).unwrap();
    both.check(&tree);
    for target in ["b.txt", "sub", "missing", "empty"] {
        fs::remove_file(tree.root.join("link")).unwrap();
        symlink(target, tree.root.join("link")).unwrap();
        both.check(&tree);
    }
    // What it leads to changes, outside of the tree.
    let outside = Tree::with(&[("x", "1")]);
    fs::remove_file(tree.root.join("link")).unwrap();
    symlink(outside.root.join("x"), tree.root.join("link")).unwrap();
    both.check(&tree);
    outside.set_time("x", 9);
    both.check(&tree);
    fs::remove_file(outside.root.join("x")).unwrap();
    both.check(&tree);
    // A folder becomes a link out of the tree.
    outside.write("deep/d.txt", "needle outside\n");
    fs::rename(tree.root.join("sub"), tree.root.join("sub2")).unwrap();
    symlink(&outside.root, tree.root.join("sub")).unwrap();
    both.check(&tree);
    assert!(!both.has(&tree, "sub/deep/d.txt"));
    // The tree itself is another one.
    let moved = outside.root.join("moved");
    fs::rename(&tree.root, &moved).unwrap();
    for round in 0..3 {
        tree.write("fresh.txt", "needle\n");
        both.check(&tree);
        assert!(both.has(&tree, "fresh.txt"), "{round}");
        fs::remove_dir_all(&tree.root).unwrap();
    }
}

#[test]
fn permissions_that_change_are_seen() {
    // Root may read everything, and both engines say so.
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    let set = |path: &str, mode: u32| {
        fs::set_permissions(tree.root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, none, all) in [
        ("a.txt", 0, 0o600),
        ("sub", 0, 0o700),
        ("sub", 0o400, 0o700),
    ] {
        set(path, none);
        both.check(&tree);
        set(path, all);
        both.check(&tree);
    }
}

#[test]
fn binary_and_encoded_files_are_reported_as_ever() {
    let (tree, both) = (some_files(), Both::new());
    let utf16: Vec<u8> = "\u{feff}needle\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    tree.write("wide.txt", utf16);
    tree.write("marked.txt", "\u{feff}needle\n");
    tree.write("bin", b"needle\n\0needle\n");
    tree.write("late", [b"needle\n".repeat(9_500), vec![0]].concat());
    tree.write(
        "much-later",
        [b"hay\n".repeat(20_000), b"\0needle\n".to_vec()].concat(),
    );
    tree.write("odd.txt", b"\xff\xfeneedle\nneedle \xff\n");
    tree.write("long", [b"x".repeat(90_000), b"needle\n".to_vec()].concat());
    for _ in 0..2 {
        for pattern in [
            "needle",
            r"needle\n",
            r"\Aneedle",
            r"(?i)HAY\nhay",
            "^",
            "absent",
            r"needle$",
        ] {
            for multiline in [false, true] {
                for mode in [CONTENT, GrepMode::FilesWithMatches, GrepMode::Count] {
                    let head_limit = Some(12_000);
                    both.grep(&GrepQuery {
                        multiline,
                        head_limit,
                        ..tree.query(pattern, mode)
                    });
                }
                let only = GrepMode::Content {
                    before: 1,
                    after: 1,
                    only_matching: true,
                };
                both.grep(&GrepQuery {
                    multiline,
                    head_limit: Some(7),
                    ..tree.query(pattern, only)
                });
            }
        }
    }
}

#[test]
fn what_is_left_out_and_what_globs_bring_back() {
    let (tree, both) = (some_files(), Both::new());
    fs::create_dir(tree.root.join(".git")).unwrap();
    tree.write(".gitignore", "*.log\ntarget/\n");
    tree.write("x.log", "needle\n");
    tree.write("target/out.txt", "needle\n");
    tree.write(".env", "needle\n");
    tree.write("sub/.travis.yml", "needle\n");
    let globs: [&[&str]; 8] = [
        &["*.log"],
        &["!*.txt"],
        &["target/**"],
        &["*.txt", "!a*"],
        &["/sub"],
        &[".env*"],
        &["sub/**"],
        &["!sub"],
    ];
    for _ in 0..2 {
        for globs in globs {
            let globs = globs.iter().map(|glob| (*glob).to_owned()).collect();
            both.grep(&GrepQuery {
                globs,
                ..tree.query("(?i)needle", CONTENT)
            });
        }
        for file_type in ["yaml", "txt", "rust"] {
            let file_type = Some(file_type.to_owned());
            both.grep(&GrepQuery {
                file_type,
                ..tree.query("(?i)needle", CONTENT)
            });
        }
        for name in ["sub", "a.txt", "sub/deep", "many"] {
            let path = tree.root.join(name);
            let leave_out = Exclusions::from_fn(move |found| found == path);
            both.grep(&GrepQuery {
                leave_out: leave_out.clone(),
                ..tree.query("(?i)needle", CONTENT)
            });
            both.glob(&GlobQuery {
                leave_out,
                ..GlobQuery::new("**", &tree.root)
            });
        }
        for (respect_ignore, hidden) in [(true, false), (false, true), (false, false)] {
            both.glob(&GlobQuery {
                respect_ignore,
                hidden,
                ..GlobQuery::new("**", &tree.root)
            });
        }
        for path in ["target", ".git", "sub", "sub/deep", "a.txt", "missing"] {
            let path = tree.root.join(path);
            both.grep(&GrepQuery {
                current_dir: tree.root.clone(),
                ..GrepQuery::new("needle", path)
            });
        }
        tree.write("sub/new.txt", "needle\n");
    }
}

#[test]
fn writes_of_other_processes_are_seen_at_once() {
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    let writes = match std::env::var("HAFT_SEARCH_LONG") {
        Ok(_) => 5000,
        Err(_) => 60,
    };
    let mut shell = haft_testkit::command("sh")
        .arg("-s")
        .current_dir(&tree.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, from) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    let mut lines = std::io::BufReader::new(from);
    for number in 0..writes {
        let command = match number % 4 {
            0 => format!("echo token{number}end > many/{}.txt", number % 50),
            1 => format!("echo token{number}end >> b.txt"),
            2 => format!("echo token{number}end > t; mv t sub/c.txt"),
            _ => format!(
                "mkdir -p made/{}; echo token{number}end > made/{}/f",
                number % 9,
                number % 9
            ),
        };
        std::io::Write::write_all(&mut to, format!("{command}; echo done\n").as_bytes()).unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
        let query = tree.query(&format!("token{number}end"), GrepMode::Count);
        let report = both.kept.grep(&query, &StopCondition::never()).unwrap();
        assert_eq!(report.tally.files, 1, "write {number}: {command}");
    }
    drop(to);
    shell.wait().unwrap();
}

#[test]
fn a_store_through_a_mapping_is_seen_where_it_can_be() {
    let (tree, both) = (some_files(), Both::new());
    both.check(&tree);
    let script = "import mmap,sys\nf=open('a.txt','r+b')\nm=mmap.mmap(f.fileno(),0)\nf.close()\n\
        for l in sys.stdin:\n m[0:6]=l[:6].encode()\n print('done',flush=True)\nm.close()\nprint('closed',flush=True)";
    let python = haft_testkit::command("python3")
        .args(["-c", script])
        .current_dir(&tree.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = python else {
        haft_testkit::skip("no python3 to map a file with");
        return;
    };
    let (mut to, from) = (python.stdin.take().unwrap(), python.stdout.take().unwrap());
    let mut lines = std::io::BufReader::new(from);
    let mut answer = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    };
    assert!(both.has(&tree, "a.txt"));
    // The first store changes the file's time, and the file is a candidate.
    std::io::Write::write_all(&mut to, b"noodle\n").unwrap();
    answer();
    assert!(!both.has(&tree, "a.txt"));
    // The kernel says when it is unmapped.
    std::io::Write::write_all(&mut to, b"needle\n").unwrap();
    answer();
    drop(to);
    answer();
    python.wait().unwrap();
    assert!(both.has(&tree, "a.txt"));
}

#[test]
fn a_clock_that_jumps_back_hides_nothing() {
    let (tree, both) = (some_files(), Both::new());
    // What such a clock leaves behind: times in the future, and later ones that are earlier.
    let future = std::time::SystemTime::now() + std::time::Duration::from_secs(100_000);
    let set = |time| {
        fs::File::options()
            .write(true)
            .open(tree.root.join("b.txt"))
            .unwrap()
            .set_modified(time)
            .unwrap()
    };
    set(future);
    both.check(&tree);
    for round in 0..3 {
        tree.write("b.txt", "needle\n");
        set(future - std::time::Duration::from_secs(round));
        assert!(both.has(&tree, "b.txt"));
        tree.write("b.txt", "noodle\n");
        set(future - std::time::Duration::from_secs(round));
        assert!(!both.has(&tree, "b.txt"));
    }
}

#[test]
fn contents_are_let_go_when_no_one_searches() {
    let tree = some_files();
    let both = Both::with(IndexSettings {
        few_files: 3,
        contents_lifetime: std::time::Duration::from_millis(500),
        ..IndexSettings::default()
    });
    let held = || {
        let status = both.kept.index_status();
        status.iter().map(|status| status.held_bytes).sum::<usize>()
    };
    for _ in 0..2 {
        both.check(&tree);
        haft_testkit::until_blocking("contents are held", || {
            both.check(&tree);
            held() > 0
        });
        haft_testkit::until_blocking("they are let go", || held() == 0);
        let status = both.kept.index_status();
        assert!(status[0].indexed > 400, "the index stays: {status:?}");
    }
    tree.write("b.txt", "needle\n");
    assert!(both.has(&tree, "b.txt"));
}

#[test]
fn the_tree_is_let_go_with_the_engine() {
    let tree = some_files();
    let watches = || {
        let folder = fs::read_dir("/proc/self/fdinfo").unwrap();
        let paths: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
        let inode = fs::metadata(tree.root.join("sub/deep")).unwrap();
        let inode = format!("ino:{:x} ", std::os::unix::fs::MetadataExt::ino(&inode));
        let texts = paths
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok());
        texts.filter(|text| text.contains(&inode)).count()
    };
    let both = Both::new();
    both.check(&tree);
    assert_eq!(watches(), 1);
    drop(both);
    assert_eq!(watches(), 0);
}
