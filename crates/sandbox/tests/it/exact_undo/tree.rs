//! What a directory contains, for comparison.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use rustix::fs::{lgetxattr, llistxattr};

/// Everything below a directory: names, kinds, bytes, modes, owners, extended attributes and which names
/// are hard links to one file. A line for each path.
pub(super) fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut groups: HashMap<(u64, u64), Vec<String>> = HashMap::new();
    add(root, root, &mut found, &mut groups);
    for names in groups.values().filter(|names| names.len() > 1) {
        for name in names {
            found
                .get_mut(name)
                .unwrap()
                .push_str(&format!(", the file of {}", names[0]));
        }
    }
    found
}

fn add(
    root: &Path,
    directory: &Path,
    found: &mut BTreeMap<String, String>,
    groups: &mut HashMap<(u64, u64), Vec<String>>,
) {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let kind = metadata.file_type();
        let content = if kind.is_symlink() {
            format!("link to {}", fs::read_link(&path).unwrap().display())
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            format!("{} bytes {:016x}", bytes.len(), digest(&bytes))
        } else {
            format!("{kind:?}")
        };
        let mut line = format!(
            "{content}, {:o} {}:{}",
            metadata.mode(),
            metadata.uid(),
            metadata.gid()
        );
        for (name, value) in xattrs(&path) {
            line += &format!(", {name}={value}");
        }
        if kind.is_file() && metadata.nlink() > 1 {
            let object = (metadata.dev(), metadata.ino());
            groups.entry(object).or_default().push(name.clone());
        }
        found.insert(name, line);
        if kind.is_dir() {
            add(root, &path, found, groups);
        }
    }
}

fn xattrs(path: &Path) -> Vec<(String, String)> {
    let mut names = vec![0; 4096];
    let Ok(length) = llistxattr(path, &mut names[..]) else {
        return Vec::new();
    };
    let names = names[..length].split(|byte| *byte == 0);
    let mut all: Vec<_> = names
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 4096];
            let name = std::ffi::OsStr::from_bytes(name);
            let length = lgetxattr(path, name, &mut value[..]).unwrap_or(0);
            let value = String::from_utf8_lossy(&value[..length]).into_owned();
            (name.to_string_lossy().into_owned(), value)
        })
        .collect();
    all.sort();
    all
}

fn digest(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// The differences between two trees, a line each.
pub(super) fn differences(
    expected: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let missing = "missing".to_owned();
    names
        .into_iter()
        .filter_map(|name| {
            let expected = expected.get(name).unwrap_or(&missing);
            let found = found.get(name).unwrap_or(&missing);
            (expected != found).then(|| format!("{name}: expected {expected}; found {found}"))
        })
        .collect()
}
