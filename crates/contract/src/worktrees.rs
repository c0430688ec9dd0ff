//! Worktrees: copies of a project for agents to work in. They are implemented in another crate; the
//! code that launches agents and ends sessions knows only these types.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{BoxFuture, CallContext, ToolError};

/// Creates worktrees, and manages those of one session.
pub trait WorktreeProvider: Send + Sync {
    /// Returns a worktree for one agent, with a unique name. If earlier work under this name is
    /// stored in a branch, the worktree continues from that branch.
    fn for_agent<'a>(
        &'a self,
        name: &'a str,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Arc<dyn AgentWorktree>, ToolError>>;

    /// Restricts the agent that owns this service to this worktree: it cannot create others.
    fn confine(&self, path: &Path);

    /// Ends the session's worktree. If parts of it remain, returns a human-readable text about them.
    fn close(&self) -> BoxFuture<'_, Option<String>>;
}

/// The service through which worktrees are created.
#[derive(Clone)]
pub struct Worktrees(pub Arc<dyn WorktreeProvider>);

impl fmt::Debug for Worktrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worktrees")
    }
}

/// A worktree in which one agent works.
pub trait AgentWorktree: Send + Sync {
    /// Returns the path of the checkout that it is a copy of.
    fn main_checkout(&self) -> &Path;

    /// Returns the path of the worktree.
    fn path(&self) -> &Path;

    /// Finishes the agent's work: its changes are stored in a branch, and everything else is
    /// removed.
    fn finish(&self) -> BoxFuture<'_, WorktreeOutcome>;
}

/// The state of a worktree after its agent has finished.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeOutcome {
    /// The path, if the worktree still exists.
    pub path: Option<PathBuf>,
    /// The branch with the changes; `None`: there were none.
    pub branch: Option<String>,
    /// A note for the agent's launcher; empty if no part of the worktree remains.
    pub note: String,
}
