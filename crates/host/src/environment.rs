//! The environment variables of a session.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use anyhow::Context;
use haft_contract::{SessionId, secrets};
use haft_engine::settings::{SettingsPlaces, files};

use crate::session_folder;

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
    pub fn from_process() -> Self {
        Self::default()
    }

    /// Returns an environment with only these variables.
    pub fn from_variables<N: Into<String>, V: Into<String>>(
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
                let taken = secrets::removed_variables();
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
    pub(crate) fn apply_to(&self, command: &mut tokio::process::Command) {
        match &self.given {
            Some(given) => {
                command.env_clear().envs(given.iter());
            }
            // The removed keys are passed on too.
            None => {
                command.envs(secrets::removed_variables());
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
            return SettingsPlaces::detect(cwd);
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
        let slug = session_folder::slug(&cwd.to_string_lossy());
        Some(config.join("projects").join(slug))
    }

    /// Returns the folder of a session, `CONFIG/projects/SLUG/SESSION`, without creating it. `CONFIG`
    /// is `CLAUDE_CONFIG_DIR` or `~/.claude`, and `SLUG` is made of the directory's path. Without a
    /// home directory, returns a folder in a private directory among the temporary files.
    pub fn session_folder(&self, cwd: &Path, session: SessionId) -> PathBuf {
        let project = self.project_folder(cwd);
        let project = project.unwrap_or_else(|| self.sessions_without_home());
        project.join(session.to_string())
    }

    /// Returns the directory of all sessions of a user without a home directory, among the temporary
    /// files. Transcripts and undo journals decide what runs and what is written, so the directory
    /// must belong to this user and must not be accessible to others. If an unsuitable file already
    /// has its name, the sessions of this process are in a directory with a random name.
    pub(crate) fn sessions_without_home(&self) -> PathBuf {
        static FRESH: LazyLock<SessionId> = LazyLock::new(SessionId::new);
        let user = rustix::process::geteuid().as_raw();
        let temporary = self.temporary_folder();
        let folder = temporary.join(format!("haft-sessions-{user}"));
        if is_made_private(&folder, user) {
            return folder;
        }
        let fresh = temporary.join(format!("haft-sessions-{user}-{}", *FRESH));
        is_made_private(&fresh, user);
        fresh
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

/// Creates a directory that only this user can access, if its name is not used yet. Returns whether
/// the directory at this path belongs to the user and is private.
fn is_made_private(folder: &Path, user: u32) -> bool {
    // If creating it fails, the check below decides.
    let _ = DirBuilder::new().mode(0o700).create(folder);
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::conversations;

    /// What another user of the machine could have put among the temporary files.
    #[test]
    fn sessions_without_a_home_are_in_a_directory_that_others_cannot_prepare() {
        let id = SessionId::new();
        let plant = |folder: &Path| fs::write(folder.join(format!("{id}.jsonl")), "{}\n").unwrap();
        let cwd = Path::new("/p");
        let user = rustix::process::geteuid().as_raw();
        for case in ["nothing", "open to others", "a link", "a file"] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path().join(format!("haft-sessions-{user}"));
            plant(temporary.path());
            match case {
                "open to others" => {
                    fs::create_dir(&place).unwrap();
                    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
                    plant(&place);
                }
                "a link" => {
                    let other = temporary.path().join("other");
                    DirBuilder::new().mode(0o700).create(&other).unwrap();
                    plant(&other);
                    symlink(&other, &place).unwrap();
                }
                "a file" => fs::write(&place, "").unwrap(),
                _ => {}
            }
            let text = temporary.path().to_str().unwrap();
            let environment = Environment::from_variables([("TMPDIR", text)]);
            let sessions = conversations(&environment, cwd);
            assert_eq!(sessions.newest().unwrap(), None, "{case}");
            assert!(!sessions.has(id), "{case}");
            let folder = sessions.path(id).parent().unwrap().to_path_buf();
            let found = fs::symlink_metadata(&folder).unwrap();
            assert!(found.is_dir() && found.mode() & 0o077 == 0, "{case}");
            assert_eq!(folder == place, case == "nothing", "{case}");
            let state = environment.session_folder(cwd, id);
            assert_eq!(state.parent(), Some(folder.as_path()), "{case}");
        }
    }

    #[test]
    fn a_given_environment_knows_nothing_of_the_process() {
        let environment = Environment::from_variables([("HOME", "/home/me"), ("EMPTY", " ")]);
        assert!(environment.variable("PATH").is_none());
        assert!(environment.variable("EMPTY").is_none());
        assert_eq!(
            environment.project_folder(Path::new("/a b")),
            Some(PathBuf::from("/home/me/.claude/projects/-a-b"))
        );
        let places = environment.settings_places(Path::new("/a"));
        assert_eq!(places.user, Path::new("/home/me/.claude"));
        let moved =
            Environment::from_variables([("HOME", "/home/me"), ("CLAUDE_CONFIG_DIR", "/config")]);
        let places = moved.settings_places(Path::new("/a"));
        assert_eq!(places.user, Path::new("/config"));
    }

    #[test]
    fn what_the_settings_say_comes_first_and_nothing_takes_away() {
        let given = Environment::from_variables([("A", "1"), ("B", "2"), ("HOME", "/home/me")]);
        let env = [("A", "3"), ("B", ""), ("C", "4"), ("HOME", "/elsewhere")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let session = given.with_settings(&Arc::new(env.into()));
        let values = ["A", "B", "C"].map(|name| session.variable(name));
        assert_eq!(values, [Some("3".to_owned()), None, Some("4".to_owned())]);
        assert_eq!(session.home(), Some(PathBuf::from("/home/me")));
    }

    #[test]
    fn values_do_not_show_in_logs() {
        let environment = Environment::from_variables([("ANTHROPIC_API_KEY", "sk-secret")]);
        assert!(!format!("{environment:?}").contains("sk-secret"));
    }
}
