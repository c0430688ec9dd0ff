//! Worktrees: copies of a checkout to work in beside it. `EnterWorktree`, `ExitWorktree`, and those of
//! subagents, over [`WorktreeService`].
//!
//! git makes them, and nothing of the repository runs then: no hook, no filter, no monitor that its own
//! configuration names. A worktree is known by the folder that git keeps of it, never by the file `.git` in
//! it, which anyone who works there may change. A marker in that folder is locked as long as its session
//! lives: what is found unlocked was left behind, and the next start names it.

mod checkout;
mod enter;
mod exit;
mod git;
mod marker;
mod service;

pub(crate) use enter::EnterWorktree;
pub(crate) use exit::ExitWorktree;
pub use marker::{LeftWorktree, left_behind};
pub use service::WorktreeService;
