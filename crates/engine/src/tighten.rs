//! A session becomes as strict as settings files that change while it runs.
//!
//! A session may become stricter because a file changed, never looser. From the next turn on a rule
//! counts that appears and denies or asks, and one that allowed no longer does if it disappears. What
//! would loosen waits for the next session: rules that allow, the end of rules that deny. The same
//! goes for how commands are confined.

use std::{collections::HashSet, path::Path, sync::Arc};

use haft_contract::PermissionMode;
use serde_json::Value;

use crate::{
    SessionContext,
    permissions::{List, PermissionSettings, rules::Rule},
    settings::Settings,
};

/// Takes over what is stricter in what the files say now.
pub(crate) fn tighten(context: &mut SessionContext, mut settings: Settings) {
    let mut read = settings.rules(&[], &[]);
    let rules = Arc::make_mut(&mut context.rules);
    // Whether a rule that allows still stands there is looked at, trusted or not: none is added.
    let standing = Standing::of(&settings);
    rules.retain(|rule| rule.list != List::Allow || standing.has(rule));
    read.retain(|rule| rule.list != List::Allow);
    rules.extend(read);
    // A file that is broken just now, in the middle of being edited, takes nothing away.
    let whole = !settings.broken;
    let sandbox = settings.sandbox();
    Arc::make_mut(&mut context.sandbox).tighten(sandbox, whole);
    context.follow_worktree();
    if context.mode == PermissionMode::BypassPermissions && settings.bypass_is_disabled() {
        context.mode = PermissionMode::Default;
    }
}

/// Rules that allow, as they are written now.
struct Standing<'a> {
    files: HashSet<&'a Path>,
    rules: HashSet<(&'a Path, &'a str)>,
}

impl<'a> Standing<'a> {
    fn of(settings: &'a Settings) -> Self {
        let mut standing = Self {
            files: HashSet::new(),
            rules: HashSet::new(),
        };
        for layer in &settings.layers {
            let Some(file) = layer.file.as_deref() else {
                continue;
            };
            standing.files.insert(file);
            let list = layer.document.value.pointer("/permissions/allow");
            let entries = list.and_then(Value::as_array).into_iter().flatten();
            let texts = entries.filter_map(Value::as_str).map(str::trim);
            standing.rules.extend(texts.map(|text| (file, text)));
        }
        standing
    }

    /// Is it still written where it was? A file that is broken just now, in the middle of being
    /// edited, takes nothing away.
    fn has(&self, rule: &Rule) -> bool {
        match rule.source.file.as_deref() {
            None => true,
            Some(file) if self.files.contains(file) => self.rules.contains(&(file, &rule.text)),
            Some(file) => file.exists(),
        }
    }
}
