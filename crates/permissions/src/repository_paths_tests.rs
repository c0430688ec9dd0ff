use super::*;

#[test]
fn what_a_path_is_to_git() {
    let cases = [
        ("/p/src/config", None),
        ("/p/.git", Some(GitPathKind::Itself)),
        ("/p/.git/config", Some(GitPathKind::Config)),
        ("/p/.GIT/Config", Some(GitPathKind::Config)),
        ("/p/.git/config.worktree", Some(GitPathKind::Config)),
        ("/p/.git/hooks", Some(GitPathKind::Hook)),
        ("/p/.git/hooks/pre-commit", Some(GitPathKind::Hook)),
        ("/p/.git/info/attributes", Some(GitPathKind::Attributes)),
        ("/p/.git/info/exclude", Some(GitPathKind::Own)),
        ("/p/.git/commondir", Some(GitPathKind::Elsewhere)),
        ("/p/.git/index", Some(GitPathKind::Own)),
        ("/p/.git/refs/heads/config", Some(GitPathKind::Own)),
        ("/p/.git/objects/ab/hooks", Some(GitPathKind::Own)),
        ("/p/.git/modules/a/b/config", Some(GitPathKind::Config)),
        (
            "/p/.git/modules/a/hooks/post-checkout",
            Some(GitPathKind::Hook),
        ),
        ("/p/.git/modules/a/HEAD", Some(GitPathKind::Own)),
        ("/p/.git/worktrees/w", Some(GitPathKind::Own)),
        (
            "/p/.git/worktrees/w/commondir",
            Some(GitPathKind::Elsewhere),
        ),
        ("/p/.git/worktrees/w/HEAD", Some(GitPathKind::Own)),
        ("/p/sub/.git/config", Some(GitPathKind::Config)),
    ];
    for (path, expected) in cases {
        let got = in_git(Path::new(path)).map(|(_, what)| what);
        assert_eq!(got, expected, "{path}");
    }
}

fn make(root: &Path, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "ref: refs/heads/x\n").unwrap();
        }
    }
}

#[test]
fn a_directory_with_the_parts_of_a_repository_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    make(
        &root,
        &[
            "bare/HEAD",
            "bare/objects/",
            "bare/tree/inner/refs/",
            "bare/tree/inner/HEAD",
        ],
    );
    make(
        &root,
        &[
            "plain/HEAD",
            "plain/config",
            "other/refs/",
            ".git/deep/HEAD",
            ".git/deep/refs/",
        ],
    );
    for (path, expected) in [
        ("bare/config", Some(GitPathKind::Config)),
        ("bare/Config", Some(GitPathKind::Config)),
        ("bare/hooks/pre-commit", Some(GitPathKind::Hook)),
        ("bare/modules/a/config", Some(GitPathKind::Config)),
        ("bare/commondir", Some(GitPathKind::Elsewhere)),
        ("bare", Some(GitPathKind::Itself)),
        ("bare/HEAD", None),
        ("bare/tree/config", None),
        // A worktree may be below a bare repository, and another repository in that.
        ("bare/tree/inner/config", Some(GitPathKind::Config)),
        ("plain/config", None),
        ("plain/hooks/x", None),
        ("other/config", None),
        (".git/deep/config", Some(GitPathKind::Config)),
        (".git/deep/x", Some(GitPathKind::Own)),
    ] {
        let got = in_git(&root.join(path)).map(|(_, what)| what);
        assert_eq!(got, expected, "{path}");
    }
}

#[test]
fn each_part_that_is_added_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    make(
        &root,
        &[
            "head/HEAD",
            "refs/refs/",
            "two/objects/",
            "two/refs/",
            "new/.git/HEAD",
        ],
    );
    make(
        &root,
        &[
            "bare/HEAD",
            "bare/objects/",
            "bare/refs/",
            "common/commondir",
        ],
    );
    for (path, expected) in [
        ("head/objects", Some(AddedPart::First)),
        ("head/commondir", Some(AddedPart::First)),
        ("head/README", None),
        ("refs/HEAD", Some(AddedPart::First)),
        ("refs/commondir", None),
        ("common/HEAD", Some(AddedPart::First)),
        ("two/HEAD", Some(AddedPart::More)),
        ("two/sub/HEAD", None),
        // It is a repository already.
        ("bare/HEAD", None),
        ("new/.git/refs", None),
        ("new/HEAD", None),
    ] {
        let path = root.join(path);
        assert_eq!(
            added_part(&path).map(|(_, added)| added),
            expected,
            "{path:?}"
        );
    }
    // A file that is invalid so far.
    fs::write(root.join("two/HEAD"), "nothing").unwrap();
    let path = root.join("two/HEAD");
    assert_eq!(
        added_part(&path),
        Some((root.join("two").as_path(), AddedPart::More))
    );
}

#[test]
fn a_write_that_controls_a_repository_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    make(
        &root,
        &[
            "bare/HEAD",
            "bare/objects/",
            "bare/refs/",
            "src/HEAD",
            "src/objects/",
        ],
    );
    make(&root, &["plain/HEAD", "plain/config", "more/refs/"]);
    for (path, expected) in [
        ("bare/config", true),
        ("bare/config.worktree", true),
        ("bare/hooks/post-checkout", true),
        ("bare/HEAD", false),
        ("bare/refs/heads/x", false),
        ("bare/tree/src/main.rs", false),
        ("src/config", true),
        ("src/refs/heads/deep/x", true),
        ("src/main.rs", false),
        ("plain/config", false),
        ("plain/objects/ab/cd", true),
        ("plain/commondir", true),
        ("more/config", false),
        ("more/HEAD", true),
        ("more/refs/x", false),
    ] {
        assert_eq!(controls_repository(&root.join(path)), expected, "{path}");
    }
}
