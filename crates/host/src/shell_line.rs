//! Command lines that the user types. They are run by the tool for commands, without asking but
//! with deny rules in force, and the model reads their output.

use haft_agent::{Agent, AgentEvent, Prompt, random_id};
use haft_contract::{Content, ToolUse};
use serde_json::json;

use crate::{event::EventEmitter, slash::PromptOutcome};

/// The tool for commands.
const TOOL: &str = "Bash";

/// Runs the command line in the last text of the prompt. The model answers only if `answers` is
/// set.
pub(crate) async fn run(
    mut prompt: Prompt,
    answers: bool,
    agent: &mut Agent,
    events: &EventEmitter,
) -> PromptOutcome {
    let typed = prompt.content.iter_mut().rev();
    let typed = typed
        .filter_map(|content| match content {
            Content::Text { text } => Some(text),
            _ => None,
        })
        .next();
    let Some(typed) = typed else {
        return PromptOutcome::Prompt(prompt);
    };
    let command = typed.trim().to_owned();
    agent.announce_run(events);
    let call = ToolUse {
        id: format!("typed_{}", random_id().simple()),
        name: TOOL.to_owned(),
        input: json!({"command": command, "description": "typed by the user"}),
    };
    let finished = agent.run_user_call(call, events).await;
    *typed = what_the_model_reads(&command, &finished.text(), finished.is_error);
    let uuid = prompt.uuid.unwrap_or_else(random_id);
    prompt.uuid = Some(uuid);
    haft_agent::AgentEventSink::on_event(
        events,
        &AgentEvent::CallFinished {
            uuid,
            finished: Box::new(finished),
        },
    );
    if answers {
        return PromptOutcome::Prompt(prompt);
    }
    agent.add_user_note(prompt.content);
    PromptOutcome::Answered(Box::new(agent.answer_without_model(Ok(String::new()))))
}

/// Formats the output like other transcripts do, so that their readers understand it.
fn what_the_model_reads(command: &str, output: &str, failed: bool) -> String {
    let (out, err) = match failed {
        false => (output, ""),
        true => ("", output),
    };
    format!(
        "<bash-input>{command}</bash-input>\n<bash-stdout>{out}</bash-stdout>\
         <bash-stderr>{err}</bash-stderr>"
    )
}
