//! `Stamp`: a tool that no crate knows of. All that is to be known of it is in this file.

use std::{fs, path::PathBuf};

use haft::{
    AgentAccess, CallContext, Effects, RuleMatch, ServiceNeed, Tool, ToolAccess, ToolError,
    ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// What it stamps with.
pub(crate) struct StampPad(pub(crate) &'static str);

/// Puts a stamp at the end of a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Which file.
    path: PathBuf,
    /// How often.
    #[serde(default)]
    times: Option<u8>,
}

pub(crate) struct Stamp;

impl Tool for Stamp {
    type Input = Input;
    const NAME: &'static str = "Stamp";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            aliases: vec!["Seal".into()],
            access: ToolAccess::Paths,
            paths: &["path"],
            rules: RuleMatch::Paths,
            agents: AgentAccess::Foreground,
            needs: const { &[ServiceNeed::service::<StampPad>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        Effects::writing([input.path.clone()])
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let pad = cx.services.get::<StampPad>()?;
        let failed = |error: std::io::Error| ToolError::Failed(error.to_string());
        let mut text = fs::read_to_string(&input.path).map_err(failed)?;
        text += &pad.0.repeat(usize::from(input.times.unwrap_or(1)));
        fs::write(&input.path, text).map_err(failed)?;
        Ok(ToolOutput::text("stamped"))
    }
}
