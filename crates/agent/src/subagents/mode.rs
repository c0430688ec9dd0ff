//! The permission mode of a subagent: that of its parent, or a stricter one.

use haft_contract::PermissionMode;
use serde_json::Value;

/// The permission mode of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubagentMode {
    pub(super) mode: PermissionMode,
    /// Whether the user may be asked.
    pub(super) asks: bool,
}

/// Returns the mode that is permitted by both the parent and the agent kind. `wanted` is the kind's
/// mode as settings name it; an unknown name is ignored.
pub(super) fn stricter_mode(parent: PermissionMode, wanted: Option<&str>) -> SubagentMode {
    use PermissionMode::{AcceptEdits, Auto, BypassPermissions, Default, DontAsk, Plan};
    let wanted = wanted.and_then(|name| serde_json::from_value(Value::from(name)).ok());
    let looseness = |mode| match mode {
        Plan | DontAsk => 0,
        Default => 1,
        AcceptEdits => 2,
        Auto => 3,
        BypassPermissions => 4,
    };
    let (mode, asks) = match (parent, wanted.unwrap_or(parent)) {
        // DontAsk never asks, and Plan asks about every change. The combination is plan mode
        // without asking.
        (Plan, DontAsk) | (DontAsk, Plan) => (Plan, false),
        // Only the user may enter auto: bypassPermissions with less is not auto.
        (BypassPermissions, Auto) => (Default, true),
        (parent, wanted) if looseness(wanted) < looseness(parent) => (wanted, true),
        (parent, _) => (parent, true),
    };
    SubagentMode { mode, asks }
}

#[cfg(test)]
mod tests {
    use PermissionMode::{AcceptEdits, Auto, BypassPermissions, Default, DontAsk, Plan};

    use super::*;

    #[test]
    fn a_mode_only_ever_tightens() {
        let cases = [
            (Default, None, Default, true),
            (Default, Some("bypassPermissions"), Default, true),
            (Default, Some("acceptEdits"), Default, true),
            (Default, Some("plan"), Plan, true),
            (AcceptEdits, Some("default"), Default, true),
            (BypassPermissions, Some("acceptEdits"), AcceptEdits, true),
            (BypassPermissions, Some("nonsense"), BypassPermissions, true),
            (Plan, Some("bypassPermissions"), Plan, true),
            (Plan, Some("dontAsk"), Plan, false),
            (DontAsk, Some("plan"), Plan, false),
            (Auto, None, Auto, true),
            (Auto, Some("bypassPermissions"), Auto, true),
            (Auto, Some("acceptEdits"), AcceptEdits, true),
            (Auto, Some("plan"), Plan, true),
            (Default, Some("auto"), Default, true),
            (AcceptEdits, Some("auto"), AcceptEdits, true),
            (BypassPermissions, Some("auto"), Default, true),
            (DontAsk, Some("default"), DontAsk, true),
        ];
        for (parent, wanted, mode, asks) in cases {
            assert_eq!(
                stricter_mode(parent, wanted),
                SubagentMode { mode, asks },
                "{parent:?} and {wanted:?}"
            );
        }
    }
}
