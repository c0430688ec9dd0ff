//! Files outside a tree that decide what is visible in it: ignore files above the tree, and the
//! exclude files of the repository and of the user. They are not watched, so they are checked
//! before each answer.
//!
//! Most of them do not exist: each directory above has several possible names. If the timestamps of
//! a directory are unchanged, no name was added to it, so one `stat` of the directory covers all of
//! them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::gitignore::gitconfig_excludes_path;
use rustix::fs::{AtFlags, CWD, statat, statfs};
use rustix::io::Errno;

use super::file_fingerprint::FileFingerprint;
use super::load::is_local;
use crate::handle::{EntryKind, kind_of};

/// A file that is not watched and must be checked before each answer.
#[derive(Debug)]
struct GuardedFile {
    path: Box<Path>,
    seen: Option<FileFingerprint>,
    is_settled: bool,
}

impl GuardedFile {
    /// Records the state of a file that was read at `read` or later.
    fn new(path: &Path, read: SystemTime) -> Self {
        let seen = read_fingerprint(path);
        Self {
            path: path.into(),
            is_settled: seen.is_none_or(|mark| mark.is_settled(read)),
            seen,
        }
    }

    /// Returns whether the file is certainly unchanged.
    fn is_same(&self) -> bool {
        self.is_settled && read_fingerprint(&self.path) == self.seen
    }
}

/// Returns the fingerprint of a path. For a directory only its identity is compared, because its
/// contents do not matter here.
fn read_fingerprint(path: &Path) -> Option<FileFingerprint> {
    let found = statat(CWD, path, AtFlags::empty()).ok()?;
    let mark = FileFingerprint::from_stat(&found);
    Some(match kind_of(&found) {
        Some(EntryKind::Directory) => FileFingerprint {
            device: mark.device,
            inode: mark.inode,
            ..FileFingerprint::default()
        },
        _ => mark,
    })
}

/// Names that do not exist in a directory.
#[derive(Debug)]
struct MissingNames {
    directory: Box<Path>,
    paths: Vec<Box<Path>>,
    /// The directory's fingerprint at a time when all names were missing. `None` if a new name
    /// might not show in its timestamps.
    seen: Option<FileFingerprint>,
}

impl MissingNames {
    /// Returns whether all names are still missing. If the directory is unchanged, this takes one
    /// `stat`.
    fn are_missing(&mut self) -> bool {
        // This must come first: any change after this `stat` alters the timestamps.
        let found = statat(CWD, &*self.directory, AtFlags::empty()).ok();
        let now = found.as_ref().map(FileFingerprint::from_stat);
        if now.is_some() && now == self.seen {
            return true;
        }
        let moment = SystemTime::now();
        let is_nothing =
            |path: &Path| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::NOENT);
        let is_certain = self.paths.iter().all(|path| is_nothing(path));
        self.seen = now.filter(|mark| is_certain && mark.is_settled(moment));
        // A dangling link exists as a name, and its target may appear at any time.
        is_certain
            || self
                .paths
                .iter()
                .all(|path| read_fingerprint(path).is_none())
    }
}

/// All files outside the tree that are checked before an answer.
#[derive(Debug, Default)]
pub(crate) struct OutsideFiles {
    /// Files that exist, and missing files whose directory does not exist or has unreliable
    /// timestamps.
    files: Vec<GuardedFile>,
    missing: Vec<MissingNames>,
    count: usize,
}

impl OutsideFiles {
    /// Records the state of files that were read at `read` or later, whether they exist or not.
    pub(crate) fn new<'a>(paths: impl IntoIterator<Item = &'a PathBuf>, read: SystemTime) -> Self {
        let mut guards = Self::default();
        let mut missing: BTreeMap<&Path, Vec<Box<Path>>> = BTreeMap::new();
        for path in paths {
            guards.count += 1;
            let guarded = GuardedFile::new(path, read);
            match path.parent().filter(|_| guarded.seen.is_none()) {
                Some(parent) => missing.entry(parent).or_default().push(guarded.path),
                None => guards.files.push(guarded),
            }
        }
        for (directory, paths) in missing {
            // On other file systems the directory's timestamps may come from another machine's
            // clock.
            let is_telling = statfs(directory).is_ok_and(|found| is_local(found.f_type as u64));
            match is_telling {
                true => guards.missing.push(MissingNames {
                    directory: directory.into(),
                    paths,
                    seen: None,
                }),
                false => guards
                    .files
                    .extend(paths.into_iter().map(|path| GuardedFile {
                        path,
                        seen: None,
                        is_settled: true,
                    })),
            }
        }
        guards
    }

    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns whether all files are certainly unchanged.
    pub(crate) fn are_same(&mut self) -> bool {
        self.files.iter().all(GuardedFile::is_same)
            && self.missing.iter_mut().all(MissingNames::are_missing)
    }
}

/// The environment variables that decide where the user's exclude file is.
const VARIABLES: [&str; 4] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
];

/// The user's exclude file according to git's configuration. The configuration is read again when
/// it changes.
#[derive(Debug)]
pub(crate) struct UserExcludes {
    variables: [Option<OsString>; 4],
    /// The git configuration files.
    files: Vec<GuardedFile>,
    pub(crate) path: Option<PathBuf>,
}

impl UserExcludes {
    pub(crate) fn find() -> Self {
        let variables = VARIABLES.map(std::env::var_os);
        let [home, config, global, system] = &variables;
        let home = home.as_deref().map(Path::new);
        let given = |path: &Option<OsString>| {
            let path = path.as_ref().filter(|path| !path.is_empty());
            path.map(PathBuf::from)
        };
        let own = home.map(|home| home.join(".config"));
        let files = [
            given(global),
            home.map(|home| home.join(".gitconfig")),
            given(config).or(own).map(|path| path.join("git/config")),
            given(system).or_else(|| Some("/etc/gitconfig".into())),
        ];
        let begun = SystemTime::now();
        // Recorded before they are read, so a concurrent change is noticed at the next check.
        let files = files.into_iter().flatten();
        let files = files.map(|path| GuardedFile::new(&path, begun)).collect();
        Self {
            variables,
            files,
            path: gitconfig_excludes_path(),
        }
    }

    /// Returns whether the user's exclude file is still at the same path.
    pub(crate) fn are_same(&mut self) -> bool {
        let [home, ..] = &self.variables;
        // Without `HOME`, the home directory comes from another source that is not tracked here.
        let is_known = home.as_ref().is_some_and(|home| !home.is_empty())
            && VARIABLES
                .iter()
                .zip(&self.variables)
                .all(|(name, seen)| std::env::var_os(name) == *seen);
        if is_known && self.files.iter().all(GuardedFile::is_same) {
            return true;
        }
        let now = Self::find();
        let is_same = now.path == self.path;
        *self = now;
        is_same
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn guarded_files_may_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let missing = GuardedFile::new(&path, SystemTime::now());
        assert!(missing.is_same());
        fs::write(&path, "x").unwrap();
        assert!(!missing.is_same());
        assert!(
            !GuardedFile::new(&path, SystemTime::now()).is_same(),
            "it changed just now"
        );
        let folder = GuardedFile::new(dir.path(), SystemTime::now());
        fs::write(dir.path().join("b"), "x").unwrap();
        assert!(folder.is_same());
    }

    fn guards(dir: &Path, names: &[&str]) -> OutsideFiles {
        let paths: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).collect();
        OutsideFiles::new(&paths, SystemTime::now())
    }

    #[test]
    fn a_name_that_was_missing_is_seen_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let names = [".git", ".gitignore", "none/.gitignore", "none/.git"];
        // What happened just now in the directory is not settled at first.
        for pause in [0, 60, 60] {
            let mut guards = guards(dir.path(), &names);
            assert_eq!(guards.len(), 4);
            for _ in 0..3 {
                assert!(guards.are_same());
                sleep(Duration::from_millis(pause));
            }
            fs::write(dir.path().join("other"), "").unwrap();
            assert!(guards.are_same(), "another name");
            fs::write(dir.path().join(".gitignore"), "").unwrap();
            assert!(!guards.are_same());
            fs::remove_file(dir.path().join(".gitignore")).unwrap();
            assert!(guards.are_same());
            fs::create_dir_all(dir.path().join("none/.git")).unwrap();
            assert!(!guards.are_same(), "in a directory that was missing");
            fs::remove_dir_all(dir.path().join("none")).unwrap();
        }
    }

    #[test]
    fn one_look_at_a_directory_stands_for_its_missing_names() {
        let dir = tempfile::tempdir().unwrap();
        sleep(Duration::from_millis(60));
        let mut guards = guards(dir.path(), &["a", "b"]);
        assert!(guards.are_same());
        let [missing] = &*guards.missing else {
            panic!("one directory");
        };
        assert!(missing.seen.is_some(), "it is known by its times");
        fs::write(dir.path().join("b"), "").unwrap();
        assert!(!guards.are_same());
        assert!(guards.missing[0].seen.is_none());
    }

    #[test]
    fn a_link_that_leads_nowhere_may_lead_somewhere_later() {
        let dir = tempfile::tempdir().unwrap();
        let aside = tempfile::tempdir().unwrap();
        let target = aside.path().join("rules");
        symlink(&target, dir.path().join(".gitignore")).unwrap();
        sleep(Duration::from_millis(60));
        let mut guards = guards(dir.path(), &[".gitignore", ".ignore"]);
        assert!(guards.are_same() && guards.are_same());
        fs::write(&target, "x").unwrap();
        assert!(!guards.are_same());
    }

    #[test]
    fn settings_that_changed_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let settings = dir.path().join("gitconfig");
        fs::write(&settings, "").unwrap();
        sleep(Duration::from_millis(60));
        let mut excludes = UserExcludes::find();
        assert!(excludes.are_same() && excludes.are_same());
        // As if there were another answer from before.
        excludes.path = Some(dir.path().join("excludes"));
        if excludes.files.iter().all(GuardedFile::is_same) && std::env::var_os("HOME").is_some() {
            assert!(excludes.are_same(), "nothing says that it changed");
        }
        excludes
            .files
            .push(GuardedFile::new(&settings, SystemTime::now()));
        fs::write(&settings, "x").unwrap();
        assert!(!excludes.are_same());
        assert!(excludes.are_same());
    }
}
