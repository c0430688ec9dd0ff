//! Calls that a tool makes itself: for example, a skill inserts the output of a command into its
//! text.

use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::{BoxFuture, CancellationToken, HookVerdict, ToolError, ToolUse};

/// Runs a call by the same rules as the model's calls, but without asking: a call that needs the
/// user is denied. Its messages and patches do not reach the conversation or the session; values
/// that hooks store do.
pub trait NestedCallRunner: Send + Sync {
    /// Runs the call. `allowed` are allow rules for this call only, in addition to those of the
    /// session.
    fn run<'a>(
        &'a self,
        call: ToolUse,
        allowed: &'a [String],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, NestedResult>;
}

/// The result of a nested call.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedResult {
    /// The call failed or was denied.
    pub is_error: bool,
    /// The call was denied.
    pub denied: bool,
    /// The text that the model would have read.
    pub text: String,
    /// The value that programs would have received.
    pub structured: Option<Value>,
    /// The merged output of its hooks. If the call was made inside another call, that call's result
    /// already includes it.
    pub hooks: HookVerdict,
}

/// Access to nested calls, if the session has any. Cheap to clone.
#[derive(Clone, Default)]
pub struct NestedCalls(Option<Arc<dyn NestedCallRunner>>);

impl NestedCalls {
    /// Creates access to this runner.
    pub fn from_runner(run: Arc<dyn NestedCallRunner>) -> Self {
        Self(Some(run))
    }

    /// Runs a call; see [`NestedCallRunner::run`].
    pub async fn run(
        &self,
        call: ToolUse,
        allowed: &[String],
        cancel: &CancellationToken,
    ) -> Result<NestedResult, ToolError> {
        match &self.0 {
            Some(run) => Ok(run.run(call, allowed, cancel).await),
            None => Err(ToolError::Unavailable("running further tool calls")),
        }
    }
}

impl fmt::Debug for NestedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NestedCalls")
            .field(&self.0.is_some())
            .finish()
    }
}
