//! The messages of OTLP with the names and numbers of their fields (opentelemetry-proto 1).

use std::time::SystemTime;

use crate::{
    Attribute, AttributeValue, EventSeverity, LoggedEvent, SpanKind, TelemetrySpan,
    message::{Field, Message},
    metrics::Metrics,
    signals::nanoseconds,
};

/// The resource and the instrumentation scope, which are part of every message.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    /// The attributes of the resource, by name.
    pub(crate) resource: Vec<(String, String)>,
    /// The version of haft.
    pub(crate) version: String,
}

impl Sender {
    fn resource(&self) -> Message {
        let attributes = self.resource.iter().map(|(name, text)| {
            let value = AttributeValue::Text(text.clone());
            key_value(name, &value)
        });
        Message::default().with(1, "attributes", Field::Many(attributes.collect()))
    }

    fn scope(&self) -> Message {
        Message::default()
            .with(1, "name", Field::Text("haft".to_owned()))
            .with(2, "version", Field::Text(self.version.clone()))
    }

    /// Wraps the entries of a message in its scope and its resource.
    fn wrapped(&self, [outer, inner, list]: [&'static str; 3], things: Vec<Message>) -> Message {
        let scoped = Message::default()
            .with(1, "scope", Field::One(self.scope()))
            .with(2, list, Field::Many(things));
        let resource = Message::default()
            .with(1, "resource", Field::One(self.resource()))
            .with(2, inner, Field::Many(vec![scoped]));
        Message::default().with(1, outer, Field::Many(vec![resource]))
    }

    pub(crate) fn traces(&self, spans: &[TelemetrySpan]) -> Message {
        let names = ["resourceSpans", "scopeSpans", "spans"];
        self.wrapped(names, spans.iter().map(span).collect())
    }

    pub(crate) fn logs(&self, events: &[LoggedEvent]) -> Message {
        let names = ["resourceLogs", "scopeLogs", "logRecords"];
        self.wrapped(names, events.iter().map(log_record).collect())
    }

    pub(crate) fn metrics(&self, metrics: &Metrics, since: SystemTime, now: SystemTime) -> Message {
        let names = ["resourceMetrics", "scopeMetrics", "metrics"];
        self.wrapped(names, metrics.messages(since, now))
    }
}

fn span(span: &TelemetrySpan) -> Message {
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Client => 3,
    };
    let status = span.error.as_ref().map(|error| {
        let status = Message::default()
            .with(2, "message", Field::Text(error.clone()))
            .with(3, "code", Field::Small(2));
        Field::One(status)
    });
    let parent = span.parent.map(|parent| Field::Bytes(parent.0.to_vec()));
    // A span must not end before it starts, even if the clock was set back.
    let end = span.end.max(span.start);
    Message::default()
        .with(1, "traceId", Field::Bytes(span.trace.0.to_vec()))
        .with(2, "spanId", Field::Bytes(span.id.0.to_vec()))
        .with_some(4, "parentSpanId", parent)
        .with(5, "name", Field::Text(span.name.clone()))
        .with(6, "kind", Field::Small(kind))
        .with(
            7,
            "startTimeUnixNano",
            Field::Fixed(nanoseconds(span.start)),
        )
        .with(8, "endTimeUnixNano", Field::Fixed(nanoseconds(end)))
        .with(9, "attributes", Field::Many(attributes(&span.attributes)))
        .with_some(15, "status", status)
}

fn log_record(event: &LoggedEvent) -> Message {
    let (number, text) = match event.severity {
        EventSeverity::Info => (9, "INFO"),
        EventSeverity::Warn => (13, "WARN"),
        EventSeverity::Error => (17, "ERROR"),
    };
    let body = any_value(&AttributeValue::from(event.name));
    let within = event.within.as_ref();
    let trace = within.map(|(trace, _)| Field::Bytes(trace.0.to_vec()));
    let span = within.map(|(_, span)| Field::Bytes(span.0.to_vec()));
    let time = nanoseconds(event.time);
    Message::default()
        .with(1, "timeUnixNano", Field::Fixed(time))
        .with(2, "severityNumber", Field::Small(number))
        .with(3, "severityText", Field::Text(text.to_owned()))
        .with(5, "body", Field::One(body))
        .with(6, "attributes", Field::Many(attributes(&event.attributes)))
        .with_some(9, "traceId", trace)
        .with_some(10, "spanId", span)
        .with(11, "observedTimeUnixNano", Field::Fixed(time))
        .with(12, "eventName", Field::Text(event.name.to_owned()))
}

pub(crate) fn attributes(attributes: &[Attribute]) -> Vec<Message> {
    let pairs = attributes.iter();
    pairs.map(|(name, value)| key_value(name, value)).collect()
}

fn key_value(name: &str, value: &AttributeValue) -> Message {
    Message::default()
        .with(1, "key", Field::Text(name.to_owned()))
        .with(2, "value", Field::One(any_value(value)))
}

fn any_value(value: &AttributeValue) -> Message {
    let message = Message::default();
    match value {
        AttributeValue::Text(text) => message.with(1, "stringValue", Field::Text(text.clone())),
        AttributeValue::Bool(is) => message.with(2, "boolValue", Field::Bool(*is)),
        AttributeValue::Int(number) => message.with(3, "intValue", Field::Int(*number)),
        AttributeValue::Double(number) => message.with(4, "doubleValue", Field::Double(*number)),
        AttributeValue::Texts(texts) => {
            let values = texts.iter();
            let values = values.map(|text| any_value(&AttributeValue::Text(text.clone())));
            let list = Message::default().with(1, "values", Field::Many(values.collect()));
            message.with(5, "arrayValue", Field::One(list))
        }
    }
}
