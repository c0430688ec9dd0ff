//! What was said so far, always in a state that can be sent.
//!
//! **Invariants**, held by construction: messages alternate and the user begins; every tool call of an
//! assistant message is answered in the next message, results first and in the order of the calls; no
//! result stands without its call; call ids are unique; no text is empty. So a call and its result come
//! in together ([`Conversation::assistant`]), and what comes from elsewhere goes through
//! [`Conversation::load`], which repairs it and says what it repaired.
//!
//! A message is serialized when it is first sent and never again: adding one to a long conversation
//! costs what the new one costs.

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

/// What was said so far.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    entries: Vec<Arc<Entry>>,
    ids: HashSet<String>,
}

/// The messages of one request: cheap to make, cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<Arc<Entry>>,
}

/// A message with what is known about it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) message: Message,
    /// For a message with results: the tools they are of, by call id.
    pub(crate) tools: HashMap<String, String>,
    pub(crate) fragments: Fragments,
}

/// Why something cannot be said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// The model cannot begin.
    #[error("a conversation begins with the user, not with the model")]
    NoQuestion,
    /// A call has no result.
    #[error("call {id} of {name} has no result")]
    Unanswered {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A result has no call.
    #[error("a result answers {id}, but the message has no such call")]
    Unasked {
        /// What it answers.
        id: String,
    },
    /// Two of the same.
    #[error("{id} stands twice in one message")]
    Twice {
        /// The id.
        id: String,
    },
    /// A block in a message where it has no place.
    #[error("a message of the model's cannot hold {0}")]
    Misplaced(&'static str),
    /// A provider takes objects only.
    #[error("the input of call {id} is not a JSON object")]
    Input {
        /// The call.
        id: String,
    },
}

impl Conversation {
    /// Nothing said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The user says something. Follows on what the user said last, results included.
    pub fn user(&mut self, content: impl IntoIterator<Item = Content>) {
        let content: Vec<Block> = content.into_iter().map(Block::from).collect();
        self.add(Message::user(content), HashMap::new());
    }

    /// The model says something, and its calls are answered: every call by one result, in any order.
    /// A reply in which nothing is said adds nothing. Follows on a message of the model's that paused.
    pub fn assistant(
        &mut self,
        mut message: Message,
        results: Vec<ToolResult>,
    ) -> Result<(), ConversationError> {
        message.role = Role::Assistant;
        if self.entries.is_empty() {
            return Err(ConversationError::NoQuestion);
        }
        let mut results = by_call(&message, results)?;
        let mut tools = HashMap::new();
        let uses = message.content.iter_mut().filter_map(|block| match block {
            Block::ToolUse { id, name, .. } => Some((id, name)),
            _ => None,
        });
        for ((id, name), result) in uses.zip(&mut results) {
            // Some servers count calls from 0 in every reply.
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

    /// What is sent.
    pub fn history(&self) -> History {
        History {
            entries: self.entries.clone(),
        }
    }

    /// The messages, first to last.
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
            // Only the last message is written anew; what comes before it stays as it was sent.
            let mut content = last.message.content.clone();
            content.append(&mut message.content);
            tools.extend(last.tools.clone());
            message.content = content;
            *last = Entry::new(message, tools);
            return;
        }
        self.entries.push(Entry::new(message, tools));
    }
}

/// The results in the order of the calls, each call with one.
fn by_call(
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
                return Err(ConversationError::Input { id: id.clone() });
            }
            _ => {}
        }
    }
    let mut given = HashMap::new();
    for result in results {
        let id = result.tool_use_id.clone();
        if given.insert(id.clone(), result).is_some() {
            return Err(ConversationError::Twice { id });
        }
    }
    let mut ordered = Vec::new();
    let mut seen = HashSet::new();
    for (id, name) in message.calls() {
        if !seen.insert(id) {
            return Err(ConversationError::Twice { id: id.to_owned() });
        }
        let Some(result) = given.remove(id) else {
            let (id, name) = (id.to_owned(), name.to_owned());
            return Err(ConversationError::Unanswered { id, name });
        };
        ordered.push(result);
    }
    match given.into_keys().min() {
        Some(id) => Err(ConversationError::Unasked { id }),
        None => Ok(ordered),
    }
}

impl History {
    /// The messages, first to last.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator {
        self.entries.iter().map(|entry| &entry.message)
    }

    pub(crate) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }
}

impl Entry {
    fn new(message: Message, tools: HashMap<String, String>) -> Arc<Self> {
        Arc::new(Self {
            message,
            tools,
            fragments: Fragments::default(),
        })
    }
}

/// The empty object, for a call whose input was no JSON.
pub(crate) fn empty_input() -> Value {
    Value::Object(serde_json::Map::new())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
