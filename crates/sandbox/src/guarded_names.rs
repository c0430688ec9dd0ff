//! Names that a command may not give to files as it likes: those of files that decide what other
//! programs run.
//!
//! The guard of a command knows which names are guarded, and asks our process about each use of one;
//! our process knows what they mean.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fmt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// Which names are guarded; compared without case, so in lower case here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedNames {
    /// Every path is, whatever its name: there are rules that names alone cannot tell.
    pub all: bool,
    /// A path with one of these in it is.
    pub parts: BTreeSet<String>,
    /// A path that ends in one of these is.
    pub last: BTreeSet<String>,
    /// A path whose last name ends in one of these is.
    pub endings: BTreeSet<String>,
    /// Paths by their places in a home are.
    pub home: Box<HomeNames>,
    /// A directory that is moved to a path with one of these in it brings along what nothing was asked
    /// about.
    pub closed_to_directories: BTreeSet<String>,
    /// Protected files that a command may replace as the judge says. They are read-only only where
    /// nothing is judged.
    pub judged: BTreeSet<PathBuf>,
    /// Settings that take effect with other names in their directory.
    pub settings: Option<Box<DirectorySettings>>,
}

/// A file that takes effect when its directory has two of some names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectorySettings {
    /// The names.
    pub parts: BTreeSet<String>,
    /// The name of the file.
    pub file: String,
}

/// Names in homes that are guarded by their place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeNames {
    /// The homes. A path below one is guarded if its first name there begins with a dot.
    pub directories: Vec<PathBuf>,
    /// Further first names below them; compared without case, so in lower case here.
    pub names: BTreeSet<String>,
}

impl GuardedNames {
    /// Is this path, relative to the writable directory it is in?
    pub(crate) fn include(&self, path: &Path, directory: bool) -> bool {
        self.all || self.is_guarded_name(path, directory)
    }

    /// Is it one by its name?
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

    /// Returns whether this absolute path is guarded by its place in a home.
    pub(crate) fn is_at_home(&self, path: &Path) -> bool {
        let mut homes = self.home.directories.iter();
        let first = homes.find_map(|home| path.strip_prefix(home).ok()?.components().next());
        first.is_some_and(|first| {
            let name = folded(first.as_os_str());
            name.starts_with('.') || self.home.names.contains(&name)
        })
    }
}

/// The name as a disk that ignores case sees it: by way of capitals, since some letters have two small
/// forms.
fn folded(name: &OsStr) -> String {
    name.to_string_lossy().to_uppercase().to_lowercase()
}

/// A guarded name that a command is about to use. Its paths are real: links in them were followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NameUse {
    /// What it is about.
    pub path: PathBuf,
    /// What is to be done with it.
    pub action: NameAction,
    /// If the name is the second one of [`DirectorySettings`], the contents of the settings in its directory. If
    /// the use is permitted, the guard first replaces that file by a new one with these contents, so that no
    /// process has it open.
    pub neighbor: Option<Vec<u8>>,
}

/// What a command is about to do with a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NameAction {
    /// A new file, whose contents come later.
    MakeFile,
    /// A new directory.
    MakeDirectory,
    /// A new symbolic link.
    MakeLink,
    /// To write to a file that is there.
    Change,
    /// To remove what is there, to move it away with all that is in it, or to put something in its place.
    Remove {
        /// The command has made it.
        made: bool,
    },
    /// To move a file here.
    MoveFile {
        /// Where it is now.
        from: PathBuf,
        /// What it holds, if it is not too long. If it may be moved, then with these contents and no
        /// others, whatever is in it meanwhile.
        contents: Option<Vec<u8>>,
    },
    /// To move a directory here with all that is in it.
    MoveDirectory {
        /// Where it is now.
        from: PathBuf,
    },
}

/// Decides what a command may do with guarded names. Asked while the command waits, so it should answer
/// at once.
#[derive(Clone)]
pub struct NamePolicy(Arc<dyn Fn(&NameUse) -> bool + Send + Sync>);

impl NamePolicy {
    /// Decides like this: may it?
    pub fn from_fn(judge: impl Fn(&NameUse) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(judge))
    }

    pub(crate) fn allows(&self, used: &NameUse) -> bool {
        (self.0)(used)
    }
}

impl fmt::Debug for NamePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameJudge")
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
