//! Moments as people write them, in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// `2026-01-31 12:00`.
pub fn show(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute) = (seconds % DAY / 3_600, seconds % 3_600 / 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// A span before now (`90s`, `10m`, `2h`, `1d`) or a moment (`2026-01-31`, `2026-01-31T12:00`,
/// `2026-01-31T12:00:00.000Z`).
pub fn parse(text: &str, now: SystemTime) -> Option<SystemTime> {
    let text = text.trim();
    if let Some((at, unit)) = text.char_indices().last()
        && let Ok(number) = text[..at].parse::<u64>()
    {
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => DAY,
            _ => return None,
        };
        return now.checked_sub(Duration::from_secs(number.checked_mul(seconds)?));
    }
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut parts = date.splitn(3, '-').map(str::parse::<u64>);
    let (year, month, day) = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    let clock = clock.trim_end_matches('Z');
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.splitn(3, ':').map(str::parse::<u64>);
    let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let second = parts.next().transpose().ok()?.unwrap_or(0);
    let digits = fraction.get(..3).unwrap_or(fraction);
    let millis = format!("{digits:0<3}").parse::<u64>().ok()?;
    let real = (1970..9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let seconds = days(year, month, day) * DAY + hour * 3_600 + minute * 60 + second;
    real.then(|| UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis))
}

/// Days since 1970 of a date from then on. Years are counted from March, so that the leap day is
/// their last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_years = year * 365 + year / 4 - year / 100 + year / 400;
    of_years + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// The other way round.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (year + era * 400 + carry, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_shown() {
        let cases = [
            ("1970-01-01", 0),
            ("2000-02-29T12:30", 951_827_400),
            ("2026-11-15 04:35:07", 1_794_717_307),
            ("2100-03-01T00:00Z", 4_107_542_400),
        ];
        for (text, seconds) in cases {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(parse(text, UNIX_EPOCH), Some(time), "{text}");
            let shown = show(time);
            assert!(text.replace('T', " ").starts_with(&shown[..10]), "{shown}");
        }
        let precise = UNIX_EPOCH + Duration::from_millis(951_827_407_250);
        for text in ["2000-02-29T12:30:07.250Z", "2000-02-29T12:30:07.25Z"] {
            assert_eq!(parse(text, UNIX_EPOCH), Some(precise), "{text}");
        }
        for day in (0..80_000).step_by(7) {
            let (year, month, date) = date(day);
            assert_eq!(days(year, month, date), day);
        }
    }

    #[test]
    fn spans_count_back_from_now() {
        let now = UNIX_EPOCH + Duration::from_secs(10 * DAY);
        let cases = [("90s", 90), ("10m", 600), ("2h", 7_200), ("1d", DAY)];
        for (text, seconds) in cases {
            assert_eq!(parse(text, now), Some(now - Duration::from_secs(seconds)));
        }
        for text in [
            "",
            "10",
            "m",
            "10x",
            "yesterday",
            "2026-13-01",
            "2026-01-01T25:00",
            "99999999999999999999d",
        ] {
            assert_eq!(parse(text, now), None, "{text}");
        }
    }
}
