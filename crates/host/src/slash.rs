//! Prompts that begin with a slash: skills and commands from folders, and the built-in commands.

use std::{path::PathBuf, sync::Arc};

use haft_agent::{Agent, OpenTranscript, Prompt, PromptExpansion, RunResult};
use haft_contract::{CancellationToken, Content, SessionId};
use haft_extensions::{ExtensionOrigin, Skill, SlashCall, slash};
use haft_mcp::client::Servers;
use haft_tools::{SkillCaller, SkillService};

use crate::{
    SessionEvent, SessionInput,
    commands::{CommandAction, CommandContext, THEIRS, built_in},
    event::EventEmitter,
    stop_signal::StopSignal,
};

/// The outcome of parsing a prompt for commands.
pub(crate) enum PromptOutcome {
    /// A prompt for the model.
    Prompt(Prompt),
    /// Answered without the model.
    Answered(Box<RunResult>),
}

pub(crate) type StartConversation = dyn Fn() -> anyhow::Result<OpenTranscript> + Send + Sync;
pub(crate) type ResumeConversation = dyn Fn(&str) -> anyhow::Result<OpenTranscript> + Send + Sync;

/// The slash commands of a session.
#[derive(Default)]
pub(crate) struct SlashCommands {
    /// The skills and commands. None: prompts are not parsed for commands.
    pub(crate) skills: Option<Arc<SkillService>>,
    /// Whether subagents can be launched.
    pub(crate) can_launch_subagents: bool,
    /// The servers whose prompts are commands.
    pub(crate) servers: Option<Arc<Servers>>,
    /// The folder for the results of servers.
    pub(crate) folder: PathBuf,
    /// Starts the conversation that replaces a cleared one.
    pub(crate) start_conversation: Option<Box<StartConversation>>,
    /// Resumes another conversation by its id or title.
    pub(crate) resume_conversation: Option<Box<ResumeConversation>>,
    /// The session that built-in commands control.
    pub(crate) input: Option<SessionInput>,
}

impl SlashCommands {
    /// Parses a prompt for commands. The last text in it is the one that was typed.
    pub(crate) async fn read(
        &self,
        mut prompt: Prompt,
        agent: &mut Agent,
        events: &EventEmitter,
        stop: &StopSignal,
    ) -> PromptOutcome {
        let Some(book) = &self.skills else {
            return PromptOutcome::Prompt(prompt);
        };
        let typed = prompt
            .content
            .iter_mut()
            .rev()
            .find_map(|content| match content {
                Content::Text { text } => Some(text),
                _ => None,
            });
        let Some(typed) = typed else {
            return PromptOutcome::Prompt(prompt);
        };
        let is_known = |name: &str| {
            let name = name.strip_prefix(THEIRS).unwrap_or(name);
            book.skills.get(name).is_some()
        };
        let Some(called) = slash(typed, is_known) else {
            return PromptOutcome::Prompt(prompt);
        };
        let name = called.names[0];
        let (command, arguments) = (built_in(name), called.arguments.to_owned());
        if let (Some(command), Some(input)) = (command, &self.input) {
            if let CommandAction::Prompt(words) = command.acts {
                *typed = words(&arguments);
                return PromptOutcome::Prompt(prompt);
            }
            let line = typed.trim().to_owned();
            // A command that calls the model is announced before it runs, the others after they
            // have changed the session.
            let asks = matches!(command.name, "compact" | "rewind");
            if asks {
                agent.announce_run(events);
            }
            let mut context = CommandContext {
                agent,
                input: input.clone(),
                commands: self,
                events,
                stop,
            };
            let answer = command.run(&mut context, &arguments).await;
            let answer = answer.unwrap_or_else(|| Ok(String::new()));
            if !asks {
                agent.announce_run(events);
            }
            events.emit(&SessionEvent::CommandAnswered {
                line,
                answer: answer.clone(),
            });
            return PromptOutcome::Answered(Box::new(agent.answer_without_model(answer)));
        }
        let answer = match name {
            name if name.starts_with("mcp__") => {
                let what = PromptExpansion {
                    kind: "mcp_prompt",
                    name,
                    arguments: called.arguments,
                    source: "mcp",
                    typed: &*typed,
                };
                let known = agent.fire_prompt_expansion(&what, events).await;
                let said = match known {
                    Ok(known) => {
                        let said = self.server_prompt(name, called.arguments).await;
                        said.map(|mut said| {
                            said.extend(known.iter().map(|text| Content::text(reminder(text))));
                            said
                        })
                    }
                    Err(why) => Err(format!("/{name}: a hook stopped it: {why}")),
                };
                match said {
                    Ok(contents) => {
                        let at = prompt
                            .content
                            .iter()
                            .rposition(|one| matches!(one, Content::Text { .. }));
                        let at = at.unwrap_or_default();
                        prompt.content.splice(at..=at, contents);
                        return PromptOutcome::Prompt(prompt);
                    }
                    Err(why) => announced(agent, events, Err(why)),
                }
            }
            _ => match skills(book, &called, agent, self.can_launch_subagents, events).await {
                Ok(text) => {
                    *typed = text;
                    return PromptOutcome::Prompt(prompt);
                }
                Err(why) => announced(agent, events, Err(why)),
            },
        };
        PromptOutcome::Answered(Box::new(answer))
    }

    /// Assigns the skills to a conversation.
    pub(crate) fn set_session(&self, id: SessionId) {
        if let Some(book) = &self.skills {
            book.set_session(&id.to_string());
        }
    }

    /// Returns the content of a server's prompt.
    async fn server_prompt(&self, name: &str, arguments: &str) -> Result<Vec<Content>, String> {
        let given: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let said = match &self.servers {
            Some(servers) => servers.prompt(name, &given, &self.folder).await,
            None => None,
        };
        let said =
            said.unwrap_or_else(|| Err("no connected MCP server has this prompt".to_owned()));
        said.map_err(|why| format!("/{name}: {why}"))
    }
}

fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// Returns the source of a command, as hooks receive it.
fn source(skill: &Skill) -> &'static str {
    match skill.origin {
        ExtensionOrigin::Managed => "managed",
        ExtensionOrigin::Given | ExtensionOrigin::User => "user",
        ExtensionOrigin::Project => "project",
        ExtensionOrigin::Plugin => "plugin",
        ExtensionOrigin::BuiltIn => "builtin",
    }
}

fn announced(agent: &Agent, events: &EventEmitter, answer: Result<String, String>) -> RunResult {
    agent.announce_run(events);
    agent.answer_without_model(answer)
}

/// Returns the texts of the called skills. Their permissions apply to the following run.
async fn skills(
    book: &SkillService,
    called: &SlashCall<'_>,
    agent: &mut Agent,
    launches: bool,
    events: &EventEmitter,
) -> Result<String, String> {
    let (aside, cancel) = (agent.nested_calls(), CancellationToken::new());
    let mut said = Vec::new();
    let mut patches = Vec::new();
    for name in &called.names {
        // A prefix selects the user's skill if a built-in command has the same name.
        let name = &match book.skills.get(name) {
            Some(_) => *name,
            None => name.strip_prefix(THEIRS).unwrap_or(name),
        };
        let found = book.find(name, SkillCaller::User);
        let skill = found.map_err(|why| format!("/{name}: {why}"))?;
        if skill.fork.is_some() && !launches {
            return Err(format!(
                "/{name} is to be carried out by a subagent (context: fork), and this session cannot \
                 launch one: ask the model to carry out {}",
                skill.file.display()
            ));
        }
        let typed = format!("/{name} {}", called.arguments);
        let what = PromptExpansion {
            kind: "slash_command",
            name,
            arguments: called.arguments,
            source: source(&skill),
            typed: typed.trim(),
        };
        let known = agent.fire_prompt_expansion(&what, events).await;
        let known = known.map_err(|why| format!("/{name}: a hook stopped it: {why}"))?;
        let invoked = book
            .invoke(name, called.arguments, SkillCaller::User, &aside, &cancel)
            .await?;
        patches.extend(invoked.patches());
        for message in invoked.hooks.messages.iter().chain(&invoked.warnings) {
            events.warn(message.clone());
        }
        if let Some(why) = invoked.hooks.stop {
            return Err(format!("/{name}: a hook stopped it: {why}"));
        }
        let what = match &skill.fork {
            Some(kind) => format!(
                "Give the following text, unchanged, to a subagent of the kind {kind}, and report its \
                 answer"
            ),
            None => format!("The user calls {}", typed.trim()),
        };
        said.push(format!("{what}:\n\n{}", invoked.text));
        let context = known.iter().chain(&invoked.hooks.context);
        said.extend(context.map(|text| reminder(text)));
    }
    agent.set_next_run_patches(patches);
    Ok(said.join("\n\n"))
}
