//! Ids on the wire.

use std::fmt;

use haft_contract::SessionId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

/// The id of a session or a message. Our ids are UUIDs; other programs' ids are preserved as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WireId {
    /// A UUID in its usual form: lower case, with hyphens.
    Uuid(Uuid),
    /// Any other text.
    Text(String),
}

impl WireId {
    /// Returns the id as a UUID, in any notation.
    pub fn uuid(&self) -> Option<Uuid> {
        match self {
            Self::Uuid(uuid) => Some(*uuid),
            Self::Text(text) => text.parse().ok(),
        }
    }
}

impl From<Uuid> for WireId {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid)
    }
}

impl From<SessionId> for WireId {
    fn from(session: SessionId) -> Self {
        Self::Uuid(session.0)
    }
}

impl From<String> for WireId {
    fn from(text: String) -> Self {
        let mut buffer = Uuid::encode_buffer();
        match text.parse::<Uuid>() {
            Ok(uuid) if *uuid.hyphenated().encode_lower(&mut buffer) == *text => Self::Uuid(uuid),
            _ => Self::Text(text),
        }
    }
}

impl From<&str> for WireId {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => uuid.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for WireId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Uuid(uuid) => {
                let mut buffer = Uuid::encode_buffer();
                serializer.serialize_str(uuid.hyphenated().encode_lower(&mut buffer))
            }
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for WireId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// The id of a control request. It should be a string, but any value is repeated in the response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(Value);

impl RequestId {
    /// Returns the text of the id, or an empty text if it is not a string.
    pub fn as_str(&self) -> &str {
        self.0.as_str().unwrap_or_default()
    }
}

impl From<Value> for RequestId {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        Self(Value::String(text))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_as_it_was_read() {
        let usual = "0193f0a0-0000-4000-8000-0000000000ab";
        assert!(matches!(WireId::from(usual), WireId::Uuid(_)));
        for text in [usual, "0193F0A0-0000-4000-8000-0000000000AB", "default", ""] {
            let id = WireId::from(text);
            assert_eq!(id.to_string(), text);
            assert_eq!(serde_json::to_value(&id).ok(), Some(Value::from(text)));
        }
        let shouted = WireId::from(usual.to_uppercase());
        assert_eq!(shouted.uuid(), WireId::from(usual).uuid());
    }
}
