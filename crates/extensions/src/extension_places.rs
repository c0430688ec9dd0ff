//! The folders that are searched for extensions.

use std::path::{Path, PathBuf};

use haft_settings::UntrustedDirectories;

use crate::bounded_read::real;

/// The source of an extension. Sources at the top have priority, except that the user's own skills
/// and commands have priority over those of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionOrigin {
    /// The machine's administrator.
    Managed,
    /// A command line flag, or the program that runs the session.
    Given,
    /// The project.
    Project,
    /// The user's own folder.
    User,
    /// A plugin.
    Plugin,
    /// Built into haft.
    BuiltIn,
}

/// The settings sources that are used (`--setting-sources`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnabledSources {
    /// The user's own folder.
    pub user: bool,
    /// Shared files in the project.
    pub project: bool,
    /// Files in the project for this user only.
    pub local: bool,
}

impl Default for EnabledSources {
    fn default() -> Self {
        Self {
            user: true,
            project: true,
            local: true,
        }
    }
}

/// A folder of skills, commands and agents that was installed from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionPlugin {
    /// Its version, if its manifest names one.
    pub version: Option<String>,
    /// Its name, which is the prefix of the names of its extensions.
    pub name: String,
    /// Its folder.
    pub root: PathBuf,
}

/// The folders that are searched for extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionPlaces {
    /// The working directory of the session; absolute.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: PathBuf,
    /// The user's own folder, `~/.claude` or another.
    pub user: PathBuf,
    /// The administrator's folder.
    pub managed: PathBuf,
    /// Additional working directories.
    pub directories: Vec<PathBuf>,
    /// Plugins.
    pub plugins: Vec<ExtensionPlugin>,
    /// The sources that are used.
    pub sources: EnabledSources,
}

impl ExtensionPlaces {
    /// Creates places for the project at a directory, without user and administrator folders.
    pub fn for_project(cwd: &Path) -> Self {
        // No file can be inside it.
        let nowhere = PathBuf::from("/dev/null");
        Self {
            cwd: cwd.to_path_buf(),
            home: nowhere.clone(),
            user: nowhere.clone(),
            managed: nowhere,
            directories: Vec::new(),
            plugins: Vec::new(),
            sources: EnabledSources {
                user: false,
                ..EnabledSources::default()
            },
        }
    }

    /// Returns the working directory and its ancestors up to the root of its repository, the
    /// innermost first; without a repository only the working directory.
    pub fn levels(&self) -> Vec<PathBuf> {
        let above: Vec<PathBuf> = self.cwd.ancestors().map(Path::to_path_buf).collect();
        let root = above.iter().position(|path| path.join(".git").exists());
        above.into_iter().take(root.unwrap_or(0) + 1).collect()
    }

    /// Returns the directories whose files must not be used.
    pub(crate) fn untrusted(&self) -> UntrustedDirectories {
        UntrustedDirectories::new(&self.user)
    }

    /// Returns the root of the repository, otherwise the working directory.
    pub fn project(&self) -> PathBuf {
        self.levels().pop().unwrap_or_else(|| self.cwd.clone())
    }

    /// Returns whether a file is in the project itself, with links resolved. Trust in the project
    /// does not include additional directories.
    pub fn is_of_project(&self, file: &Path) -> bool {
        match (real(file), real(&self.project())) {
            (Some(file), Some(project)) => file.starts_with(project),
            _ => false,
        }
    }

    /// Returns the `.claude` folders of the project, the innermost first, then those of additional
    /// directories. The user's own folder is never included, even if the project contains it.
    pub(crate) fn project_folders(&self) -> Vec<PathBuf> {
        if !self.sources.project {
            return Vec::new();
        }
        let user = real(&self.user);
        let mut found: Vec<PathBuf> = Vec::new();
        let mut seen = vec![user];
        let untrusted = self.untrusted();
        for directory in self.levels().into_iter().chain(self.directories.clone()) {
            let folder = directory.join(".claude");
            if untrusted.include(&folder) {
                continue;
            }
            let is_new = real(&folder).filter(|real| !seen.contains(&Some(real.clone())));
            if let Some(real) = is_new {
                seen.push(Some(real));
                found.push(folder);
            }
        }
        found
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    /// A home, a managed folder and a repository, empty.
    pub(crate) fn places(root: &Path) -> ExtensionPlaces {
        let cwd = root.join("project");
        fs::create_dir_all(cwd.join(".git")).unwrap();
        fs::create_dir_all(root.join("home/.claude")).unwrap();
        ExtensionPlaces {
            cwd,
            home: root.join("home"),
            user: root.join("home/.claude"),
            managed: root.join("managed"),
            directories: Vec::new(),
            plugins: Vec::new(),
            sources: EnabledSources::default(),
        }
    }

    #[test]
    fn levels_end_at_the_root_of_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let mut places = places(folder.path());
        let root = places.cwd.clone();
        places.cwd = root.join("a/b");
        fs::create_dir_all(&places.cwd).unwrap();
        assert_eq!(
            places.levels(),
            [root.join("a/b"), root.join("a"), root.clone()]
        );
        places.cwd = folder.path().join("home");
        assert_eq!(places.levels(), [folder.path().join("home")]);
    }

    #[test]
    fn the_users_folder_is_never_the_projects() {
        let folder = tempfile::tempdir().unwrap();
        let mut places = places(folder.path());
        places.cwd = places.home.clone();
        assert!(places.project_folders().is_empty());
    }
}
