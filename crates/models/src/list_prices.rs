//! Public list prices, so that a budget works without configuration.
//!
//! Contracts differ and prices change: `--prices` and `modelPrices` override this table. A name
//! must match as a whole, optionally followed by a date or a suffix. A successor may have another
//! price, and an unknown price is better than a wrong one.

use crate::Price;

/// The date when the table was last compared with the providers' price pages.
pub const LIST_PRICES_DATE: &str = "2026-10-10";

/// A model's name and its prices in USD per million tokens: input, output, cache read, cache write.
type PriceRow = (&'static str, [f64; 4]);

const TABLE: [PriceRow; 39] = [
    ("claude-fable-5-1", [10.0, 50.0, 0.25, 12.5]),
    ("claude-fable-5", [10.0, 50.0, 1.0, 12.5]),
    ("claude-opus-5-5", [4.0, 20.0, 0.2, 5.0]),
    ("claude-opus-5", [5.0, 25.0, 0.5, 6.25]),
    ("claude-opus-4-8", [5.0, 25.0, 0.5, 6.25]),
    ("claude-opus-4-7", [5.0, 25.0, 0.5, 6.25]),
    ("claude-opus-4-6", [5.0, 25.0, 0.5, 6.25]),
    ("claude-opus-4-5", [5.0, 25.0, 0.5, 6.25]),
    ("claude-opus-4-1", [15.0, 75.0, 1.5, 18.75]),
    ("claude-opus-4-0", [15.0, 75.0, 1.5, 18.75]),
    ("claude-opus-4", [15.0, 75.0, 1.5, 18.75]),
    ("claude-3-opus", [15.0, 75.0, 1.5, 18.75]),
    ("claude-sonnet-5-5", [2.0, 10.0, 0.1, 2.5]),
    ("claude-sonnet-5", [2.0, 10.0, 0.2, 2.5]),
    ("claude-sonnet-4-6", [3.0, 15.0, 0.3, 3.75]),
    ("claude-sonnet-4-5", [3.0, 15.0, 0.3, 3.75]),
    ("claude-sonnet-4-0", [3.0, 15.0, 0.3, 3.75]),
    ("claude-sonnet-4", [3.0, 15.0, 0.3, 3.75]),
    ("claude-3-7-sonnet", [3.0, 15.0, 0.3, 3.75]),
    ("claude-3-5-sonnet", [3.0, 15.0, 0.3, 3.75]),
    ("claude-haiku-4-5", [1.0, 5.0, 0.1, 1.25]),
    ("claude-3-5-haiku", [0.8, 4.0, 0.08, 1.0]),
    ("claude-3-haiku", [0.25, 1.25, 0.03, 0.3]),
    ("gpt-5.5", [5.0, 30.0, 0.5, 5.0]),
    ("gpt-5.4", [2.5, 15.0, 0.25, 2.5]),
    ("gpt-5.4-mini", [0.75, 4.5, 0.075, 0.75]),
    ("gpt-5.4-nano", [0.2, 1.25, 0.02, 0.2]),
    ("gpt-5.2", [1.75, 14.0, 0.175, 1.75]),
    ("gpt-5.1", [1.25, 10.0, 0.125, 1.25]),
    ("gpt-5", [1.25, 10.0, 0.125, 1.25]),
    ("gpt-5-mini", [0.25, 2.0, 0.025, 0.25]),
    ("gpt-5-nano", [0.05, 0.4, 0.005, 0.05]),
    ("gpt-4.1", [2.0, 8.0, 0.5, 2.0]),
    ("gpt-4.1-mini", [0.4, 1.6, 0.1, 0.4]),
    ("gpt-4.1-nano", [0.1, 0.4, 0.025, 0.1]),
    ("gpt-4o", [2.5, 10.0, 1.25, 2.5]),
    ("gpt-4o-mini", [0.15, 0.6, 0.075, 0.15]),
    ("o3", [2.0, 8.0, 0.5, 2.0]),
    ("o4-mini", [1.1, 4.4, 0.275, 1.1]),
];

/// Returns the list price of a model.
pub(crate) fn list_price(model: &str) -> Option<Price> {
    let row = TABLE
        .iter()
        .find(|(name, _)| model.strip_prefix(name).is_some_and(is_same_model))?;
    let [input, output, cache_read, cache_write] = row.1;
    Some(Price {
        input,
        output,
        cache_read,
        cache_write,
        // The one-hour cache costs twice the input price at every provider that has it.
        cache_write_1h: input * 2.0,
    })
}

/// Returns whether `rest`, the text after a model's name, is only a date, `-latest` or a suffix
/// such as `[1m]`.
fn is_same_model(rest: &str) -> bool {
    let rest = crate::model_listing::split_window(rest).0;
    let rest = rest.split('[').next().unwrap_or(rest);
    let date = |text: &str| {
        let digits = text.chars().filter(char::is_ascii_digit).count();
        digits == 8 && text.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    match rest.strip_prefix(['-', '@']) {
        None => rest.is_empty(),
        Some(more) => more == "latest" || date(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_as_a_whole_with_a_date_or_a_suffix() {
        for name in [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-5@20250929",
            "claude-sonnet-4-5[1m]",
            "claude-3-5-sonnet-latest",
            "gpt-5-2025-08-07",
        ] {
            assert!(list_price(name).is_some(), "{name}");
        }
        for name in [
            "claude-sonnet-4-9",
            "claude-opus-5-9-20280101",
            "gpt-5-codex",
            "gpt-5.9",
            "o30",
            "qwen3-coder",
            "",
        ] {
            assert!(list_price(name).is_none(), "{name}");
        }
        assert_eq!(
            list_price("claude-opus-4-20250514").map(|price| price.input),
            Some(15.0)
        );
    }
}
