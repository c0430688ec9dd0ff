//! Decides whether a server may be used with its current entry, and whether its tools may be
//! offered as described.

use haft_contract::BoxFuture;
use serde_json::Value;

use super::ServerEntry;

/// The tools of a server that may be offered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApprovedTools {
    /// The approved tools.
    pub tools: Vec<Value>,
    /// A description for the user of what differs from the approved state, and how to approve it.
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

/// Decides which tools of a server are offered: those that the user has approved in their current
/// form.
pub trait ToolApprovals: Send + Sync {
    /// Checks whether a server may be started or contacted with its current entry. The error says
    /// why not. May ask the user.
    fn may_start<'a>(&'a self, entry: &'a ServerEntry) -> BoxFuture<'a, Result<(), String>>;

    /// Returns those of the listed tools that may be offered. May ask the user.
    fn approved<'a>(
        &'a self,
        entry: &'a ServerEntry,
        tools: Vec<Value>,
    ) -> BoxFuture<'a, ApprovedTools>;
}
