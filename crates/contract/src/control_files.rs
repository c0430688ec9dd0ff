//! Control files: files that decide what other programs run, and what a command may do with them.
//!
//! The restrictions are data ([`ControlledFiles`]). The crate that knows these files builds
//! [`ControlRules`] from the data. Data that was deserialized in another process forbids every
//! change until rules are built from it.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::PathGlob;

/// The rules for control files. Cheap to clone.
#[derive(Clone, Default)]
pub struct ControlFiles(Option<Arc<dyn ControlRules>>);

/// Identifies control files. All paths are real: symlinks in them were resolved.
pub trait ControlRules: Send + Sync {
    /// Returns the names of files that may be control files: [`permits`](Self::permits) is only
    /// asked about these.
    fn names(&self) -> ControlNames;

    /// Returns whether a command may do this. The command waits for the answer.
    fn permits(&self, used: &ControlAccess<'_>) -> bool;

    /// Returns whether a file that a command has created is a control file. The file exists and may
    /// be read. Used on machines where its creation cannot be prevented.
    fn include(&self, path: &Path) -> bool;

    /// Returns the rules as data; `None`: they forbid nothing.
    fn files(&self) -> Option<ControlledFiles>;
}

/// The files that a command may not create or change, as data. The names of control files are not
/// part of it: the implementation of [`ControlRules`] knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlledFiles {
    /// The working directories: anything that git would treat as a repository is one.
    pub roots: Vec<PathBuf>,
    /// Files that rules forbid to change, regardless of permissions.
    pub locked: Vec<PathGlob>,
    /// Paths that this call was permitted to write.
    pub permitted: Vec<PermittedPath>,
    /// Paths that the user has since allowed a command to change, with everything below, regardless
    /// of the other rules.
    pub granted: Vec<PathBuf>,
    /// The homes in which the session works.
    #[serde(default)]
    pub home: HomeControl,
}

/// The homes in which a session works. Names there that begin with a dot are control files unless
/// a list says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeControl {
    /// The home directories that are a working directory or below one.
    pub homes: Vec<PathBuf>,
    /// Working directories below these homes. The rule for names with a dot does not apply in them.
    pub worked_on: Vec<PathBuf>,
}

/// A path that a call was permitted to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermittedPath {
    /// The path.
    pub path: PathBuf,
    /// Everything below it is permitted too.
    pub whole: bool,
}

/// The names of files that are checked, in lower case because some file systems ignore case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlNames {
    /// All names.
    pub all: bool,
    /// Names that match any component of a path below a working directory.
    pub parts: BTreeSet<String>,
    /// Names that match the last component of a path.
    pub last: BTreeSet<String>,
    /// Names that end in one of these match.
    #[serde(default)]
    pub endings: BTreeSet<String>,
    /// Names that match any component of a path to which a directory is moved.
    pub closed_to_directories: BTreeSet<String>,
    /// A file that takes effect when its directory has two of some names: its name, and those names.
    pub settings: Option<(String, BTreeSet<String>)>,
    /// Every path below one of these directories whose first name there begins with a dot or is in
    /// `home_names`.
    #[serde(default)]
    pub homes: Vec<PathBuf>,
    /// Further first names below the homes.
    #[serde(default)]
    pub home_names: BTreeSet<String>,
}

/// A planned operation of a command on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlAccess<'a> {
    /// The file.
    pub path: &'a Path,
    /// The operation.
    pub action: ControlAction<'a>,
    /// The content of the [`ControlNames::settings`] file in the same directory, if this operation
    /// makes that file take effect. If the operation is permitted, exactly this content is installed
    /// again first.
    pub settings: Option<&'a [u8]>,
    /// The outermost directory above the file that the same command has created, at a path that was free
    /// before. `None`: the directory of the file is not new.
    pub new_directory: Option<&'a Path>,
}

/// An operation that a command requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlAction<'a> {
    /// Create a file, whose content is written later.
    MakeFile,
    /// Create a directory.
    MakeDirectory,
    /// Create a symbolic link.
    MakeLink,
    /// Write to an existing file.
    Change,
    /// Remove an existing file or directory, move it away with everything in it, or replace it.
    Remove {
        /// The command has created it.
        made: bool,
    },
    /// Move a file here.
    MoveFile {
        /// Its current path.
        from: &'a Path,
        /// Its content, if it is not too long. The file is moved only with exactly this content.
        contents: Option<&'a [u8]>,
    },
    /// Move a directory here with everything in it.
    MoveDirectory {
        /// Its current path.
        from: &'a Path,
    },
    /// Move a directory here that the command has created, with control files in it. Another directory
    /// was here before, which programs may trust.
    ReplaceDirectory {
        /// Its current path.
        from: &'a Path,
    },
}

impl ControlFiles {
    /// Creates the control files that these rules identify.
    pub fn from_rules(rules: impl ControlRules + 'static) -> Self {
        Self(Some(Arc::new(rules)))
    }

    /// Returns these rules with exceptions: a command may change the `granted` paths and everything
    /// below them.
    #[must_use]
    pub fn except(&self, granted: Vec<PathBuf>) -> Self {
        Self::from_rules(ControlFilesExcept {
            control: self.clone(),
            granted,
        })
    }

    /// Returns the rules as data; `None`: a command may create and change any file.
    pub fn files(&self) -> Option<ControlledFiles> {
        self.0.as_ref().and_then(|rules| rules.files())
    }

    /// Returns the names that are checked. `None`: a command may create and change any file.
    pub fn names(&self) -> Option<ControlNames> {
        self.0.as_ref().map(|rules| rules.names())
    }

    /// Returns whether a command may do this.
    pub fn permits(&self, used: &ControlAccess<'_>) -> bool {
        self.0.as_ref().is_none_or(|rules| rules.permits(used))
    }

    /// Returns whether a file that a command has created is a control file.
    pub fn is_control_file(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|rules| rules.include(path))
    }
}

impl fmt::Debug for ControlFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControlFiles")
            .field(&self.0.is_some())
            .finish()
    }
}

impl Serialize for ControlFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.files().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ControlFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let files: Option<ControlledFiles> = Option::deserialize(deserializer)?;
        Ok(files.map(Self::from_rules).unwrap_or_default())
    }
}

/// Data without the names of control files: every operation is forbidden.
impl ControlRules for ControlledFiles {
    fn names(&self) -> ControlNames {
        ControlNames {
            all: true,
            ..ControlNames::default()
        }
    }

    fn permits(&self, _: &ControlAccess<'_>) -> bool {
        false
    }

    fn include(&self, _: &Path) -> bool {
        true
    }

    fn files(&self) -> Option<ControlledFiles> {
        Some(self.clone())
    }
}

/// Control files with exceptions for granted paths.
struct ControlFilesExcept {
    control: ControlFiles,
    granted: Vec<PathBuf>,
}

impl ControlFilesExcept {
    fn grants(&self, path: &Path) -> bool {
        self.granted.iter().any(|granted| path.starts_with(granted))
    }
}

impl ControlRules for ControlFilesExcept {
    fn names(&self) -> ControlNames {
        self.control.names().unwrap_or_default()
    }

    fn permits(&self, used: &ControlAccess<'_>) -> bool {
        self.grants(used.path) || self.control.permits(used)
    }

    fn include(&self, path: &Path) -> bool {
        !self.grants(path) && self.control.is_control_file(path)
    }

    fn files(&self) -> Option<ControlledFiles> {
        let mut files = self.control.files()?;
        files.granted.extend(self.granted.iter().cloned());
        Some(files)
    }
}
