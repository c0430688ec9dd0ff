//! The cost of a reply.
//!
//! Prices from the user's configuration override the public list. For a model without a known price
//! the cost is `None`, not a guess.

use serde::{Deserialize, Serialize};

use crate::{Usage, list_prices};

/// The price of a model in USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// The price of input tokens that are not cached.
    pub input: f64,
    /// The price of output tokens.
    pub output: f64,
    /// The price of tokens read from the cache.
    pub cache_read: f64,
    /// The price of tokens written to the cache for five minutes.
    pub cache_write: f64,
    /// The price of tokens written to the cache for an hour.
    pub cache_write_1h: f64,
}

/// Prices by the prefix of a model's id; the longest matching prefix applies. Configured prices
/// override the public list, which is used only if it is enabled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    given: Vec<(String, Price)>,
    listed: bool,
}

impl Prices {
    /// Returns the public list prices ([`LIST_PRICES_DATE`](crate::LIST_PRICES_DATE)).
    pub fn listed() -> Self {
        Self {
            listed: true,
            ..Self::default()
        }
    }

    /// Adds a configured price for models whose id starts with `prefix`.
    #[must_use]
    pub fn with(mut self, prefix: impl Into<String>, price: Price) -> Self {
        self.given.push((prefix.into(), price));
        self
    }

    /// Returns the price of a model.
    pub fn price(&self, model: &str) -> Option<Price> {
        let fitting = self.given.iter().filter(|(of, _)| model.starts_with(of));
        let given = fitting.max_by_key(|(of, _)| of.len());
        given.map(|(_, price)| *price).or_else(|| {
            let listed = self.listed.then(|| list_prices::list_price(model));
            listed.flatten()
        })
    }

    /// Returns the cost of these tokens in USD, if the model's price is known.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<f64> {
        let price = self.price(model)?;
        let short = usage.cache_write.saturating_sub(usage.cache_write_1h);
        let parts = [
            (usage.input, price.input),
            (usage.output, price.output),
            (usage.cache_read, price.cache_read),
            (short, price.cache_write),
            (usage.cache_write_1h, price.cache_write_1h),
        ];
        let sum: f64 = parts.iter().map(|(n, price)| *n as f64 * price).sum();
        Some(sum / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts_and_an_unknown_model_has_no_cost() {
        let price = |input| Price {
            input,
            output: 10.0,
            cache_read: 0.1,
            cache_write: 1.25,
            cache_write_1h: 2.0,
        };
        let prices = Prices::default()
            .with("m-1", price(1.0))
            .with("m-1-large", price(4.0));
        let usage = Usage {
            input: 1_000_000,
            output: 100_000,
            cache_read: 1_000_000,
            cache_write: 2_000_000,
            cache_write_1h: 1_000_000,
            estimated: false,
        };
        assert_eq!(
            prices.cost("m-1-large-2", &usage),
            Some(4.0 + 1.0 + 0.1 + 1.25 + 2.0)
        );
        assert_eq!(
            prices.cost("m-1-small", &usage),
            Some(1.0 + 1.0 + 0.1 + 1.25 + 2.0)
        );
        assert_eq!(prices.cost("m-2", &usage), None);
    }

    #[test]
    fn what_is_given_comes_before_the_list() {
        let price = |input| Price {
            input,
            output: 1.0,
            cache_read: 0.0,
            cache_write: 0.0,
            cache_write_1h: 0.0,
        };
        let of = |prices: &Prices, model| prices.price(model).map(|price| price.input);
        let listed = Prices::listed();
        assert_eq!(of(&listed, "claude-sonnet-4-5"), Some(3.0));
        let given = listed.with("claude", price(7.0));
        assert_eq!(of(&given, "claude-sonnet-4-5"), Some(7.0));
        assert_eq!(of(&given, "m-2"), None);
        assert_eq!(of(&Prices::default(), "claude-sonnet-4-5"), None);
    }
}
