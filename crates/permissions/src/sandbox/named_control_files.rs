//! Control files that the user's rules name exactly: commands may change them, too.

use haft_contract::PermittedPath;

use super::{super::Policy, control_files, paths::unlinked};
use crate::rules::{List, RuleClass, RuleContent};

/// Returns the control files that an allow rule of the user for `Edit` names with their whole path. A rule
/// for a directory permits only to create the directory.
pub(super) fn named_control_files(policy: &Policy) -> Vec<PermittedPath> {
    let rules = policy.rules.in_list(List::Allow);
    let rules = rules.filter(|rule| rule.class == RuleClass::Edits && rule.source.scope.is_users());
    let mut named = Vec::new();
    for rule in rules {
        let RuleContent::Path(pattern) = &rule.content else {
            continue;
        };
        let paths = pattern.fixed_paths().into_iter().flatten();
        let paths = paths.filter(|path| pattern.is_absolute() && pattern.names(path));
        let paths = paths.filter_map(|path| unlinked(&path, &policy.roots));
        named.extend(
            paths
                .filter(|path| control_files::is_control(path))
                .map(|path| PermittedPath { path, whole: false }),
        );
    }
    named
}
