//! Dates as transcripts and prompts write them, and random ids.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{Builder, Uuid};

/// Now, as `2026-01-31T12:00:00.000Z`.
pub(crate) fn timestamp() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    written(since.as_secs(), since.subsec_millis())
}

/// Today, as `2026-01-31`.
pub(crate) fn today() -> String {
    let mut now = timestamp();
    now.truncate(10);
    now
}

fn written(seconds: u64, millis: u32) -> String {
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a number of days since 1970. Years are counted from March, so that the leap
/// day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// An id for a message.
pub fn random_id() -> Uuid {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Unique by time then, which is what matters.
        return haft_contract::CallId::new().0;
    }
    Builder::from_random_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000Z"),
            (4_102_444_800, "2100-01-01T00:00:00.000Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(written(seconds, 0), expected);
        }
    }

    #[test]
    fn ids_are_version_4_and_differ() {
        assert_eq!(random_id().get_version_num(), 4);
        assert_ne!(random_id(), random_id());
    }
}
