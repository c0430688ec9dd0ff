use super::*;

fn area(root: &Path, entries: usize) -> ScanArea {
    ScanArea {
        roots: vec![root.to_path_buf()],
        entries,
        ..ScanArea::default()
    }
}

#[test]
fn everything_is_seen_and_ranked() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in [
        "src",
        "out/deep",
        "node_modules/x",
        ".git/objects/aa",
        ".git/refs",
    ] {
        fs::create_dir_all(at(name)).unwrap();
    }
    fs::write(at(".gitignore"), "out/\n*.log\n!kept.log\n").unwrap();
    fs::write(at("src/.gitignore"), "!out.log\n").unwrap();
    fs::write(at(".git/HEAD"), "x").unwrap();
    let tree = area(dir.path(), 1000).scan(None).unwrap();
    let rank = |name: &str| tree.listings.get(&at(name)).unwrap().rank;
    let ranks = [
        ("src", KeepPriority::Plain),
        ("out/deep", KeepPriority::Ignored),
        ("node_modules/x", KeepPriority::Ignored),
        (".git", KeepPriority::Repository),
        (".git/refs", KeepPriority::Repository),
        (".git/objects/aa", KeepPriority::Objects),
    ];
    for (name, expected) in ranks {
        assert_eq!(rank(name), expected, "{name}");
    }
    let file = |directory: &str, name: &str| {
        let directory = dir.path().join(directory);
        let path = directory.join(name);
        let listing = tree.listings.get(&directory).unwrap();
        listing.rank.for_file(&path, listing.ignores.as_deref())
    };
    assert_eq!(file(".", "a.log"), KeepPriority::Ignored);
    assert_eq!(file(".", "kept.log"), KeepPriority::Plain);
    assert_eq!(file("src", "a.log"), KeepPriority::Ignored);
    assert_eq!(file("src", "out.log"), KeepPriority::Plain);
    assert_eq!(tree.entries, 12);
}

#[test]
fn a_bound_hides_what_is_ignored_before_it_hides_all() {
    let dir = tempfile::tempdir().unwrap();
    let many = dir.path().join("node_modules");
    fs::create_dir(&many).unwrap();
    for number in 0..20 {
        fs::write(many.join(number.to_string()), "").unwrap();
    }
    let tree = area(dir.path(), 10).scan(None).unwrap();
    assert_eq!(tree.entries, 1);
    let why = tree.why_unseen(&many.join("3")).unwrap();
    assert_eq!(why, "more than 10 files");
    fs::rename(&many, dir.path().join("modules")).unwrap();
    assert_eq!(
        area(dir.path(), 10).scan(None).unwrap_err(),
        ScanLimit::Entries
    );
    let late = ScanArea {
        deadline: Some(Instant::now()),
        ..area(dir.path(), 100)
    };
    assert_eq!(late.scan(None).unwrap_err(), ScanLimit::Time);
}

#[test]
fn numbers_are_grouped() {
    let cases = [
        (7, "7"),
        (700, "700"),
        (7_000, "7,000"),
        (1_234_567, "1,234,567"),
    ];
    for (number, text) in cases {
        assert_eq!(grouped(number), text);
    }
}
