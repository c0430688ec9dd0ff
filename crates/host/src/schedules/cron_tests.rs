//! What cron expressions mean, and when.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use super::cron::CronExpression;

const UTC: &str = "UTC";
/// Clocks go forward on 8 March 2026 at 2:00 and back on 1 November 2026 at 2:00.
const NEW_YORK: &str = "EST5EDT,M3.2.0,M11.1.0";
/// Half an hour forward and back, on 4 October 2026 at 2:00 and 5 April 2026 at 2:00.
const LORD_HOWE: &str = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";
/// Forward at midnight: the day of 6 September 2026 begins at 1:00.
const SANTIAGO: &str = "<-04>4<-03>,M9.1.6/24,M4.1.6/24";

fn zone(name: &str) -> TimeZone {
    TimeZone::posix(name).unwrap_or(TimeZone::UTC)
}

/// The next times, as a clock shows them, with the offset from UTC.
fn next(cron: &str, after: &str, zone_name: &str, count: usize) -> Vec<String> {
    let zone = zone(zone_name);
    let cron = CronExpression::parse(cron).unwrap();
    let after: DateTime = after.parse().unwrap();
    let mut moment = zone.to_timestamp(after).unwrap();
    let mut times = Vec::new();
    for _ in 0..count {
        moment = cron.next_after(moment, &zone).unwrap();
        let shown = moment.to_zoned(zone.clone());
        times.push(shown.strftime("%m-%d %H:%M %:z").to_string());
    }
    times
}

#[test]
fn times_are_those_of_the_calendar() {
    let cases: [(&str, &str, &[&str]); 16] = [
        (
            "* * * * *",
            "2026-11-16 10:00:30",
            &["11-16 10:01", "11-16 10:02"],
        ),
        (
            "*/15 * * * *",
            "2026-11-16 10:00",
            &["11-16 10:15", "11-16 10:30"],
        ),
        (
            "7 * * * *",
            "2026-11-16 10:07",
            &["11-16 11:07", "11-16 12:07"],
        ),
        (
            "0 9 * * *",
            "2026-11-16 10:00",
            &["11-17 09:00", "11-18 09:00"],
        ),
        (
            "0 */6 * * *",
            "2026-11-16 10:00",
            &["11-16 12:00", "11-16 18:00"],
        ),
        (
            "30 9 * * 1-5",
            "2026-11-20 10:00",
            &["11-23 09:30", "11-24 09:30"],
        ),
        (
            "0 12 * * 0",
            "2026-11-16 10:00",
            &["11-22 12:00", "11-29 12:00"],
        ),
        (
            "0 12 * * 7",
            "2026-11-16 10:00",
            &["11-22 12:00", "11-29 12:00"],
        ),
        (
            "0 12 * * 5-7",
            "2026-11-16 10:00",
            &["11-20 12:00", "11-21 12:00", "11-22 12:00"],
        ),
        // Both days are given: either will do.
        (
            "0 0 1 * 1",
            "2026-11-16 10:00",
            &["11-23 00:00", "11-30 00:00", "12-01 00:00"],
        ),
        (
            "0 0 31 * *",
            "2026-11-16 10:00",
            &["12-31 00:00", "01-31 00:00", "03-31 00:00"],
        ),
        (
            "0 0 29 2 *",
            "2026-11-16 10:00",
            &["02-29 00:00", "02-29 00:00"],
        ),
        (
            "1,3,58-59 10 * * *",
            "2026-11-16 10:01",
            &["11-16 10:03", "11-16 10:58", "11-16 10:59", "11-17 10:01"],
        ),
        (
            "10-30/10 10 * * *",
            "2026-11-16 10:01",
            &["11-16 10:10", "11-16 10:20", "11-16 10:30", "11-17 10:10"],
        ),
        (
            "59 23 31 12 *",
            "2026-12-31 23:58",
            &["12-31 23:59", "12-31 23:59"],
        ),
        (
            "0 0 * 1,7 *",
            "2026-07-30 10:00",
            &["07-31 00:00", "01-01 00:00"],
        ),
    ];
    for (cron, after, expected) in cases {
        let found = next(cron, after, UTC, expected.len());
        let found: Vec<&str> = found.iter().map(|time| &time[..11]).collect();
        assert_eq!(found, expected, "{cron}");
    }
}

#[test]
fn a_leap_day_comes_even_after_eight_years() {
    let cron = CronExpression::parse("0 0 29 2 *").unwrap();
    let after: Timestamp = "2096-03-01T00:00:00Z".parse().unwrap();
    let found = cron.next_after(after, &TimeZone::UTC).unwrap();
    assert_eq!(found.to_string(), "2104-02-29T00:00:00Z");
}

#[test]
fn a_day_that_no_month_has_never_comes() {
    for cron in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"] {
        let cron = CronExpression::parse(cron).unwrap();
        assert_eq!(cron.next_after(Timestamp::UNIX_EPOCH, &TimeZone::UTC), None);
    }
}

#[test]
fn what_the_clock_skips_comes_right_after_the_gap_and_once() {
    let night = "2026-03-08 01:50";
    let cases: [(&str, &[&str]); 4] = [
        ("30 2 * * *", &["03-08 03:00 -04:00", "03-09 02:30 -04:00"]),
        ("0 3 * * *", &["03-08 03:00 -04:00", "03-09 03:00 -04:00"]),
        (
            "45 2,3 * * *",
            &[
                "03-08 03:00 -04:00",
                "03-08 03:45 -04:00",
                "03-09 02:45 -04:00",
            ],
        ),
        (
            "*/30 * * * *",
            &["03-08 03:00 -04:00", "03-08 03:30 -04:00"],
        ),
    ];
    for (cron, expected) in cases {
        assert_eq!(
            next(cron, night, NEW_YORK, expected.len()),
            expected,
            "{cron}"
        );
    }
    let found = next("0 0 * * *", "2026-09-05 12:00", SANTIAGO, 2);
    assert_eq!(found, ["09-06 01:00 -03:00", "09-07 00:00 -03:00"]);
}

#[test]
fn what_the_clock_shows_twice_comes_once_but_intervals_go_on() {
    let night = "2026-11-01 00:50";
    let cases: [(&str, &[&str]); 4] = [
        ("30 1 * * *", &["11-01 01:30 -04:00", "11-02 01:30 -05:00"]),
        (
            "0 1,2 * * *",
            &[
                "11-01 01:00 -04:00",
                "11-01 02:00 -05:00",
                "11-02 01:00 -05:00",
            ],
        ),
        (
            "*/30 * * * *",
            &[
                "11-01 01:00 -04:00",
                "11-01 01:30 -04:00",
                "11-01 01:00 -05:00",
                "11-01 01:30 -05:00",
                "11-01 02:00 -05:00",
            ],
        ),
        (
            "5 * * * *",
            &[
                "11-01 01:05 -04:00",
                "11-01 01:05 -05:00",
                "11-01 02:05 -05:00",
            ],
        ),
    ];
    for (cron, expected) in cases {
        assert_eq!(
            next(cron, night, NEW_YORK, expected.len()),
            expected,
            "{cron}"
        );
    }
    let found = next("*/20 * * * *", "2026-04-05 01:10", LORD_HOWE, 6);
    let shown: Vec<&str> = found.iter().map(|time| &time[6..]).collect();
    assert_eq!(
        shown,
        [
            "01:20 +11:00",
            "01:40 +11:00",
            "01:40 +10:30",
            "02:00 +10:30",
            "02:20 +10:30",
            "02:40 +10:30"
        ]
    );
}

#[test]
fn every_time_is_later_than_the_one_before_all_year_in_every_zone() {
    for name in [UTC, NEW_YORK, LORD_HOWE, SANTIAGO] {
        let zone = zone(name);
        for cron in ["13 * * * *", "*/47 */5 * * *", "30 2 * * *", "0 0 * * *"] {
            let cron = CronExpression::parse(cron).unwrap();
            let mut moment: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
            let end: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
            while moment < end {
                let next = cron.next_after(moment, &zone).unwrap();
                assert!(next > moment, "{name}: {}", cron.text());
                moment = next;
            }
        }
    }
}

#[test]
fn what_is_no_expression_is_told_why() {
    let cases = [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "*/60 * * * *",
        "*/90 * * * *",
        "5/10 * * * *",
        "-5 * * * *",
        "5- * * * *",
        "9-5 * * * *",
        "1,,2 * * * *",
        ", * * * *",
        "@daily",
        "* * * JAN *",
        "* * * * MON",
        "* * L * *",
        "* * 15W * *",
        "* * ? * *",
        "* * * * 1#2",
        "1.5 * * * *",
        "+5 * * * *",
        "99999999999 * * * *",
        "٣ * * * *",
        "* * * * *\u{0}",
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|cron| format!("{cron:?}: {}", CronExpression::parse(cron).unwrap_err()))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn what_it_means_in_words() {
    let cases = [
        "* * * * *",
        "*/1 * * * *",
        "*/5 * * * *",
        "7 * * * *",
        "0 */2 * * *",
        "5 */1 * * *",
        "0 9 * * *",
        "57 8 * * 1-5",
        "0 12 * * 0",
        "0 12 * * 7",
        "30 18 * * 5",
        "0 0 1 * *",
        "30 14 20 11 *",
        "0 9,17 * * *",
        "0 0 1 * 1",
        "*/5 9-17 * * 1-5",
        "0 0 1 */3 *",
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|cron| {
            format!(
                "{cron}: {}",
                CronExpression::parse(cron).unwrap().describe()
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn no_expression_is_too_much_work() {
    let long = format!("{} * * * *", ["0-59"; 150].join(","));
    let cron = CronExpression::parse(&long).unwrap();
    assert!(
        cron.next_after(Timestamp::UNIX_EPOCH, &TimeZone::UTC)
            .is_some()
    );
    let longer = format!("{} * * * *", ["0-59"; 100_000].join(","));
    assert!(CronExpression::parse(&longer).is_err());
}
