//! The `if` of a handler: one permission rule, as it is written. What it means is known to the one who fires
//! the event.

use haft_settings::Bases;

use super::HookMoment;

/// Which calls a handler is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The rule.
    pub rule: String,
    /// Where its paths start.
    pub bases: Bases,
}

/// Can this rule be a condition? The error says why not.
pub type CheckCondition = dyn Fn(&Condition) -> Result<(), String>;

/// Does a condition hold for the call that an event is about?
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
        // Where the event is not about a call it never holds, whatever it says.
        if event.is_about_a_call() {
            check(&condition)?;
        }
        Ok(condition)
    }
}
