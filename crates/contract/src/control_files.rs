//! Files that decide what other programs run, and what a command may do with them.
//!
//! What is forbidden is data ([`ControlledFiles`]); the one who knows such files brings [`ControlRules`] made from
//! it. Data alone, as it comes from another process, lets a command make nothing until someone does.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::PathGlob;

/// What a command may do with files that decide what other programs run. Cheap to clone.
#[derive(Clone, Default)]
pub struct ControlFiles(Option<Arc<dyn ControlRules>>);

/// Knows which files those are. Paths are real: links in them were followed.
pub trait ControlRules: Send + Sync {
    /// Names that tell such a file from others: only about these is [`permits`](Self::permits) asked.
    fn names(&self) -> ControlNames;

    /// May a command do this? Asked while it waits.
    fn permits(&self, used: &ControlUse<'_>) -> bool;

    /// Is this one, which a command has made? It exists, and may be looked into. For where a command
    /// cannot be kept from making it.
    fn include(&self, path: &Path) -> bool;

    /// The same as data; `None`: they forbid nothing.
    fn files(&self) -> Option<ControlledFiles>;
}

/// What a command may not make or change, as data. Which names control files have is known to those who
/// judges them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlledFiles {
    /// The working directories: what git would take for a repository there is one.
    pub roots: Vec<PathBuf>,
    /// What rules forbid to change, whatever was permitted.
    pub locked: Vec<PathGlob>,
    /// What this very call was permitted to write.
    pub permitted: Vec<PermittedPath>,
    /// What a person has let a command do since, with all below, whatever else is said.
    pub granted: Vec<PathBuf>,
}

/// A path that a call was permitted to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermittedPath {
    /// The path.
    pub path: PathBuf,
    /// With everything below it.
    pub whole: bool,
}

/// Names of files that are asked about; in lower case, because some disks ignore case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlNames {
    /// All names.
    pub all: bool,
    /// Every path below a working directory with one of these in it.
    pub parts: BTreeSet<String>,
    /// Every path that ends in one of these.
    pub last: BTreeSet<String>,
    /// Every path with one of these in it to which a directory is moved.
    pub closed_to_directories: BTreeSet<String>,
}

/// What a command is about to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlUse<'a> {
    /// The file.
    pub path: &'a Path,
    /// What is to be done with it.
    pub action: ControlAction<'a>,
}

/// What a command is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlAction<'a> {
    /// A new file, whose contents come later.
    MakeFile,
    /// A new directory.
    MakeDirectory,
    /// A new symbolic link.
    MakeLink,
    /// To write to what is there.
    Change,
    /// To remove what is there, to move it away with all that is in it, or to put something in its place.
    Remove {
        /// The command has made it.
        made: bool,
    },
    /// To move a file here.
    MoveFile {
        /// Where it is now.
        from: &'a Path,
        /// What it holds, if it is not too long. It is moved with these contents and no others.
        contents: Option<&'a [u8]>,
    },
    /// To move a directory here with all that is in it.
    MoveDirectory {
        /// Where it is now.
        from: &'a Path,
    },
}

impl ControlFiles {
    /// Those that these rules know.
    pub fn by(rules: impl ControlRules + 'static) -> Self {
        Self(Some(Arc::new(rules)))
    }

    /// The same, but a command may do what it likes with these and all that is below them.
    #[must_use]
    pub fn except(&self, granted: Vec<PathBuf>) -> Self {
        Self::by(Except {
            control: self.clone(),
            granted,
        })
    }

    /// The same as data; `None`: a command makes and changes files as it likes.
    pub fn files(&self) -> Option<ControlledFiles> {
        self.0.as_ref().and_then(|rules| rules.files())
    }

    /// Which names are asked about. `None`: a command makes and changes files as it likes.
    pub fn names(&self) -> Option<ControlNames> {
        self.0.as_ref().map(|rules| rules.names())
    }

    /// May a command do this?
    pub fn permits(&self, used: &ControlUse<'_>) -> bool {
        self.0.as_ref().is_none_or(|rules| rules.permits(used))
    }

    /// Is this one, which a command has made?
    pub fn include(&self, path: &Path) -> bool {
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
        Ok(files.map(Self::by).unwrap_or_default())
    }
}

/// No one here knows which files those are.
impl ControlRules for ControlledFiles {
    fn names(&self) -> ControlNames {
        ControlNames {
            all: true,
            ..ControlNames::default()
        }
    }

    fn permits(&self, _: &ControlUse<'_>) -> bool {
        false
    }

    fn include(&self, _: &Path) -> bool {
        true
    }

    fn files(&self) -> Option<ControlledFiles> {
        Some(self.clone())
    }
}

/// Control files, but for those that were granted.
struct Except {
    control: ControlFiles,
    granted: Vec<PathBuf>,
}

impl Except {
    fn grants(&self, path: &Path) -> bool {
        self.granted.iter().any(|granted| path.starts_with(granted))
    }
}

impl ControlRules for Except {
    fn names(&self) -> ControlNames {
        self.control.names().unwrap_or_default()
    }

    fn permits(&self, used: &ControlUse<'_>) -> bool {
        self.grants(used.path) || self.control.permits(used)
    }

    fn include(&self, path: &Path) -> bool {
        !self.grants(path) && self.control.include(path)
    }

    fn files(&self) -> Option<ControlledFiles> {
        let mut files = self.control.files()?;
        files.granted.extend(self.granted.iter().cloned());
        Some(files)
    }
}
