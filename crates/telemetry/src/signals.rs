//! What can be said: spans, events, numbers, and what they are about.

use std::time::{SystemTime, UNIX_EPOCH};

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// Any number.
    Double(f64),
    /// Yes or no.
    Bool(bool),
    /// Several texts.
    Texts(Vec<String>),
}

/// A name and what it says.
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

/// What belongs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

/// One span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// A new one.
    pub fn random() -> Self {
        Self(random())
    }
}

impl SpanId {
    /// A new one.
    pub fn random() -> Self {
        Self(random())
    }
}

/// Random bytes. All zero would be no id; where the system has none to give, the clock is as good: ids must differ, no
/// one must be unable to guess them.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::getrandom(&mut bytes).is_err() || bytes == [0; N] {
        let now = nanoseconds(SystemTime::now()).to_be_bytes();
        bytes.iter_mut().zip(now).for_each(|(own, now)| *own = now);
        bytes[N - 1] |= 1;
    }
    bytes
}

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Which side of a call a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Neither.
    Internal,
    /// The one who asks another program.
    Client,
}

/// Something that took a while, once it is over.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySpan {
    /// What it belongs to.
    pub trace: TraceId,
    /// Its own id.
    pub id: SpanId,
    /// The span it is part of.
    pub parent: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// Which side it is.
    pub kind: SpanKind,
    /// When it began.
    pub start: SystemTime,
    /// When it was over.
    pub end: SystemTime,
    /// What it was about.
    pub attributes: Vec<Attribute>,
    /// It failed: how.
    pub error: Option<String>,
}

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSeverity {
    /// It happened.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something failed.
    Error,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// Its name.
    pub name: &'static str,
    /// How much it matters.
    pub severity: EventSeverity,
    /// What it belongs to.
    pub within: Option<(TraceId, SpanId)>,
    /// When.
    pub time: SystemTime,
    /// What it was about.
    pub attributes: Vec<Attribute>,
}

/// What a measure is measured in: which buckets make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MeasuredIn {
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
