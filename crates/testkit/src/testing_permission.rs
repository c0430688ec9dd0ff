//! A tool that asks in every mode.

use haft_contract::{CallContext, Effects, Permission, Profile, Tool, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks for permission, and does nothing with it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestingPermissionInput {
    /// Why it asks.
    #[serde(default)]
    pub reason: String,
}

/// Asks a person in every mode, `bypassPermissions` too, whatever the rules allow: what comes of a question can be
/// tried without a call that does anything.
pub struct TestingPermission;

impl Tool for TestingPermission {
    type Input = TestingPermissionInput;
    const NAME: &'static str = "TestingPermission";

    fn profile(&self) -> Profile {
        Profile {
            family: "testing".into(),
            ..Profile::default()
        }
    }

    // Harmless: so it is the tool's word alone that asks.
    fn effects(&self, _: &TestingPermissionInput) -> Effects {
        Effects::NONE
    }

    fn permission(&self, input: &TestingPermissionInput, _: &CallContext) -> Permission {
        Permission::Ask(match input.reason.as_str() {
            "" => "permission is being tested".to_owned(),
            reason => reason.to_owned(),
        })
    }

    async fn call(
        &self,
        _: &TestingPermissionInput,
        _: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("permitted"))
    }
}
