//! The description of a session's environment for the model.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use haft_engine::SessionContext;

use crate::clock;

/// The environment of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptEnvironment {
    /// The working directory.
    pub cwd: PathBuf,
    /// The additional working directories.
    pub directories: Vec<PathBuf>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// Whether the working directory is in a git repository.
    pub is_repository: bool,
    /// The operating system and the processor architecture.
    pub system: String,
    /// The date when the session began.
    pub date: String,
}

impl PromptEnvironment {
    /// Detects the current environment.
    pub fn detect(context: &SessionContext) -> Self {
        let cwd = context.cwd.to_path_buf();
        let others = context.directories.iter().filter(|path| **path != cwd);
        Self {
            directories: others.cloned().collect(),
            branch: branch(&cwd),
            is_repository: git_folder(&cwd).is_some(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            date: clock::today(),
            cwd,
        }
    }
}

impl fmt::Display for PromptEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "<environment>")?;
        writeln!(f, "Working directory: {}", self.cwd.display())?;
        for path in &self.directories {
            writeln!(f, "Additional directory: {}", path.display())?;
        }
        match (&self.branch, self.is_repository) {
            (Some(branch), _) => writeln!(f, "Git repository: yes, on branch {branch}")?,
            (None, true) => writeln!(f, "Git repository: yes, on no branch")?,
            (None, false) => writeln!(f, "Git repository: no")?,
        }
        writeln!(f, "System: {}", self.system)?;
        writeln!(f, "Date when the session began: {}", self.date)?;
        write!(f, "</environment>")
    }
}

/// Returns the branch that is checked out in the repository that contains a directory.
pub fn branch(cwd: &Path) -> Option<String> {
    let head = fs::read_to_string(git_folder(cwd)?.join("HEAD")).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    Some(branch.to_owned())
}

fn git_folder(cwd: &Path) -> Option<PathBuf> {
    let dot_git = cwd
        .ancestors()
        .map(|path| path.join(".git"))
        .find(|path| path.exists())?;
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    // In a worktree or a submodule, `.git` is a file with the path.
    let link = fs::read_to_string(&dot_git).ok()?;
    let target = link.trim().strip_prefix("gitdir: ")?;
    Some(dot_git.parent()?.join(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_is_found_from_below_and_in_worktrees() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(branch(folder.path()), None);
        fs::create_dir_all(path("main/.git/worktrees/w")).unwrap();
        fs::create_dir_all(path("main/src")).unwrap();
        fs::create_dir_all(path("side")).unwrap();
        fs::write(path("main/.git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        fs::write(path("main/.git/worktrees/w/HEAD"), "ref: refs/heads/side\n").unwrap();
        fs::write(path("side/.git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
        assert_eq!(branch(&path("main/src")).as_deref(), Some("feature/x"));
        assert_eq!(branch(&path("side")).as_deref(), Some("side"));
        fs::write(path("main/.git/HEAD"), "0123abcd\n").unwrap();
        assert_eq!(branch(&path("main")), None);
    }
}
