//! The usage and cost of an agent, by model and by agent kind.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_models::{Prices, Usage};

/// The usage by model and by agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageLedger {
    models: BTreeMap<String, UsageCost>,
    agents: BTreeMap<String, UsageCost>,
}

/// The usage and cost of one model or agent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UsageCost {
    /// The tokens.
    pub usage: Usage,
    /// The cost in USD; 0 if the price is unknown.
    pub cost: f64,
}

impl UsageLedger {
    /// Returns the usage by model.
    pub fn models(&self) -> impl Iterator<Item = (&str, &UsageCost)> {
        self.models.iter().map(|(name, cost)| (name.as_str(), cost))
    }

    /// Returns the usage by agent: `main`, and each agent kind.
    pub fn agents(&self) -> impl Iterator<Item = (&str, &UsageCost)> {
        self.agents.iter().map(|(name, cost)| (name.as_str(), cost))
    }

    /// Returns the total cost in USD.
    pub fn total_cost(&self) -> f64 {
        self.models.values().map(|cost| cost.cost).sum()
    }

    pub(crate) fn add(&mut self, model: &str, agent: &str, usage: &Usage, prices: &Prices) {
        let of_model = self.models.entry(model.to_owned()).or_default();
        let of_agent = self.agents.entry(agent.to_owned()).or_default();
        for entry in [of_model, of_agent] {
            entry.usage = sum(&entry.usage, usage);
            entry.cost += prices.cost(model, usage).unwrap_or_default();
        }
    }
}

/// A usage ledger that an agent and its subagents share, so that the usage of a subagent is counted
/// however it ends.
#[derive(Debug, Clone, Default)]
pub struct SharedUsage(Arc<Mutex<UsageLedger>>);

impl SharedUsage {
    pub(crate) fn add(&self, model: &str, agent: &str, usage: &Usage, prices: &Prices) {
        self.lock().add(model, agent, usage, prices);
    }

    /// Returns the usage so far.
    pub fn ledger(&self) -> UsageLedger {
        self.lock().clone()
    }

    pub(crate) fn total_cost(&self) -> f64 {
        self.lock().total_cost()
    }

    fn lock(&self) -> MutexGuard<'_, UsageLedger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn sum(a: &Usage, b: &Usage) -> Usage {
    Usage {
        input: a.input + b.input,
        output: a.output + b.output,
        cache_read: a.cache_read + b.cache_read,
        cache_write: a.cache_write + b.cache_write,
        cache_write_1h: a.cache_write_1h + b.cache_write_1h,
        estimated: a.estimated || b.estimated,
    }
}

#[cfg(test)]
mod tests {
    use haft_models::Price;

    use super::*;

    #[test]
    fn each_model_is_counted_by_itself_and_an_unknown_price_costs_nothing() {
        let price = Price {
            input: 1.0,
            output: 2.0,
            cache_read: 0.0,
            cache_write: 0.0,
            cache_write_1h: 0.0,
        };
        let prices = Prices::default().with("a", price);
        let usage = Usage {
            input: 1_000_000,
            output: 500_000,
            ..Usage::default()
        };
        let mut ledger = UsageLedger::default();
        ledger.add("a", "main", &usage, &prices);
        ledger.add("a", "Explore", &usage, &prices);
        ledger.add("b", "main", &usage, &prices);
        assert_eq!(ledger.total_cost(), 4.0);
        let spent: Vec<_> = ledger
            .models()
            .map(|(name, spent)| (name, spent.usage.input))
            .collect();
        assert_eq!(spent, [("a", 2_000_000), ("b", 1_000_000)]);
        let agents: Vec<_> = ledger
            .agents()
            .map(|(name, spent)| (name, spent.cost))
            .collect();
        assert_eq!(agents, [("Explore", 2.0), ("main", 2.0)]);
    }
}
