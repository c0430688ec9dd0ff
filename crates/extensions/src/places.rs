//! Where to look.

use std::path::{Path, PathBuf};

use crate::reading::real;

/// Who gives something: the closer to the top, the stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionOrigin {
    /// The machine's administrator.
    Managed,
    /// A flag, or the program that drives us.
    Given,
    /// The project.
    Project,
    /// The user's own folder.
    User,
    /// A plugin.
    Plugin,
    /// We bring it ourselves.
    BuiltIn,
}

/// Which sources count (`--setting-sources`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// The user's own folder.
    pub user: bool,
    /// What is shared with the project.
    pub project: bool,
    /// What lies in the project for this user alone.
    pub local: bool,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            user: true,
            project: true,
            local: true,
        }
    }
}

/// A folder of skills, commands and agents that came from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionPlugin {
    /// Its version, if its manifest names one.
    pub version: Option<String>,
    /// What its things are named after.
    pub name: String,
    /// Its folder.
    pub root: PathBuf,
}

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionPlaces {
    /// The directory the session works in; absolute.
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
    /// Which of them count.
    pub sources: Sources,
}

impl ExtensionPlaces {
    /// Only what the project at a directory says.
    pub fn of_project(cwd: &Path) -> Self {
        // Nothing can lie in it.
        let nowhere = PathBuf::from("/dev/null");
        Self {
            cwd: cwd.to_path_buf(),
            home: nowhere.clone(),
            user: nowhere.clone(),
            managed: nowhere,
            directories: Vec::new(),
            plugins: Vec::new(),
            sources: Sources {
                user: false,
                ..Sources::default()
            },
        }
    }

    /// The working directory and those above it up to the root of its repository, the nearest first;
    /// without a repository only itself.
    pub fn levels(&self) -> Vec<PathBuf> {
        let above: Vec<PathBuf> = self.cwd.ancestors().map(Path::to_path_buf).collect();
        let root = above.iter().position(|path| path.join(".git").exists());
        above.into_iter().take(root.unwrap_or(0) + 1).collect()
    }

    /// The root of the repository, else the working directory.
    pub fn project(&self) -> PathBuf {
        self.levels().pop().unwrap_or_else(|| self.cwd.clone())
    }

    /// Does a file lie in the project itself, links followed? Trust in it says nothing about additional
    /// directories.
    pub fn is_of_project(&self, file: &Path) -> bool {
        match (real(file), real(&self.project())) {
            (Some(file), Some(project)) => file.starts_with(project),
            _ => false,
        }
    }

    /// The `.claude` folders of the project, the nearest first, then those of additional directories.
    /// The user's own folder is none of them, even where the project lies around it.
    pub(crate) fn project_folders(&self) -> Vec<PathBuf> {
        if !self.sources.project {
            return Vec::new();
        }
        let user = real(&self.user);
        let mut found: Vec<PathBuf> = Vec::new();
        let mut seen = vec![user];
        for directory in self.levels().into_iter().chain(self.directories.clone()) {
            let folder = directory.join(".claude");
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
            sources: Sources::default(),
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
