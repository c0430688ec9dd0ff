//! Conversion between system time and the UTC calendar.
//!
//! This is the only calendar arithmetic in the workspace. A date library would be one more
//! dependency (jiff, even with few features, takes longer to build than this whole crate), and little
//! of it is needed: no time zones, only ISO formats, and the proleptic Gregorian calendar throughout.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;
/// Days in 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH: i64 = 719_468;

/// A date and time of day, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalendarTime {
    /// The year, such as 2026; zero and negative numbers are years before the common era.
    pub year: i64,
    /// The month, 1 to 12.
    pub month: i64,
    /// The day of the month, 1 to 31.
    pub day: i64,
    /// The hour, 0 to 23.
    pub hour: i64,
    /// The minute, 0 to 59.
    pub minute: i64,
    /// The second, 0 to 59.
    pub second: i64,
    /// The millisecond, 0 to 999.
    pub millisecond: i64,
}

impl CalendarTime {
    /// Returns the current time.
    pub fn now() -> Self {
        Self::from_system_time(SystemTime::now())
    }

    /// Converts a system time, rounded down to a millisecond.
    pub fn from_system_time(time: SystemTime) -> Self {
        let milliseconds = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => {
                let before = before.duration().as_nanos().div_ceil(1_000_000);
                -i64::try_from(before).unwrap_or(i64::MAX)
            }
        };
        let seconds = milliseconds.div_euclid(1_000);
        let (year, month, day) = date(seconds.div_euclid(DAY));
        let of_day = seconds.rem_euclid(DAY);
        Self {
            year,
            month,
            day,
            hour: of_day / 3_600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            millisecond: milliseconds.rem_euclid(1_000),
        }
    }

    /// Returns the whole seconds since 1970. `None` if the month, day or time of day does not exist,
    /// or if the year is more than 100,000 years from year 0.
    pub fn to_unix_seconds(self) -> Option<i64> {
        let real = (-100_000..=100_000).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second);
        real.then(|| {
            let days = days(self.year, self.month, self.day);
            days * DAY + self.hour * 3_600 + self.minute * 60 + self.second
        })
    }

    /// Formats the date as `2026-01-31`.
    pub fn to_date(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// Formats the time of day as `12:00`.
    pub fn to_clock(self) -> String {
        format!("{:02}:{:02}", self.hour, self.minute)
    }

    /// Formats the time as `2026-01-31T12:00:00Z`.
    pub fn to_second(self) -> String {
        let (date, clock) = (self.to_date(), self.to_clock());
        format!("{date}T{clock}:{:02}Z", self.second)
    }

    /// Formats the time as `2026-01-31T12:00:00.000Z`.
    pub fn to_millisecond(self) -> String {
        let (date, clock) = (self.to_date(), self.to_clock());
        format!("{date}T{clock}:{:02}.{:03}Z", self.second, self.millisecond)
    }

    /// Parses the format of [`to_millisecond`](Self::to_millisecond); the fraction may be missing.
    /// `None`: the text has another format. Does not check that the date exists.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        let [year, month, day] = numbers(date.split('-'))?;
        let [hour, minute, second] = numbers(clock.split(':'))?;
        let digits = fraction.get(..3).unwrap_or(fraction);
        let [millisecond] = numbers(std::iter::once(format!("{digits:0<3}").as_str()))?;
        Some(Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            millisecond,
        })
    }
}

/// Parses exactly `N` numbers that consist of digits only.
fn numbers<'a, const N: usize>(parts: impl Iterator<Item = &'a str>) -> Option<[i64; N]> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let numbers: Option<Vec<i64>> = parts
        .map(|part| is_number(part).then(|| part.parse().ok()).flatten())
        .collect();
    numbers?.try_into().ok()
}

fn days_in(year: i64, month: i64) -> i64 {
    let (next_year, next_month) = match month {
        12 => (year + 1, 1),
        _ => (year, month + 1),
    };
    days(next_year, next_month, 1) - days(year, month, 1)
}

/// Returns the days since 1970. Years start in March, so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_years = of_era * 365 + of_era / 4 - of_era / 100;
    era * ERA + of_years + (153 * month + 2) / 5 + day - 1 - EPOCH
}

/// The inverse of [`days`]: returns year, month and day.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    // Subtract the leap days, except that of every 400th year, which ends the era.
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn written(milliseconds: u64) -> String {
        CalendarTime::from_system_time(UNIX_EPOCH + Duration::from_millis(milliseconds))
            .to_millisecond()
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        let cases: [(u64, &str); 8] = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000Z"),
            (4_102_444_800, "2100-01-01T00:00:00.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(written(seconds * 1_000), expected);
        }
        assert_eq!(written(951_827_407_250), "2000-02-29T12:30:07.250Z");
        for (seconds, text) in cases {
            let time = CalendarTime::parse(text).unwrap();
            assert_eq!(time.to_unix_seconds(), Some(seconds as i64), "{text}");
            assert_eq!(time.to_millisecond(), text);
        }
        for text in [
            "",
            "2000-02-29",
            "2000-02-29T12:30:07.250",
            "2000-+2-29T1:2:3Z",
            "a-b-cTd:e:fZ",
        ] {
            assert_eq!(CalendarTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_before_1970_counts_back() {
        let before = |span| CalendarTime::from_system_time(UNIX_EPOCH - span).to_millisecond();
        assert_eq!(before(Duration::from_nanos(1)), "1969-12-31T23:59:59.999Z");
        assert_eq!(before(Duration::from_secs(1)), "1969-12-31T23:59:59.000Z");
        assert_eq!(
            before(Duration::from_secs(62_135_596_800)),
            "0001-01-01T00:00:00.000Z"
        );
    }

    #[test]
    fn every_day_has_one_name_and_follows_the_one_before() {
        let mut last = date(-800_000);
        for day in -799_999..1_200_000 {
            let (year, month, number) = date(day);
            assert_eq!(days(year, month, number), day);
            let follows = match last {
                (last_year, last_month, last_day) if number > 1 => {
                    (year, month, number) == (last_year, last_month, last_day + 1)
                }
                (last_year, 12, 31) => (year, month) == (last_year + 1, 1),
                (last_year, last_month, last_day) => {
                    (year, month) == (last_year, last_month + 1)
                        && last_day == days_in(last_year, last_month)
                }
            };
            assert!(follows, "{last:?} {year} {month} {number}");
            last = (year, month, number);
        }
    }

    #[test]
    fn there_is_no_thirtieth_of_february() {
        let day = |year, month, day| {
            let midnight = CalendarTime {
                year,
                month,
                day,
                hour: 0,
                minute: 0,
                second: 0,
                millisecond: 0,
            };
            midnight.to_unix_seconds()
        };
        assert_eq!(day(2024, 2, 29), Some(1_709_164_800));
        for (year, month, number) in [(2023, 2, 29), (2024, 2, 30), (2024, 13, 1), (2024, 1, 0)] {
            assert_eq!(day(year, month, number), None);
        }
        assert_eq!(day(i64::MAX, 1, 1), None);
    }
}
