//! The directories that commands created, with files in them that control programs. haft does not
//! use settings, memory files or extensions in them until the user trusts them.
//!
//! A directory is identified by inode and birth time, so it stays untrusted after a move. The
//! innermost recorded directory above a path decides.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use haft_witness::FileId;
use rustix::fs::{CWD, FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{SettingsPlaces, rule_writer};
use crate::{real_path, trust};

/// The maximum number of recorded directories.
const MAX_DIRECTORIES: usize = 20_000;

/// The untrusted directories of a user.
#[derive(Debug)]
pub struct UntrustedDirectories {
    file: PathBuf,
    /// The directories that this process has already recorded.
    recorded: Mutex<Vec<FileId>>,
}

/// A recorded directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedDirectory {
    /// Its path when it was recorded.
    path: String,
    #[serde(flatten)]
    id: FileId,
    /// Whether the user has trusted it since, although a directory above it is not trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    trusted: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct DirectoryRecords {
    directories: Vec<RecordedDirectory>,
}

impl RecordedDirectory {
    /// Returns whether this is the recorded directory. Device numbers can change when the machine
    /// starts, so the birth time is compared instead, if it is known.
    fn is(&self, id: FileId) -> bool {
        self.id.inode == id.inode
            && self.id.born == id.born
            && (id.born.is_some() || self.id.device == id.device)
    }
}

impl UntrustedDirectories {
    /// Creates the record for the user with this folder of settings.
    pub fn new(user: &Path) -> Self {
        Self {
            file: user.join("haft/untrusted.json"),
            recorded: Mutex::default(),
        }
    }

    /// Creates the folder of the record. Commands cannot see this folder, so it must exist before they
    /// start: a hidden path that appears later ends them. An error is reported when a directory is
    /// recorded.
    pub fn prepare(&self) {
        if let Some(folder) = self.file.parent() {
            let _ = fs::create_dir_all(folder);
        }
    }

    /// Records directories that a command created. Files in them that control programs must not be
    /// created if this fails.
    pub fn add<'a>(
        &self,
        directories: impl IntoIterator<Item = (&'a Path, FileId)>,
    ) -> io::Result<()> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = directories
            .into_iter()
            .filter(|(_, id)| !recorded.contains(id))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        self.change(|records| {
            for (path, id) in &new {
                let is_untrusted = |one: &RecordedDirectory| one.is(*id) && !one.trusted;
                if records.directories.iter().any(is_untrusted) {
                    continue;
                }
                records.directories.retain(|one| !one.is(*id));
                records.directories.push(RecordedDirectory {
                    path: trust::name(path),
                    id: *id,
                    trusted: false,
                });
            }
            if records.directories.len() > MAX_DIRECTORIES {
                // Removes the directories that no longer exist at their paths.
                let exists = |one: &RecordedDirectory| Path::new(&one.path).exists();
                records.directories.retain(exists);
            }
            match records.directories.len() > MAX_DIRECTORIES {
                true => Err(io::Error::other("too many directories are not trusted")),
                false => Ok(()),
            }
        })?;
        recorded.extend(new.iter().map(|(_, id)| *id));
        Ok(())
    }

    /// Returns whether haft must not use the settings, memory files and extensions at this path.
    pub fn include(&self, path: &Path) -> bool {
        self.innermost(path).is_some()
    }

    /// Returns the outermost untrusted directory above a path, or at it, if the path is untrusted.
    pub fn outermost(&self, path: &Path) -> Option<PathBuf> {
        self.innermost(path)?;
        let records = self.read();
        let real = real_path::resolve_links(path);
        let mut found = None;
        for above in real.ancestors() {
            match record_of(&records, above) {
                Some(one) if one.trusted => break,
                Some(_) => found = Some(above.to_path_buf()),
                None => {}
            }
        }
        found
    }

    /// Returns the innermost recorded directory above a path, or at it, unless it is trusted.
    fn innermost(&self, path: &Path) -> Option<PathBuf> {
        // Most users have none.
        if !self.file.exists() {
            return None;
        }
        let records = self.read();
        let real = real_path::resolve_links(path);
        let mut above = real.ancestors();
        let (directory, one) =
            above.find_map(|above| Some((above, record_of(&records, above)?)))?;
        (!one.trusted).then(|| directory.to_path_buf())
    }

    /// Trusts a directory and the directories below it.
    pub fn trust(&self, directory: &Path) -> io::Result<()> {
        let real = real_path::resolve_links(directory);
        if !self.file.exists() {
            return Ok(());
        }
        let is_untrusted_above = real
            .parent()
            .is_some_and(|above| self.innermost(above).is_some());
        self.change(|records| {
            let old = record_of(records, &real).map(|one| PathBuf::from(&one.path));
            let is_below = |one: &RecordedDirectory| {
                let path = Path::new(&one.path);
                // The directory may have been moved with those below it.
                let moved = old.as_ref().and_then(|old| path.strip_prefix(old).ok());
                let now = moved.map(|below| real.join(below));
                [Some(path.to_path_buf()), now]
                    .into_iter()
                    .flatten()
                    .any(|path| {
                        path.starts_with(&real) && id_of(&path).is_some_and(|id| one.is(id))
                    })
            };
            records.directories.retain(|one| !is_below(one));
            if is_untrusted_above && let Some(id) = id_of(&real) {
                records.directories.push(RecordedDirectory {
                    path: trust::name(&real),
                    id,
                    trusted: true,
                });
            }
            Ok(())
        })
    }

    /// Reads the record. If it is damaged, all directories are untrusted.
    fn read(&self) -> DirectoryRecords {
        self.try_read().unwrap_or_else(|_| {
            let root = id_of(Path::new("/")).map(|id| RecordedDirectory {
                path: "/".to_owned(),
                id,
                trusted: false,
            });
            DirectoryRecords {
                directories: root.into_iter().collect(),
            }
        })
    }

    fn try_read(&self) -> io::Result<DirectoryRecords> {
        match fs::read(&self.file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(DirectoryRecords::default())
            }
            Err(error) => Err(error),
        }
    }

    /// Changes the record. Other processes wait until then.
    fn change(
        &self,
        change: impl FnOnce(&mut DirectoryRecords) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.file.with_extension("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut records = self.try_read()?;
        change(&mut records)?;
        let text = serde_json::to_string(&records).map_err(io::Error::other)?;
        rule_writer::replace(&self.file, &text)
    }
}

fn id_of(path: &Path) -> Option<FileId> {
    FileId::from_entry(CWD, OsStr::new(path))
}

fn record_of<'a>(records: &'a DirectoryRecords, path: &Path) -> Option<&'a RecordedDirectory> {
    let id = id_of(path)?;
    records.directories.iter().find(|one| one.is(id))
}

impl SettingsPlaces {
    /// Returns the untrusted directories of this user.
    pub fn untrusted(&self) -> UntrustedDirectories {
        UntrustedDirectories::new(&self.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_recorded_directory_decides_also_after_a_move() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("work/ui/pkg/inner")).unwrap();
        let known = UntrustedDirectories::new(&at("user"));
        assert!(!known.include(&at("work/ui")));
        let add = |name: &str| {
            let path = at(name);
            known
                .add([(path.as_path(), id_of(&path).unwrap())])
                .unwrap();
        };
        add("work/ui");
        add("work/ui/pkg");
        let again = UntrustedDirectories::new(&at("user"));
        for path in ["work/ui", "work/ui/pkg/CLAUDE.md", "work/ui/missing/x"] {
            assert!(again.include(&at(path)), "{path}");
        }
        for path in ["work", "work/other", "work/uix"] {
            assert!(!again.include(&at(path)), "{path}");
        }
        fs::rename(at("work/ui"), at("work/moved")).unwrap();
        assert!(again.include(&at("work/moved/pkg/x")));
        assert_eq!(
            again.outermost(&at("work/moved/pkg/inner")),
            Some(at("work/moved"))
        );
        // A link leads there, too.
        std::os::unix::fs::symlink("moved", at("work/link")).unwrap();
        assert!(again.include(&at("work/link/CLAUDE.md")));
        // Trust in a directory within it says nothing about the rest.
        again.trust(&at("work/moved/pkg/inner")).unwrap();
        assert!(!again.include(&at("work/moved/pkg/inner/x")));
        assert!(again.include(&at("work/moved/pkg/x")));
        again.trust(&at("work/moved")).unwrap();
        for path in ["work/moved/x", "work/moved/pkg/x", "work/moved/pkg/inner"] {
            assert!(!again.include(&at(path)), "{path}");
        }
    }

    #[test]
    fn a_damaged_record_trusts_no_directory_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("haft")).unwrap();
        fs::write(dir.path().join("haft/untrusted.json"), "{").unwrap();
        let known = UntrustedDirectories::new(dir.path());
        assert!(known.include(dir.path()));
        let id = id_of(dir.path()).unwrap();
        assert!(known.add([(dir.path(), id)]).is_err());
    }
}
