//! `/rewind`: restores the state before a message.

use haft_contract::Services;
use uuid::Uuid;

use super::{
    BuiltInCommand, CommandAction, CommandAnswer, CommandContext, blocking, short, table, undo,
};
use crate::{
    RewindKind, SessionEvent, SessionInput, UndoReport, UndoWhich, session_access::NOT_BEGUN,
    utc_time,
};

pub(super) static REWIND: BuiltInCommand = BuiltInCommand {
    name: "rewind",
    hint: "[MESSAGE both|talk|files|summary]",
    description: "List the messages, or restore the state before one",
    acts: CommandAction::Between(|context, arguments| Box::pin(rewind(context, arguments))),
};

async fn rewind(context: &mut CommandContext<'_>, arguments: &str) -> CommandAnswer {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let (message, kind) = match words.as_slice() {
        [] => {
            let input = context.input.clone();
            return blocking(move || list(&input)).await;
        }
        [message] => (*message, None),
        [message, kind] => (*message, RewindKind::named(kind)),
        _ => (words[0], None),
    };
    let message: Uuid = message
        .parse()
        .map_err(|_| format!("{message:?} is not a message; /rewind lists the messages"))?;
    let Some(kind) = kind else {
        let input = context.input.clone();
        return blocking(move || preview(&input, message)).await;
    };
    // The message may be the end of a branch that an earlier rewind has left.
    if let Some(back) = resume_from(context, message, kind) {
        return back;
    }
    let said = context.input.user_prompts();
    let point = said.into_iter().find(|one| one.uuid == message);
    let point = point.ok_or_else(|| format!("the session has no message {message}"))?;
    let mut told = Vec::new();
    if matches!(kind, RewindKind::Both | RewindKind::Files) {
        let input = context.input.clone();
        let report = blocking(move || files(&input, message)).await?;
        match report {
            Some(report) => told.push(undo::undo_text(&report)?),
            None => told.push("No file had changed.".to_owned()),
        }
    }
    let before = point.parent.as_deref();
    let last = match kind {
        RewindKind::Both | RewindKind::Conversation => Some(context.agent.rewind_to(before)?),
        RewindKind::Files => None,
        RewindKind::Summary => {
            let agent = &mut *context.agent;
            let done = agent
                .summarize_from(&point.text, before, context.events)
                .await?;
            match done {
                Some(last) => Some(Some(last)),
                None => return Err("it was interrupted; nothing has changed".to_owned()),
            }
        }
    };
    if let Some(last) = last {
        told.push(format!(
            "Rewound the conversation to before: {}",
            short(&point.text, 60)
        ));
        if let Some(last) = last {
            told.push(format!("To undo this: /rewind {last} talk"));
        }
    }
    let to = message;
    context.events.emit(&SessionEvent::Rewound { to, kind });
    Ok(told.join("\n"))
}

/// Returns to a message that an earlier rewind has left: the conversation continues after it.
fn resume_from(
    context: &mut CommandContext<'_>,
    message: Uuid,
    kind: RewindKind,
) -> Option<CommandAnswer> {
    let is_prompt = context
        .input
        .user_prompts()
        .iter()
        .any(|one| one.uuid == message);
    if is_prompt || kind != RewindKind::Conversation {
        return None;
    }
    Some(match context.agent.rewind_to(Some(&message.to_string())) {
        Ok(_) => Ok("Undid the rewind of the conversation.".to_owned()),
        Err(why) => Err(why),
    })
}

/// Restores the files; `None`: none has changed.
fn files(input: &SessionInput, message: Uuid) -> Result<Option<UndoReport>, String> {
    let _: &Services = input.0.access.services().ok_or(NOT_BEGUN)?;
    let points = input.rewind_points()?;
    let point = points.iter().find(|point| point.uuid == message);
    if point.is_none_or(|point| point.files.is_empty()) {
        return Ok(None);
    }
    let report = input.undo(&UndoWhich::Since(message), true)?;
    if let Some(conflict) = report.conflict {
        return Err(format!("nothing has changed: {conflict}"));
    }
    input.undo(&UndoWhich::Since(message), false).map(Some)
}

fn list(input: &SessionInput) -> CommandAnswer {
    let points = input.rewind_points()?;
    if points.is_empty() {
        return Ok("No message was sent yet.".to_owned());
    }
    let rows = points.into_iter().map(|point| {
        let time = point.time.map(utc_time::show).unwrap_or_default();
        let changed = undo::files(&point.files);
        vec![
            point.uuid.to_string(),
            time,
            short(&point.text, 50),
            changed,
        ]
    });
    Ok(table(&rows.collect::<Vec<_>>()))
}

fn preview(input: &SessionInput, message: Uuid) -> CommandAnswer {
    let points = input.rewind_points()?;
    let after = points.iter().skip_while(|point| point.uuid != message);
    let after: Vec<_> = after.collect();
    let point = after
        .first()
        .ok_or_else(|| format!("the session has no message {message}"))?;
    Ok(format!(
        "Before {:?}: this removes {} of your messages, and {} changed since. To rewind: /rewind {message} \
         both|talk|files|summary",
        short(&point.text, 50),
        after.len(),
        undo::files(&point.files)
    ))
}
