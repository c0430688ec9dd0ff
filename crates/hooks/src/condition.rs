//! The `if` of a handler: a permission rule as text. The caller that fires the event evaluates it.

use haft_settings::Bases;

use super::HookMoment;

/// A condition on calls: the handler runs only for calls that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The permission rule.
    pub rule: String,
    /// The base directories of relative paths in the rule.
    pub bases: Bases,
}

/// Checks that a rule can be used as a condition. The error is the reason why not.
pub type CheckCondition = dyn Fn(&Condition) -> Result<(), String>;

/// Returns whether a condition holds for the call that an event is about.
pub type JudgeCondition<'a> = dyn Fn(&Condition) -> bool + Sync + 'a;

impl Condition {
    pub(super) fn new(
        event: HookMoment,
        text: &str,
        bases: &Bases,
        check: &CheckCondition,
    ) -> Result<Self, String> {
        let condition = Self {
            rule: text.to_owned(),
            bases: bases.clone(),
        };
        // For an event that is not about a call, a condition never holds, so it is not checked.
        if event.is_about_a_call() {
            check(&condition)?;
        }
        Ok(condition)
    }
}
