//! Your own tool that delegates work to a subagent. `cargo run -p haft-agent --example
//! second_opinion`
//!
//! The model is scripted; replace it by a real one (`haft_models::anthropic`,
//! `haft_models::openai`).

use std::{error::Error, sync::Arc};

use haft::{
    CallContext, Effects, Haft, LaunchOutcome, LaunchRequest, Subagents, Tool, ToolAccess,
    ToolError, ToolOutput, ToolProfile,
};
use haft_agent::{Agent, AgentEvent, ModelSettings, SubagentPool};
use haft_extensions::{Agents, ExtensionPlaces, agents::AgentOptions};
use haft_models::ScriptedModel;

/// Asks an agent that has not seen this conversation. The model reads this comment as the description.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The question, with all that is needed to answer it.
    question: String,
}

struct SecondOpinion;

impl Tool for SecondOpinion {
    type Input = Input;
    const NAME: &'static str = "SecondOpinion";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            access: ToolAccess::Reads, // the subagent's calls are checked individually
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::reading([])
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let launch = LaunchRequest {
            kind: Some("Explore".to_owned()), // read-only
            prompt: format!("{}\n\nAlso give the arguments against it.", input.question),
            description: "A second opinion".to_owned(),
            background: Some(false),
            ..LaunchRequest::default()
        };
        let subagents = cx.services.get::<Subagents>()?;
        match subagents.0.launch(launch, cx).await? {
            LaunchOutcome::Done(report) => Ok(ToolOutput::text(report.text)),
            LaunchOutcome::InBackground(receipt) => Ok(ToolOutput::text(receipt.agent)),
        }
    }
}

/// The turns of the main conversation, then those of the subagent.
const SCRIPT: &str = r#"{
  "turns": [
    {"content": [{"type": "tool_use", "name": "SecondOpinion", "input": {"question": "Is this crate small?"}}]},
    {"content": [{"type": "text", "text": "Somebody else has looked: it is."}]}
  ],
  "conversations": [{"when": "Is this crate small?", "turns": [
    {"content": [{"type": "tool_use", "name": "Glob", "input": {"pattern": "src/*.rs"}}]},
    {"content": [{"type": "text", "text": "It is, though tests are not counted."}]}
  ]}]
}"#;

async fn run(dir: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let model = Arc::new(ScriptedModel::parse(SCRIPT)?);
    let (kinds, _) = Agents::load(
        &ExtensionPlaces::for_project(dir.as_ref()),
        &AgentOptions::default(),
    );
    let crew = SubagentPool::builder(kinds.list().iter().cloned())
        .services(haft::tools::for_subagent)
        .build();
    let haft = Haft::builder(dir)
        .tool(SecondOpinion)
        .service(crew.service())
        .build()
        .await?;
    let settings = ModelSettings::new("scripted");
    let mut agent = Agent::builder(haft.into_scheduler(), model, settings)
        .subagents(crew.clone())
        .build();
    let answers = std::sync::Mutex::new(Vec::new());
    let hear = |event: &AgentEvent| {
        if let AgentEvent::CallFinished { finished, .. } = event
            && let Ok(mut answers) = answers.lock()
        {
            answers.push(format!("{}: {}", finished.name, finished.text()));
        }
    };
    let ended = agent
        .run("Ask around about the size of this crate.", &hear)
        .await;
    crew.close().await;
    let mut said = answers.into_inner()?;
    said.push(ended.text);
    Ok(said)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn Error>> {
    for line in run(env!("CARGO_MANIFEST_DIR")).await? {
        println!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_subagent_answers_the_call() {
        let said = super::run(env!("CARGO_MANIFEST_DIR"))
            .await
            .unwrap_or_default();
        assert_eq!(
            said,
            [
                "SecondOpinion: It is, though tests are not counted.",
                "Somebody else has looked: it is."
            ]
        );
    }
}
