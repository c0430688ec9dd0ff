//! Prompts that begin with a slash: skills and commands that people wrote, and a few of our own.

use std::{path::PathBuf, sync::Arc};

use haft_agent::{Agent, Prompt, RunResult, Session};
use haft_contract::{CancellationToken, Content, SessionId};
use haft_extensions::{Slash, slash};
use haft_mcp::client::Servers;
use haft_tools::{Caller, SkillBook};

use crate::{SessionEvent, budget::Budget, event::Events, names::Names, stop::Stop};

/// What we bring ourselves, with a word on each.
pub(crate) const BUILT_IN: [(&str, &str); 6] = [
    ("clear", "Forget the conversation"),
    (
        "compact",
        "Sum the conversation up; what follows says what matters",
    ),
    ("context", "Say how full the model's window is"),
    ("cost", "Say what was spent"),
    (
        "init",
        "Write a CLAUDE.md that says how to work on this project",
    ),
    ("model", "Ask another model from now on"),
];

/// What `/init` means.
const INIT: &str = include_str!("init.md");

/// What a prompt means.
pub(crate) enum PromptMeaning {
    /// This is said to the model.
    Said(Prompt),
    /// It was answered without the model.
    Answered(Box<RunResult>),
}

pub(crate) type Successor = dyn Fn() -> anyhow::Result<Session> + Send + Sync;

/// Prompts that begin with a slash.
#[derive(Default)]
pub(crate) struct Commands {
    /// None: a slash is a slash.
    pub(crate) book: Option<Arc<SkillBook>>,
    pub(crate) names: Names,
    pub(crate) budget: Budget,
    /// Subagents can be launched.
    pub(crate) launches: bool,
    /// Servers whose prompts are commands.
    pub(crate) servers: Option<Arc<Servers>>,
    /// Where what they send is kept.
    pub(crate) folder: PathBuf,
    /// Makes the conversation that begins when this one is cleared.
    pub(crate) successor: Option<Box<Successor>>,
}

impl Commands {
    /// What a prompt means. The last text in it is what was typed.
    pub(crate) async fn read(
        &self,
        mut prompt: Prompt,
        agent: &mut Agent,
        events: &Events,
        stop: &Stop,
    ) -> PromptMeaning {
        let Some(book) = &self.book else {
            return PromptMeaning::Said(prompt);
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
            return PromptMeaning::Said(prompt);
        };
        let is_known = |name: &str| book.skills.get(name).is_some();
        let Some(called) = slash(typed, is_known) else {
            return PromptMeaning::Said(prompt);
        };
        let answer = match called.names[0] {
            "init" => {
                *typed = format!("{}\n\n{}", INIT.trim(), called.arguments);
                return PromptMeaning::Said(prompt);
            }
            "clear" => {
                let answer = self.clear(agent, book, events).await;
                announced(agent, events, answer)
            }
            "compact" => {
                agent.announce(events);
                let answer = compact(agent, called.arguments, events, stop).await;
                agent.answer(answer)
            }
            "context" => announced(agent, events, Ok(context(agent))),
            "cost" => announced(agent, events, Ok(cost(agent))),
            "model" => {
                let answer = self.model(agent, called.arguments).await;
                announced(agent, events, answer)
            }
            name if name.starts_with("mcp__") => {
                match self.server_prompt(name, called.arguments).await {
                    Ok(contents) => {
                        let at = prompt
                            .content
                            .iter()
                            .rposition(|one| matches!(one, Content::Text { .. }));
                        let at = at.unwrap_or_default();
                        prompt.content.splice(at..=at, contents);
                        return PromptMeaning::Said(prompt);
                    }
                    Err(why) => announced(agent, events, Err(why)),
                }
            }
            _ => match skills(book, &called, agent, self.launches, events).await {
                Ok(text) => {
                    *typed = text;
                    return PromptMeaning::Said(prompt);
                }
                Err(why) => announced(agent, events, Err(why)),
            },
        };
        PromptMeaning::Answered(Box::new(answer))
    }

    /// Another conversation takes the place of this one.
    async fn clear(
        &self,
        agent: &mut Agent,
        book: &SkillBook,
        events: &Events,
    ) -> Result<String, String> {
        let next = self.successor.as_ref().map(|successor| successor());
        let next = next.unwrap_or_else(|| Ok(Session::in_memory(SessionId::new())));
        let next =
            next.map_err(|error| format!("The conversation cannot be cleared: {error:#}"))?;
        let id = next.id();
        // Still in the name of the conversation that ends.
        events.emit(&SessionEvent::Reset(id));
        agent.clear(next, events).await;
        book.set_session(&id.to_string());
        Ok("The conversation is forgotten.".to_owned())
    }

    /// What a prompt of a server says.
    async fn server_prompt(&self, name: &str, arguments: &str) -> Result<Vec<Content>, String> {
        let given: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let said = match &self.servers {
            Some(servers) => servers.prompt(name, &given, &self.folder).await,
            None => None,
        };
        let said = said
            .unwrap_or_else(|| Err("no MCP server that is connected has such a prompt".to_owned()));
        said.map_err(|why| format!("/{name}: {why}"))
    }

    async fn model(&self, agent: &Agent, name: &str) -> Result<String, String> {
        let name = name.trim();
        if name.is_empty() {
            return Ok(format!("The model is {}.", agent.settings().name));
        }
        let name = self.names.resolve(name).await?;
        self.budget.covers(&name);
        agent.control().set_window(self.names.window_of(&name));
        agent.control().set_model(name.as_str());
        Ok(format!("From the next message on, {name} is asked."))
    }
}

fn announced(agent: &Agent, events: &Events, answer: Result<String, String>) -> RunResult {
    agent.announce(events);
    agent.answer(answer)
}

/// What the skills say that were called; what they permit counts for the run that follows.
async fn skills(
    book: &SkillBook,
    called: &Slash<'_>,
    agent: &mut Agent,
    launches: bool,
    events: &Events,
) -> Result<String, String> {
    let (aside, cancel) = (agent.aside(), CancellationToken::new());
    let mut said = Vec::new();
    let mut patches = Vec::new();
    for name in &called.names {
        let found = book.find(name, Caller::Person);
        let skill = found.map_err(|why| format!("/{name}: {why}"))?;
        if skill.fork.is_some() && !launches {
            return Err(format!(
                "/{name} is to be carried out by a subagent (context: fork), and this session cannot \
                 launch one: ask the model to carry out {}",
                skill.file.display()
            ));
        }
        let invoked = book
            .invoke(name, called.arguments, Caller::Person, &aside, &cancel)
            .await?;
        patches.extend(invoked.patches());
        for message in &invoked.hooks.messages {
            events.warn(message.clone());
        }
        if let Some(why) = invoked.hooks.stop {
            return Err(format!("/{name}: a hook stopped it: {why}"));
        }
        let typed = format!("/{name} {}", called.arguments);
        let what = match &skill.fork {
            Some(kind) => format!(
                "Hand the following to a subagent of the kind {kind}, word for word, and report what \
                 it answers"
            ),
            None => format!("The person calls {}", typed.trim()),
        };
        said.push(format!("{what}:\n\n{}", invoked.text));
        let context = invoked.hooks.context.iter();
        said.extend(context.map(|text| format!("<system-reminder>\n{text}\n</system-reminder>")));
    }
    agent.permit(patches);
    Ok(said.join("\n\n"))
}

async fn compact(
    agent: &mut Agent,
    instructions: &str,
    events: &Events,
    stop: &Stop,
) -> Result<String, String> {
    let control = agent.control();
    let run = agent.compact(instructions, events);
    tokio::pin!(run);
    let done = tokio::select! {
        biased;
        done = &mut run => done,
        () = stop.wait() => {
            control.interrupt();
            run.await
        }
    };
    match done {
        Ok(true) => Ok("The conversation was summarized.".to_owned()),
        Ok(false) => Ok("There was nothing to sum up, or it was held up.".to_owned()),
        Err(error) => Err(format!("The conversation could not be summarized: {error}")),
    }
}

fn context(agent: &Agent) -> String {
    let (tokens, window) = agent.context_usage();
    let percent = tokens * 100 / window.max(1);
    format!(
        "About {tokens} of {window} tokens are used ({percent} %), in {} messages.",
        agent.conversation().messages().len()
    )
}

fn cost(agent: &Agent) -> String {
    let ledger = agent.ledger();
    let mut text = format!("Spent so far: ${:.4}", ledger.total_cost() + 0.0);
    for (model, spent) in ledger.models() {
        let usage = &spent.usage;
        text += &format!(
            "\n{model}: {} tokens in, {} out, ${:.4}",
            usage.total_input(),
            usage.output,
            spent.cost
        );
    }
    text
}
