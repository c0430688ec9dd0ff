//! Metrics of a session: counters and histograms.
//!
//! Values are cumulative since the session began. So a lost message loses no data: the next one
//! contains all values again.

use std::{collections::BTreeMap, time::SystemTime};

use crate::{
    Attribute, MeasureUnit,
    message::{ProtoField, ProtoMessage},
    otlp,
    signals::nanoseconds,
};

/// The maximum number of different sets of attributes; a session has fewer.
const MAX_SERIES: usize = 1_000;

/// The bucket bounds of the semantic conventions for generative AI.
const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const TOKENS: [f64; 14] = [
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
    16777216.0, 67108864.0,
];

/// The OTLP constant for cumulative temporality.
const CUMULATIVE: u32 = 2;

#[derive(Debug, Default)]
pub(crate) struct MetricStore {
    series: BTreeMap<(&'static str, String), MetricSeries>,
}

#[derive(Debug)]
struct MetricSeries {
    unit: &'static str,
    attributes: Vec<Attribute>,
    value: SeriesValue,
}

#[derive(Debug)]
enum SeriesValue {
    Sum(f64),
    Histogram(MetricHistogram),
}

#[derive(Debug)]
struct MetricHistogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
    min: f64,
    max: f64,
}

impl MetricStore {
    pub(crate) fn count(
        &mut self,
        name: &'static str,
        unit: &'static str,
        attributes: Vec<Attribute>,
        by: f64,
    ) {
        // Counters are monotonic.
        let by = if by.is_finite() { by.max(0.0) } else { 0.0 };
        let value = self.series(name, unit, attributes, || SeriesValue::Sum(0.0));
        if let Some(SeriesValue::Sum(sum)) = value {
            *sum += by;
        }
    }

    pub(crate) fn measure(
        &mut self,
        name: &'static str,
        measured: MeasureUnit,
        attributes: Vec<Attribute>,
        number: f64,
    ) {
        let (unit, bounds): (_, &'static [f64]) = match measured {
            MeasureUnit::Seconds => ("s", &SECONDS),
            MeasureUnit::Tokens => ("{token}", &TOKENS),
        };
        let empty = || {
            SeriesValue::Histogram(MetricHistogram {
                bounds,
                counts: vec![0; bounds.len() + 1],
                sum: 0.0,
                min: f64::INFINITY,
                max: f64::NEG_INFINITY,
            })
        };
        let value = self.series(name, unit, attributes, empty);
        if let Some(SeriesValue::Histogram(spread)) = value
            && number.is_finite()
        {
            let bucket = spread.bounds.partition_point(|bound| *bound < number);
            spread.counts[bucket] += 1;
            spread.sum += number;
            spread.min = spread.min.min(number);
            spread.max = spread.max.max(number);
        }
    }

    fn series(
        &mut self,
        name: &'static str,
        unit: &'static str,
        attributes: Vec<Attribute>,
        empty: impl FnOnce() -> SeriesValue,
    ) -> Option<&mut SeriesValue> {
        let key = (name, format!("{attributes:?}"));
        if self.series.len() >= MAX_SERIES && !self.series.contains_key(&key) {
            return None;
        }
        let series = self.series.entry(key).or_insert_with(|| MetricSeries {
            unit,
            attributes,
            value: empty(),
        });
        Some(&mut series.value)
    }

    /// Returns the messages of all metrics so far.
    pub(crate) fn messages(&self, since: SystemTime, now: SystemTime) -> Vec<ProtoMessage> {
        let mut messages = Vec::new();
        let mut rest = self.series.iter().peekable();
        while let Some(((name, _), first)) = rest.next() {
            let mut points = vec![first.point(since, now)];
            while let Some((_, next)) = rest.next_if(|((other, _), _)| other == name) {
                points.push(next.point(since, now));
            }
            let points = ProtoMessage::default().with(1, "dataPoints", ProtoField::Many(points));
            let points = points.with(2, "aggregationTemporality", ProtoField::Small(CUMULATIVE));
            let metric = ProtoMessage::default()
                .with(1, "name", ProtoField::Text((*name).to_owned()))
                .with(3, "unit", ProtoField::Text(first.unit.to_owned()));
            messages.push(match first.value {
                SeriesValue::Sum(_) => {
                    let sum = points.with(3, "isMonotonic", ProtoField::Bool(true));
                    metric.with(7, "sum", ProtoField::One(sum))
                }
                SeriesValue::Histogram(_) => metric.with(9, "histogram", ProtoField::One(points)),
            });
        }
        messages
    }
}

impl MetricSeries {
    fn point(&self, since: SystemTime, now: SystemTime) -> ProtoMessage {
        let point = ProtoMessage::default()
            .with(
                2,
                "startTimeUnixNano",
                ProtoField::Fixed(nanoseconds(since)),
            )
            .with(3, "timeUnixNano", ProtoField::Fixed(nanoseconds(now)));
        let attributes = ProtoField::Many(otlp::attributes(&self.attributes));
        match &self.value {
            SeriesValue::Sum(sum) => point.with(4, "asDouble", ProtoField::Double(*sum)).with(
                7,
                "attributes",
                attributes,
            ),
            SeriesValue::Histogram(spread) => {
                let count = spread.counts.iter().sum();
                let is_some = count > 0;
                point
                    .with(4, "count", ProtoField::Fixed(count))
                    .with(5, "sum", ProtoField::Double(spread.sum))
                    .with(
                        6,
                        "bucketCounts",
                        ProtoField::FixedList(spread.counts.clone()),
                    )
                    .with(
                        7,
                        "explicitBounds",
                        ProtoField::DoubleList(spread.bounds.to_vec()),
                    )
                    .with(9, "attributes", attributes)
                    .with_some(11, "min", is_some.then_some(ProtoField::Double(spread.min)))
                    .with_some(12, "max", is_some.then_some(ProtoField::Double(spread.max)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use serde_json::json;

    use super::*;
    use crate::AttributeValue;

    fn of(tool: &str) -> Vec<Attribute> {
        vec![("tool", AttributeValue::from(tool))]
    }

    #[test]
    fn counts_are_added_up_for_each_set_of_attributes() {
        let mut metrics = MetricStore::default();
        metrics.count("calls", "{call}", of("a"), 1.0);
        metrics.count("calls", "{call}", of("b"), 2.0);
        metrics.count("calls", "{call}", of("a"), f64::NAN);
        metrics.count("calls", "{call}", of("a"), -5.0);
        metrics.count("calls", "{call}", of("a"), 3.0);
        let messages = metrics.messages(UNIX_EPOCH, UNIX_EPOCH);
        assert_eq!(messages.len(), 1);
        let told = messages[0].to_json();
        let points = told["sum"]["dataPoints"].as_array().unwrap();
        let values: Vec<f64> = points
            .iter()
            .filter_map(|p| p["asDouble"].as_f64())
            .collect();
        assert_eq!(values, [4.0, 2.0]);
        assert_eq!(told["sum"]["isMonotonic"], true);
        assert_eq!(told["sum"]["aggregationTemporality"], 2);
    }

    #[test]
    fn measures_fall_into_buckets_and_bounds_belong_to_the_lower_one() {
        let mut metrics = MetricStore::default();
        for number in [0.005, 0.01, 100.0, f64::INFINITY] {
            metrics.measure("took", MeasureUnit::Seconds, of("a"), number);
        }
        let told = metrics.messages(UNIX_EPOCH, UNIX_EPOCH)[0].to_json();
        let point = &told["histogram"]["dataPoints"][0];
        assert_eq!(point["count"], "3");
        assert_eq!(point["bucketCounts"][0], "2");
        assert_eq!(point["bucketCounts"][14], "1");
        assert_eq!(
            (&point["min"], &point["max"]),
            (&json!(0.005), &json!(100.0))
        );
    }

    #[test]
    fn there_is_an_end_to_what_is_told_apart() {
        let mut metrics = MetricStore::default();
        for number in 0..2_000 {
            metrics.count("calls", "{call}", of(&number.to_string()), 1.0);
        }
        assert_eq!(metrics.series.len(), MAX_SERIES);
    }
}
