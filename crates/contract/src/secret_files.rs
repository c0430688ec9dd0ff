//! The files in which haft itself stores secrets.
//!
//! A function that writes a secret takes a [`SecretPath`], which only [`SecretFile::below`] creates.
//! Code that hides secrets covers all of [`SecretFile::ALL`]. So no writer can use a name that is not
//! hidden.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
};

/// The directory of haft's own files in the directory of the user's settings. It is hidden as a
/// whole, with temporary files and locks.
pub const PRIVATE_DIRECTORY: &str = "haft";

/// A file in which haft stores a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecretFile {
    /// The API key that `haft login` stores.
    ApiKey,
    /// Access and refresh tokens for MCP servers.
    McpTokens,
    /// Entries of MCP servers that the user approved, with their headers and variables.
    McpApprovals,
    /// Prompts that the user typed.
    PromptHistory,
    /// Prompts that the user has not sent yet: a directory.
    PromptDrafts,
    /// The debug log of the full-screen terminal, which names requests and files.
    TerminalLog,
    /// Entries of MCP servers of the user, with their headers and variables.
    UserServers,
}

impl SecretFile {
    /// All secret files.
    pub const ALL: [Self; 7] = [
        Self::ApiKey,
        Self::McpTokens,
        Self::McpApprovals,
        Self::PromptHistory,
        Self::PromptDrafts,
        Self::TerminalLog,
        Self::UserServers,
    ];

    /// Returns the path relative to the directory of the user's settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "haft/key",
            Self::McpTokens => "haft/mcp-tokens.json",
            Self::McpApprovals => "haft/mcp-approvals.json",
            Self::PromptHistory => "haft/history.jsonl",
            Self::PromptDrafts => "haft/drafts",
            Self::TerminalLog => "haft/haft.log",
            Self::UserServers => ".claude.json",
        }
    }

    /// Returns the path of the file, given the directory of the user's settings.
    pub fn below(self, directory: &Path) -> SecretPath {
        SecretPath(directory.join(self.name()))
    }

    /// Returns the names to hide below the directory of the user's settings: the private directory,
    /// and each secret file that is not in it.
    pub fn hidden_names() -> impl Iterator<Item = &'static str> {
        let names = Self::ALL.into_iter().map(Self::name);
        let outside = names.filter(|name| !Path::new(name).starts_with(PRIVATE_DIRECTORY));
        [PRIVATE_DIRECTORY].into_iter().chain(outside)
    }
}

/// The path of a secret file. Only [`SecretFile::below`] creates one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretPath(PathBuf);

impl SecretPath {
    /// Converts it into a path buffer.
    pub fn into_path_buf(self) -> PathBuf {
        self.0
    }
}

impl AsRef<Path> for SecretPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Deref for SecretPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_file_is_below_a_hidden_name() {
        let hidden: Vec<_> = SecretFile::hidden_names().collect();
        for file in SecretFile::ALL {
            let path = file.below(Path::new("/settings"));
            let is_hidden = |name: &&str| path.starts_with(Path::new("/settings").join(name));
            assert!(hidden.iter().any(is_hidden), "{file:?}");
        }
        assert_eq!(hidden, ["haft", ".claude.json"]);
    }
}
