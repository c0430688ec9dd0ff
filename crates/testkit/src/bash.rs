//! A replacement of Bash that runs nothing and records the confinement of its last call.

use std::sync::{Arc, Mutex, PoisonError};

use haft_contract::{
    CallContext, Confinement, Effects, RuleMatch, Tool, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A command line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The line.
    pub command: String,
    /// Run it outside the sandbox.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    pub unconfined: bool,
}

/// A tool that runs nothing.
#[derive(Clone)]
pub struct FakeBash {
    effects: Effects,
    seen: Arc<Mutex<Option<Confinement>>>,
}

impl FakeBash {
    /// Creates a tool whose calls have these effects.
    pub fn with(effects: Effects) -> Self {
        Self {
            effects,
            seen: Arc::default(),
        }
    }

    /// Returns the confinement of the last call and clears it. `None` if no call has run since.
    pub fn take(&self) -> Option<Confinement> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.take()
    }
}

impl Tool for FakeBash {
    type Input = BashInput;
    const NAME: &'static str = "Bash";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            rules: RuleMatch::Command("command"),
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &BashInput) -> Effects {
        self.effects.clone()
    }

    async fn call(&self, input: &BashInput, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = Some(cx.permissions.confinement.clone());
        Ok(ToolOutput::text(format!("ran {}", input.command)))
    }
}
