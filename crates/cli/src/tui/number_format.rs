//! Formats numbers, times and amounts.

use std::time::Duration;

use super::ui_style::UiStyle;

/// Formats a duration as `12s`, `3m 4s` or `1h 2m`. Returns `0s` in still mode.
pub(crate) fn seconds(elapsed: Duration, look: &UiStyle) -> String {
    let seconds = if look.is_still { 0 } else { elapsed.as_secs() };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats a number as `812`, `2.1k`, `18k` or `1.2M`.
pub(crate) fn thousands(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..10_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Formats a size as `812 B`, `31 KB` or `1.2 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes / 1024),
        _ => format!("{}.{} MB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20),
    }
}

/// Formats a number with its noun: `1 call` or `2 calls`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// Formats an amount as `$0.42`. Amounts below a cent are shown as `<$0.01`.
pub(crate) fn dollars(amount: f64) -> String {
    match amount {
        amount if amount <= 0.0 => "$0.00".to_owned(),
        amount if amount < 0.01 => "<$0.01".to_owned(),
        amount => format!("${amount:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [999, 2100, 18_400, 1_250_000].map(thousands),
            ["999", "2.1k", "18k", "1.2M"]
        );
        assert_eq!(
            [12, 31 << 10, 5 << 19].map(bytes),
            ["12 B", "31 KB", "2.5 MB"]
        );
        assert_eq!(
            [0.0, 0.001, 0.417].map(dollars),
            ["$0.00", "<$0.01", "$0.42"]
        );
    }
}
