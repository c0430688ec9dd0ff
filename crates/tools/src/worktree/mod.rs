//! Worktrees: working copies next to a checkout. `EnterWorktree`, `ExitWorktree`, and worktrees for
//! subagents, based on [`WorktreeService`].
//!
//! Git creates them without running anything from the repository: no hook, filter or file system
//! monitor that its configuration names. A worktree is identified by git's administrative folder
//! for it, never by the file `.git` in it, which any program that works there may change. A marker
//! in that folder is locked as long as its session is running. If haft finds an unlocked marker at
//! its next start, it reports the worktree to the user.

mod checkout;
mod enter;
mod exit;
mod git;
mod marker;
mod service;

pub(crate) use enter::EnterWorktree;
pub(crate) use exit::ExitWorktree;
pub use marker::{OrphanedWorktree, orphaned_worktrees};
pub use service::WorktreeService;
