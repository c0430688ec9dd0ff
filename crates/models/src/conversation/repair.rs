//! Repairs conversations that come from elsewhere, so that they can be sent.

use std::{collections::HashSet, fmt};

use haft_contract::{Content, Role};

use super::{Block, Conversation, Message, ToolResult, empty_input};

/// A violated invariant and its repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryRepair {
    /// The conversation began with the model: a placeholder replaces the missing user message.
    BeginningMissing,
    /// The call had no result: it got one that says so.
    Unanswered {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// The result answers no call of the message before it: removed.
    OrphanResult {
        /// The id of the missing call.
        id: String,
    },
    /// Two calls or two results in one message had the same id: only the first was kept.
    DuplicateId {
        /// The id.
        id: String,
    },
    /// The input was not an object: it is empty now.
    InvalidInput {
        /// The id of the call.
        id: String,
    },
    /// The block lacks required fields of its type: removed.
    Unreadable {
        /// The type of the block.
        kind: String,
    },
    /// The block is not allowed in a message of this role: removed.
    Misplaced {
        /// The role of the message.
        role: Role,
    },
}

impl fmt::Display for HistoryRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeginningMissing => f.write_str(
                "the conversation began with the model; a placeholder was inserted before it",
            ),
            Self::Unanswered { id, name } => {
                write!(
                    f,
                    "call {id} of {name} had no result; it is treated as interrupted"
                )
            }
            Self::OrphanResult { id } => {
                write!(f, "a result for {id} answered no call; it was removed")
            }
            Self::DuplicateId { id } => {
                write!(
                    f,
                    "{id} occurred twice in one message; only the first was kept"
                )
            }
            Self::InvalidInput { id } => {
                write!(
                    f,
                    "the input of call {id} was not an object; it is now empty"
                )
            }
            Self::Unreadable { kind } => {
                write!(
                    f,
                    "a block of type {kind} lacked a required field; it was removed"
                )
            }
            Self::Misplaced { role } => write!(
                f,
                "a block is not allowed in a message of the {}; it was removed",
                match role {
                    Role::User => "user",
                    Role::Assistant => "model",
                }
            ),
        }
    }
}

/// The result that the model sees for a call without one.
const INTERRUPTED: &str = "No result: the session was interrupted before this call finished. \
                           It may have run; check its effects before you repeat it.";

/// Block types that this crate defines. A block of such a type that is parsed as [`Block::Other`]
/// is invalid.
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
    /// Builds a conversation from these messages and repairs it where needed. Returns the list of
    /// repairs.
    pub fn load(messages: impl IntoIterator<Item = Message>) -> (Self, Vec<HistoryRepair>) {
        let mut repairs = Vec::new();
        let mut conversation = Self::new();
        let mut messages = merged(messages).into_iter().peekable();
        while let Some(message) = messages.next() {
            if message.role == Role::User {
                // Results were added together with the message of their calls; those left here have
                // no call.
                conversation.user(split_user_message(
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
            let message = repair_assistant(message, &mut repairs);
            let ids: HashSet<String> = message.calls().map(|(id, _)| id.to_owned()).collect();
            let mut results = Vec::new();
            let next = messages.next_if(|next| next.role == Role::User);
            let after = next.map(|next| split_user_message(next, &ids, &mut results, &mut repairs));
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
                // All errors were repaired above.
                tracing::error!(%error, "a repaired message was refused");
            }
            conversation.user(after.into_iter().flatten());
        }
        (conversation, repairs)
    }
}

/// Merges consecutive messages of one role: logs store one block per message.
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

/// Returns a message of the model without the blocks that it must not contain.
fn repair_assistant(mut message: Message, repairs: &mut Vec<HistoryRepair>) -> Message {
    let mut seen = HashSet::new();
    message.content.retain_mut(|block| match block {
        Block::ToolUse { id, input, .. } => {
            if !input.is_object() {
                *input = empty_input();
                repairs.push(HistoryRepair::InvalidInput { id: id.clone() });
            }
            let first = seen.insert(id.clone());
            if !first {
                repairs.push(HistoryRepair::DuplicateId { id: id.clone() });
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

/// Returns the user's content. Results of the given calls go to `results`.
fn split_user_message(
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
                    repairs.push(HistoryRepair::OrphanResult { id });
                } else if !seen.insert(id.clone()) {
                    repairs.push(HistoryRepair::DuplicateId { id });
                } else {
                    results.push(result);
                }
            }
            _ => repairs.push(HistoryRepair::Misplaced { role: Role::User }),
        }
    }
    content
}
