//! The telemetry of a session in OpenTelemetry's format: spans, metrics and events, sent with OTLP
//! over HTTP.
//!
//! Callers report what happened ([`Telemetry::span`], [`Telemetry::event`], [`Telemetry::count`],
//! [`Telemetry::measure`]). This crate stores, batches and sends it. The wire format is implemented
//! here (`message`, `otlp`): one description of each message yields both encodings, protobuf and
//! JSON. This is less code than the libraries that would generate it.
//!
//! # Layout
//! - [`config`]: the standard environment variables, and warnings about invalid ones
//! - [`signals`]: spans, events and attributes; `metrics`: counters and histograms
//! - `message`: encodes messages as protobuf and JSON; `otlp`: the messages of OTLP
//! - `exporter`: the background task that sends the messages
//!
//! **Invariants.** No function waits for the network, except [`Telemetry::close`], which has a
//! timeout. The stored data is bounded: if a collector does not answer, the oldest entries are
//! dropped. A failure never affects the session; it is reported to the user once. **Boundary:** the
//! crate depends only on the contract, which provides the HTTP client. Redirects are not followed.

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
    Attribute, AttributeValue, EventSeverity, LoggedEvent, MeasureUnit, SpanId, SpanKind,
    TelemetrySpan, TraceId,
};
