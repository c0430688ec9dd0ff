//! `EnterWorktree`: the session continues in a worktree of its checkout.

use std::{
    fs,
    path::{Path, PathBuf},
};

use haft_contract::{
    CallContext, Card, CheckOutcome, ContextPatch, Effects, RuleMatch, ServiceNeed, Tool,
    ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    WorktreeService,
    checkout::{Checkout, directory_name, nearest_checkout},
    service::{CurrentWorktree, WorktreeCopy},
};

/// Continues the session in a git worktree: a copy of the checkout, on its own branch.
///
/// Only if the user asks for a worktree. It starts at the current commit; uncommitted changes stay in the original
/// checkout. ExitWorktree ends it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Name of a new worktree: letters, digits, `.`, `_`, `-`, in parts separated by `/`. Default: a generated one.
    name: Option<String>,
    /// An existing worktree, instead of a new one.
    path: Option<PathBuf>,
}

pub(crate) struct EnterWorktree;

impl Tool for EnterWorktree {
    type Input = Input;
    const NAME: &'static str = "EnterWorktree";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "worktree".into(),
            search_hint: "git worktree isolated copy branch checkout".into(),
            access: ToolAccess::Anything,
            deferred: true,
            paths: &["path"],
            rules: RuleMatch::NameOnly,
            needs: const { &[ServiceNeed::service::<WorktreeService>()] },
            timeout: Some(std::time::Duration::from_secs(900)),
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::EXCLUSIVE
    }

    fn permission(&self, input: &Input, cx: &CallContext) -> ToolPermission {
        let is_inside = match &input.path {
            Some(path) => is_within(&cx.cwd.join(path), cx),
            // A new worktree is created in `.claude/worktrees` of the checkout. Without a checkout,
            // only a hook can create it.
            None => match fs::canonicalize(&cx.cwd) {
                Ok(cwd) => nearest_checkout(&cwd).is_none_or(|root| is_within(root, cx)),
                Err(_) => false,
            },
        };
        match is_inside {
            true => ToolPermission::Allow,
            // The session would get access to files that it could not change before.
            false => ToolPermission::ByEffects,
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let refused = |text: String| Err(ToolError::Refused(text));
        if input.name.is_some() && input.path.is_some() {
            return refused(
                "Give either `name` for a new worktree or `path` for an existing one, not both."
                    .to_owned(),
            );
        }
        if let Some(name) = &input.name {
            directory_name(name).map_err(ToolError::Refused)?;
        }
        let service = cx.services.get::<WorktreeService>()?;
        if let Some(path) = service.isolated_in() {
            return refused(format!(
                "You already work in your own worktree: {}.",
                path.display()
            ));
        }
        if let Some(current) = &*service.current.lock().await {
            return refused(format!(
                "The session is already in the worktree {}. Leave it with ExitWorktree first.",
                current.copy.path().display()
            ));
        }
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let service = cx.services.get::<WorktreeService>()?;
        let (main, copy) = match &input.path {
            Some(path) => {
                let failed = |why: String| ToolError::Failed(format!("Not entered: {why}."));
                let checkout = Checkout::find(&cx.cwd, &cx.cancel).await;
                let checkout = checkout.map_err(failed)?;
                let known = checkout.known(path, String::new()).map_err(failed)?;
                (checkout.root, WorktreeCopy::Git(Box::new(known)))
            }
            None => {
                let name = match &input.name {
                    Some(name) => name.clone(),
                    // A short name that is probably unused.
                    None => made_up(&cx.call.to_string()),
                };
                let directory = directory_name(&name).map_err(ToolError::Refused)?;
                service.make(&name, &directory, false, cx).await?
            }
        };
        let path = copy.path().to_path_buf();
        let branch = copy.branch().map(str::to_owned);
        let mut message = format!("The session is now in the worktree {}", path.display());
        if let Some(branch) = &branch {
            message += &format!(", on the branch {branch}");
        }
        message += ". Work there; ExitWorktree ends it.";
        *service.current.lock().await = Some(CurrentWorktree {
            copy,
            before: cx.cwd.to_path_buf(),
            cx: cx.clone(),
        });
        let mut structured = json!({"worktreePath": path, "message": message});
        if let Some(branch) = branch {
            structured["worktreeBranch"] = json!(branch);
        }
        Ok(ToolOutput::text(message)
            .with_structured(structured)
            .with_patch(ContextPatch::EnterWorktree { main, path }))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let shown = match (&input.path, &input.name) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(name)) => name.clone(),
            (None, None) => "a new one".to_owned(),
        };
        Some(Card::new("Worktree", shown))
    }
}

/// Tests whether the path, with links resolved, is in a working directory.
fn is_within(path: &Path, cx: &CallContext) -> bool {
    let Ok(real) = fs::canonicalize(path) else {
        return false;
    };
    let directories = cx.permissions.directories.iter();
    let mut directories = directories.filter_map(|one| fs::canonicalize(one).ok());
    directories.any(|one| real.starts_with(&one))
}

/// Creates a name from the id of the call.
fn made_up(id: &str) -> String {
    let plain = id.chars().filter(char::is_ascii_alphanumeric);
    let plain: Vec<char> = plain.collect();
    let last: String = plain[plain.len().saturating_sub(8)..].iter().collect();
    format!("wt-{last}")
}
