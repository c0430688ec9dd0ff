//! The session's own `/tmp` and `/var/tmp`.
//!
//! All commands of a session share two folders below its scratch folder. They replace `/tmp` and
//! `/var/tmp` of the machine. Files and sockets that other programs have there do not exist
//! for a command. Paths below these directories that a command must see, such as its working
//! directory, are mounted at their own paths.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use crate::{Mechanism, SandboxProfile, protocol::SandboxPlan};

/// The directories that commands get as their own, and the names of the folders for them in the
/// scratch folder.
const DIRECTORIES: [(&str, &str); 2] = [("/tmp", "tmp"), ("/var/tmp", "var-tmp")];

/// The mode of `/tmp`: every user may create files, and remove only their own.
const MODE: u32 = 0o1777;

/// A directory that commands of a session have as their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateDirectory {
    /// Its path for a command.
    pub path: PathBuf,
    /// The folder outside of the sandbox.
    pub folder: PathBuf,
}

/// Returns the directories that commands with this scratch folder can have as their own. One that
/// is a symlink on this machine is not among them: it leads to another one, or stays the machine's.
pub fn private_directories(scratch: &Path) -> Vec<PrivateDirectory> {
    let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let directories = DIRECTORIES.iter().map(|(path, name)| PrivateDirectory {
        path: PathBuf::from(path),
        folder: scratch.join(name),
    });
    directories
        .filter(|directory| is_directory(&directory.path))
        .collect()
}

impl PrivateDirectory {
    /// Creates the folder if it is missing. The scratch folder must exist.
    pub fn create(&self) -> io::Result<()> {
        make_folder(&self.folder)
    }
}

/// Creates the folder of a private directory if it is missing.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // Regardless of the umask.
        _ => fs::set_permissions(folder, fs::Permissions::from_mode(MODE)),
    }
}

/// A private directory of a plan, with the paths of the machine that a command sees in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedDirectory {
    pub(crate) path: PathBuf,
    pub(crate) folder: PathBuf,
    /// The visible paths. None is below another one.
    pub(crate) open: Vec<PathBuf>,
}

impl PlannedDirectory {
    /// Returns the entries of this directory that are, or contain, the visible paths.
    pub(crate) fn entries(&self) -> Vec<PathBuf> {
        let names = self.open.iter().filter_map(|path| self.first(path));
        let mut entries: Vec<PathBuf> = names.map(|name| self.path.join(name)).collect();
        entries.dedup(); // the paths are sorted
        entries
    }

    /// Returns the first name of a path below this directory.
    fn first(&self, path: &Path) -> Option<OsString> {
        match path.strip_prefix(&self.path).ok()?.components().next()? {
            Component::Normal(name) => Some(name.to_owned()),
            _ => None,
        }
    }

    /// Returns whether a command does not see the file that the machine has at this path.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        path.starts_with(&self.path) && !self.open.iter().any(|open| path.starts_with(open))
    }

    /// Returns whether a path is a file of the session, and not one of the machine.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.path) && !self.entries().iter().any(|entry| path.starts_with(entry))
    }
}

impl SandboxPlan {
    /// Returns the directories that commands of this plan have as their own. A directory that a
    /// writable or open path contains stays that of the machine.
    pub(crate) fn private_directories(&self) -> Vec<PlannedDirectory> {
        let (closed, writable) = match &self.profile {
            SandboxProfile::ReadOnly(reading) => (&reading.closed, &[][..]),
            SandboxProfile::Workspace(workspace) => (&workspace.closed, &workspace.writable[..]),
            SandboxProfile::Full => return Vec::new(),
        };
        if !closed.private_tmp || self.program || self.mechanism >= Mechanism::Reduced {
            return Vec::new();
        }
        // The sandbox itself needs these paths.
        let program = crate::child::own_program();
        let own = std::iter::once(&self.shell)
            .chain(&self.snapshot)
            .chain(&program);
        let open: Vec<&Path> = closed
            .open
            .iter()
            .chain(writable)
            .chain(own)
            .map(PathBuf::as_path)
            .collect();
        let directories = private_directories(&self.scratch).into_iter();
        directories
            .filter(|directory| {
                let path = &directory.path;
                let is_hidden = |one: &PathBuf| one != path && path.starts_with(one);
                !open.iter().any(|open| path.starts_with(open))
                    && !closed.directories.iter().any(is_hidden)
            })
            .map(|directory| {
                let inside = open.iter().copied();
                let inside = inside.filter(|path| path.starts_with(&directory.path));
                let open = crate::child::outermost(inside);
                PlannedDirectory {
                    open: open.into_iter().map(Path::to_path_buf).collect(),
                    path: directory.path,
                    folder: directory.folder,
                }
            })
            .collect()
    }

    /// Returns the directories for temporary files of a command, by their paths for the command.
    /// `TMPDIR` names the first.
    pub(crate) fn temporary(&self) -> Vec<PathBuf> {
        let private = self.private_directories().into_iter();
        let mut temporary: Vec<PathBuf> = private.map(|directory| directory.path).collect();
        let has_tmp = temporary
            .first()
            .is_some_and(|first| first == Path::new(DIRECTORIES[0].0));
        if !has_tmp {
            temporary.insert(0, self.scratch.clone());
        }
        temporary
    }
}

impl SandboxPlan {
    /// Sets `TMPDIR`, unless commands of this plan are not confined. To be called once all other
    /// fields are set.
    pub(crate) fn set_temporary_variable(&mut self) {
        if self.profile != SandboxProfile::Full
            && let Some(first) = self.temporary().into_iter().next()
        {
            let name = OsString::from("TMPDIR");
            self.env.push((name.into(), first.into_os_string().into()));
        }
    }
}

/// Returns whether commands with this profile have `/tmp` and `/var/tmp` as their own and this path
/// is in one of them.
pub(crate) fn is_private(profile: &SandboxProfile, path: &Path) -> bool {
    let (closed, writable) = match profile {
        SandboxProfile::ReadOnly(reading) => (&reading.closed, &[][..]),
        SandboxProfile::Workspace(workspace) => (&workspace.closed, &workspace.writable[..]),
        SandboxProfile::Full => return false,
    };
    let mut open = closed.open.iter().chain(writable);
    let mut private = DIRECTORIES.iter();
    closed.private_tmp
        && private.any(|(directory, _)| path.starts_with(directory))
        && !open.any(|open| path.starts_with(open))
}
