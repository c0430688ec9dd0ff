//! Guarded names: names of files that determine which code other programs run, like `.bashrc`. A
//! command may use these names only with permission.
//!
//! The guard of a command knows which names are guarded, and asks our process about each use of one.
//! Our process decides with a [`NamePolicy`].

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fmt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use haft_witness::FileId;
use serde::{Deserialize, Serialize};

/// The guarded names. They are compared without case, so they must be in lower case here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedNames {
    /// Guards every path. For permission rules that depend on more than names.
    pub all: bool,
    /// Guards paths that contain one of these components.
    pub parts: BTreeSet<String>,
    /// Guards paths whose last component is one of these.
    pub last: BTreeSet<String>,
    /// Guards paths whose last component ends with one of these.
    pub endings: BTreeSet<String>,
    /// Guards paths by their location in a home directory.
    pub home: Box<HomeNames>,
    /// Guards paths with one of these components against moves of directories: the files in a moved
    /// directory were never checked one by one.
    pub closed_to_directories: BTreeSet<String>,
    /// Protected files that a command may replace if the [`NamePolicy`] permits the new contents. If
    /// the sandbox cannot ask the policy, they are read-only.
    pub judged: BTreeSet<PathBuf>,
    /// A settings file that takes effect only if other names exist in its directory.
    pub settings: Option<Box<DirectorySettings>>,
}

/// A file that takes effect once two of the given names exist in its directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectorySettings {
    /// The names.
    pub parts: BTreeSet<String>,
    /// The name of the file.
    pub file: String,
}

/// Names that are guarded by their location in a home directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeNames {
    /// The home directories. A path below one is guarded if its first component there begins with a
    /// dot.
    pub directories: Vec<PathBuf>,
    /// Further first components that are guarded. They are compared without case, so they must be in
    /// lower case here.
    pub names: BTreeSet<String>,
}

impl GuardedNames {
    /// Returns whether a path is guarded. It is relative to the writable directory that contains it.
    /// `directory` is true if a directory is moved there.
    pub(crate) fn include(&self, path: &Path, directory: bool) -> bool {
        self.all || self.is_guarded_name(path, directory)
    }

    /// Returns whether a path is guarded by its name.
    pub(crate) fn is_guarded_name(&self, path: &Path, directory: bool) -> bool {
        let mut last = None;
        for part in path.components() {
            let Component::Normal(name) = part else {
                continue;
            };
            let name = folded(name);
            if self.parts.contains(&name)
                || (directory && self.closed_to_directories.contains(&name))
            {
                return true;
            }
            last = Some(name);
        }
        last.is_some_and(|name| {
            self.last.contains(&name) || self.endings.iter().any(|end| name.ends_with(end))
        })
    }

    /// Returns whether this absolute path is guarded by its location in a home directory.
    pub(crate) fn is_at_home(&self, path: &Path) -> bool {
        let mut homes = self.home.directories.iter();
        let first = homes.find_map(|home| path.strip_prefix(home).ok()?.components().next());
        first.is_some_and(|first| {
            let name = folded(first.as_os_str());
            name.starts_with('.') || self.home.names.contains(&name)
        })
    }
}

/// Returns a name without case, as a case-insensitive file system compares it. Converts to upper case
/// first, because some letters have two lower-case forms.
fn folded(name: &OsStr) -> String {
    name.to_string_lossy().to_uppercase().to_lowercase()
}

/// A use of a guarded name that a command is about to make. Symlinks in its paths are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NameUse {
    /// The path that has the guarded name.
    pub path: PathBuf,
    /// The use.
    pub action: NameAction,
    /// The contents of the settings file in the directory of this path, if one of the names of
    /// [`DirectorySettings`] already exists there and this use creates a second one. If the use is
    /// permitted, the guard first replaces the settings file by a new one with exactly these
    /// contents, so that no process has it open.
    pub neighbor: Option<Vec<u8>>,
    /// The directories above the path that the command itself created, the outermost first. Empty if
    /// no directory there is new, or if the path of one led to another directory before.
    pub new_directories: Vec<NewDirectory>,
}

/// A directory that a command created.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NewDirectory {
    /// Its path.
    pub path: PathBuf,
    /// Its identity.
    pub id: FileId,
}

/// The use of a name that a command is about to make.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NameAction {
    /// Creates a file; its contents are written later.
    MakeFile,
    /// Creates a directory.
    MakeDirectory,
    /// Creates a symlink.
    MakeLink,
    /// Writes to an existing file.
    Change,
    /// Removes the existing file or directory, moves it away, or replaces it.
    Remove {
        /// Whether the command itself has created it.
        made: bool,
    },
    /// Moves a file to this path.
    MoveFile {
        /// The current path.
        from: PathBuf,
        /// The contents of the file; `None` if it is too long. If the move is permitted, the guard
        /// installs exactly these contents, even if the file has changed since.
        contents: Option<Vec<u8>>,
    },
    /// Moves a directory with its contents to this path.
    MoveDirectory {
        /// The current path.
        from: PathBuf,
    },
    /// Moves a directory that the command has created, with files that have guarded names, to a path
    /// that led to another directory before.
    ReplaceDirectory {
        /// The current path.
        from: PathBuf,
    },
}

/// Decides which uses of guarded names are permitted. The command waits for the decision, so the
/// policy should answer within milliseconds.
#[derive(Clone)]
pub struct NamePolicy(Arc<dyn Fn(&NameUse) -> bool + Send + Sync>);

impl NamePolicy {
    /// Creates a policy from a function that returns whether a use is permitted.
    pub fn from_fn(decide: impl Fn(&NameUse) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    pub(crate) fn allows(&self, used: &NameUse) -> bool {
        (self.0)(used)
    }
}

impl fmt::Debug for NamePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamePolicy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whatever_their_case_and_place() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names = GuardedNames {
            all: false,
            parts: set(&[".claude", "hooks"]),
            last: set(&[".git", ".bashrc"]),
            endings: set(&[".code-workspace"]),
            closed_to_directories: set(&[".git"]),
            settings: None,
            ..GuardedNames::default()
        };
        let cases = [
            ("src/main.rs", false, false),
            (".claude/settings.json", false, true),
            ("a/.Claude", true, true),
            ("a/.BASHRC", false, true),
            (".bashrc/x", false, false),
            (".git", false, true),
            (".git/objects/ab/cd", false, false),
            (".git/objects", true, true),
            (".git/hooks/pre-commit", false, true),
            ("a/b.Code-Workspace", false, true),
            ("code-workspace", false, false),
        ];
        for (path, directory, expected) in cases {
            assert_eq!(
                names.include(Path::new(path), directory),
                expected,
                "{path}"
            );
        }
        let all = GuardedNames {
            all: true,
            ..GuardedNames::default()
        };
        assert!(all.include(Path::new("a"), false));
    }

    #[test]
    fn names_in_a_home_are_guarded_by_their_place() {
        let names = GuardedNames {
            home: Box::new(HomeNames {
                directories: vec!["/h/me".into()],
                names: BTreeSet::from(["bin".to_owned()]),
            }),
            ..GuardedNames::default()
        };
        for (path, expected) in [
            ("/h/me/.any", true),
            ("/h/me/.any/below", true),
            ("/h/me/Bin/x", true),
            ("/h/me/work/.any", false),
            ("/h/me", false),
            ("/h/.any", false),
        ] {
            assert_eq!(names.is_at_home(Path::new(path)), expected, "{path}");
        }
    }
}
