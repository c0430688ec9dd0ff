//! Spans, events and units, with their attributes.

use std::time::{SystemTime, UNIX_EPOCH};

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A boolean.
    Bool(bool),
    /// A list of texts.
    Texts(Vec<String>),
}

/// A name and its value.
pub type Attribute = (&'static str, AttributeValue);

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for AttributeValue {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

/// The id of a trace, which groups spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Creates a random id.
    pub fn random() -> Self {
        Self(random())
    }
}

impl SpanId {
    /// Creates a random id.
    pub fn random() -> Self {
        Self(random())
    }
}

/// Returns random bytes that are not all zero, because such an id is invalid. If the system
/// provides no random bytes, the clock is used: ids must be unique, not unpredictable.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::getrandom(&mut bytes).is_err() || bytes == [0; N] {
        let now = nanoseconds(SystemTime::now()).to_be_bytes();
        bytes.iter_mut().zip(now).for_each(|(own, now)| *own = now);
        bytes[N - 1] |= 1;
    }
    bytes
}

/// Returns the time in nanoseconds since 1970.
pub(crate) fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The role of a span in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// An operation inside the program.
    Internal,
    /// A request to another program.
    Client,
}

/// A finished operation with its duration.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySpan {
    /// The trace that the span belongs to.
    pub trace: TraceId,
    /// The id of the span.
    pub id: SpanId,
    /// The span that contains this one.
    pub parent: Option<SpanId>,
    /// The name.
    pub name: String,
    /// The role in a call.
    pub kind: SpanKind,
    /// The start time.
    pub start: SystemTime,
    /// The end time.
    pub end: SystemTime,
    /// The attributes.
    pub attributes: Vec<Attribute>,
    /// The error, if the operation failed.
    pub error: Option<String>,
}

/// The severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSeverity {
    /// An expected event.
    Info,
    /// A problem.
    Warn,
    /// A failure.
    Error,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// The name.
    pub name: &'static str,
    /// The severity.
    pub severity: EventSeverity,
    /// The span during which the event happened.
    pub within: Option<(TraceId, SpanId)>,
    /// The time.
    pub time: SystemTime,
    /// The attributes.
    pub attributes: Vec<Attribute>,
}

/// The unit of a histogram, which determines its buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MeasureUnit {
    /// Seconds.
    Seconds,
    /// Tokens.
    Tokens,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_not_nothing() {
        assert_ne!(SpanId::random(), SpanId::random());
        assert_ne!(TraceId::random().0, [0; 16]);
        assert_eq!(
            AttributeValue::from(u64::MAX),
            AttributeValue::Int(i64::MAX)
        );
    }
}
