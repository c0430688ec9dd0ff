//! The worktrees of a session: the current one, and the worktrees of its subagents.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex as StdMutex, PoisonError},
};

use haft_contract::{
    AgentWorktree, BoxFuture, CallContext, CancellationToken, HookEvent, HookService, HookVerdict,
    ToolError, WorktreeOutcome, WorktreeProvider,
};
use serde_json::json;
use tokio::sync::Mutex;

use super::checkout::{Checkout, GitWorktree};
use crate::plural::counted;

/// Creates worktrees, and stores the session's current one.
#[derive(Default)]
pub struct WorktreeService {
    /// The session's current worktree.
    pub(super) current: Mutex<Option<CurrentWorktree>>,
    /// The worktree of an isolated agent, which cannot create others.
    isolated: StdMutex<Option<PathBuf>>,
}

/// The current worktree of a session.
pub(super) struct CurrentWorktree {
    pub(super) copy: WorktreeCopy,
    /// The previous working directory.
    pub(super) before: PathBuf,
    /// The call that entered it, which is the context for hooks when the session ends.
    pub(super) cx: CallContext,
}

/// A worktree, depending on its creator.
pub(super) enum WorktreeCopy {
    /// Created by git on behalf of this program.
    Git(Box<GitWorktree>),
    /// Created by a hook of the user.
    Hook { path: PathBuf },
}

impl WorktreeCopy {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Git(worktree) => &worktree.path,
            Self::Hook { path } => path,
        }
    }

    pub(super) fn branch(&self) -> Option<&str> {
        match self {
            Self::Git(worktree) => Some(worktree.branch.as_str()).filter(|name| !name.is_empty()),
            Self::Hook { .. } => None,
        }
    }

    /// Removes the worktree. Hooks run first, and may remove it themselves.
    pub(super) async fn remove(&self, with_branch: bool, cx: &CallContext) -> Result<(), String> {
        let fields = json!({"worktree_path": self.path().to_string_lossy()});
        let removed = HookEvent::new("WorktreeRemove", "", fields);
        HookService::fire(cx, removed).await;
        match self {
            Self::Git(worktree) => worktree.remove(with_branch).await,
            Self::Hook { .. } => Ok(()),
        }
    }
}

impl WorktreeService {
    /// Returns the worktree of an isolated agent, which cannot create others.
    pub(super) fn isolated_in(&self) -> Option<PathBuf> {
        let isolated = self.isolated.lock();
        isolated.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Creates a worktree with this name, with a hook if one is configured, otherwise with git.
    /// `again` allows to reuse an existing branch.
    pub(super) async fn make(
        &self,
        name: &str,
        directory: &str,
        again: bool,
        cx: &CallContext,
    ) -> Result<(PathBuf, WorktreeCopy), ToolError> {
        let event = HookEvent::new("WorktreeCreate", "", json!({"name": name}));
        let HookVerdict {
            block, worktree, ..
        } = HookService::fire(cx, event).await;
        if let Some(why) = block {
            return Err(ToolError::Failed(format!(
                "A WorktreeCreate hook did not create the worktree: {why}"
            )));
        }
        if let Some(path) = worktree {
            let path = check_hook_directory(&path, cx).map_err(ToolError::Failed)?;
            return Ok((cx.cwd.to_path_buf(), WorktreeCopy::Hook { path }));
        }
        let failed = |why: String| match cx.cancel.is_cancelled() {
            true => ToolError::Cancelled,
            false => ToolError::Failed(format!("No worktree was created: {why}.")),
        };
        let checkout = Checkout::find(&cx.cwd, &cx.cancel).await;
        let checkout = checkout.map_err(failed)?;
        let session = cx.session.to_string();
        let made = checkout.make(directory, &session, again, &cx.cancel).await;
        let made = made.map_err(failed)?;
        Ok((checkout.root, WorktreeCopy::Git(Box::new(made))))
    }

    /// Ends the current worktree when the session ends: removes it if no work is lost, otherwise
    /// leaves it. Returns a message for the user.
    async fn end(&self) -> Option<String> {
        let CurrentWorktree { copy, cx, .. } = self.current.lock().await.take()?;
        let WorktreeCopy::Git(mut worktree) = copy else {
            return Some(format!(
                "the worktree {} was not removed, because a hook created it",
                copy.path().display()
            ));
        };
        if !worktree.is_ours {
            return None;
        }
        // The call's own token may already be cancelled.
        let never = CancellationToken::new();
        let unsaved = worktree.unsaved(&never).await;
        if unsaved.as_ref().is_ok_and(|unsaved| unsaved.is_none()) {
            let copy = WorktreeCopy::Git(worktree);
            return copy.remove(true, &cx).await.err();
        }
        worktree.release();
        let (path, branch) = (worktree.path.display(), &worktree.branch);
        Some(format!(
            "the worktree {path} was not removed, because it has work on the branch {branch}. When you no longer \
             need it: git worktree remove {path}"
        ))
    }
}

/// Checks the directory that a hook created, and returns its real path. The error explains why the
/// directory is not accepted.
fn check_hook_directory(path: &Path, cx: &CallContext) -> Result<PathBuf, String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!(
            "A WorktreeCreate hook printed {shown:?}, which is not an absolute path."
        ));
    }
    let real = fs::canonicalize(path).ok().filter(|real| real.is_dir());
    let real = real.ok_or_else(|| {
        format!("A WorktreeCreate hook printed {shown}, which is not an existing directory.")
    })?;
    // A directory above the project would give access to everything below it.
    let above = cx.permissions.directories.iter();
    let mut above = above.filter_map(|one| fs::canonicalize(one).ok());
    if real.parent().is_none() || above.any(|one| one.starts_with(&real)) {
        return Err(format!(
            "A WorktreeCreate hook printed {shown}, which contains the project. Create the worktree outside of it."
        ));
    }
    Ok(real)
}

impl WorktreeProvider for WorktreeService {
    fn for_agent<'a>(
        &'a self,
        name: &'a str,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Arc<dyn AgentWorktree>, ToolError>> {
        Box::pin(async move {
            let (main, copy) = self.make(name, name, true, cx).await?;
            Ok(Arc::new(IsolatedWorktree {
                main,
                path: copy.path().to_path_buf(),
                cx: cx.clone(),
                copy: Mutex::new(Some(copy)),
            }) as Arc<dyn AgentWorktree>)
        })
    }

    fn close(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(self.end())
    }

    fn confine(&self, path: &Path) {
        let mut isolated = self.isolated.lock().unwrap_or_else(PoisonError::into_inner);
        *isolated = Some(path.to_path_buf());
    }
}

/// The worktree of a subagent.
struct IsolatedWorktree {
    main: PathBuf,
    path: PathBuf,
    cx: CallContext,
    copy: Mutex<Option<WorktreeCopy>>,
}

impl IsolatedWorktree {
    async fn end(&self) -> WorktreeOutcome {
        let Some(copy) = self.copy.lock().await.take() else {
            return WorktreeOutcome::default();
        };
        let path = self.path.clone();
        let mut worktree = match copy {
            WorktreeCopy::Git(worktree) => worktree,
            WorktreeCopy::Hook { .. } => {
                let note = format!("It worked in {}, which a hook created.", path.display());
                return WorktreeOutcome {
                    path: Some(path),
                    branch: None,
                    note,
                };
            }
        };
        let never = CancellationToken::new();
        let saved = worktree.save("Work of a subagent", &never).await;
        let branch = worktree.branch.clone();
        match saved {
            Ok(has_work) => {
                let unsaved = worktree.unsaved(&never).await.unwrap_or_default();
                let copy = WorktreeCopy::Git(worktree);
                let removed = copy.remove(!has_work, &self.cx).await;
                let mut note = match has_work {
                    true => format!(
                        "Its changes are on the branch {branch} ({}): inspect them with `git diff HEAD...{branch}`, \
                         merge them with `git merge {branch}`, or drop them with `git branch -D {branch}`.",
                        counted(unsaved.commits as u64, "commit"),
                    ),
                    false => String::new(),
                };
                let left = removed.err();
                if let Some(why) = &left {
                    note += &format!(" Its worktree still exists: {why}.");
                }
                WorktreeOutcome {
                    path: left.map(|_| path),
                    branch: has_work.then_some(branch),
                    note,
                }
            }
            Err(why) => {
                worktree.release();
                WorktreeOutcome {
                    note: format!(
                        "Its worktree {} (branch {branch}) was left unchanged: {why}.",
                        path.display()
                    ),
                    path: Some(path),
                    branch: Some(branch),
                }
            }
        }
    }
}

impl AgentWorktree for IsolatedWorktree {
    fn main_checkout(&self) -> &Path {
        &self.main
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn finish(&self) -> BoxFuture<'_, WorktreeOutcome> {
        Box::pin(self.end())
    }
}
