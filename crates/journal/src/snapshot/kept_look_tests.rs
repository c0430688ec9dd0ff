use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::thread::CapabilitySet;

use super::*;

fn area(root: &Path) -> ScanArea {
    ScanArea {
        roots: vec![root.to_path_buf()],
        entries: 10_000,
        ..ScanArea::default()
    }
}

fn seen(tree: &ScannedTree) -> Vec<(PathBuf, Vec<TreeEntry>)> {
    let mut seen = Vec::new();
    let all = &tree.listings;
    all.for_each(|path, listing| seen.push((path.to_path_buf(), listing.entries.clone())));
    seen
}

const MANY: WatchLimits = WatchLimits {
    directories: 1000,
    files: 1000,
};

#[test]
fn what_is_listed_again_is_what_a_whole_look_sees() {
    every_step_is_seen(MANY);
}

#[test]
fn also_what_is_over_the_limit_of_watches_is_seen() {
    for limits in [(0, 0), (1, 0), (7, 1), (40, 0)] {
        every_step_is_seen(WatchLimits {
            directories: limits.0,
            files: limits.1,
        });
    }
}

#[test]
fn what_is_over_the_limit_of_watches_is_listed_each_time_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..30 {
        fs::create_dir_all(place.path().join(format!("d{number}"))).unwrap();
    }
    let area = area(place.path());
    let limits = WatchLimits {
        directories: 21,
        files: 0,
    };
    let (mut kept, _) = CachedTree::scan(&area, limits).unwrap();
    if kept.watch.is_none() {
        return haft_testkit::skip("nothing can be watched here");
    }
    assert_eq!(kept.listed, 31);
    kept.rescan(&area).unwrap();
    assert_eq!(kept.listed, 10);
    // One that goes makes room for another.
    let mut watched = Vec::new();
    kept.listings
        .for_each(|path, _| watched.push(path.to_path_buf()));
    watched.retain(|path| path != place.path() && !kept.unwatched.contains(path));
    let gone = watched.pop().unwrap();
    fs::remove_dir(gone).unwrap();
    for _ in 0..3 {
        kept.rescan(&area).unwrap();
    }
    assert_eq!(kept.listed, 9);
}

#[test]
fn where_nothing_is_reported_everything_is_listed() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..30 {
        fs::create_dir_all(place.path().join(format!("d{number}"))).unwrap();
    }
    let area = area(place.path());
    let (mut kept, _) = CachedTree::scan(&area, MANY).unwrap();
    kept.watch = None;
    fs::write(place.path().join("d3/f"), "x").unwrap();
    let tree = kept.rescan(&area).unwrap();
    assert_eq!(kept.listed, 31);
    assert_eq!(seen(&tree), seen(&area.scan(None).unwrap()));
}

#[test]
fn a_directory_that_cannot_be_read_any_more_is_unseen_and_not_empty() {
    // Root reads everything by capabilities, and a thread of its own can be without them.
    let test = std::thread::spawn(|| {
        let mut own = rustix::thread::capabilities(None).unwrap();
        own.effective
            .remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        rustix::thread::set_capabilities(None, own).unwrap();
        a_directory_is_closed();
    });
    test.join().unwrap();
}

fn a_directory_is_closed() {
    let place = tempfile::tempdir().unwrap();
    let closed = place.path().join("closed");
    fs::create_dir_all(closed.join("in")).unwrap();
    let area = area(place.path());
    let (mut kept, _) = CachedTree::scan(&area, MANY).unwrap();
    fs::write(closed.join("f"), "x").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let tree = kept.rescan(&area).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(
        tree.why_unseen(&closed.join("f"))
            .unwrap()
            .contains("cannot be read")
    );
}

fn every_step_is_seen(limits: WatchLimits) {
    let place = tempfile::tempdir().unwrap();
    let (root, outside) = (place.path().join("w"), place.path().join("o"));
    for number in 0..30 {
        let directory = root.join(format!("d{number}/e"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("f"), "x").unwrap();
    }
    fs::create_dir_all(outside.join("in/deep")).unwrap();
    fs::write(outside.join("in/deep/f"), "y").unwrap();
    fs::write(outside.join("linked"), "z").unwrap();
    let area = area(&root);
    let (mut kept, first) = CachedTree::scan(&area, limits).unwrap();
    assert_eq!(seen(&first), seen(&area.scan(None).unwrap()));
    let at = |name: &str| root.join(name);
    type Step<'a> = (&'a str, &'a dyn Fn());
    let steps: [Step<'_>; 17] = [
        ("nothing", &|| {}),
        ("a file is written", &|| {
            fs::write(at("d1/e/f"), "longer").unwrap()
        }),
        ("one is made", &|| fs::write(at("d2/new"), "").unwrap()),
        ("one is removed", &|| fs::remove_file(at("d3/e/f")).unwrap()),
        ("a mode is changed", &|| {
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(at("d4/e/f"), mode).unwrap();
        }),
        ("directories are made", &|| {
            fs::create_dir_all(at("d5/a/b/c")).unwrap();
            fs::write(at("d5/a/b/c/f"), "").unwrap();
        }),
        ("a file in a new one is written", &|| {
            fs::write(at("d5/a/b/c/f"), "x").unwrap()
        }),
        ("a directory is renamed", &|| {
            fs::rename(at("d6"), at("d7/d6")).unwrap()
        }),
        ("and written to", &|| {
            fs::write(at("d7/d6/e/f"), "other").unwrap()
        }),
        ("one is removed whole", &|| {
            fs::remove_dir_all(at("d8")).unwrap()
        }),
        ("one takes its place", &|| {
            fs::create_dir_all(at("d8/other")).unwrap();
            fs::write(at("d8/other/f"), "").unwrap();
        }),
        ("one comes from outside", &|| {
            fs::rename(outside.join("in"), at("in")).unwrap()
        }),
        ("a name of a file outside", &|| {
            fs::hard_link(outside.join("linked"), at("d9/linked")).unwrap();
        }),
        ("which is written there", &|| {
            fs::write(outside.join("linked"), "zz").unwrap()
        }),
        ("its directory is renamed", &|| {
            fs::rename(at("d9"), at("d10/d9")).unwrap()
        }),
        ("and it is written again", &|| {
            fs::write(outside.join("linked"), "zzz").unwrap()
        }),
        ("a mode is changed by the name there", &|| {
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(outside.join("linked"), mode).unwrap();
        }),
    ];
    for (what, step) in steps {
        step();
        let tree = kept.rescan(&area).unwrap();
        let whole = area.scan(None).unwrap();
        assert_eq!(seen(&tree), seen(&whole), "{what}");
        assert_eq!(tree.entries, whole.entries, "{what}");
    }
}

#[test]
fn what_was_not_touched_is_the_same_listing() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..30 {
        fs::create_dir_all(place.path().join(format!("d{number}"))).unwrap();
    }
    let area = area(place.path());
    let (mut kept, first) = CachedTree::scan(&area, MANY).unwrap();
    if kept.watch.is_none() {
        return haft_testkit::skip("nothing can be watched here");
    }
    fs::write(place.path().join("d1/f"), "").unwrap();
    let again = kept.rescan(&area).unwrap();
    assert_eq!(kept.listed, 1);
    let different = first.listings.different(&again.listings);
    let changed: Vec<_> = different.into_iter().map(|one| one.0).collect();
    // The times of the one directory are listed in the other.
    assert_eq!(changed, [place.path(), &place.path().join("d1")]);
}
