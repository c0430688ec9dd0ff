//! Copies of a project to work in beside it. Who makes them stands below; those who launch agents and end
//! sessions know only this.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{BoxFuture, CallContext, ToolError};

/// Makes worktrees, and looks after those of one session.
pub trait MakeWorktrees: Send + Sync {
    /// A worktree of its own for an agent, by a name that no other has. If there is one of that name whose
    /// work came back as a branch, it goes on from there.
    fn for_agent<'a>(
        &'a self,
        name: &'a str,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Arc<dyn AgentWorktree>, ToolError>>;

    /// The one whose service this is works in this worktree, and makes no others.
    fn confine(&self, path: &Path);

    /// The session ends: what is left of the worktree it is in, in words for people; `None` if nothing is.
    fn close(&self) -> BoxFuture<'_, Option<String>>;
}

/// The service by which they are made.
#[derive(Clone)]
pub struct Worktrees(pub Arc<dyn MakeWorktrees>);

impl fmt::Debug for Worktrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worktrees")
    }
}

/// A worktree that one agent works in.
pub trait AgentWorktree: Send + Sync {
    /// The checkout it is a copy of.
    fn main(&self) -> &Path;

    /// Where it is.
    fn path(&self) -> &Path;

    /// The agent is done: what it changed comes back as a branch, and nothing else is left.
    fn finish(&self) -> BoxFuture<'_, WorktreeOutcome>;
}

/// What is left of a worktree when its agent is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeOutcome {
    /// Where it still is; `None`: it is gone.
    pub path: Option<PathBuf>,
    /// The branch with what was changed; `None`: nothing was.
    pub branch: Option<String>,
    /// What the launcher of the agent should know of it; empty if nothing is left.
    pub note: String,
}
