//! A limit in money, and models whose price is not known.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use haft_models::Prices;

use crate::{SessionConfig, event::Events, model::Chosen};

/// Says once of each model that the budget does not cover it. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Budget(Option<Arc<Limited>>);

struct Limited {
    prices: Prices,
    events: Arc<Events>,
    reported: Mutex<BTreeSet<String>>,
}

impl Budget {
    /// That of a session; without a limit there is nothing to say.
    pub(crate) fn of(config: &SessionConfig, chosen: &Chosen, events: &Arc<Events>) -> Self {
        let limited = config.max_budget_usd.map(|_| {
            Arc::new(Limited {
                prices: chosen.prices.clone(),
                events: Arc::clone(events),
                reported: Mutex::default(),
            })
        });
        Self(limited)
    }

    /// A model will be asked: is its price known?
    pub(crate) fn covers(&self, model: &str) {
        let Some(limited) = &self.0 else {
            return;
        };
        let reported = limited.reported.lock();
        let mut reported = reported.unwrap_or_else(PoisonError::into_inner);
        if limited.prices.of(model).is_none() && reported.insert(model.to_owned()) {
            limited.events.warn(format!(
                "the budget in USD does not cover {model}: its price is not known. Its tokens are counted. Add its \
                 price to modelPrices in the settings"
            ));
        }
    }
}
