//! The environment that a session goes by.

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

/// The variables that a session goes by: those of the process, or given ones, so that many sessions in
/// one process need not share them.
#[derive(Clone, Default)]
pub struct Environment {
    /// None: those of the process.
    given: Option<Arc<BTreeMap<String, String>>>,
    /// What the settings say of them; it comes first.
    settings: Arc<BTreeMap<String, String>>,
}

// By hand, so that no key ends in a log.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.given.as_ref().map(|given| given.keys());
        f.debug_struct("Environment")
            .field("given", &names.map(Vec::from_iter))
            .finish()
    }
}

impl Environment {
    /// The variables of the process, keys that were taken out of it included.
    pub fn of_process() -> Self {
        Self::default()
    }

    /// These and no others.
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

    /// The same with what `env` of the settings says: it comes first, and an empty value takes a variable
    /// away. Where settings and sessions are kept stays what it was: these were found there.
    #[must_use]
    pub(crate) fn with_settings(&self, env: &Arc<BTreeMap<String, String>>) -> Self {
        Self {
            given: self.given.clone(),
            settings: Arc::clone(env),
        }
    }

    /// What a variable says; one that says nothing is as good as none.
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = match (self.settings.get(name), &self.given) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(given)) => given.get(name).cloned(),
            (None, None) => secrets::variable(name),
        };
        value.filter(|value| !value.trim().is_empty())
    }

    /// What a variable says, be it nothing.
    pub(crate) fn raw_variable(&self, name: &str) -> Option<String> {
        match (self.settings.get(name), &self.given) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(given)) => given.get(name).cloned(),
            (None, None) => secrets::variable(name),
        }
    }

    /// All of them, keys that were taken out of the process included: for a child that is to inherit them.
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

    /// Has a program of the user's inherit these variables.
    pub(crate) fn give(&self, command: &mut tokio::process::Command) {
        match &self.given {
            Some(given) => {
                command.env_clear().envs(given.iter());
            }
            // As they were when we were started.
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

    /// Does a variable say `1`?
    pub fn is_on(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| value == "1")
    }

    /// A variable that must be a number where it is set.
    pub(crate) fn number(&self, name: &str) -> anyhow::Result<Option<u32>> {
        self.variable(name)
            .map(|value| value.trim().parse())
            .transpose()
            .with_context(|| format!("{name}: expected a number"))
    }

    /// A path; it need not be text.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let value = match &self.given {
            Some(given) => given.get(name).map(OsString::from),
            None => std::env::var_os(name),
        };
        value.filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The home directory. One that is no absolute path would be one of the workspace, and is none.
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME").filter(|home| home.is_absolute())
    }

    /// Where settings files are for a session in `cwd`.
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

    /// The folder of all sessions of a directory; `None` without a home.
    pub fn project_folder(&self, cwd: &Path) -> Option<PathBuf> {
        let config = match (self.path("CLAUDE_CONFIG_DIR"), self.home()) {
            (Some(config), _) => config,
            (None, Some(home)) => home.join(".claude"),
            (None, None) => return None,
        };
        let slug = folder::slug(&cwd.to_string_lossy());
        Some(config.join("projects").join(slug))
    }

    /// `CONFIG/projects/SLUG/SESSION`, as the common convention has it: `CONFIG` is `CLAUDE_CONFIG_DIR`
    /// or `~/.claude`, the slug is made of the directory's path. Nothing is created. Without a home, a
    /// folder of its own among the temporary files.
    pub fn session_folder(&self, cwd: &Path, session: SessionId) -> PathBuf {
        match self.project_folder(cwd) {
            Some(project) => project.join(session.to_string()),
            // The session's id is random, so no one can have put a folder of that name there.
            None => self
                .temporary_folder()
                .join(format!("haft-session-{session}")),
        }
    }

    /// Where notes are kept that outlive a session: `memory` in the folder of all sessions of the
    /// repository that a directory lies in, or of the directory itself outside of any; `None` without a
    /// home.
    pub fn memory_folder(&self, cwd: &Path) -> Option<PathBuf> {
        let root = files::repository_root(cwd);
        let project = self.project_folder(root.as_deref().unwrap_or(cwd))?;
        Some(project.join("memory"))
    }

    /// Where what can be found out again is kept; `None` without a home.
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        let given = self
            .path("XDG_CACHE_HOME")
            .filter(|path| path.is_absolute());
        let folder = given.or_else(|| Some(self.home()?.join(".cache")))?;
        Some(folder.join("haft"))
    }

    /// Where what is not kept goes.
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
