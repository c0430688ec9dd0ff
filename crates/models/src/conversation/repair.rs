//! Making something sendable of a conversation that comes from elsewhere.

use std::{collections::HashSet, fmt};

use haft_contract::{Content, Role};

use super::{Block, Conversation, Message, ToolResult, empty_input};

/// Something that was not as it must be, and what was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryRepair {
    /// The model spoke first: a placeholder stands for what the user must have said.
    BeginningMissing,
    /// The call was never answered: it has a result that says so.
    Unanswered {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// The result answers no call of the message before it: left out.
    Unasked {
        /// What it answers.
        id: String,
    },
    /// Two calls or two results of one id in one message: the first stands.
    Twice {
        /// The id.
        id: String,
    },
    /// The input was no object: it is empty now.
    Input {
        /// The call.
        id: String,
    },
    /// The block is not as one of its type must be: left out.
    Unreadable {
        /// Its type.
        kind: String,
    },
    /// The block has no place in a message of this role: left out.
    Misplaced {
        /// Whose message.
        role: Role,
    },
}

impl fmt::Display for HistoryRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeginningMissing => {
                f.write_str("the conversation began with the model; a placeholder stands before it")
            }
            Self::Unanswered { id, name } => {
                write!(
                    f,
                    "call {id} of {name} had no result; it counts as interrupted"
                )
            }
            Self::Unasked { id } => write!(f, "a result for {id} answered no call; left out"),
            Self::Twice { id } => write!(f, "{id} stood twice in one message; the first is kept"),
            Self::Input { id } => {
                write!(f, "the input of call {id} was no object; it is empty now")
            }
            Self::Unreadable { kind } => {
                write!(f, "a block of type {kind} that lacks something; left out")
            }
            Self::Misplaced { role } => write!(
                f,
                "a block that a message of the {} cannot hold; left out",
                match role {
                    Role::User => "user",
                    Role::Assistant => "model",
                }
            ),
        }
    }
}

/// What the model reads as the result of a call that was never answered.
const INTERRUPTED: &str = "No result: the session was interrupted before this call finished. \
                           It may have run; look before you repeat it.";

/// Types that are no provider's own: a block of one of them that reads as [`Block::Other`] is broken.
const OURS: [&str; 7] = [
    "text",
    "image",
    "document",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
];

impl Conversation {
    /// A conversation of these messages, repaired where needed; the list says where.
    pub fn load(messages: impl IntoIterator<Item = Message>) -> (Self, Vec<HistoryRepair>) {
        let mut repairs = Vec::new();
        let mut conversation = Self::new();
        let mut messages = merged(messages).into_iter().peekable();
        while let Some(message) = messages.next() {
            if message.role == Role::User {
                // Results were taken with the message of their calls; those left have none.
                conversation.user(said(
                    message,
                    &HashSet::new(),
                    &mut Vec::new(),
                    &mut repairs,
                ));
                continue;
            }
            if conversation.entries.is_empty() {
                repairs.push(HistoryRepair::BeginningMissing);
                conversation.user([Content::text(
                    "(The beginning of this conversation is missing.)",
                )]);
            }
            let message = spoken(message, &mut repairs);
            let ids: HashSet<String> = message.calls().map(|(id, _)| id.to_owned()).collect();
            let mut results = Vec::new();
            let next = messages.next_if(|next| next.role == Role::User);
            let after = next.map(|next| said(next, &ids, &mut results, &mut repairs));
            let answered: HashSet<String> = results
                .iter()
                .map(|result| result.tool_use_id.clone())
                .collect();
            for (id, name) in message.calls().filter(|(id, _)| !answered.contains(*id)) {
                results.push(ToolResult::error(id, INTERRUPTED));
                let (id, name) = (id.to_owned(), name.to_owned());
                repairs.push(HistoryRepair::Unanswered { id, name });
            }
            if let Err(error) = conversation.assistant(message, results) {
                // Everything it refuses was taken out above.
                tracing::error!(%error, "a repaired message was refused");
            }
            conversation.user(after.into_iter().flatten());
        }
        (conversation, repairs)
    }
}

/// Messages of one role that follow each other are one: logs keep a message a block.
fn merged(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut merged: Vec<Message> = Vec::new();
    for message in messages {
        match merged.last_mut() {
            Some(last) if last.role == message.role => {
                last.content.extend(message.content);
                last.model = message.model.or(last.model.take());
            }
            _ => merged.push(message),
        }
    }
    merged
}

/// A message of the model's with nothing in it that cannot be there.
fn spoken(mut message: Message, repairs: &mut Vec<HistoryRepair>) -> Message {
    let mut seen = HashSet::new();
    message.content.retain_mut(|block| match block {
        Block::ToolUse { id, input, .. } => {
            if !input.is_object() {
                *input = empty_input();
                repairs.push(HistoryRepair::Input { id: id.clone() });
            }
            let first = seen.insert(id.clone());
            if !first {
                repairs.push(HistoryRepair::Twice { id: id.clone() });
            }
            first
        }
        Block::Image { .. } | Block::Document { .. } | Block::ToolResult(_) => {
            let role = Role::Assistant;
            repairs.push(HistoryRepair::Misplaced { role });
            false
        }
        Block::Other(value) => {
            let kind = value["type"].as_str().unwrap_or("?");
            let is_theirs = kind != "?" && !OURS.contains(&kind);
            if !is_theirs {
                let kind = kind.to_owned();
                repairs.push(HistoryRepair::Unreadable { kind });
            }
            is_theirs
        }
        _ => true,
    });
    message
}

/// What the user said; results of the given calls go to `results`.
fn said(
    message: Message,
    calls: &HashSet<String>,
    results: &mut Vec<ToolResult>,
    repairs: &mut Vec<HistoryRepair>,
) -> Vec<Content> {
    let mut seen = HashSet::new();
    let mut content = Vec::new();
    for block in message.content {
        match block {
            Block::Text { text } => content.push(Content::Text { text }),
            Block::Image { source } => content.push(Content::Image { source }),
            Block::Document { source } => content.push(Content::Document { source }),
            Block::ToolResult(result) => {
                let id = result.tool_use_id.clone();
                if !calls.contains(&id) {
                    repairs.push(HistoryRepair::Unasked { id });
                } else if !seen.insert(id.clone()) {
                    repairs.push(HistoryRepair::Twice { id });
                } else {
                    results.push(result);
                }
            }
            _ => repairs.push(HistoryRepair::Misplaced { role: Role::User }),
        }
    }
    content
}
