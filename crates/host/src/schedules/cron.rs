//! Cron expressions: five fields, local time.
//!
//! `*`, `n`, `*/n`, `a-b`, `a-b/n` and lists of these. If day of month and day of week are both
//! given, either one is sufficient. A time that is skipped when the clock is put forward fires at
//! the first instant after the gap. A time that occurs twice when the clock is put back fires only
//! once, unless the hours are open (`*`, `*/n`): then the expression describes intervals, and it
//! fires both times.

use jiff::{
    Timestamp, ToSpan,
    civil::{Date, DateTime},
    tz::{AmbiguousOffset, TimeZone},
};

/// The maximum number of days between two times of an expression: around a century year that is not
/// a leap year, 29 February occurs only after 8 years.
const HORIZON_DAYS: i32 = 9 * 366;
/// The maximum length of an expression.
const MAX_LENGTH: usize = 1000;

/// A parsed cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CronExpression {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    any_day: bool,
    any_weekday: bool,
    open_hours: bool,
    fields: [String; 5],
}

/// The fields, each with its name, minimum and maximum.
const FIELDS: [(&str, u32, u32); 5] = [
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 7),
];

impl CronExpression {
    /// Parses an expression. The error is text for the model.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err("`cron` is too long.".to_owned());
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let Ok(fields) = <[&str; 5]>::try_from(fields) else {
            let count = text.split_whitespace().count();
            return Err(format!(
                "`cron` must have 5 fields, it has {count}: minute, hour, day of month, month and day of week, \
                 as in \"30 9 * * 1-5\". Seconds and years are not supported."
            ));
        };
        let mut sets = [0; 5];
        for ((set, field), (name, least, greatest)) in sets.iter_mut().zip(fields).zip(FIELDS) {
            *set = read_field(field, least, greatest)
                .map_err(|why| format!("`cron`: the {name} {field:?} {why}."))?;
        }
        let [minutes, hours, days, months, mut weekdays] = sets;
        // Sunday has two numbers.
        if weekdays & (1 << 7) != 0 {
            weekdays |= 1;
        }
        Ok(Self {
            minutes,
            hours,
            days,
            months,
            weekdays,
            any_day: fields[2] == "*",
            any_weekday: fields[4] == "*",
            open_hours: fields[1].starts_with('*'),
            fields: fields.map(str::to_owned),
        })
    }

    /// Returns the expression with single spaces between fields.
    pub(crate) fn text(&self) -> String {
        self.fields.join(" ")
    }

    /// Returns the first time after this one; `None` if no later time exists.
    pub(crate) fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // After a clock is put back, it may show the previous day again.
        let mut day = zone.to_datetime(after).date().checked_sub(1.day()).ok()?;
        for _ in 0..HORIZON_DAYS {
            if self.is_day(day)
                && let Some(found) = self.first_of_day(day, after, zone)
            {
                return Some(found);
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    fn is_day(&self, day: Date) -> bool {
        if !holds(self.months, day.month()) {
            return false;
        }
        let by_day = holds(self.days, day.day());
        let by_weekday = holds(self.weekdays, day.weekday().to_sunday_zero_offset());
        match self.any_day || self.any_weekday {
            true => by_day && by_weekday,
            false => by_day || by_weekday,
        }
    }

    fn first_of_day(&self, day: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut first: Option<Timestamp> = None;
        for hour in (0..24_i8).filter(|hour| holds(self.hours, *hour)) {
            for minute in (0..60_i8).filter(|minute| holds(self.minutes, *minute)) {
                let (moments, is_plain) = self.instants(day.at(hour, minute, 0, 0), zone);
                for moment in moments.into_iter().flatten() {
                    if moment > after && first.is_none_or(|first| moment < first) {
                        first = Some(moment);
                    }
                }
                // Later times of the day are later instants, except those that occur twice.
                if is_plain && first.is_some() {
                    return first;
                }
            }
        }
        first
    }

    /// Returns the instants at which a clock shows this time, and whether it is exactly one.
    fn instants(&self, shown: DateTime, zone: &TimeZone) -> ([Option<Timestamp>; 2], bool) {
        let found = zone.to_ambiguous_timestamp(shown);
        match found.offset() {
            AmbiguousOffset::Unambiguous { .. } => ([found.compatible().ok(), None], true),
            AmbiguousOffset::Gap { .. } => {
                let after_gap = found.compatible().ok().and_then(|after| {
                    // A time exactly at the start of the gap is already the first instant after it.
                    let after = after.checked_add(1.second()).ok()?;
                    Some(zone.preceding(after).next()?.timestamp())
                });
                ([after_gap, None], false)
            }
            AmbiguousOffset::Fold { .. } => {
                let again = self.open_hours.then(|| found.later().ok()).flatten();
                ([found.earlier().ok(), again], false)
            }
        }
    }

    /// Describes the expression as human-readable text.
    pub(crate) fn describe(&self) -> String {
        let [minute, hour, day, month, weekday] = self.fields.each_ref().map(String::as_str);
        let every = |field: &str, one: &str, many: &str| match field.strip_prefix("*/") {
            Some("1") => Some(format!("every {one}")),
            Some(step) => Some(format!("every {step} {many}")),
            None if field == "*" => Some(format!("every {one}")),
            None => None,
        };
        let is_number = |field: &str| field.bytes().all(|byte| byte.is_ascii_digit());
        if (hour, day, month, weekday) == ("*", "*", "*", "*") {
            if let Some(words) = every(minute, "minute", "minutes") {
                return words;
            }
            if is_number(minute) {
                return format!("every hour at minute {minute}");
            }
        }
        if is_number(minute)
            && (day, month, weekday) == ("*", "*", "*")
            && let Some(words) = hour.strip_prefix("*/").and(every(hour, "hour", "hours"))
        {
            return format!("{words} at minute {minute}");
        }
        if !is_number(minute) || !is_number(hour) || month != "*" && !is_number(month) {
            return format!("at the times of \"{}\"", self.text());
        }
        let time = format!("{hour:0>2}:{minute:0>2}");
        match (day, month, weekday) {
            ("*", "*", "*") => format!("every day at {time}"),
            ("*", "*", "1-5") => format!("on weekdays at {time}"),
            ("*", "*", days) if is_number(days) => {
                let days = [
                    "Sunday",
                    "Monday",
                    "Tuesday",
                    "Wednesday",
                    "Thursday",
                    "Friday",
                    "Saturday",
                ];
                let number = weekday.parse::<usize>().unwrap_or_default() % 7;
                format!("every {} at {time}", days[number])
            }
            (day, "*", "*") if is_number(day) => format!("on day {day} of every month at {time}"),
            (day, month, "*") if is_number(day) && is_number(month) => {
                let months = [
                    "January",
                    "February",
                    "March",
                    "April",
                    "May",
                    "June",
                    "July",
                    "August",
                    "September",
                    "October",
                    "November",
                    "December",
                ];
                let number = month
                    .parse::<usize>()
                    .unwrap_or(1)
                    .saturating_sub(1)
                    .min(11);
                format!("on {day} {} at {time}", months[number])
            }
            _ => format!("at the times of \"{}\"", self.text()),
        }
    }
}

fn holds(set: u64, number: impl Into<i64>) -> bool {
    u32::try_from(number.into()).is_ok_and(|number| number < 64 && set & (1 << number) != 0)
}

fn read_field(field: &str, least: u32, greatest: u32) -> Result<u64, String> {
    let mut set = 0;
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(read_number(step, 1, greatest)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, greatest),
            Some((from, to)) => (
                read_number(from, least, greatest)?,
                read_number(to, least, greatest)?,
            ),
            None if step.is_some() => {
                return Err("has a step without a range: write */n or a-b/n".to_owned());
            }
            None => {
                let number = read_number(range, least, greatest)?;
                (number, number)
            }
        };
        if from > to {
            return Err(format!("counts down, from {from} to {to}"));
        }
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(1);
        for number in (from..=to).step_by(step) {
            set |= 1_u64 << number;
        }
    }
    Ok(set)
}

fn read_number(text: &str, least: u32, greatest: u32) -> Result<u32, String> {
    if text.is_empty() || text.len() > 4 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "must be *, n, */n, a-b or a list of these: {text:?} is not a number (names, L, W and ? are not supported)"
        ));
    }
    let number: u32 = text.parse().unwrap_or(u32::MAX);
    match (least..=greatest).contains(&number) {
        true => Ok(number),
        false => Err(format!(
            "is out of range: {number} is not in {least} to {greatest}"
        )),
    }
}
