//! The environment variables of a session.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use haft_contract::{SessionId, secrets};
use haft_engine::settings::{SettingsPlaces, files};

use crate::folder;

/// The environment variables of a session: those of the process, or given ones, so that sessions in
/// one process can have different ones.
#[derive(Clone, Default)]
pub struct Environment {
    /// None: the variables of the process.
    given: Option<Arc<BTreeMap<String, String>>>,
    /// Variables from the settings, which override the others.
    settings: Arc<BTreeMap<String, String>>,
}

// Implemented by hand, so that no key is logged.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.given.as_ref().map(|given| given.keys());
        f.debug_struct("Environment")
            .field("given", &names.map(Vec::from_iter))
            .finish()
    }
}

impl Environment {
    /// Returns the variables of the process, including keys that were removed from its environment.
    pub fn of_process() -> Self {
        Self::default()
    }

    /// Returns an environment with only these variables.
    pub fn given<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = variables.into_iter();
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        Self {
            given: Some(Arc::new(variables.collect())),
            settings: Arc::default(),
        }
    }

    /// Adds the variables of `env` in the settings. They override the others, and an empty value
    /// removes a variable. The locations of settings and sessions do not change, because these
    /// settings were read from there.
    #[must_use]
    pub(crate) fn with_settings(&self, env: &Arc<BTreeMap<String, String>>) -> Self {
        Self {
            given: self.given.clone(),
            settings: Arc::clone(env),
        }
    }

    /// Returns the value of a variable; `None` if it is empty or not set.
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = match (self.settings.get(name), &self.given) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(given)) => given.get(name).cloned(),
            (None, None) => secrets::variable(name),
        };
        value.filter(|value| !value.trim().is_empty())
    }

    /// Returns the value of a variable, even if it is empty.
    pub(crate) fn raw_variable(&self, name: &str) -> Option<String> {
        match (self.settings.get(name), &self.given) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(given)) => given.get(name).cloned(),
            (None, None) => secrets::variable(name),
        }
    }

    /// Returns all variables for a child process, including keys that were removed from the
    /// environment of this process.
    pub(crate) fn all(&self) -> BTreeMap<OsString, OsString> {
        let mut all: BTreeMap<OsString, OsString> = match &self.given {
            Some(given) => {
                let pairs = given.iter();
                pairs
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect()
            }
            None => {
                let taken = secrets::taken();
                let taken = taken.map(|(name, value)| (name.to_owned(), value.to_owned()));
                std::env::vars_os().chain(taken).collect()
            }
        };
        for (name, value) in &*self.settings {
            match value.is_empty() {
                true => all.remove(&OsString::from(name)),
                false => all.insert(name.into(), value.into()),
            };
        }
        all
    }

    /// Passes these variables to a command of the user.
    pub(crate) fn give(&self, command: &mut tokio::process::Command) {
        match &self.given {
            Some(given) => {
                command.env_clear().envs(given.iter());
            }
            // The removed keys are passed on too.
            None => {
                command.envs(secrets::taken());
            }
        }
        for (name, value) in self.settings.iter() {
            match value.as_str() {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
    }

    /// Returns whether a variable is `1`.
    pub fn is_on(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| value == "1")
    }

    /// Parses a variable that must be a number if it is set.
    pub(crate) fn number(&self, name: &str) -> anyhow::Result<Option<u32>> {
        self.variable(name)
            .map(|value| value.trim().parse())
            .transpose()
            .with_context(|| format!("{name}: expected a number"))
    }

    /// Returns a variable as a path, which may not be UTF-8.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let value = match &self.given {
            Some(given) => given.get(name).map(OsString::from),
            None => std::env::var_os(name),
        };
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// Returns the home directory. A relative path is ignored, because it would be inside the
    /// workspace.
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME").filter(|home| home.is_absolute())
    }

    /// Returns the locations of settings files for a session in `cwd`.
    pub fn settings_places(&self, cwd: &Path) -> SettingsPlaces {
        if self.given.is_none() {
            return SettingsPlaces::of_process(cwd);
        }
        let home = self.home().unwrap_or_else(|| PathBuf::from("/"));
        let user = self.path("CLAUDE_CONFIG_DIR");
        let user = user.filter(|directory| directory.is_absolute());
        SettingsPlaces {
            cwd: cwd.to_path_buf(),
            user: user.unwrap_or_else(|| home.join(".claude")),
            home,
            managed: PathBuf::from("/etc/claude-code"),
        }
    }

    /// Returns the folder of all sessions of a directory; `None` without a home directory.
    pub fn project_folder(&self, cwd: &Path) -> Option<PathBuf> {
        let config = match (self.path("CLAUDE_CONFIG_DIR"), self.home()) {
            (Some(config), _) => config,
            (None, Some(home)) => home.join(".claude"),
            (None, None) => return None,
        };
        let slug = folder::slug(&cwd.to_string_lossy());
        Some(config.join("projects").join(slug))
    }

    /// Returns `CONFIG/projects/SLUG/SESSION`, as in the common convention: `CONFIG` is
    /// `CLAUDE_CONFIG_DIR` or `~/.claude`, and the slug is derived from the directory's path.
    /// Creates nothing. Without a home directory, it is a folder in the temporary directory.
    pub fn session_folder(&self, cwd: &Path, session: SessionId) -> PathBuf {
        match self.project_folder(cwd) {
            Some(project) => project.join(session.to_string()),
            // The session id is random, so an attacker cannot create this folder in advance.
            None => self
                .temporary_folder()
                .join(format!("haft-session-{session}")),
        }
    }

    /// Returns the folder for notes that outlive a session: `memory` in the sessions folder of the
    /// repository that contains `cwd`, or of `cwd` itself outside a repository; `None` without a
    /// home directory.
    pub fn memory_folder(&self, cwd: &Path) -> Option<PathBuf> {
        let root = files::repository_root(cwd);
        let project = self.project_folder(root.as_deref().unwrap_or(cwd))?;
        Some(project.join("memory"))
    }

    /// Returns the cache folder; `None` without a home directory.
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        let given = self
            .path("XDG_CACHE_HOME")
            .filter(|path| path.is_absolute());
        let folder = given.or_else(|| Some(self.home()?.join(".cache")))?;
        Some(folder.join("haft"))
    }

    /// Returns the folder for temporary files.
    pub(crate) fn temporary_folder(&self) -> PathBuf {
        let given = self.path("TMPDIR").filter(|_| self.given.is_some());
        given.unwrap_or_else(std::env::temp_dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_environment_knows_nothing_of_the_process() {
        let environment = Environment::given([("HOME", "/home/me"), ("EMPTY", " ")]);
        assert!(environment.variable("PATH").is_none());
        assert!(environment.variable("EMPTY").is_none());
        assert_eq!(
            environment.project_folder(Path::new("/a b")),
            Some(PathBuf::from("/home/me/.claude/projects/-a-b"))
        );
        let places = environment.settings_places(Path::new("/a"));
        assert_eq!(places.user, Path::new("/home/me/.claude"));
        let moved = Environment::given([("HOME", "/home/me"), ("CLAUDE_CONFIG_DIR", "/config")]);
        let places = moved.settings_places(Path::new("/a"));
        assert_eq!(places.user, Path::new("/config"));
    }

    #[test]
    fn what_the_settings_say_comes_first_and_nothing_takes_away() {
        let given = Environment::given([("A", "1"), ("B", "2"), ("HOME", "/home/me")]);
        let env = [("A", "3"), ("B", ""), ("C", "4"), ("HOME", "/elsewhere")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let session = given.with_settings(&Arc::new(env.into()));
        let values = ["A", "B", "C"].map(|name| session.variable(name));
        assert_eq!(values, [Some("3".to_owned()), None, Some("4".to_owned())]);
        assert_eq!(session.home(), Some(PathBuf::from("/home/me")));
    }

    #[test]
    fn values_do_not_show_in_logs() {
        let environment = Environment::given([("ANTHROPIC_API_KEY", "sk-secret")]);
        assert!(!format!("{environment:?}").contains("sk-secret"));
    }
}
