//! A complete agent with its own tool: `ANTHROPIC_API_KEY=… cargo run --example agent -- MODEL PROMPT`
use std::{env, error::Error};

use haft::{AgentSession, ApprovalAnswer, ApprovalRequest, SessionConfig, SessionEvent};
use haft::{CallContext, SessionParts, Tool, ToolError, ToolOutput};

/// Returns the text in upper case. (The model reads this comment.)
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Shout {
    text: String,
}
struct ShoutTool;
impl Tool for ShoutTool {
    type Input = Shout;
    const NAME: &'static str = "Shout";
    async fn call(&self, input: &Shout, _: &CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(input.text.to_uppercase()))
    }
}
fn main() -> Result<(), Box<dyn Error>> {
    haft::serve_child(); // Bash runs in a sandbox whose keeper is this program, started again.
    agent()
}
#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn agent() -> Result<(), Box<dyn Error>> {
    let mut config = SessionConfig::new(env::current_dir()?);
    config.program = env::current_exe().ok();
    config.model.name = env::args().nth(1);
    config.model.script = env::var_os("SCRIPT").map(Into::into); // a scripted model: no key needed
    let show = |event: &SessionEvent| print!("{}", event.reply_text().unwrap_or_default());
    let answer = |asked: &ApprovalRequest| {
        println!("\n[allowed: {}]", asked.reason);
        ApprovalAnswer::Allow
    };
    let parts = SessionParts::new(show).questions(answer).tool(ShoutTool);
    let session = AgentSession::open(config, parts)?;
    let prompt = env::args().nth(2).ok_or("say what to do")?;
    Ok(session.answer(prompt).await.map(drop)?)
}
