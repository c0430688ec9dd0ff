//! What a grep promises beyond ripgrep's result set: order, pages, totals, skips and stops.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_search::{
    GrepCounts, GrepMatches, GrepMode, GrepQuery, MAX_COLUMNS, SearchCompletion, SearchEngine,
    SearchError, SearchStop, SkipReason, StopCondition,
};

use crate::tree::{CONTENT, Tree, grep};

fn three_hundred() -> Tree {
    let tree = Tree::new();
    for file in 0..30 {
        tree.write(format!("{file:02}.txt"), "match\nother\n".repeat(10));
    }
    tree
}

#[test]
fn pages_of_content_say_whether_there_is_more() {
    let tree = three_hundred();
    let page = |offset, limit| {
        let query = GrepQuery {
            offset,
            head_limit: Some(limit),
            ..tree.query("match", CONTENT)
        };
        grep(&query)
    };
    let first = page(0, 250);
    assert_eq!(tree.lines(&first).len(), 250);
    assert!(first.more);
    assert_eq!(
        first.completion,
        SearchCompletion::Stopped(SearchStop::Limit)
    );
    assert_eq!(first.totals(), None, "what follows was not searched");

    let second = page(250, 250);
    assert_eq!(tree.lines(&second).len(), 50);
    assert!(!second.more);
    assert_eq!(
        second.totals(),
        Some(GrepCounts {
            files: 30,
            rows: 300,
            matches: Some(300)
        })
    );

    let beyond = page(300, 250);
    assert_eq!(tree.lines(&beyond).len(), 0);
    assert_eq!(beyond.tally.rows, 300, "there were rows, before the offset");
    assert_eq!((beyond.offset, beyond.head_limit), (300, Some(250)));
}

#[test]
fn context_and_breaks_are_rows_too() {
    let tree = Tree::with(&[("a", "1\nx\n3\n4\n5\nx\n7\n"), ("b", "x\n")]);
    let mode = GrepMode::Content {
        before: 1,
        after: 1,
        only_matching: false,
    };
    let all = [
        "a-1-1", "a:2:x", "a-3-3", "--", "a-5-5", "a:6:x", "a-7-7", "--", "b:1:x",
    ];
    for offset in 0..10 {
        for limit in 1..10 {
            let query = GrepQuery {
                offset,
                head_limit: Some(limit),
                ..tree.query("x", mode)
            };
            let report = grep(&query);
            let expected: Vec<_> = all.iter().skip(offset).take(limit).collect();
            assert_eq!(
                tree.lines(&report),
                expected.into_iter().copied().collect::<Vec<_>>()
            );
            assert_eq!(
                report.more,
                offset + limit < all.len(),
                "offset {offset} limit {limit}"
            );
        }
    }
}

#[test]
fn counts_are_summed_over_all_files_although_rows_are_cut() {
    let tree = Tree::with(&[
        ("b", "x\nx\n"),
        ("a", "x\n"),
        ("c/d", "x\nx x\ny\n"),
        ("e", ""),
    ]);
    let report = grep(&GrepQuery {
        head_limit: Some(1),
        ..tree.query("x", GrepMode::Count)
    });
    assert_eq!(tree.lines(&report), ["a:1"]);
    assert!(report.more);
    assert_eq!(
        report.totals(),
        Some(GrepCounts {
            files: 3,
            rows: 3,
            matches: Some(5)
        })
    );
}

#[test]
fn files_come_newest_first_and_ties_by_path() {
    let tree = Tree::with(&[
        ("old", "x"),
        ("b", "x"),
        ("a", "x"),
        ("new", "x"),
        ("none", "y"),
    ]);
    for (path, seconds) in [("old", 1), ("b", 5), ("a", 5), ("new", 9), ("none", 20)] {
        tree.set_time(path, seconds);
    }
    let query = tree.query("x", GrepMode::FilesWithMatches);
    assert_eq!(tree.lines(&grep(&query)), ["new", "a", "b", "old"]);
    let report = grep(&GrepQuery {
        head_limit: Some(2),
        offset: 1,
        ..query
    });
    assert_eq!(tree.lines(&report), ["a", "b"]);
    assert!(report.more);
    assert_eq!(
        report.totals(),
        Some(GrepCounts {
            files: 4,
            rows: 4,
            matches: None
        })
    );
}

#[test]
fn an_ignored_file_is_searched_only_when_named() {
    let tree = Tree::with(&[
        (".git/HEAD", ""),
        (".gitignore", "x.log"),
        ("x.log", "needle\n"),
    ]);
    let query = tree.query("needle", CONTENT);
    assert!(tree.lines(&grep(&query)).is_empty());
    let report = grep(&GrepQuery {
        path: tree.root.join("x.log"),
        ..query
    });
    assert_eq!(tree.lines(&report), ["x.log:1:needle"]);
}

#[test]
fn version_control_directories_are_entered_only_when_named() {
    let tree = Tree::with(&[
        (".git/config", "x"),
        ("sub/.hg/store", "x"),
        (".jj", "x"),
        ("f", "x"),
    ]);
    let query = tree.query("x", CONTENT);
    assert_eq!(tree.lines(&grep(&query)), ["f:1:x"]);
    let revived = GrepQuery {
        globs: vec![".git/**".into(), "*".into()],
        ..query.clone()
    };
    assert_eq!(
        tree.lines(&grep(&revived)),
        ["f:1:x"],
        "a glob does not revive them"
    );
    let report = grep(&GrepQuery {
        path: tree.root.join(".git"),
        ..query
    });
    assert_eq!(tree.lines(&report), [".git/config:1:x"]);
}

#[test]
fn links_are_followed_only_when_named() {
    let tree = Tree::with(&[("dir/f", "x")]);
    symlink("dir", tree.root.join("dir-link")).unwrap();
    symlink("dir/f", tree.root.join("file-link")).unwrap();
    let query = tree.query("x", CONTENT);
    assert_eq!(tree.lines(&grep(&query)), ["dir/f:1:x"]);
    for (path, line) in [
        ("dir-link", "dir-link/f:1:x"),
        ("file-link", "file-link:1:x"),
    ] {
        let report = grep(&GrepQuery {
            path: tree.root.join(path),
            ..query.clone()
        });
        assert_eq!(tree.lines(&report), [line]);
    }
}

#[test]
fn what_was_not_searched_is_named() {
    let tree = Tree::with(&[
        ("ok", "x\n"),
        (".ignore", "{broken\nfine\n"),
        ("fine", "x\n"),
    ]);
    let binary = tree.write("b.bin", b"\0x");
    let secret = tree.write("secret", "x\n");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let readable_anyway = fs::File::open(&secret).is_ok(); // as root
    let report = grep(&tree.query("x", GrepMode::FilesWithMatches));
    assert_eq!(report.skipped.binary, 1);
    assert_eq!(report.skipped.ignore_files, 1);
    assert_eq!(report.skipped.unreadable, usize::from(!readable_anyway));
    let of_binary = report
        .skipped
        .samples
        .iter()
        .find(|it| it.path.as_ref() == Some(&binary));
    assert_eq!(of_binary.unwrap().reason, SkipReason::Binary { offset: 0 });
    let broken = &report.skipped.samples[0];
    assert_eq!(
        broken.path.as_deref(),
        Some(tree.root.join(".ignore").as_path())
    );
    assert!(
        matches!(&broken.reason, SkipReason::IgnoreFile { message } if message.contains("line 1"))
    );
    if !readable_anyway {
        let text = report.skipped.samples[1].reason.to_string();
        assert!(text.contains("Permission denied"), "{text}");
    }
}

#[test]
fn a_file_too_large_to_hold_is_named_in_multiline_mode() {
    let tree = Tree::with(&[("ok", "x\ny\n")]);
    let huge = fs::File::create(tree.root.join("huge")).unwrap();
    huge.set_len(600 * 1024 * 1024).unwrap(); // takes no room on disk
    let query = GrepQuery {
        multiline: true,
        ..tree.query(r"x\ny", CONTENT)
    };
    let report = grep(&query);
    assert_eq!(tree.lines(&report), ["ok:1:x", "ok:2:y"]);
    assert_eq!(report.skipped.too_large, 1);
    let named = grep(&GrepQuery {
        path: tree.root.join("huge"),
        ..query
    });
    assert_eq!(named.skipped.too_large, 1);
}

#[test]
fn long_lines_are_cut_for_display_only() {
    let line = format!("{}needle", "é".repeat(600));
    let tree = Tree::with(&[("long", &line)]);
    let GrepMatches::Rows(rows) = grep(&tree.query("needle", CONTENT)).found else {
        panic!("rows asked for")
    };
    assert_eq!(rows[0].text, "é".repeat(MAX_COLUMNS));
    assert_eq!(rows[0].full_length, Some(606));
}

#[test]
fn the_answer_is_the_same_on_every_run() {
    let tree = Tree::new();
    for number in 0..200 {
        let lines = "x\n".repeat(number % 7);
        tree.write(format!("{}/{}/{number}", number % 5, number % 3), lines);
        tree.write(format!("{}/{}/{number}.bin", number % 5, number % 3), b"\0");
    }
    let query = GrepQuery {
        head_limit: Some(40),
        offset: 3,
        ..tree.query("x", CONTENT)
    };
    let first = format!("{:?}", grep(&query));
    for _ in 0..20 {
        assert_eq!(format!("{:?}", grep(&query)), first);
    }
}

#[test]
fn a_passed_deadline_leaves_a_partial_answer() {
    let tree = three_hundred();
    for mode in [CONTENT, GrepMode::Count, GrepMode::FilesWithMatches] {
        let report = SearchEngine::new()
            .grep(
                &tree.query("match", mode),
                &StopCondition::after(Duration::ZERO),
            )
            .unwrap();
        assert_eq!(
            report.completion,
            SearchCompletion::Stopped(SearchStop::Timeout)
        );
        assert_eq!(report.totals(), None);
    }
}

#[test]
fn a_stop_is_honoured_inside_one_file() {
    let tree = Tree::new();
    let cases = [
        // (what it shows, text, multiline)
        ("many matches", "match\n".repeat(400_000), false),
        ("no match", "other\n".repeat(400_000), false),
        ("read whole", "other\n".repeat(400_000), true),
    ];
    for (what, text, multiline) in cases {
        let path = tree.write("huge", &text);
        // Stops at the tenth question, long before the file's end.
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let stop =
            StopCondition::never().or_if(move || counter.fetch_add(1, Ordering::Relaxed) >= 10);
        let query = GrepQuery {
            path,
            multiline,
            ..tree.query("match", GrepMode::Count)
        };
        let report = SearchEngine::new().grep(&query, &stop).unwrap();
        assert_eq!(
            report.completion,
            SearchCompletion::Stopped(SearchStop::Cancelled),
            "{what}"
        );
        assert!(report.tally.matches.unwrap() < 100_000, "{what}");
        assert_eq!(
            report.skipped.total(),
            0,
            "{what}: a stop is no unreadable file"
        );
    }
}

#[test]
fn wrong_queries_say_what_is_wrong() {
    let tree = Tree::with(&[("a.txt", "x")]);
    let base = tree.query("x", CONTENT);
    let queries = [
        // (part of the text, query)
        ("unclosed group", tree.query("foo(", CONTENT)),
        ("multiline: true", tree.query("a\nb", CONTENT)),
        ("NUL byte", tree.query("a\0b", CONTENT)),
        (
            "does not exist",
            GrepQuery {
                path: tree.root.join("gone"),
                ..base.clone()
            },
        ),
        (
            "does not exist",
            GrepQuery {
                path: tree.root.join("a.txt/b"),
                ..base.clone()
            },
        ),
        (
            "NUL byte",
            GrepQuery {
                path: tree.root.join("a\0"),
                ..base.clone()
            },
        ),
        (
            "not an absolute path",
            GrepQuery {
                path: "a.txt".into(),
                ..base.clone()
            },
        ),
        (
            "neither a regular file",
            GrepQuery {
                path: "/dev/null".into(),
                ..base.clone()
            },
        ),
        (
            "invalid glob `{a`",
            GrepQuery {
                globs: vec!["{a".into()],
                ..base.clone()
            },
        ),
        (
            "did you mean rust",
            GrepQuery {
                file_type: Some("rs".into()),
                ..base
            },
        ),
    ];
    for (part, query) in queries {
        let error: SearchError = SearchEngine::new()
            .grep(&query, &StopCondition::never())
            .expect_err(part);
        assert!(
            error.to_string().contains(part),
            "{part:?} is not in {error}"
        );
    }
}
