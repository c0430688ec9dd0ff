//! The messages of OTLP with the names and numbers of their fields (opentelemetry-proto 1).

use std::time::SystemTime;

use crate::{
    Attribute, AttributeValue, EventSeverity, LoggedEvent, SpanKind, TelemetrySpan,
    message::{ProtoField, ProtoMessage},
    metrics::MetricStore,
    signals::nanoseconds,
};

/// The resource and the instrumentation scope, which are part of every message.
#[derive(Debug, Clone)]
pub(crate) struct OtlpResource {
    /// The attributes of the resource, by name.
    pub(crate) resource: Vec<(String, String)>,
    /// The version of haft.
    pub(crate) version: String,
}

impl OtlpResource {
    fn resource(&self) -> ProtoMessage {
        let attributes = self.resource.iter().map(|(name, text)| {
            let value = AttributeValue::Text(text.clone());
            key_value(name, &value)
        });
        ProtoMessage::default().with(1, "attributes", ProtoField::Many(attributes.collect()))
    }

    fn scope(&self) -> ProtoMessage {
        ProtoMessage::default()
            .with(1, "name", ProtoField::Text("haft".to_owned()))
            .with(2, "version", ProtoField::Text(self.version.clone()))
    }

    /// Wraps the entries of a message in its scope and its resource.
    fn wrapped(
        &self,
        [outer, inner, list]: [&'static str; 3],
        things: Vec<ProtoMessage>,
    ) -> ProtoMessage {
        let scoped = ProtoMessage::default()
            .with(1, "scope", ProtoField::One(self.scope()))
            .with(2, list, ProtoField::Many(things));
        let resource = ProtoMessage::default()
            .with(1, "resource", ProtoField::One(self.resource()))
            .with(2, inner, ProtoField::Many(vec![scoped]));
        ProtoMessage::default().with(1, outer, ProtoField::Many(vec![resource]))
    }

    pub(crate) fn traces(&self, spans: &[TelemetrySpan]) -> ProtoMessage {
        let names = ["resourceSpans", "scopeSpans", "spans"];
        self.wrapped(names, spans.iter().map(span).collect())
    }

    pub(crate) fn logs(&self, events: &[LoggedEvent]) -> ProtoMessage {
        let names = ["resourceLogs", "scopeLogs", "logRecords"];
        self.wrapped(names, events.iter().map(log_record).collect())
    }

    pub(crate) fn metrics(
        &self,
        metrics: &MetricStore,
        since: SystemTime,
        now: SystemTime,
    ) -> ProtoMessage {
        let names = ["resourceMetrics", "scopeMetrics", "metrics"];
        self.wrapped(names, metrics.messages(since, now))
    }
}

fn span(span: &TelemetrySpan) -> ProtoMessage {
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Client => 3,
    };
    let status = span.error.as_ref().map(|error| {
        let status = ProtoMessage::default()
            .with(2, "message", ProtoField::Text(error.clone()))
            .with(3, "code", ProtoField::Small(2));
        ProtoField::One(status)
    });
    let parent = span
        .parent
        .map(|parent| ProtoField::Bytes(parent.0.to_vec()));
    // A span must not end before it starts, even if the clock was set back.
    let end = span.end.max(span.start);
    ProtoMessage::default()
        .with(1, "traceId", ProtoField::Bytes(span.trace.0.to_vec()))
        .with(2, "spanId", ProtoField::Bytes(span.id.0.to_vec()))
        .with_some(4, "parentSpanId", parent)
        .with(5, "name", ProtoField::Text(span.name.clone()))
        .with(6, "kind", ProtoField::Small(kind))
        .with(
            7,
            "startTimeUnixNano",
            ProtoField::Fixed(nanoseconds(span.start)),
        )
        .with(8, "endTimeUnixNano", ProtoField::Fixed(nanoseconds(end)))
        .with(
            9,
            "attributes",
            ProtoField::Many(attributes(&span.attributes)),
        )
        .with_some(15, "status", status)
}

fn log_record(event: &LoggedEvent) -> ProtoMessage {
    let (number, text) = match event.severity {
        EventSeverity::Info => (9, "INFO"),
        EventSeverity::Warn => (13, "WARN"),
        EventSeverity::Error => (17, "ERROR"),
    };
    let body = any_value(&AttributeValue::from(event.name));
    let within = event.within.as_ref();
    let trace = within.map(|(trace, _)| ProtoField::Bytes(trace.0.to_vec()));
    let span = within.map(|(_, span)| ProtoField::Bytes(span.0.to_vec()));
    let time = nanoseconds(event.time);
    ProtoMessage::default()
        .with(1, "timeUnixNano", ProtoField::Fixed(time))
        .with(2, "severityNumber", ProtoField::Small(number))
        .with(3, "severityText", ProtoField::Text(text.to_owned()))
        .with(5, "body", ProtoField::One(body))
        .with(
            6,
            "attributes",
            ProtoField::Many(attributes(&event.attributes)),
        )
        .with_some(9, "traceId", trace)
        .with_some(10, "spanId", span)
        .with(11, "observedTimeUnixNano", ProtoField::Fixed(time))
        .with(12, "eventName", ProtoField::Text(event.name.to_owned()))
}

pub(crate) fn attributes(attributes: &[Attribute]) -> Vec<ProtoMessage> {
    let pairs = attributes.iter();
    pairs.map(|(name, value)| key_value(name, value)).collect()
}

fn key_value(name: &str, value: &AttributeValue) -> ProtoMessage {
    ProtoMessage::default()
        .with(1, "key", ProtoField::Text(name.to_owned()))
        .with(2, "value", ProtoField::One(any_value(value)))
}

fn any_value(value: &AttributeValue) -> ProtoMessage {
    let message = ProtoMessage::default();
    match value {
        AttributeValue::Text(text) => {
            message.with(1, "stringValue", ProtoField::Text(text.clone()))
        }
        AttributeValue::Bool(is) => message.with(2, "boolValue", ProtoField::Bool(*is)),
        AttributeValue::Int(number) => message.with(3, "intValue", ProtoField::Int(*number)),
        AttributeValue::Double(number) => {
            message.with(4, "doubleValue", ProtoField::Double(*number))
        }
        AttributeValue::Texts(texts) => {
            let values = texts.iter();
            let values = values.map(|text| any_value(&AttributeValue::Text(text.clone())));
            let list =
                ProtoMessage::default().with(1, "values", ProtoField::Many(values.collect()));
            message.with(5, "arrayValue", ProtoField::One(list))
        }
    }
}
