//! Tightens the permissions of a running session when settings files change.
//!
//! A change of a settings file can make a session stricter, never looser. From the next turn on,
//! new rules that deny or ask apply, and allow rules that were removed from their files no longer
//! apply. Changes that loosen (new allow rules, removed deny rules) wait for the next session. The
//! same holds for the sandbox settings.

use std::{collections::HashSet, path::Path, sync::Arc};

use haft_contract::PermissionMode;
use serde_json::Value;

use crate::{
    SessionContext,
    permissions::{List, PermissionSettings, rules::Rule},
    settings::Settings,
};

/// Applies the parts of the current settings that are stricter.
pub(crate) fn tighten(context: &mut SessionContext, mut settings: Settings) {
    let mut read = settings.rules(&[], &[]);
    let rules = Arc::make_mut(&mut context.rules);
    // Whether an allow rule still exists is checked in untrusted files too, since none is added.
    let standing = CurrentAllowRules::from_settings(&settings);
    rules.retain(|rule| rule.list != List::Allow || standing.has(rule));
    // A file that is currently invalid, because it is being edited, removes nothing.
    let whole = !settings.broken;
    if whole {
        rules.restrict_wrappers(&read);
    }
    read.retain(|rule| rule.list != List::Allow);
    rules.extend(read);
    let sandbox = settings.sandbox();
    Arc::make_mut(&mut context.sandbox).tighten(sandbox, whole);
    context.extend_rules_to_worktree();
    let is_disabled = match context.mode {
        PermissionMode::BypassPermissions => settings.bypass_is_disabled(),
        PermissionMode::Auto => settings.auto_is_disabled(),
        _ => false,
    };
    if is_disabled {
        context.mode = PermissionMode::Default;
    }
}

/// The allow rules in the current settings files.
struct CurrentAllowRules<'a> {
    files: HashSet<&'a Path>,
    rules: HashSet<(&'a Path, &'a str)>,
}

impl<'a> CurrentAllowRules<'a> {
    fn from_settings(settings: &'a Settings) -> Self {
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

    /// Returns whether an allow rule is still in its file. A file that is currently invalid,
    /// because it is being edited, removes nothing.
    fn has(&self, rule: &Rule) -> bool {
        match rule.source.file.as_deref() {
            None => true,
            Some(file) if self.files.contains(file) => self.rules.contains(&(file, &rule.text)),
            Some(file) => file.exists(),
        }
    }
}
