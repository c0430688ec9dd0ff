use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn area(root: &Path) -> Area {
    Area {
        roots: vec![root.to_path_buf()],
        entries: 10_000,
        ..Area::default()
    }
}

fn seen(tree: &Tree) -> Vec<(PathBuf, Vec<TreeEntry>)> {
    let mut seen: Vec<_> = tree
        .listings
        .iter()
        .map(|(path, listing)| (path.clone(), listing.entries.clone()))
        .collect();
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    seen
}

#[test]
fn what_is_listed_again_is_what_a_whole_look_sees() {
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
    let Some(mut kept) = KeptLook::of(&area, &area.look().unwrap()) else {
        return haft_testkit::skip("nothing can be watched here");
    };
    // The first time all were listed before they were watched.
    assert!(kept.again(&area).is_none());
    assert!(kept.adopt(&area.look().unwrap()));
    let at = |name: &str| root.join(name);
    type Step<'a> = (&'a str, &'a dyn Fn());
    let steps: [Step<'_>; 14] = [
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
    ];
    for (what, step) in steps {
        step();
        let tree = kept.again(&area).expect("little has changed").unwrap();
        let whole = area.look().unwrap();
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
    let first = area.look().unwrap();
    let Some(mut kept) = KeptLook::of(&area, &first) else {
        return haft_testkit::skip("nothing can be watched here");
    };
    assert!(kept.adopt(&area.look().unwrap()));
    kept.unsure.clear();
    fs::write(place.path().join("d1/f"), "").unwrap();
    let again = kept.again(&area).unwrap().unwrap();
    let same = |path: &&PathBuf| Arc::ptr_eq(&first.listings[*path], &again.listings[*path]);
    let mut changed: Vec<_> = again.listings.keys().filter(|path| !same(path)).collect();
    changed.sort();
    // The times of the one directory are listed in the other.
    assert_eq!(changed, [place.path(), &place.path().join("d1")]);
}
