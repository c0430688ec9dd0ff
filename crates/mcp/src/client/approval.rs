//! Whether a server may be used as it is written now, and its tools be offered as it describes them.

use haft_contract::BoxFuture;
use serde_json::Value;

use super::ServerEntry;

/// What of a server's tools may be offered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApprovedTools {
    /// Those that may.
    pub tools: Vec<Value>,
    /// What is not as it was approved, how it differs, and how it is approved, for people.
    pub unapproved: Option<String>,
}

impl From<Vec<Value>> for ApprovedTools {
    fn from(tools: Vec<Value>) -> Self {
        Self {
            tools,
            unapproved: None,
        }
    }
}

/// Decides which tools of a server are offered: those that a person has approved as they are now.
pub trait ToolApprovals: Send + Sync {
    /// May a server be started or reached as its entry says now? The error says why not. May ask a person.
    fn may_start<'a>(&'a self, entry: &'a ServerEntry) -> BoxFuture<'a, Result<(), String>>;

    /// The tools, as the server lists them, that may be offered. May ask a person.
    fn approved<'a>(
        &'a self,
        entry: &'a ServerEntry,
        tools: Vec<Value>,
    ) -> BoxFuture<'a, ApprovedTools>;
}
