//! Files that decide what other programs run. A write to one is never waved through as an edit.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use haft_settings::resolve;

use super::credentials::{self, KeptLookup};

const DIRECTORIES: [&str; 9] = [
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
    ".claude",
];

const FILES: [&str; 37] = [
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".bunfig.toml",
    ".bazelrc",
    ".bazelversion",
    ".bazeliskrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "gradle-wrapper.properties",
    "maven-wrapper.properties",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
];

/// The names of directories and of files.
pub(super) fn names() -> (&'static [&'static str], &'static [&'static str]) {
    (&DIRECTORIES, &FILES)
}

/// Is this one of them? Names are compared without case, since some disks do.
pub fn is_protected(path: &Path) -> bool {
    let names: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(folded(&name.to_string_lossy())),
            _ => None,
        })
        .collect();
    if names
        .last()
        .is_some_and(|file| FILES.contains(&file.as_str()))
    {
        return true;
    }
    // The directory itself too: the one who puts another in its place writes all of it.
    names.iter().enumerate().any(|(at, name)| {
        let next = names.get(at + 1).map(String::as_str);
        match name.as_str() {
            ".claude" => next != Some("worktrees"),
            ".config" => next == Some("git"),
            name => DIRECTORIES.contains(&name),
        }
    })
}

/// May a path that ends in this name be one of them, unless one above it is? Cheap, for looking
/// through many.
pub(super) fn is_telling(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let plain = || FILES.iter().filter(|file| !file.starts_with('.'));
    bytes.first() == Some(&b'.')
        || !bytes.is_ascii()
        || name.eq_ignore_ascii_case("git")
        || plain().any(|file| name.eq_ignore_ascii_case(file))
}

/// The name as a disk that ignores case sees it: by way of capitals, since some letters have two
/// small forms.
pub(super) fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.to_uppercase().to_lowercase()
}

const KEYS: &str = "is where keys or passwords are kept";

/// Below the root: what is delicate there.
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

/// Directories that are no one's files: processes, devices, the kernel, services.
const SYSTEMS_OWN: [&str; 5] = ["/dev", "/proc", "/run", "/sys", "/var/run"];

/// Does it belong to the kernel, a device or a service?
pub fn is_systems_own(path: &Path) -> bool {
    let path = PathBuf::from(folded(&path.to_string_lossy()));
    let mut directories = SYSTEMS_OWN.iter();
    !path.starts_with("/dev/shm") && directories.any(|directory| path.starts_with(directory))
}

/// What is delicate about a path, any use of which is asked for: a store of keys, a device, the view
/// into another process. Names are compared without case here too.
pub fn sensitive(path: &Path, home: Option<&Path>) -> Option<&'static str> {
    let keys = || credentials::is_store(path, home).then_some(KEYS);
    if !may_be_of_system(path) {
        return keys();
    }
    let path = PathBuf::from(folded(&path.to_string_lossy()));
    // Shared memory is a place for plain files, also for a working directory.
    if path.starts_with("/dev/shm") {
        return None;
    }
    let system = SYSTEM.iter().find(|(store, _)| path.starts_with(store));
    system.map(|(_, what)| *what).or_else(keys)
}

/// Is its first name one of those in the list of the system's places? Nearly none is, and each call asks.
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

/// All of these places, for a walk that is to leave them out. Looked up at most once a second.
pub fn stores(home: Option<&Path>) -> Arc<[PathBuf]> {
    static KEPT: KeptLookup = KeptLookup::new();
    KEPT.get(home, || {
        let system = SYSTEM.iter().map(|(store, _)| PathBuf::from(store));
        let home = home.map(resolve::real);
        let keys = credentials::look(home.as_deref());
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
                assert!(sensitive(Path::new(&path), None).is_some(), "{path}");
            }
        }
        assert!(sensitive(Path::new("/\u{17f}ys/x"), None).is_some());
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
            ("/", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_protected(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn the_names_of_control_files_are_telling() {
        for name in FILES
            .iter()
            .chain(&DIRECTORIES)
            .chain(&["git", "LEFTHOOK.yml"])
        {
            assert!(is_telling(OsStr::new(name)), "{name}");
        }
        assert!(!is_telling(OsStr::new("main.rs")));
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
            let home = Some(Path::new("/h"));
            let found = sensitive(Path::new(path), home);
            assert_eq!(found.is_some(), expected, "{path}");
        }
        assert_eq!(sensitive(Path::new("/h/.ssh/id"), None), None);
    }
}
