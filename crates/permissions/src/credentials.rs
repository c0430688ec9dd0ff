//! The places where keys, tokens and passwords are stored: below a home directory, or where an
//! environment variable says.

use std::{
    collections::HashSet,
    env,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{
    credential_stores::{self, MOVED, NAMED},
    protected_files::folded,
};
use haft_contract::PRIVATE_DIRECTORY;
use haft_settings::real_path;

/// The directory with all users' homes on most systems.
pub(super) const HOMES: &str = "/home";
const ROOTS_HOME: &str = "/root";

/// The lifetime of a cached scan for stores. It covers the calls of one turn.
const BELIEVED: Duration = Duration::from_secs(1);

/// The directories that are the same for the whole process.
static MACHINE: LazyLock<HomeDirectories> = LazyLock::new(HomeDirectories::scan_stores);

struct HomeDirectories {
    /// Root's home, and the user's home according to the system's user list.
    homes: Vec<PathBuf>,
    /// Stores that variables name.
    named: Vec<PathBuf>,
}

impl HomeDirectories {
    fn scan_stores() -> Self {
        let mut homes = vec![PathBuf::from(ROOTS_HOME)];
        let user = rustix::process::getuid().as_raw();
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        homes.extend(home_in(&users, user).filter(|home| home.parent().is_some()));
        let path = |name: &str| env::var_os(name).map(PathBuf::from);
        let mut named = Vec::new();
        for (name, inside) in NAMED {
            let Some(value) = env::var_os(name) else {
                continue;
            };
            // KUBECONFIG may name several files.
            for place in env::split_paths(&value).filter(|place| is_a_place(place)) {
                named.extend(inside.iter().map(|inside| match *inside {
                    "" => place.clone(),
                    inside => place.join(inside),
                }));
            }
        }
        for (name, usual) in MOVED {
            if let Some(place) = path(name).filter(|place| is_a_place(place)) {
                let stores = credential_stores::paths();
                let inside = stores.filter_map(|store| store.strip_prefix(usual));
                named.extend(inside.map(|inside| place.join(inside)));
            }
        }
        let runtime = path("XDG_RUNTIME_DIR").filter(|place| place.is_absolute());
        named.extend(runtime.map(|place| place.join("containers/auth.json")));
        Self { homes, named }
    }
}

/// Returns whether keys may be stored here. Variables may disable a store with `/dev/null`.
fn is_a_place(path: &Path) -> bool {
    let mut system = ["/dev", "/proc", "/sys"].iter();
    path.is_absolute()
        && path.components().count() > 2
        && !system.any(|system| path.starts_with(system))
}

/// Returns a user's home from the system's list: `NAME:…:NUMBER:GROUP:…:HOME:SHELL`.
fn home_in(users: &str, number: u32) -> Option<PathBuf> {
    let number = number.to_string();
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let home = Path::new(*fields.get(5)?);
        (fields.get(2) == Some(&number.as_str()) && home.is_absolute()).then(|| home.to_path_buf())
    })
}

/// Returns this user's and root's homes. The session may have another one.
pub(super) fn homes() -> &'static [PathBuf] {
    &MACHINE.homes
}

/// The places of the stores of a session, besides those of the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct StorePlaces<'a> {
    /// The home directory.
    pub home: Option<&'a Path>,
    /// The files and directories in which haft stores secrets, for any settings directory.
    pub own_secrets: &'a [PathBuf],
}

/// Returns the stores that variables name.
pub(super) fn named() -> &'static [PathBuf] {
    &MACHINE.named
}

/// Returns whether this is a store of keys, or in one. Ignores case in homes and for haft's own
/// secrets.
pub(super) fn is_store(path: &Path, places: StorePlaces<'_>) -> bool {
    if is_of_machine(path) || is_own_secret(path, places.own_secrets) {
        return true;
    }
    let own = places
        .home
        .into_iter()
        .chain(MACHINE.homes.iter().map(PathBuf::as_path));
    let plain = plain_text(path);
    let mut below = own.filter_map(|home| match (plain, plain_text(home)) {
        (Some(path), Some(home)) => rest_of_text(path, home),
        _ => rest_below(path, home),
    });
    below.any(is_below_store) || below_homes(path).is_some_and(is_below_store)
}

/// Returns whether moving a directory to this path below a home would create a store. `holds` returns whether a path
/// below the directory exists.
pub(super) fn completes_store(path: &Path, home: &Path, holds: &dyn Fn(&Path) -> bool) -> bool {
    let Some(rest) = rest_below(path, home) else {
        return false;
    };
    let rest = folded(&rest.to_string_lossy());
    STORE_NAMES.above.contains(rest.as_str())
        && credential_stores::paths()
            .filter_map(|store| Path::new(store).strip_prefix(&rest).ok())
            .any(holds)
}

/// Returns whether a path is a secret file of haft, or in one. Names are compared without case.
fn is_own_secret(path: &Path, own_secrets: &[PathBuf]) -> bool {
    own_secrets
        .iter()
        .any(|secret| rest_below(path, secret).is_some())
}

/// Returns the bytes of a path if it is ASCII and has no special components.
fn plain_text(path: &Path) -> Option<&[u8]> {
    let text = path.as_os_str().as_bytes();
    (text.is_ascii() && real_path::is_plain(path)).then_some(text)
}

/// Like [`rest_below`], but for plain texts. Nearly all paths are plain, and each call checks
/// several homes.
fn rest_of_text<'a>(path: &'a [u8], home: &[u8]) -> Option<&'a Path> {
    let (start, rest) = path.split_at_checked(home.len())?;
    if !start.eq_ignore_ascii_case(home) {
        return None;
    }
    let rest = match rest {
        [] => rest,
        [b'/', rest @ ..] => rest,
        _ => return None,
    };
    Some(Path::new(OsStr::from_bytes(rest)))
}

/// Returns the rest of a path after a home. Ignores case.
fn rest_below<'a>(path: &'a Path, home: &Path) -> Option<&'a Path> {
    let mut parts = path.components();
    for part in home.components() {
        if !is_same(parts.next()?.as_os_str(), part.as_os_str()) {
            return None;
        }
    }
    Some(parts.as_path())
}

/// Returns whether two names are the same to a file system that ignores case.
fn is_same(one: &OsStr, other: &OsStr) -> bool {
    if one.as_encoded_bytes().is_ascii() && other.as_encoded_bytes().is_ascii() {
        return one.eq_ignore_ascii_case(other);
    }
    folded(&one.to_string_lossy()) == folded(&other.to_string_lossy())
}

/// Returns the rest of a path after any user's home.
fn below_homes(path: &Path) -> Option<&Path> {
    let rest = rest_below(path, Path::new(HOMES))?;
    let mut parts = rest.components();
    parts.next()?;
    Some(parts.as_path())
}

/// Returns whether this path below a home is in a store. Compares each directory on the way with the table.
fn is_below_store(rest: &Path) -> bool {
    let first = rest.components().next();
    let first = first.map(|first| folded(&first.as_os_str().to_string_lossy()));
    let is_known = |first: &String| STORE_NAMES.first.contains(first.as_str());
    if !first.as_ref().is_some_and(is_known) {
        return false;
    }
    let rest = folded(&rest.to_string_lossy());
    let mut above = Path::new(&rest).ancestors();
    above.any(|path| {
        path.to_str()
            .is_some_and(|path| STORE_NAMES.whole.contains(path))
    })
}

/// The paths of stores below a home, for comparisons.
struct StoreNames {
    /// The stores.
    whole: HashSet<&'static str>,
    /// The directories that lead to one.
    above: HashSet<&'static str>,
    /// The first names in the paths. Few paths begin with one, so most checks end here.
    first: HashSet<&'static str>,
}

static STORE_NAMES: LazyLock<StoreNames> = LazyLock::new(|| {
    let whole: HashSet<&str> = credential_stores::paths().collect();
    let paths = whole.iter().map(|store| Path::new(*store));
    let above = paths.flat_map(|store| store.ancestors().skip(1));
    let first = whole.iter().filter_map(|store| store.split('/').next());
    StoreNames {
        first: first.collect(),
        above: above.filter_map(Path::to_str).collect(),
        whole,
    }
});

/// Returns whether this is, or is in, a store of the machine or one that a variable names.
fn is_of_machine(path: &Path) -> bool {
    static FIRST_NAMES: LazyLock<HashSet<&OsStr>> = LazyLock::new(|| {
        let of_machine = credential_stores::machine_paths().map(Path::new);
        let all = of_machine.chain(MACHINE.named.iter().map(PathBuf::as_path));
        all.filter_map(first_name).collect()
    });
    // Nearly every path differs from all of them in its first name.
    if !first_name(path).is_some_and(|name| FIRST_NAMES.contains(name)) {
        return false;
    }
    let of_machine = credential_stores::machine_paths().map(Path::new);
    let mut named = of_machine.chain(MACHINE.named.iter().map(PathBuf::as_path));
    named.any(|store| path.starts_with(store))
}

/// Returns the first name below the root.
fn first_name(path: &Path) -> Option<&OsStr> {
    path.components().nth(1).map(Component::as_os_str)
}

/// Returns the existing stores in the homes of this machine, as real paths. Scans at most once a
/// second.
pub(super) fn existing_stores(places: StorePlaces<'_>) -> Arc<[PathBuf]> {
    static CACHE: CredentialCache = CredentialCache::new();
    CACHE.get(places, || find_stores(places))
}

/// The stores that the last scan found, with its inputs and time.
pub(super) struct CredentialCache(Mutex<Option<CachedStores>>);

struct CachedStores {
    home: Option<PathBuf>,
    own_secrets: Vec<PathBuf>,
    at: Instant,
    paths: Arc<[PathBuf]>,
}

impl CredentialCache {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn get(
        &self,
        places: StorePlaces<'_>,
        look: impl FnOnce() -> Arc<[PathBuf]>,
    ) -> Arc<[PathBuf]> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*kept
            && found.home.as_deref() == places.home
            && found.own_secrets == places.own_secrets
            && found.at.elapsed() < BELIEVED
        {
            return Arc::clone(&found.paths);
        }
        let paths = look();
        *kept = Some(CachedStores {
            home: places.home.map(Path::to_path_buf),
            own_secrets: places.own_secrets.to_vec(),
            at: Instant::now(),
            paths: Arc::clone(&paths),
        });
        paths
    }
}

/// Scans the homes and the machine for stores.
pub(super) fn find_stores(places: StorePlaces<'_>) -> Arc<[PathBuf]> {
    let mut homes: Vec<PathBuf> = MACHINE.homes.clone();
    homes.extend(places.home.map(Path::to_path_buf));
    let others = fs::read_dir(HOMES).into_iter().flatten().flatten();
    homes.extend(others.map(|entry| entry.path()));
    homes.sort_unstable();
    homes.dedup();
    let mut found = Vec::new();
    for home in &homes {
        stores_in(home, "", &mut found);
    }
    let of_machine = credential_stores::machine_paths().map(Path::new);
    let named = of_machine.chain(MACHINE.named.iter().map(PathBuf::as_path));
    let there = named.filter(|path| path.exists());
    found.extend(there.map(real_path::resolve_links));
    // Also if it does not exist yet: the login of another session may store a secret while a command runs.
    let own = places.own_secrets.iter();
    let own = own.filter(|path| path.ends_with(PRIVATE_DIRECTORY) || path.exists());
    found.extend(own.map(|path| real_path::resolve_links(path)));
    found.sort_unstable();
    found.dedup();
    found.into()
}

/// Finds the stores in a directory by reading its entries: one read instead of a check per known
/// name, and it ignores case.
fn stores_in(directory: &Path, above: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = format!("{above}{}", folded(&entry.file_name().to_string_lossy()));
        if STORE_NAMES.whole.contains(name.as_str()) {
            found.push(real_path::resolve_links(&entry.path()));
        } else if STORE_NAMES.above.contains(name.as_str()) {
            stores_in(&entry.path(), &format!("{name}/"), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_written_as_they_are_compared() {
        for store in credential_stores::paths() {
            assert_eq!(folded(store), store);
            assert!(!store.starts_with('/') && !store.ends_with('/'), "{store}");
        }
        let all = credential_stores::paths().count();
        assert_eq!(STORE_NAMES.whole.len(), all, "one is named twice");
        let inside = |store: &&str| STORE_NAMES.above.contains(*store);
        let doubled: Vec<_> = credential_stores::paths().filter(inside).collect();
        assert!(doubled.is_empty(), "a store is in another one: {doubled:?}");
        for (program, paths) in credential_stores::entries() {
            assert!(
                !program.is_empty() && !paths.is_empty(),
                "{program}: {paths:?}"
            );
        }
    }

    #[test]
    fn stores_are_known_in_every_home_whatever_their_case() {
        let own_secrets = [PathBuf::from("/h/me/work/settings/haft")];
        let places = StorePlaces {
            home: Some(Path::new("/h/me")),
            own_secrets: &own_secrets,
        };
        let cases = [
            ("/h/me/work/settings/haft/key", true),
            ("/h/me/work/settings/Haft", true),
            ("/h/me/work/settings", false),
            ("/h/me/.ssh/id_rsa", true),
            ("/H/ME/.SSH/id_rsa", true),
            ("/h/me/.ssh", true),
            ("/h/me/.sshrc", false),
            ("/h/me", false),
            ("/h/other/.ssh/id_rsa", false),
            ("/root/.ssh/id_rsa", true),
            ("/home/somebody/.aws/credentials", true),
            (
                "/home/somebody/.config/BraveSoftware/Brave-Browser/Default/Cookies",
                true,
            ),
            ("/home/.ssh", false),
            ("/h/me/.codex/auth.json", true),
            ("/h/me/.codex/config.toml", false),
            ("/h/me/.cargo/credentials.toml", true),
            ("/h/me/.cargo/config.toml", false),
            ("/h/me/.config/git/credentials", true),
            ("/h/me/.config/git/config", false),
            ("/h/me/work/.npmrc", false),
            ("/etc/shadow", true),
            ("/etc/passwd", false),
            ("/h/me/snap/firefox/common/.mozilla", true),
            ("/h/me/snap/go", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_store(Path::new(path), places), expected, "{path}");
        }
        let nowhere = StorePlaces::default();
        assert!(!is_store(Path::new("/h/me/.ssh/id"), nowhere));
    }

    #[test]
    fn the_stores_that_are_there_are_found_behind_links_and_in_whatever_case() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let home = root.join("home");
        for folder in [
            "home/.config/gh",
            "home/.config/nvim",
            "elsewhere",
            "home/.AWS",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../elsewhere", home.join(".ssh")).unwrap();
        fs::write(home.join(".netrc"), "").unwrap();
        let mut found = Vec::new();
        stores_in(&home, "", &mut found);
        found.sort_unstable();
        let expected = ["elsewhere", "home/.AWS", "home/.config/gh", "home/.netrc"];
        assert_eq!(found, expected.map(|name| root.join(name)));
    }

    #[test]
    fn the_home_of_a_user_is_read_from_the_systems_list() {
        let users = "root:x:0:0:root:/root:/bin/bash\nme:x:1000:1000::/data/me:/bin/sh\nbad:x:1\n";
        assert_eq!(home_in(users, 1000), Some("/data/me".into()));
        assert_eq!(home_in(users, 0), Some("/root".into()));
        assert_eq!(home_in(users, 7), None);
    }
}
