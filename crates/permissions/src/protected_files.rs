//! Files that decide what other programs run. Neither accept-edits mode nor a rule for a directory
//! allows a write to one.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    path::{Component, Path, PathBuf},
    sync::{Arc, LazyLock},
};

use haft_settings::real_path;

use super::{
    control_tables::{self, DIRECTORIES, ENDINGS, FILES},
    credentials::{self, CredentialCache, StorePlaces},
};

/// The names of control files, for comparisons.
struct ControlTable {
    directories: HashSet<&'static str>,
    files: HashSet<&'static str>,
    /// Entries of several names, by the first name: the other names, and whether it is a directory.
    sequences: HashMap<&'static str, Vec<(Vec<&'static str>, bool)>>,
    endings: Vec<&'static str>,
    /// Every name in the tables that does not begin with a dot.
    plain: HashSet<&'static str>,
}

static TABLE: LazyLock<ControlTable> = LazyLock::new(|| {
    let single = |table| control_tables::names(table).filter(|name| !name.contains('/'));
    let mut sequences: HashMap<&str, Vec<_>> = HashMap::new();
    let mut plain = HashSet::new();
    for (table, is_dir) in [(DIRECTORIES, true), (FILES, false)] {
        for name in control_tables::names(table) {
            plain.extend(name.split('/').filter(|part| !part.starts_with('.')));
            if let Some((first, rest)) = name.split_once('/') {
                let rest: Vec<&str> = rest.split('/').collect();
                sequences.entry(first).or_default().push((rest, is_dir));
            }
        }
    }
    ControlTable {
        directories: single(DIRECTORIES).collect(),
        files: single(FILES).collect(),
        sequences,
        endings: control_tables::names(ENDINGS).collect(),
        plain,
    }
});

/// The names in the tables, for callers that compare single names.
pub(super) struct TableNames {
    /// A path that contains one of these names may be a control file.
    pub(super) parts: BTreeSet<String>,
    /// A path that ends in one of these names may be a control file.
    pub(super) last: BTreeSet<String>,
    /// A path whose last name has one of these endings is a control file.
    pub(super) endings: BTreeSet<String>,
}

/// Returns whether a path matches an entry of several names that begins with the name of this directory,
/// or above it, and ends below it.
pub(super) fn is_entry_across(path: &Path, directory: &Path) -> bool {
    let names = |path: &Path| -> Vec<String> {
        let names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(folded(&name.to_string_lossy())),
            _ => None,
        });
        names.collect()
    };
    let (names, depth) = (names(path), names(directory).len());
    (0..depth).any(|first| {
        let entries = TABLE.sequences.get(names[first].as_str());
        entries.into_iter().flatten().any(|(rest, _)| {
            let below = names[first + 1..].iter().map(String::as_str);
            first + 1 + rest.len() > depth && below.take(rest.len()).eq(rest.iter().copied())
        })
    })
}

/// The names of all entries.
pub(super) fn names() -> TableNames {
    let (mut parts, mut last) = (BTreeSet::new(), BTreeSet::new());
    // A path that contains an entry also contains its first name.
    for name in control_tables::names(DIRECTORIES) {
        parts.extend(name.split('/').next().map(str::to_owned));
    }
    for name in control_tables::names(FILES) {
        if let Some((first, _)) = name.split_once('/') {
            parts.insert(first.to_owned());
        }
        last.extend(name.rsplit('/').next().map(str::to_owned));
    }
    let endings = control_tables::names(ENDINGS).map(str::to_owned);
    TableNames {
        parts,
        last,
        endings: endings.collect(),
    }
}

/// Returns whether this is a control file. Ignores case, because some file systems do.
pub fn is_protected(path: &Path) -> bool {
    let names: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(folded(&name.to_string_lossy())),
            _ => None,
        })
        .collect();
    if let Some(file) = names.last() {
        let ends = |end: &&str| file.len() > end.len() && file.ends_with(end);
        if TABLE.files.contains(file.as_str()) || TABLE.endings.iter().any(ends) {
            return true;
        }
    }
    // Also the directory itself: a command that replaces it writes all files in it.
    names.iter().enumerate().any(|(at, name)| {
        let rest = &names[at + 1..];
        match name.as_str() {
            ".claude" => rest.first().is_none_or(|next| next != "worktrees"),
            name => TABLE.directories.contains(name) || is_sequence(name, rest),
        }
    })
}

/// Returns whether these names are a table entry of more than one name, or in such a directory.
fn is_sequence(name: &str, rest: &[String]) -> bool {
    let entries = TABLE.sequences.get(name).into_iter().flatten();
    entries.into_iter().any(|(names, is_dir)| {
        let is_long_enough = rest.len() == names.len() || (*is_dir && rest.len() > names.len());
        is_long_enough && names.iter().zip(rest).all(|(name, part)| name == part)
    })
}

/// Returns whether moving a directory to this path would create a table entry of more than one name. `holds` returns
/// whether a path below the directory exists.
pub(super) fn completes_sequence(path: &Path, holds: impl Fn(&Path) -> bool) -> bool {
    let names: Vec<String> = path
        .iter()
        .map(|part| folded(&part.to_string_lossy()))
        .collect();
    (0..names.len()).any(|at| {
        let (name, rest) = (names[at].as_str(), &names[at + 1..]);
        let entries = TABLE.sequences.get(name).into_iter().flatten();
        entries.into_iter().any(|(entry, _)| {
            let begins =
                entry.len() > rest.len() && entry.iter().zip(rest).all(|(name, part)| name == part);
            begins && holds(&entry[rest.len()..].iter().collect::<PathBuf>())
        })
    })
}

/// Returns whether a path that ends in this name may be a control file, unless a directory above it
/// is one. Fast, for scans of many names.
pub(super) fn may_be_control_name(name: &OsStr) -> bool {
    /// No name in the tables is longer.
    const MAX_LENGTH: usize = 64;
    let bytes = name.as_encoded_bytes();
    if bytes.first() == Some(&b'.') || !bytes.is_ascii() {
        return true;
    }
    let mut buffer = [0; MAX_LENGTH];
    let Some(small) = buffer.get_mut(..bytes.len()) else {
        return TABLE.endings.iter().any(|end| {
            let tail = bytes.len().checked_sub(end.len());
            tail.is_some_and(|tail| bytes[tail..].eq_ignore_ascii_case(end.as_bytes()))
        });
    };
    small.copy_from_slice(bytes);
    small.make_ascii_lowercase();
    str::from_utf8(small).is_ok_and(|small| {
        TABLE.plain.contains(small) || TABLE.endings.iter().any(|end| small.ends_with(end))
    })
}

/// Returns a name as a file system that ignores case compares it. Converts to capitals first,
/// because some letters have two small forms.
pub(super) fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.to_uppercase().to_lowercase()
}

const KEYS: &str = "stores keys or passwords";

/// Sensitive paths below the root.
const SYSTEM: [(&str, &str); 8] = [
    ("/dev", "is a device"),
    ("/etc/gshadow", KEYS),
    ("/etc/shadow", KEYS),
    ("/etc/sudoers", "says who may do what on this machine"),
    ("/proc", "shows other processes"),
    ("/run", "is where services listen"),
    ("/sys", "is the kernel's own"),
    ("/var/run", "is where services listen"),
];

/// Directories of the system: processes, devices, the kernel, services.
const SYSTEMS_OWN: [&str; 5] = ["/dev", "/proc", "/run", "/sys", "/var/run"];

/// Returns whether a path belongs to the kernel, a device or a service.
pub fn is_systems_own(path: &Path) -> bool {
    let path = PathBuf::from(folded(&path.to_string_lossy()));
    let mut directories = SYSTEMS_OWN.iter();
    !path.starts_with("/dev/shm") && directories.any(|directory| path.starts_with(directory))
}

/// Returns why every use of a path needs permission, if it does: it is a store of keys, a device,
/// or shows another process. Ignores case.
pub fn sensitive(path: &Path, places: StorePlaces<'_>) -> Option<&'static str> {
    let keys = || credentials::is_store(path, places).then_some(KEYS);
    if !may_be_of_system(path) {
        return keys();
    }
    let path = PathBuf::from(folded(&path.to_string_lossy()));
    // Shared memory contains plain files, and possibly a working directory.
    if path.starts_with("/dev/shm") {
        return None;
    }
    let system = SYSTEM.iter().find(|(store, _)| path.starts_with(store));
    system.map(|(_, what)| *what).or_else(keys)
}

/// Returns whether the first name of a path is in the list of system paths. Few are, so most checks
/// end here.
fn may_be_of_system(path: &Path) -> bool {
    const FIRST_NAMES: [&str; 6] = ["dev", "etc", "proc", "run", "sys", "var"];
    let Some(first) = path.components().nth(1) else {
        return true;
    };
    let first = first.as_os_str();
    !first.as_encoded_bytes().is_ascii()
        || FIRST_NAMES
            .iter()
            .any(|name| first.eq_ignore_ascii_case(name))
}

/// Returns the sensitive system paths and the existing stores of keys, for scans that must skip
/// them. Scans at most once a second.
pub fn stores(places: StorePlaces<'_>) -> Arc<[PathBuf]> {
    static CACHE: CredentialCache = CredentialCache::new();
    CACHE.get(places, || {
        let system = SYSTEM.iter().map(|(store, _)| PathBuf::from(store));
        let home = places.home.map(real_path::resolve_links);
        let keys = credentials::find_stores(StorePlaces {
            home: home.as_deref(),
            ..places
        });
        system.chain(keys.iter().cloned()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_the_system_is_looked_for_by_its_first_name() {
        for (place, _) in SYSTEM {
            for path in [place.to_owned(), place.to_uppercase(), format!("{place}/x")] {
                assert!(may_be_of_system(Path::new(&path)), "{path}");
                assert!(
                    sensitive(Path::new(&path), StorePlaces::default()).is_some(),
                    "{path}"
                );
            }
        }
        assert!(sensitive(Path::new("/\u{17f}ys/x"), StorePlaces::default()).is_some());
        assert!(!may_be_of_system(Path::new("/home/u/dev")));
    }

    #[test]
    fn control_files_are_known_whatever_their_case() {
        let cases = [
            ("/p/.git/hooks/pre-commit", true),
            ("/p/.GIT/config", true),
            ("/p/.git", true),
            ("/p/.claude/settings.json", true),
            ("/p/.claude", true),
            ("/p/.vscode", true),
            ("/h/.config/git", true),
            ("/h/.config", false),
            ("/p/.claude/worktrees/x/a.rs", false),
            ("/h/.config/git/config", true),
            ("/h/.config/other/config", false),
            ("/p/.MCP.json", true),
            ("/p/src/main.rs", false),
            ("/p/.gitignore", false),
            ("/p/.VSCODE/tasks.json", true),
            ("/p/.v\u{17f}code/tasks.json", true),
            ("/p/.Husky/pre-commit", true),
            ("/p/.hg/hgrc", true),
            ("/p/.HG/hgrc", true),
            ("/p/.hg/store/data", false),
            ("/p/hgrc", false),
            ("/p/.jj/repo/config.toml", true),
            ("/p/.jj/repo/store/config.toml", false),
            ("/p/config.toml", false),
            ("/p/x.code-workspace", true),
            ("/p/.code-workspace", false),
            ("/p/.github/hooks/x.json", true),
            ("/p/.github/workflows/ci.yml", false),
            ("/p/.local/bin/x", true),
            ("/p/.local/state/x", false),
            ("/p/Makefile", false),
            ("/p/justfile", false),
            ("/p/package.json", false),
            ("/", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_directory_or_link_that_brings_the_rest_of_an_entry_is_seen() {
        let holds = |there: &'static str| move |path: &Path| path == Path::new(there);
        let cases = [
            ("/p/.hg", "hgrc", true),
            ("/p/.hg", "store", false),
            ("/p/.jj", "repo/config.toml", true),
            ("/p/.jj/repo", "config.toml", true),
            ("/p/.config", "git", true),
            ("/p/hg", "hgrc", false),
        ];
        for (path, there, expected) in cases {
            let got = completes_sequence(Path::new(path), holds(there));
            assert_eq!(got, expected, "{path} {there}");
        }
        assert!(completes_sequence(Path::new("/p/.hg"), |_| true));
        assert!(!completes_sequence(Path::new("/p/src"), |_| true));
    }

    #[test]
    fn an_entry_that_begins_above_a_new_directory_is_seen() {
        let cases = [
            ("/p/.config/git/x", "/p/.config", true),
            ("/p/.config/lefthook.yml", "/p/.config", true),
            ("/p/.local/share/systemd/x", "/p/.local/share", true),
            ("/p/new/.config/lefthook.yml", "/p/new", false),
            ("/p/.config/new/lefthook.yml", "/p/.config", false),
            ("/p/.config/.vscode/x", "/p/.config", false),
            ("/p/new/.envrc", "/p/new", false),
        ];
        for (path, directory, expected) in cases {
            let found = is_entry_across(Path::new(path), Path::new(directory));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn the_tables_are_written_as_they_are_compared() {
        let tables = [DIRECTORIES, FILES, ENDINGS];
        let mut seen = HashSet::new();
        for (program, names) in tables.into_iter().flatten() {
            assert!(!program.is_empty() && !names.is_empty());
            for name in *names {
                assert_eq!(folded(name), *name);
                assert!(seen.insert(*name), "{name} is named twice");
                // The scan compares the last three names.
                assert!(name.split('/').count() <= 3, "{name}");
            }
        }
    }

    #[test]
    fn the_names_of_control_files_are_telling() {
        let names = [DIRECTORIES, FILES]
            .into_iter()
            .flat_map(control_tables::names);
        let parts = names.flat_map(|name| name.split('/'));
        for name in parts.chain(["git", "LEFTHOOK.yml", "x.Code-Workspace"]) {
            assert!(may_be_control_name(OsStr::new(name)), "{name}");
        }
        let long = format!("{}.code-workspace", "x".repeat(100));
        assert!(may_be_control_name(OsStr::new(&long)));
        for name in ["main.rs", "code-workspace", &"x".repeat(100)] {
            assert!(!may_be_control_name(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn stores_of_keys_are_known_whatever_their_case() {
        let cases = [
            ("/h/.ssh/id_ed25519", true),
            ("/h/.SSH/id_ed25519", true),
            ("/h/.ssh", true),
            ("/h/.sshrc", false),
            ("/H/.ssh/id", true),
            ("/other/.ssh/id", false),
            ("/h/.config/gh/hosts.yml", true),
            ("/proc/self/root/etc/passwd", true),
            ("/process/x", false),
            ("/dev/sda", true),
            ("/dev/shm/work/a.rs", false),
        ];
        for (path, expected) in cases {
            let places = StorePlaces {
                home: Some(Path::new("/h")),
                ..StorePlaces::default()
            };
            let found = sensitive(Path::new(path), places);
            assert_eq!(found.is_some(), expected, "{path}");
        }
        let nowhere = StorePlaces::default();
        assert_eq!(sensitive(Path::new("/h/.ssh/id"), nowhere), None);
    }
}
