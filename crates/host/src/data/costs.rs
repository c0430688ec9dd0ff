//! The usage and cost of a session.

use haft_agent::{UsageCost, UsageLedger};
use haft_contract::PermissionMode;

use crate::SessionInput;

/// The usage and cost of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostReport {
    /// The total in USD.
    pub total_usd: f64,
    /// The usage by model.
    pub models: Vec<CostLine>,
    /// The usage by agent: the main agent, and each agent kind.
    pub agents: Vec<CostLine>,
}

/// The usage and cost of one model or agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostLine {
    /// The name of the model or agent.
    pub name: String,
    /// The number of input tokens.
    pub input: u64,
    /// The number of output tokens.
    pub output: u64,
    /// The cost in USD; 0 if the price is not known.
    pub usd: f64,
}

impl CostReport {
    pub(crate) fn from_ledger(ledger: &UsageLedger) -> Self {
        let line = |(name, spent): (&str, &UsageCost)| CostLine {
            name: name.to_owned(),
            input: spent.usage.total_input(),
            output: spent.usage.output,
            usd: spent.cost,
        };
        Self {
            // Avoids a sum of negative zero.
            total_usd: ledger.total_cost() + 0.0,
            models: ledger.models().map(line).collect(),
            agents: ledger.agents().map(line).collect(),
        }
    }
}

impl SessionInput {
    /// Returns the usage and cost so far, including those of the current run.
    pub fn costs(&self) -> CostReport {
        CostReport::from_ledger(&self.0.access.ledger().unwrap_or_default())
    }

    /// Returns the permission mode that applies from the next request on.
    pub fn mode(&self) -> PermissionMode {
        let asked = self.0.control.requested_mode();
        let now = || Some(self.0.access.engine()?.1.mode);
        asked.or_else(now).unwrap_or(self.0.settings.mode)
    }

    /// Returns the model that is used from the next request on.
    pub fn model(&self) -> String {
        let asked = self.0.control.requested_model();
        asked.unwrap_or_else(|| self.context_usage().model)
    }
}
