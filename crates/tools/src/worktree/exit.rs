//! `ExitWorktree`: the session returns to its previous directory.

use std::path::Path;

use haft_contract::{
    CallContext, Card, CheckOutcome, ContextPatch, Effects, ServiceNeed, Tool, ToolAccess,
    ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    WorktreeService,
    checkout::UnsavedWork,
    service::{CurrentWorktree, WorktreeCopy},
};
use crate::plural::counted;

/// Leaves the worktree that EnterWorktree entered. The session continues in its previous directory.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// `keep` leaves worktree and branch unchanged, `remove` deletes both.
    action: Action,
    /// Remove it although work in it would be lost. Only if the user agreed to that.
    discard_changes: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Keep,
    Remove,
}

impl Input {
    fn discards(&self) -> bool {
        self.action == Action::Remove && self.discard_changes == Some(true)
    }
}

pub(crate) struct ExitWorktree;

impl Tool for ExitWorktree {
    type Input = Input;
    const NAME: &'static str = "ExitWorktree";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "worktree".into(),
            search_hint: "git worktree leave remove keep".into(),
            access: ToolAccess::Anything,
            deferred: true,
            needs: const { &[ServiceNeed::service::<WorktreeService>()] },
            timeout: Some(std::time::Duration::from_secs(900)),
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::EXCLUSIVE
    }

    fn permission(&self, input: &Input, _: &CallContext) -> ToolPermission {
        match input.discards() {
            true => ToolPermission::ByEffects,
            // Either no work is lost, or the call is refused.
            false => ToolPermission::Allow,
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let service = cx.services.get::<WorktreeService>()?;
        let current = service.current.lock().await;
        let Some(current) = &*current else {
            return Err(ToolError::Refused(
                "The session is not in a worktree that EnterWorktree entered.".to_owned(),
            ));
        };
        let WorktreeCopy::Git(worktree) = &current.copy else {
            return Ok(CheckOutcome::Pass);
        };
        if input.action == Action::Keep {
            return Ok(CheckOutcome::Pass);
        }
        if !worktree.is_ours {
            return Err(ToolError::Refused(format!(
                "{} existed before this session and is not removed: leave it with `keep`.",
                worktree.path.display()
            )));
        }
        if input.discards() {
            return Ok(CheckOutcome::Pass);
        }
        let unsaved = worktree.unsaved(&cx.cancel).await;
        let unsaved = unsaved.map_err(|why| {
            ToolError::Refused(format!(
                "It is not known whether work would be lost: {why}."
            ))
        })?;
        match unsaved.is_none() {
            true => Ok(CheckOutcome::Pass),
            false => Err(ToolError::Refused(format!(
                "Not removed: {} would be lost. Commit and merge it, leave the worktree with `keep`, or ask the \
                 user whether to discard it (`discard_changes: true`).",
                lost(unsaved)
            ))),
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let service = cx.services.get::<WorktreeService>()?;
        let mut current = service.current.lock().await;
        let Some(CurrentWorktree { copy, before, .. }) = current.as_mut() else {
            return Err(ToolError::Refused(
                "The session is not in a worktree.".to_owned(),
            ));
        };
        let (path, branch) = (copy.path().to_path_buf(), copy.branch().map(str::to_owned));
        let mut structured = json!({"originalCwd": before, "worktreePath": path});
        if let Some(branch) = &branch {
            structured["worktreeBranch"] = json!(branch);
        }
        let on_branch = branch.map_or_else(String::new, |name| format!(" (branch {name})"));
        let mut message = match input.action {
            Action::Keep => {
                if let WorktreeCopy::Git(worktree) = copy {
                    worktree.release();
                }
                structured["action"] = json!("keep");
                format!("The worktree {}{on_branch} is kept.", path.display())
            }
            Action::Remove => {
                let unsaved = match copy {
                    WorktreeCopy::Git(worktree) => worktree.unsaved(&cx.cancel).await,
                    WorktreeCopy::Hook { .. } => Ok(UnsavedWork::default()),
                };
                // Files may have been written since the check.
                if !input.discards() && !unsaved.as_ref().is_ok_and(|unsaved| unsaved.is_none()) {
                    return Err(ToolError::Failed(
                        "Not removed: work in it would be lost.".to_owned(),
                    ));
                }
                let removed = copy.remove(true, cx).await;
                removed.map_err(|why| ToolError::Failed(format!("Not removed: {why}.")))?;
                structured["action"] = json!("remove");
                if let Ok(unsaved) = unsaved {
                    structured["discardedFiles"] = json!(unsaved.files);
                    structured["discardedCommits"] = json!(unsaved.commits);
                }
                match path.exists() {
                    true => format!("The session has left the worktree {}.", path.display()),
                    false => format!("The worktree {}{on_branch} is removed.", path.display()),
                }
            }
        };
        let cwd = match before.is_dir() {
            true => before.clone(),
            false => cx
                .permissions
                .directories
                .first()
                .cloned()
                .unwrap_or_default(),
        };
        message += &format!(" The session is in {} again.", Path::new(&cwd).display());
        structured["message"] = json!(message);
        *current = None;
        Ok(ToolOutput::text(message)
            .with_structured(structured)
            .with_patch(ContextPatch::LeaveWorktree { cwd }))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let shown = match (input.action, input.discards()) {
            (Action::Keep, _) => "leave and keep",
            (Action::Remove, false) => "leave and remove",
            (Action::Remove, true) => "leave and remove with all changes",
        };
        Some(Card::new("Worktree", shown))
    }
}

/// Describes the work that would be lost.
fn lost(unsaved: UnsavedWork) -> String {
    let UnsavedWork {
        files,
        commits,
        submodules,
    } = unsaved;
    let mut parts = Vec::new();
    if files > 0 {
        parts.push(format!("{} not committed", counted(files as u64, "file")));
    }
    if commits > 0 {
        let commits = counted(commits as u64, "commit");
        parts.push(format!("{commits} on no other branch"));
    }
    if submodules {
        parts.push("the contents of its submodules".to_owned());
    }
    parts.join(", ")
}
