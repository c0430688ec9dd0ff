use std::os::unix::fs::PermissionsExt;
use std::thread;

use super::*;
use crate::IndexSettings;
use crate::index::build::{self, BuildProgress};
use crate::index::contents::TextBudget;

#[test]
fn a_sum_does_not_depend_on_how_bytes_come_and_shows_every_change() {
    let bytes: Vec<u8> = (0..100_u8).collect();
    let sum = |pieces: &[&[u8]]| {
        let mut sum = Checksum::new();
        pieces.iter().for_each(|piece| sum.add(piece));
        sum.value()
    };
    let whole = sum(&[&bytes]);
    for cut in 0..100 {
        assert_eq!(sum(&[&bytes[..cut], &bytes[cut..]]), whole);
        assert_ne!(sum(&[&bytes[..cut]]), whole);
        let mut changed = bytes.clone();
        changed[cut] ^= 1;
        assert_ne!(sum(&[&changed]), whole);
    }
}

/// A tree whose files are old enough to be kept, and a cache folder.
fn tree() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("tree");
    for number in 0..600 {
        let folder = root.join((number % 7).to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(number.to_string()), format!("text {number}\n")).unwrap();
    }
    fs::write(root.join("binary"), "a\0b").unwrap();
    // They must be older than what counts as young.
    thread::sleep(YOUNG + Duration::from_millis(100));
    let folder = dir.path().join("cache");
    (dir, root, folder)
}

fn holder(root: &Path, folder: &Path) -> TreeHandle {
    let settings = IndexSettings {
        cache_folder: Some(folder.to_path_buf()),
        ..IndexSettings::default()
    };
    TreeHandle::new(root, root, &TextBudget::new(1 << 20), 1, &settings)
}

/// How many files the index knows, after reading what an earlier session left.
fn known(holder: &TreeHandle) -> usize {
    holder.read();
    let known = holder.with_exclusive(|kept| {
        let entries = kept.tree.entries.iter();
        Ok(entries
            .filter(|entry| entry.data.coverage != Coverage::Unread)
            .count())
    });
    known.unwrap()
}

fn built(root: &Path, folder: &Path) -> TreeHandle {
    let holder = holder(root, folder);
    holder.read();
    while build::index_some(&holder) == BuildProgress::Made {}
    save(&holder);
    holder
}

#[test]
fn a_later_session_takes_over_what_did_not_change() {
    let (_dir, root, folder) = tree();
    let first = built(&root, &folder);
    assert_eq!(known(&first), 601);
    let path = place(&folder, &root, &root);
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    assert!(has_index_file(&first) && !path.with_extension("new").exists());
    // Lists are in the file by now, and still found.
    let asked = crate::index::trigram_query::plan("text 5", false, false);
    let found = first
        .with_exclusive(|kept| Ok(kept.segments[0].segment.candidates(&asked).unwrap().count()));
    assert_eq!(found.unwrap(), 111);
    assert_eq!(known(&holder(&root, &folder)), 601);
    fs::write(root.join("1/1"), "changed\n").unwrap();
    fs::rename(root.join("2/2"), root.join("2/other")).unwrap();
    assert_eq!(known(&holder(&root, &folder)), 599);
    // Of another tree nothing is known.
    assert!(!has_index_file(&holder(&root.join("1"), &folder)));
}

#[test]
fn a_damaged_file_is_as_good_as_none() {
    let (_dir, root, folder) = tree();
    drop(built(&root, &folder));
    let path = place(&folder, &root, &root);
    let bytes = fs::read(&path).unwrap();
    let damaged = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let known = known(&holder(&root, &folder));
        (known, path.exists())
    };
    for length in [0, 5, 31, 32, 100, bytes.len() / 2, bytes.len() - 1] {
        assert_eq!(damaged(&bytes[..length]), (0, false), "{length}");
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert_eq!(damaged(&changed), (0, false), "{at}");
    }
    assert_eq!(damaged(&[&bytes[..], b"more"].concat()), (0, false));
    assert_eq!(damaged(&bytes), (601, true));
    // A file that others may write to is not trusted.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(known(&holder(&root, &folder)), 0);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(known(&holder(&root, &folder)), 0);
}

#[test]
fn one_writes_and_what_is_left_over_of_another_does_not_matter() {
    let (_dir, root, folder) = tree();
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let path = place(&folder, &root, &root);
    let lock = File::create(path.with_extension("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    drop(built(&root, &folder));
    assert!(!path.exists(), "another one writes");
    drop(lock);
    // As after an end in the middle of writing.
    fs::write(path.with_extension("new"), "half").unwrap();
    drop(built(&root, &folder));
    assert_eq!(known(&holder(&root, &folder)), 601);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_no_trouble() {
    let (_dir, root, _) = tree();
    for folder in ["/proc/none", "/dev/null/x", "/dev/full"] {
        let holder = built(&root, Path::new(folder));
        assert_eq!(known(&holder), 601, "{folder}");
    }
}

#[test]
fn the_folder_does_not_grow_without_bounds() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..MAX_FILES as u64 + 5 {
        let path = dir.path().join(format!("{number:016x}.index"));
        let file = File::create(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number))
            .unwrap();
    }
    bound(dir.path(), &dir.path().join(format!("{:016x}.index", 0)));
    let mut left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left.len(), MAX_FILES);
    assert_eq!(
        left[0], "0000000000000000.index",
        "the one just written stays"
    );
    assert_eq!(left[1], "0000000000000006.index", "the oldest went");
}
