//! A tool that asks in every mode.

use haft_contract::{
    CallContext, Effects, Tool, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks for permission, and does nothing with it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestingPermissionInput {
    /// The reason to show in the question.
    #[serde(default)]
    pub reason: String,
}

/// A tool that asks the user in every mode, including `bypassPermissions`, regardless of the rules.
/// Tests use it to try permission prompts without a call that has an effect.
pub struct TestingPermission;

impl Tool for TestingPermission {
    type Input = TestingPermissionInput;
    const NAME: &'static str = "TestingPermission";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "testing".into(),
            ..ToolProfile::default()
        }
    }

    // No effects, so that only the tool's own opinion causes the prompt.
    fn effects(&self, _: &TestingPermissionInput) -> Effects {
        Effects::NONE
    }

    fn permission(&self, input: &TestingPermissionInput, _: &CallContext) -> ToolPermission {
        ToolPermission::Ask(match input.reason.as_str() {
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
