//! What a person says.

use haft_contract::Content;
use serde_json::Value;
use uuid::Uuid;

/// What a person says.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The words, and what goes with them.
    pub content: Vec<Content>,
    /// The id of the message, where it has one.
    pub uuid: Option<Uuid>,
    /// Where it comes from, as whoever sent it says; given back with the result.
    pub origin: Option<Value>,
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        vec![Content::text(text)].into()
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        vec![Content::text(text)].into()
    }
}

impl From<Vec<Content>> for Prompt {
    fn from(content: Vec<Content>) -> Self {
        Self {
            content,
            uuid: None,
            origin: None,
        }
    }
}
