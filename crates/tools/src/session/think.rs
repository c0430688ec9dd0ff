//! `Think`: records a thought.

use haft_contract::{
    CallContext, Card, CardSection, Effects, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Records a thought; nothing else happens.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    thought: String,
}

pub(crate) struct Think;

impl Tool for Think {
    type Input = Input;
    const NAME: &'static str = "Think";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "session".into(),
            search_hint: "think reason reflect".into(),
            access: ToolAccess::Reads,
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::NONE
    }

    async fn call(&self, input: &Input, _: &CallContext) -> Result<ToolOutput, ToolError> {
        // The model's thought is already in its context.
        Ok(ToolOutput::text("Noted.").with_structured(json!({"thought": input.thought})))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new(Self::NAME, "").with(CardSection::Muted(input.thought.clone())))
    }

    fn render_result(&self, input: &Input, _: &ToolOutput) -> Option<Card> {
        self.render_use(input)
    }
}
