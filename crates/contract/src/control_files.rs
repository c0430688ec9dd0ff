//! Files that decide what other programs run, and what a command may do with them.

use std::{collections::BTreeSet, fmt, path::Path, sync::Arc};

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
}

/// Names of files that are asked about; in lower case, because some disks ignore case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

    /// Those for which this says so; a command may do nothing with them.
    pub fn when(is_control: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self::by(When(is_control))
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

struct When<F>(F);

impl<F: Fn(&Path) -> bool + Send + Sync> ControlRules for When<F> {
    fn names(&self) -> ControlNames {
        ControlNames {
            all: true,
            ..ControlNames::default()
        }
    }

    fn permits(&self, used: &ControlUse<'_>) -> bool {
        !(self.0)(used.path)
    }

    fn include(&self, path: &Path) -> bool {
        (self.0)(path)
    }
}
