//! Human-readable times, in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haft_contract::CalendarTime;

const DAY: u64 = 86_400;

/// Formats a time as `2026-01-31 12:00`.
pub fn show(time: SystemTime) -> String {
    let time = CalendarTime::from_system_time(time.max(UNIX_EPOCH));
    format!("{} {}", time.to_date(), time.to_clock())
}

/// Parses a duration before now (`90s`, `10m`, `2h`, `1d`) or a time (`2026-01-31`,
/// `2026-01-31T12:00`, `2026-01-31T12:00:00.000Z`).
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
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    let clock = clock.trim_end_matches('Z');
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let second = parts.next().transpose().ok()?.unwrap_or(0);
    let digits = fraction.get(..3).unwrap_or(fraction);
    let millis = format!("{digits:0<3}").parse::<u64>().ok()?;
    let time = CalendarTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
        millisecond: 0,
    };
    let seconds = time
        .to_unix_seconds()
        .filter(|_| (1970..9999).contains(&year))?;
    let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
    Some(UNIX_EPOCH + seconds + Duration::from_millis(millis))
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
            "2026-02-30",
            "-1-01-01",
            "2026-01-01T25:00",
            "99999999999999999999d",
        ] {
            assert_eq!(parse(text, now), None, "{text}");
        }
    }
}
