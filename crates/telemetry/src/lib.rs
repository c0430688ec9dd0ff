//! What a session does, as OpenTelemetry: spans, metrics and events, sent by OTLP over HTTP.
//!
//! Others say what happened ([`Telemetry::span`], [`Telemetry::event`], [`Telemetry::count`], [`Telemetry::measure`]);
//! here it is kept, put together and sent. The wire format is written by hand (`message`, `otlp`): one description of
//! each message gives both encodings, protobuf and JSON, and takes less than the libraries that would generate it.
//!
//! # Layout
//! - [`config`]: the variables of the convention, and what is wrong with them
//! - [`signals`]: what can be said: spans, events, attributes; `metrics`: numbers, added up
//! - `message`: messages as protobuf and as JSON; `otlp`: which messages those of OTLP are
//! - `exporter`: when and how they are sent
//!
//! **Invariants.** No call here waits for anything, and [`Telemetry::close`] for no longer than it is told. What is kept
//! has a bound: where a collector does not answer, the oldest is dropped. No failure reaches the session: it is reported
//! once, for people. **Boundary:** contract only; HTTP comes through it, and follows no redirects.

#![warn(missing_docs)]

pub mod config;
mod exporter;
mod message;
mod metrics;
mod otlp;
pub mod signals;

pub use config::{SignalTarget, TelemetryConfig, WireEncoding};
pub use exporter::Telemetry;
pub use signals::{
    Attribute, AttributeValue, EventSeverity, LoggedEvent, MeasuredIn, SpanId, SpanKind,
    TelemetrySpan, TraceId,
};
