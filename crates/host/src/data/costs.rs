//! What a session has spent.

use haft_agent::{Spent, UsageLedger};
use haft_contract::PermissionMode;

use crate::SessionInput;

/// What was spent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostReport {
    /// All of it, in USD.
    pub total_usd: f64,
    /// By model.
    pub models: Vec<CostLine>,
    /// By agent: the main agent, and each kind of subagent.
    pub agents: Vec<CostLine>,
}

/// What one of them spent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostLine {
    /// Who.
    pub name: String,
    /// Tokens that were read.
    pub input: u64,
    /// Tokens that were written.
    pub output: u64,
    /// USD; nothing where the price is not known.
    pub usd: f64,
}

impl CostReport {
    pub(crate) fn of(ledger: &UsageLedger) -> Self {
        let line = |(name, spent): (&str, &Spent)| CostLine {
            name: name.to_owned(),
            input: spent.usage.total_input(),
            output: spent.usage.output,
            usd: spent.cost,
        };
        Self {
            // Without this, nothing would be minus nothing.
            total_usd: ledger.total_cost() + 0.0,
            models: ledger.models().map(line).collect(),
            agents: ledger.agents().map(line).collect(),
        }
    }
}

impl SessionInput {
    /// What was spent so far, also by a run that is under way.
    pub fn costs(&self) -> CostReport {
        CostReport::of(&self.0.access.ledger().unwrap_or_default())
    }

    /// How much runs without asking: as it is, or is asked to be from the next request on.
    pub fn mode(&self) -> PermissionMode {
        let asked = self.0.control.asked_mode();
        let now = || Some(self.0.access.engine()?.1.mode);
        asked.or_else(now).unwrap_or(self.0.permitted.mode)
    }

    /// The model that is asked: as it is, or is asked to be from the next request on.
    pub fn model(&self) -> String {
        let asked = self.0.control.asked_model();
        asked.unwrap_or_else(|| self.context_usage().model)
    }
}
