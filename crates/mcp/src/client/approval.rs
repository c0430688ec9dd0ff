//! Whether tools may be offered as their server describes them now.

use haft_contract::BoxFuture;
use serde_json::Value;

use super::ServerEntry;

/// Decides which tools of a server are offered: those that a person has approved as they are now.
pub trait ToolApprovals: Send + Sync {
    /// The tools, as the server lists them, that may be offered. May ask a person.
    fn approved<'a>(
        &'a self,
        entry: &'a ServerEntry,
        tools: Vec<Value>,
    ) -> BoxFuture<'a, Vec<Value>>;
}
