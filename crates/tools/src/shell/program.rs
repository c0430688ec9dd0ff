//! [`ShellProgram`]: the program that confines commands.

use std::{fmt, path::PathBuf};

use haft_contract::OnWeakSandbox;

/// The program that confines commands. Its `main` must start with
/// `haft_sandbox::child::run_if_asked()`. Without this service no command runs.
#[derive(Clone)]
pub struct ShellProgram {
    pub(super) path: PathBuf,
    /// Whether commands get the definitions of the user's own shell.
    pub(super) users_shell: bool,
    /// Called once per session if commands are not fully confined.
    pub(super) on_weak: Option<OnWeakSandbox>,
}

impl fmt::Debug for ShellProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShellProgram")
            .field("path", &self.path)
            .field("users_shell", &self.users_shell)
            .finish_non_exhaustive()
    }
}

impl ShellProgram {
    /// Creates the service for the program at this path, such as [`std::env::current_exe`].
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            users_shell: false,
            on_weak: None,
        }
    }

    /// Sets a callback that is called once per session if commands are not fully confined.
    #[must_use]
    pub fn on_weak_sandbox(mut self, callback: OnWeakSandbox) -> Self {
        self.on_weak = Some(callback);
        self
    }

    /// Gives commands the functions, aliases and PATH of the user's own bash. Its rc file runs
    /// once, before the first command.
    #[must_use]
    pub fn with_users_shell(mut self) -> Self {
        self.users_shell = true;
        self
    }
}
