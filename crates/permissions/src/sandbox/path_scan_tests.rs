use std::{fs, time::Duration};

use haft_contract::PermissionMode;

use super::{
    super::super::rules::{List, PatternBases},
    *,
};

/// A tree, looked at as if it were older than any time that could be mistaken.
struct Tree {
    _dir: tempfile::TempDir,
    root: PathBuf,
    policy: Policy,
    kept: ScanCache,
    hiding: Vec<PathPattern>,
    locking: Vec<PathPattern>,
}

impl Tree {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for number in 0..20 {
            fs::create_dir_all(root.join(format!("d{number}/e"))).unwrap();
            fs::write(root.join(format!("d{number}/e/a.rs")), "").unwrap();
        }
        let mut tree = Self {
            policy: Policy::new(PermissionMode::Default, vec![root.clone()]),
            _dir: dir,
            root,
            kept: ScanCache::new(),
            hiding: Vec::new(),
            locking: Vec::new(),
        };
        tree.locking = vec![tree.pattern("**/*.locked")];
        tree
    }

    fn pattern(&self, pattern: &str) -> PathPattern {
        let bases = PatternBases {
            home: PathBuf::from("/nowhere"),
            slash: self.root.clone(),
            cwd: self.root.clone(),
        };
        PathPattern::new(pattern, List::Deny, &bases).unwrap()
    }

    /// How many directories were read, and the names of what was found.
    fn look(&self, ahead: Duration) -> (usize, Vec<String>) {
        let mut look = PathScan::new(self.hiding.iter().collect(), self.locking.iter().collect());
        let roots = vec![self.root.clone()];
        let clock = SystemTime::now() + ahead;
        let read = look.walk_at(roots, &self.policy, &self.kept, clock);
        let found = [look.hidden, look.locked, look.control];
        let found = found.iter().flatten();
        let names = found.map(|path| path.strip_prefix(&self.root).unwrap());
        let mut names: Vec<_> = names.map(|name| name.display().to_string()).collect();
        names.sort_unstable();
        (read, names)
    }

    fn look_later(&self) -> (usize, Vec<String>) {
        self.look(Duration::from_secs(60))
    }
}

#[test]
fn only_directories_that_changed_are_read_again() {
    let tree = Tree::new();
    let none: Vec<String> = Vec::new();
    assert_eq!(tree.look_later(), (41, none.clone()));
    assert_eq!(tree.look_later(), (0, none.clone()));
    // What appears between two looks is seen.
    fs::write(tree.root.join("d7/e/.npmrc"), "").unwrap();
    assert_eq!(tree.look_later(), (1, vec!["d7/e/.npmrc".to_owned()]));
    assert_eq!(tree.look_later(), (0, vec!["d7/e/.npmrc".to_owned()]));
    fs::create_dir_all(tree.root.join("d3/new/.vscode")).unwrap();
    fs::write(tree.root.join("d3/new/x.locked"), "").unwrap();
    let found = ["d3/new/.vscode", "d3/new/x.locked", "d7/e/.npmrc"];
    let (read, names) = tree.look_later();
    assert_eq!(names, found);
    assert_eq!(read, 2, "the one it is in, and itself");
    // What goes away is gone.
    fs::remove_dir_all(tree.root.join("d3")).unwrap();
    assert_eq!(tree.look_later(), (1, vec!["d7/e/.npmrc".to_owned()]));
    // A directory in the place of another, with the same name.
    fs::rename(tree.root.join("d7/e"), tree.root.join("d8/f")).unwrap();
    fs::create_dir(tree.root.join("d7/e")).unwrap();
    assert_eq!(tree.look_later().1, ["d8/f/.npmrc"]);
    fs::remove_file(tree.root.join("d8/f/.npmrc")).unwrap();
    assert_eq!(tree.look_later(), (1, none));
}

#[test]
fn a_name_that_appears_is_seen_although_the_times_of_its_directory_are_set_back() {
    let tree = Tree::new();
    tree.look_later();
    let directory = tree.root.join("d1");
    let before = fs::metadata(&directory).unwrap().modified().unwrap();
    fs::write(directory.join(".envrc"), "").unwrap();
    let opened = fs::File::open(&directory).unwrap();
    opened.set_modified(before).unwrap();
    assert_eq!(tree.look_later(), (1, vec!["d1/.envrc".to_owned()]));
}

#[test]
fn what_changed_a_moment_ago_is_read_each_time() {
    let tree = Tree::new();
    assert_eq!(tree.look(Duration::ZERO).0, 41);
    assert_eq!(tree.look(Duration::ZERO).0, 41);
}

#[test]
fn other_patterns_are_another_look() {
    let mut tree = Tree::new();
    fs::write(tree.root.join("d5/key.pem"), "").unwrap();
    assert_eq!(tree.look_later().1, Vec::<String>::new());
    tree.hiding = vec![tree.pattern("**/*.pem")];
    assert_eq!(tree.look_later().1, ["d5/key.pem"]);
    assert_eq!(tree.look_later(), (0, vec!["d5/key.pem".to_owned()]));
    fs::write(tree.root.join("d6/other.pem"), "").unwrap();
    assert_eq!(tree.look_later().1, ["d5/key.pem", "d6/other.pem"]);
    tree.hiding.clear();
    assert_eq!(tree.look_later().1, Vec::<String>::new());
}

#[test]
fn a_hidden_file_is_found_however_many_directories_there_are() {
    let mut tree = Tree::new();
    let mut expected = Vec::new();
    for number in 0..30 {
        for other in 0..60 {
            let name = format!("wide/{number}/{other}");
            fs::create_dir_all(tree.root.join(&name)).unwrap();
        }
        let name = format!("wide/{number}/59/.env");
        fs::write(tree.root.join(&name), "").unwrap();
        expected.push(name);
    }
    let deep = "x/".repeat(300) + "y";
    fs::create_dir_all(tree.root.join(&deep)).unwrap();
    let others = [
        ".git/a",
        ".vscode/b",
        "node_modules/c",
        "target/d",
        ".venv/e",
    ];
    for directory in others.iter().copied().chain([deep.as_str()]) {
        fs::create_dir_all(tree.root.join(directory)).unwrap();
        fs::write(tree.root.join(directory).join(".env"), "").unwrap();
        expected.push(format!("{directory}/.env"));
    }
    tree.locking.clear();
    tree.hiding = vec![tree.pattern("**/.env")];
    expected.extend([".vscode".to_owned()]);
    expected.sort_unstable();
    let (read, names) = tree.look_later();
    assert_eq!(names, expected);
    assert!(read > 1_800, "{read}");
    // Again it costs no reading.
    assert_eq!(tree.look_later(), (0, expected));
}

#[test]
fn a_scan_goes_only_where_a_pattern_reaches() {
    let mut tree = Tree::new();
    tree.locking.clear();
    for number in 0..1_500 {
        fs::create_dir(tree.root.join(format!("w{number}"))).unwrap();
    }
    fs::create_dir_all(tree.root.join("z/deep")).unwrap();
    fs::write(tree.root.join("z/deep/k.pem"), "").unwrap();
    tree.hiding = vec![tree.pattern("./z/**/*.pem")];
    let (read, names) = tree.look_later();
    assert_eq!(names, ["z/deep/k.pem"]);
    assert!(read < 1_200, "{read}");
}

#[test]
fn links_to_directories_are_followed_where_they_show_something_else() {
    let mut tree = Tree::new();
    tree.locking.clear();
    let outside = tempfile::tempdir().unwrap();
    let outside = fs::canonicalize(outside.path()).unwrap();
    fs::create_dir_all(outside.join("in/deeper")).unwrap();
    fs::write(outside.join("in/deeper/.env"), "").unwrap();
    fs::create_dir_all(tree.root.join("b/keys")).unwrap();
    fs::write(tree.root.join("b/keys/k.pem"), "").unwrap();
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, tree.root.join(name)).unwrap();
    };
    link(&outside, "out");
    link(&outside, ".out");
    link(&tree.root, "d1/loop");
    link(&outside.join("in"), "d1/again");
    fs::create_dir(tree.root.join("a")).unwrap();
    link(&tree.root.join("b"), "a/l");
    tree.hiding = vec![tree.pattern("**/.env"), tree.pattern("./a/**/*.pem")];
    let mut look = PathScan::new(tree.hiding.iter().collect(), Vec::new());
    look.walk_at(
        vec![tree.root.clone()],
        &tree.policy,
        &tree.kept,
        SystemTime::now(),
    );
    let mut hidden = look.hidden;
    hidden.sort_unstable();
    hidden.dedup();
    let mut expected = [
        tree.root.join("b/keys/k.pem"),
        outside.join("in/deeper/.env"),
    ];
    expected.sort_unstable();
    assert_eq!(hidden, expected);
    assert_eq!(look.unscanned, None);
}

#[test]
fn a_directory_that_is_not_scanned_in_time_is_named_and_hides_the_tree() {
    let mut tree = Tree::new();
    for number in 0..300 {
        fs::create_dir(tree.root.join(format!("w{number}"))).unwrap();
    }
    tree.hiding = vec![tree.pattern("**/.env")];
    let mut look = PathScan::new(tree.hiding.iter().collect(), Vec::new());
    let waiting = VecDeque::from([ScanDirectory {
        path: tree.root.clone(),
        controls: true,
        linked: false,
    }]);
    let mut listings = tree.kept.take(&[], [&[], &[]], SystemTime::now());
    look.scan(waiting, &mut listings, Instant::now());
    assert!(look.unscanned.is_some());
    assert_eq!(look.hidden, std::slice::from_ref(&tree.root));
}

#[test]
fn a_directory_that_its_owner_could_make_readable_is_hidden() {
    use std::os::unix::fs::PermissionsExt;
    let mut tree = Tree::new();
    tree.locking.clear();
    let closed = tree.root.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join(".env"), "").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    tree.hiding = vec![tree.pattern("**/.env")];
    let (_, names) = tree.look_later();
    // Root reads it.
    let is_root = rustix::process::geteuid().is_root();
    let expected = if is_root { "closed/.env" } else { "closed" };
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(names, [expected]);
}

#[test]
fn a_directory_that_cannot_be_read_is_tried_again() {
    let tree = Tree::new();
    tree.look_later();
    fs::remove_dir_all(tree.root.join("d2")).unwrap();
    fs::write(tree.root.join("d2"), "").unwrap();
    tree.look_later();
    fs::remove_file(tree.root.join("d2")).unwrap();
    fs::create_dir(tree.root.join("d2")).unwrap();
    fs::write(tree.root.join("d2/.npmrc"), "").unwrap();
    assert_eq!(tree.look_later().1, ["d2/.npmrc"]);
}

#[test]
fn the_settings_and_hooks_of_a_bare_repository_are_found() {
    let tree = Tree::new();
    let bare = tree.root.join("d4/x.git");
    for part in ["objects", "refs", "hooks"] {
        fs::create_dir_all(bare.join(part)).unwrap();
    }
    for name in ["HEAD", "config", "description"] {
        fs::write(bare.join(name), "").unwrap();
    }
    fs::write(tree.root.join("d5/HEAD"), "").unwrap();
    fs::write(tree.root.join("d5/config"), "").unwrap();
    let found = ["d4/x.git/config", "d4/x.git/hooks"];
    assert_eq!(tree.look_later().1, found);
}
