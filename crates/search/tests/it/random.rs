//! Random small trees: the engine agrees with reading every file line by line, and pages join to
//! the whole.

use std::collections::BTreeMap;
use std::path::PathBuf;

use grep_matcher::Matcher;
use grep_regex::RegexMatcherBuilder;
use haft_search::{GrepMatches, GrepMode, GrepQuery, GrepRow};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::tree::{CONTENT, Tree, grep};

fn trees() -> impl Strategy<Value = BTreeMap<PathBuf, String>> {
    // A name is a directory or a file, never both: directories are upper case.
    let path = "([AB]/){0,2}[a-d](\\.txt)?".prop_map(PathBuf::from);
    let line = "[ab c\té]{0,6}";
    let text = (vec(line, 0..8), any::<bool>(), any::<bool>()).prop_map(|(lines, crlf, last)| {
        let end = if crlf { "\r\n" } else { "\n" };
        let text = lines.join(end);
        if last && !text.is_empty() {
            text + end
        } else {
            text
        }
    });
    btree_map(path, text, 0..10)
}

fn patterns() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        Just("a"),
        Just("b"),
        Just("é"),
        Just("."),
        Just("[ab]"),
        Just("[^a]"),
        Just(r"\s"),
        Just(r"\w"),
        Just("^"),
        Just("$"),
        Just(r"\b"),
        Just("(a|bc)"),
        Just(" "),
    ];
    let times = prop_oneof![4 => Just(""), 1 => Just("*"), 1 => Just("+"), 1 => Just("{2}")];
    vec((atom, times), 0..5).prop_map(|atoms| {
        atoms
            .into_iter()
            .map(|(atom, times)| format!("(?:{atom}){times}"))
            .collect()
    })
}

fn modes() -> impl Strategy<Value = GrepMode> {
    (0_usize..3, 0_usize..3, any::<bool>()).prop_map(|(before, after, only_matching)| {
        GrepMode::Content {
            before,
            after,
            only_matching,
        }
    })
}

fn written(files: &BTreeMap<PathBuf, String>) -> Tree {
    let tree = Tree::new();
    for (path, text) in files {
        tree.write(path, text);
    }
    tree
}

/// Reads each file and asks the regex about each line by itself.
fn line_by_line(files: &BTreeMap<PathBuf, String>, pattern: &str) -> Vec<String> {
    let matcher = RegexMatcherBuilder::new()
        .multi_line(true)
        .build(pattern)
        .unwrap();
    let mut rows = Vec::new();
    for (path, text) in files {
        for (line, number) in text.split_terminator('\n').zip(1..) {
            if matcher.is_match(line.as_bytes()).unwrap() {
                let line = line.strip_suffix('\r').unwrap_or(line);
                rows.push(format!("{}:{number}:{line}", path.display()));
            }
        }
    }
    rows
}

fn rows(query: &GrepQuery) -> (Vec<GrepRow>, bool) {
    let report = grep(query);
    match report.found {
        GrepMatches::Rows(rows) => (rows, report.more),
        other => panic!("rows asked for, got {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn content_equals_reading_line_by_line(files in trees(), pattern in patterns()) {
        let tree = written(&files);
        let report = grep(&tree.query(&pattern, CONTENT));
        prop_assert_eq!(tree.lines(&report), line_by_line(&files, &pattern));
    }

    #[test]
    fn pages_join_to_the_whole(
        files in trees(),
        pattern in patterns(),
        mode in modes(),
        size in 1_usize..6,
    ) {
        let tree = written(&files);
        let whole = rows(&tree.query(&pattern, mode)).0;
        let mut joined = Vec::new();
        loop {
            let (offset, head_limit) = (joined.len(), Some(size));
            let query = GrepQuery { offset, head_limit, ..tree.query(&pattern, mode) };
            let (page, more) = rows(&query);
            joined.extend(page);
            if !more {
                break;
            }
        }
        prop_assert_eq!(joined, whole);
    }

    #[test]
    fn the_modes_agree(files in trees(), pattern in patterns()) {
        let tree = written(&files);
        let content = grep(&tree.query(&pattern, CONTENT));
        let counts = grep(&tree.query(&pattern, GrepMode::Count));
        let found = grep(&tree.query(&pattern, GrepMode::FilesWithMatches));
        prop_assert_eq!(counts.tally.matches, content.tally.matches);
        prop_assert_eq!(counts.tally.files, content.tally.files);
        prop_assert_eq!(found.tally.files, content.tally.files);
    }
}
