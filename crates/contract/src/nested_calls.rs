//! Calls that are made beside the model's own: a skill fills its text with what a command prints.

use std::{fmt, sync::Arc};

use serde_json::Value;

use crate::{BoxFuture, CancellationToken, HookVerdict, ToolError, ToolUse};

/// Runs a call by the same rules as the model's, except that no one is asked: what would need a person is
/// refused. No message or patch of it reaches the conversation or the session; what hooks want kept is.
pub trait RunNested: Send + Sync {
    /// Runs it. `allowed` are rules that count for this call alone, beside those of the session.
    fn run<'a>(
        &'a self,
        call: ToolUse,
        allowed: &'a [String],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, NestedResult>;
}

/// How such a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedResult {
    /// It failed, in whatever way.
    pub is_error: bool,
    /// It was not permitted.
    pub denied: bool,
    /// What the model would have read.
    pub text: String,
    /// What programs would have read.
    pub structured: Option<Value>,
    /// What hooks said of it. Where it was made inside another call, that call's result tells it already.
    pub hooks: HookVerdict,
}

/// The way to such calls; there may be none. Cheap to clone.
#[derive(Clone, Default)]
pub struct NestedCalls(Option<Arc<dyn RunNested>>);

impl NestedCalls {
    /// They are run by this.
    pub fn by(run: Arc<dyn RunNested>) -> Self {
        Self(Some(run))
    }

    /// Runs a call; see [`RunNested::run`].
    pub async fn run(
        &self,
        call: ToolUse,
        allowed: &[String],
        cancel: &CancellationToken,
    ) -> Result<NestedResult, ToolError> {
        match &self.0 {
            Some(run) => Ok(run.run(call, allowed, cancel).await),
            None => Err(ToolError::Unavailable("calls beside the model's own")),
        }
    }
}

impl fmt::Debug for NestedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Aside").field(&self.0.is_some()).finish()
    }
}
