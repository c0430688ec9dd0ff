//! `/clear`, `/compact`, `/resume`, `/rename`: commands about the conversation.

use haft_agent::OpenTranscript;
use haft_contract::SessionId;

use super::{BuiltInCommand, CommandAction, CommandAnswer, CommandContext, blocking, short, table};
use crate::{SessionEvent, SessionInput, utc_time};

/// The maximum number of listed conversations.
const LISTED: usize = 20;

pub(super) static CLEAR: BuiltInCommand = BuiltInCommand {
    name: "clear",
    hint: "[name]",
    description: "Start a new conversation",
    acts: CommandAction::Between(|context, name| Box::pin(clear(context, name))),
};

pub(super) static COMPACT: BuiltInCommand = BuiltInCommand {
    name: "compact",
    hint: "[what matters]",
    description: "Summarize the conversation; the text after the command says what matters",
    acts: CommandAction::Between(|context, matters| Box::pin(compact(context, matters))),
};

pub(super) static RESUME: BuiltInCommand = BuiltInCommand {
    name: "resume",
    hint: "[id or title]",
    description: "List earlier conversations, or resume one",
    acts: CommandAction::Between(|context, name| Box::pin(resume(context, name))),
};

pub(super) static RENAME: BuiltInCommand = BuiltInCommand {
    name: "rename",
    hint: "<title>",
    description: "Give the conversation a title",
    acts: CommandAction::Anytime(|input, title| Box::pin(async move { rename(input, title) })),
};

async fn clear(context: &mut CommandContext<'_>, name: &str) -> CommandAnswer {
    let successor = context.commands.start_conversation.as_ref();
    let next = successor.map(|successor| successor());
    let next = next.unwrap_or_else(|| Ok(OpenTranscript::in_memory(SessionId::new())));
    let next = next.map_err(|error| format!("The conversation cannot be cleared: {error:#}"))?;
    let id = next.id();
    let name = name.trim();
    if !name.is_empty() {
        // The name is the title of the cleared conversation, so that it can be found.
        context.agent.transcript().set_title(name);
    }
    // Emitted before the switch, while the cleared conversation is still current.
    context.events.emit(&SessionEvent::Reset(id));
    context.agent.clear(next, context.events).await;
    context.commands.set_session(id);
    context.input.0.conversation_changed();
    Ok("Started a new conversation.".to_owned())
}

async fn compact(context: &mut CommandContext<'_>, instructions: &str) -> CommandAnswer {
    let control = context.agent.control();
    let run = context.agent.compact(instructions, context.events);
    tokio::pin!(run);
    let done = tokio::select! {
        biased;
        done = &mut run => done,
        () = context.stop.wait() => {
            control.interrupt();
            run.await
        }
    };
    match done {
        Ok(true) => Ok("The conversation was summarized.".to_owned()),
        Ok(false) => Ok("The conversation was not summarized: it is empty, a hook blocked it, or it was interrupted.".to_owned()),
        Err(error) => Err(format!("The conversation could not be summarized: {error}")),
    }
}

async fn resume(context: &mut CommandContext<'_>, name: &str) -> CommandAnswer {
    let name = name.trim();
    if name.is_empty() {
        let input = context.input.clone();
        return blocking(move || list(&input)).await;
    }
    let opens = context.commands.resume_conversation.as_ref();
    let next = opens.map(|opens| opens(name));
    let next = next.ok_or("this session cannot resume another conversation")?;
    let next = next.map_err(|error| format!("{error:#}"))?;
    let id = next.id();
    context.events.emit(&SessionEvent::Reset(id));
    context
        .agent
        .resume_conversation(next, context.events)
        .await;
    context.commands.set_session(id);
    context.input.0.conversation_changed();
    let messages = context.agent.conversation().messages().len();
    Ok(format!(
        "Resumed the conversation {id}: {messages} messages."
    ))
}

fn list(input: &SessionInput) -> CommandAnswer {
    let entries = input.session_entries(false);
    let entries = entries.map_err(|error| error.to_string())?;
    if entries.is_empty() {
        return Ok("No earlier conversation was found in this directory.".to_owned());
    }
    let rows = entries.into_iter().take(LISTED).map(|entry| {
        let said = entry.title.or(entry.first_prompt).unwrap_or_default();
        let changed = utc_time::show(entry.changed);
        vec![entry.id.to_string(), changed, short(&said, 60)]
    });
    Ok(table(&rows.collect::<Vec<_>>()))
}

fn rename(input: &SessionInput, title: &str) -> CommandAnswer {
    let title = title.trim();
    if title.is_empty() {
        return Err("the title is missing: /rename TITLE".to_owned());
    }
    input.rename(title)?;
    Ok(format!("The conversation is called {title:?}."))
}
