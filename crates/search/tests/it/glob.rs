//! Which files a glob lists, and in which order.

use std::os::unix::fs::symlink;
use std::time::Duration;

use haft_search::{
    GlobQuery, GlobReport, SearchCompletion, SearchEngine, SearchStop, StopCondition,
};

use crate::tree::Tree;

fn glob(query: &GlobQuery) -> GlobReport {
    SearchEngine::new()
        .glob(query, &StopCondition::never())
        .unwrap()
}

fn sorted(tree: &Tree, query: &GlobQuery) -> Vec<String> {
    let mut paths: Vec<_> = glob(query)
        .paths
        .iter()
        .map(|path| tree.relative(path))
        .collect();
    paths.sort();
    paths
}

fn repository() -> Tree {
    Tree::with(&[
        (".git/config", ""),
        (".gitignore", "*.log\n/target/\n"),
        (".env", ""),
        (".github/ci.yml", ""),
        ("a.rs", ""),
        ("x.log", ""),
        ("src/lib.rs", ""),
        ("src/deep/mod.rs", ""),
        ("src/.hg/x.rs", ""),
        ("target/out.rs", ""),
        ("README.md", ""),
    ])
}

#[test]
fn patterns_list_the_files_that_fit() {
    let tree = repository();
    let cases: [(&str, &[&str]); 13] = [
        ("*.rs", &["a.rs", "src/deep/mod.rs", "src/lib.rs"]),
        ("./*.rs", &["a.rs"]),
        ("**/*.rs", &["a.rs", "src/deep/mod.rs", "src/lib.rs"]),
        ("src/*.rs", &["src/lib.rs"]),
        ("src/**", &["src/deep/mod.rs", "src/lib.rs"]),
        ("src", &[]),
        ("src/", &["src/deep/mod.rs", "src/lib.rs"]),
        ("*.log", &[]),
        ("target/*.rs", &[]),
        (".*", &[".env", ".gitignore"]),
        ("*.{md,yml}", &[".github/ci.yml", "README.md"]),
        ("readme.md", &[]),
        (".git/config", &[]),
    ];
    for (pattern, paths) in cases {
        assert_eq!(
            sorted(&tree, &GlobQuery::new(pattern, &tree.root)),
            paths,
            "{pattern}"
        );
    }
}

#[test]
fn ignore_rules_and_hidden_files_can_be_switched() {
    let tree = repository();
    let query = GlobQuery::new("*", &tree.root);
    let all = GlobQuery {
        respect_ignore: false,
        ..query.clone()
    };
    let shown = GlobQuery {
        hidden: false,
        ..query
    };
    assert!(sorted(&tree, &all).contains(&"target/out.rs".to_owned()));
    assert!(sorted(&tree, &all).contains(&"x.log".to_owned()));
    assert!(
        !sorted(&tree, &all)
            .iter()
            .any(|path| path.contains(".git/"))
    );
    assert_eq!(
        sorted(&tree, &shown),
        ["README.md", "a.rs", "src/deep/mod.rs", "src/lib.rs"]
    );
}

#[test]
fn an_absolute_or_upward_pattern_moves_the_base() {
    let tree = repository();
    let deep = tree.root.join("src/deep");
    let absolute = format!("{}/src/*.rs", tree.root.display());
    for pattern in [absolute.as_str(), "../*.rs"] {
        assert_eq!(
            sorted(&tree, &GlobQuery::new(pattern, &deep)),
            ["src/lib.rs"],
            "{pattern}"
        );
    }
}

#[test]
fn files_come_newest_first_and_are_cut_at_the_limit() {
    let tree = Tree::new();
    for number in 0..150 {
        let name = format!("{number:03}");
        tree.write(&name, "");
        tree.set_time(&name, number / 2);
    }
    let report = glob(&GlobQuery {
        limit: Some(100),
        ..GlobQuery::new("**/*", &tree.root)
    });
    assert_eq!(
        (report.paths.len(), report.total, report.truncated),
        (100, 150, true)
    );
    assert_eq!(report.completion, SearchCompletion::Complete);
    let first: Vec<_> = report.paths[..4]
        .iter()
        .map(|path| tree.relative(path))
        .collect();
    assert_eq!(
        first,
        ["148", "149", "146", "147"],
        "newest first, ties by path"
    );
    let all = glob(&GlobQuery::new("**/*", &tree.root));
    assert_eq!((all.paths.len(), all.truncated), (150, false));
}

#[test]
fn links_to_files_are_listed_and_links_to_directories_not_followed() {
    let tree = Tree::with(&[("dir/f.txt", "")]);
    symlink("dir/f.txt", tree.root.join("file-link.txt")).unwrap();
    symlink("dir", tree.root.join("dir-link.txt")).unwrap();
    symlink("nowhere", tree.root.join("broken.txt")).unwrap();
    let paths = sorted(&tree, &GlobQuery::new("**/*.txt", &tree.root));
    assert_eq!(paths, ["dir/f.txt", "file-link.txt"]);
    let through = sorted(&tree, &GlobQuery::new("*", tree.root.join("dir-link.txt")));
    assert_eq!(
        through,
        ["dir-link.txt/f.txt"],
        "a base that is a link is followed"
    );
}

#[test]
fn a_passed_deadline_is_told() {
    let tree = repository();
    let query = GlobQuery::new("*", &tree.root);
    let report = SearchEngine::new()
        .glob(&query, &StopCondition::after(Duration::ZERO))
        .unwrap();
    assert_eq!(
        report.completion,
        SearchCompletion::Stopped(SearchStop::Timeout)
    );
}

#[test]
fn wrong_queries_say_what_is_wrong() {
    let tree = repository();
    let cases = [
        // (part of the text, pattern, base)
        ("is not a directory", "*", tree.root.join("a.rs")),
        ("does not exist", "*", tree.root.join("gone")),
        ("does not exist", "/no/such/place/*", tree.root.clone()),
        ("invalid glob `{a`", "{a", tree.root.clone()),
        ("invalid glob `[`", "[", tree.root.clone()),
        ("NUL byte", "a\0", tree.root.clone()),
        ("NUL byte", "*", tree.root.join("a\0")),
        ("not an absolute path", "*", "src".into()),
    ];
    for (part, pattern, base) in cases {
        let error = SearchEngine::new()
            .glob(&GlobQuery::new(pattern, base), &StopCondition::never())
            .expect_err(part);
        assert!(
            error.to_string().contains(part),
            "{part:?} is not in {error}"
        );
    }
}
