//! Warnings about models that a budget in USD does not cover, because their price is unknown.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use haft_models::Prices;

use crate::{SessionConfig, event::EventEmitter, model::SelectedModel};

/// Warns once about each model that the budget does not cover. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct UnpricedModelWarning(Option<Arc<UnpricedModelState>>);

struct UnpricedModelState {
    prices: Prices,
    events: Arc<EventEmitter>,
    reported: Mutex<BTreeSet<String>>,
}

impl UnpricedModelWarning {
    /// Creates the warning for a session; without a budget it does nothing.
    pub(crate) fn new(
        config: &SessionConfig,
        chosen: &SelectedModel,
        events: &Arc<EventEmitter>,
    ) -> Self {
        let limited = config.max_budget_usd.map(|_| {
            Arc::new(UnpricedModelState {
                prices: chosen.prices.clone(),
                events: Arc::clone(events),
                reported: Mutex::default(),
            })
        });
        Self(limited)
    }

    /// Warns if the price of a model that will be used is unknown.
    pub(crate) fn warn_if_unpriced(&self, model: &str) {
        let Some(limited) = &self.0 else {
            return;
        };
        let reported = limited.reported.lock();
        let mut reported = reported.unwrap_or_else(PoisonError::into_inner);
        if limited.prices.price(model).is_none() && reported.insert(model.to_owned()) {
            limited.events.warn(format!(
                "the budget in USD does not cover {model}: its price is not known. Its tokens are counted. Add its \
                 price to modelPrices in the settings"
            ));
        }
    }
}
