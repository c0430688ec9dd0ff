//! The `if` of a handler: a permission rule as text. The caller that fires the event evaluates it.

use haft_settings::PatternBases;

use super::HookEventKind;

/// A condition on calls: the handler runs only for calls that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCondition {
    /// The permission rule.
    pub rule: String,
    /// The base directories of relative paths in the rule.
    pub bases: PatternBases,
}

/// Checks that a rule can be used as a condition. The error is the reason why not.
pub type CheckCondition = dyn Fn(&HookCondition) -> Result<(), String>;

/// Returns whether a condition holds for the call that an event is about.
pub type ConditionEvaluator<'a> = dyn Fn(&HookCondition) -> bool + Sync + 'a;

impl HookCondition {
    pub(super) fn new(
        event: HookEventKind,
        text: &str,
        bases: &PatternBases,
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
