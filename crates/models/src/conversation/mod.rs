//! The conversation so far, always in a state that can be sent.
//!
//! **Invariants**, held by construction:
//! - Messages alternate between user and model, and the user begins.
//! - Every tool call of an assistant message has its result in the next message. Results come
//!   first, in the order of the calls. Every result has a call.
//! - Call ids are unique.
//! - No text is empty.
//!
//! So a call and its result are added together ([`Conversation::assistant`]). Messages from
//! elsewhere are loaded with [`Conversation::load`], which repairs them and reports each repair.
//!
//! A message is serialized when it is first sent and never again: the cost of a new message does
//! not depend on the length of the conversation.

mod block;
mod images;
mod prune;
mod repair;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use haft_contract::{Content, Role};
use serde_json::Value;

pub use block::{Block, Message, ToolResult};
pub use repair::HistoryRepair;

use crate::fragments::Fragments;

/// The messages so far.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    entries: Vec<Arc<ConversationEntry>>,
    ids: HashSet<String>,
}

/// The messages of one request. Creating and cloning it is cheap.
#[derive(Debug, Clone, Default)]
pub struct RequestHistory {
    entries: Vec<Arc<ConversationEntry>>,
}

/// A message with its cached data.
#[derive(Debug)]
pub(crate) struct ConversationEntry {
    pub(crate) message: Message,
    /// For a message with results: the name of the tool by call id.
    pub(crate) tools: HashMap<String, String>,
    pub(crate) fragments: Fragments,
}

/// The reason why a message cannot be added to a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// The first message is from the model instead of the user.
    #[error("a conversation begins with the user, not with the model")]
    NoUserMessage,
    /// A call without a result.
    #[error("call {id} of {name} has no result")]
    Unanswered {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// A result without a call.
    #[error("a result answers {id}, but the message has no such call")]
    ResultWithoutCall {
        /// The id of the missing call.
        id: String,
    },
    /// An id occurs twice.
    #[error("{id} occurs twice in one message")]
    DuplicateId {
        /// The id.
        id: String,
    },
    /// A block is not allowed in a message of this role.
    #[error("a message of the model's cannot hold {0}")]
    Misplaced(&'static str),
    /// The input of a call is not an object, and providers accept only objects.
    #[error("the input of call {id} is not a JSON object")]
    InvalidInput {
        /// The id of the call.
        id: String,
    },
}

impl Conversation {
    /// Creates an empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds user content. If the last message is from the user (results included), extends it.
    pub fn user(&mut self, content: impl IntoIterator<Item = Content>) {
        let content: Vec<Block> = content.into_iter().map(Block::from).collect();
        self.add(Message::user(content), HashMap::new());
    }

    /// Adds a reply of the model with the results of its calls: exactly one result for every call,
    /// in any order. A reply without content adds nothing. If the last message is from the model
    /// (it paused), the reply extends it.
    pub fn assistant(
        &mut self,
        mut message: Message,
        results: Vec<ToolResult>,
    ) -> Result<(), ConversationError> {
        message.role = Role::Assistant;
        if self.entries.is_empty() {
            return Err(ConversationError::NoUserMessage);
        }
        let mut results = order_by_call(&message, results)?;
        let mut tools = HashMap::new();
        let uses = message.content.iter_mut().filter_map(|block| match block {
            Block::ToolUse { id, name, .. } => Some((id, name)),
            _ => None,
        });
        for ((id, name), result) in uses.zip(&mut results) {
            // Some servers number the calls of every reply from 0, so an id may repeat.
            if !self.ids.insert(id.clone()) {
                let fresh = (2..).map(|n| format!("{id}_{n}"));
                let mut free = fresh.filter(|fresh| !self.ids.contains(fresh));
                *id = free.next().unwrap_or_default();
                self.ids.insert(id.clone());
            }
            result.tool_use_id.clone_from(id);
            tools.insert(id.clone(), name.clone());
        }
        self.add(message, HashMap::new());
        if !results.is_empty() {
            let results = results.into_iter().map(Block::ToolResult).collect();
            self.add(Message::user(results), tools);
        }
        Ok(())
    }

    /// Returns the messages for a request.
    pub fn history(&self) -> RequestHistory {
        RequestHistory {
            entries: self.entries.clone(),
        }
    }

    /// Returns the messages, first to last.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator {
        self.entries.iter().map(|entry| &entry.message)
    }

    fn add(&mut self, mut message: Message, mut tools: HashMap<String, String>) {
        message.content.retain(|block| !block.is_empty_text());
        if message.content.is_empty() {
            return;
        }
        if let Some(last) = self.entries.last_mut()
            && last.message.role == message.role
        {
            // Only the last message is serialized again; the messages before it stay cached.
            let mut content = last.message.content.clone();
            content.append(&mut message.content);
            tools.extend(last.tools.clone());
            message.content = content;
            *last = ConversationEntry::new(message, tools);
            return;
        }
        self.entries.push(ConversationEntry::new(message, tools));
    }
}

/// Returns the results in the order of the calls, exactly one for each call.
fn order_by_call(
    message: &Message,
    results: Vec<ToolResult>,
) -> Result<Vec<ToolResult>, ConversationError> {
    for block in &message.content {
        match block {
            Block::ToolResult(_) => return Err(ConversationError::Misplaced("a tool result")),
            Block::Image { .. } => return Err(ConversationError::Misplaced("an image")),
            Block::Document { .. } => return Err(ConversationError::Misplaced("a document")),
            Block::Other(value) if !value["type"].is_string() => {
                return Err(ConversationError::Misplaced("a block without a type"));
            }
            Block::ToolUse { id, input, .. } if !input.is_object() => {
                return Err(ConversationError::InvalidInput { id: id.clone() });
            }
            _ => {}
        }
    }
    let mut given = HashMap::new();
    for result in results {
        let id = result.tool_use_id.clone();
        if given.insert(id.clone(), result).is_some() {
            return Err(ConversationError::DuplicateId { id });
        }
    }
    let mut ordered = Vec::new();
    let mut seen = HashSet::new();
    for (id, name) in message.calls() {
        if !seen.insert(id) {
            return Err(ConversationError::DuplicateId { id: id.to_owned() });
        }
        let Some(result) = given.remove(id) else {
            let (id, name) = (id.to_owned(), name.to_owned());
            return Err(ConversationError::Unanswered { id, name });
        };
        ordered.push(result);
    }
    match given.into_keys().min() {
        Some(id) => Err(ConversationError::ResultWithoutCall { id }),
        None => Ok(ordered),
    }
}

impl RequestHistory {
    /// Returns the messages, first to last.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator {
        self.entries.iter().map(|entry| &entry.message)
    }

    pub(crate) fn entries(&self) -> &[Arc<ConversationEntry>] {
        &self.entries
    }
}

impl ConversationEntry {
    fn new(message: Message, tools: HashMap<String, String>) -> Arc<Self> {
        Arc::new(Self {
            message,
            tools,
            fragments: Fragments::default(),
        })
    }
}

/// Returns the empty object, for a call whose input was not JSON.
pub(crate) fn empty_input() -> Value {
    Value::Object(serde_json::Map::new())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
