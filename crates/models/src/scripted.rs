//! A model that replays a script: for tests, demonstrations and sessions without a network.
//!
//! ```json
//! {"turns": [
//!   {"content": [
//!     {"type": "thinking", "thinking": "I should look."},
//!     {"type": "text", "text": "Let me see."},
//!     {"type": "tool_use", "name": "Read", "input": {"file_path": "/p/a"}}
//!   ]},
//!   {"error": {"kind": "overloaded", "message": "busy"}},
//!   {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
//! ]}
//! ```
//!
//! Each request consumes the next turn. If a turn has both `content` and `error`, the connection is
//! lost after the content. `input_text` replaces `input` and is sent unchanged, even if it is not
//! JSON. `pieces` sets the length, in characters, of the pieces into which texts and inputs are
//! split. With `"hangs": true` the reply does not end after the content until it is cancelled.
//!
//! Other conversations, such as those of subagents, can have their own turns:
//!
//! ```json
//! {"turns": [
//!   {"content": [{"type": "tool_use", "name": "Agent", "input": {"description": "Look around",
//!     "prompt": "Find the entry point.", "subagent_type": "Explore"}}]},
//!   {"content": [{"type": "text", "text": "It is main.rs."}]}
//!  ],
//!  "conversations": [
//!   {"when": "entry point", "turns": [
//!     {"content": [{"type": "tool_use", "name": "Glob", "input": {"pattern": "**/main.rs"}}]},
//!     {"content": [{"type": "text", "text": "src/main.rs"}]}
//!   ]}
//!  ]}
//! ```
//!
//! A conversation uses the first entry whose `when` text occurs in its first message. A request
//! gets the turn that follows the replies already in its conversation. So several conversations
//! with the same first message can run in parallel, and a resumed one continues where it stopped.
//! All other conversations share `turns`.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use haft_contract::{CancellationToken, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Block, BlockStart, EventStream, Model, ModelError, ModelEvent, ModelRequest, StopReason, Usage,
    stream_block::{StreamSender, generate},
};

/// The script of a model, turn by turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScript {
    /// One reply per request.
    pub turns: Vec<ScriptedReply>,
    /// The scripts of other conversations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<ScriptedConversation>,
}

/// The replies for conversations whose first message contains a certain text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedConversation {
    /// The text that the first message contains.
    pub when: String,
    /// One reply per request.
    pub turns: Vec<ScriptedReply>,
}

/// One reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedReply {
    /// The content.
    pub content: Vec<ScriptedPart>,
    /// The error that follows the content.
    pub error: Option<ModelError>,
    /// The stop reason. If missing, it is derived from the content.
    pub stop_reason: Option<StopReason>,
    /// The tokens that the reply reports.
    pub usage: Usage,
    /// The length of a piece of text or input in characters; 0 sends each in one piece.
    pub pieces: usize,
    /// Whether the reply stays open until it is cancelled.
    pub hangs: bool,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ScriptedPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Thinking.
    Thinking {
        /// The text of the thinking.
        thinking: String,
        /// The signature.
        #[serde(default)]
        signature: String,
    },
    /// A tool call.
    ToolUse {
        /// The id of the call. If missing, it is derived from the position in the script.
        #[serde(default)]
        id: Option<String>,
        /// The name of the tool.
        name: String,
        /// The arguments.
        #[serde(default)]
        input: Map<String, Value>,
        /// A text that replaces `input` and may be invalid JSON.
        #[serde(default)]
        input_text: Option<String>,
    },
}

/// A model that replays a script.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    script: Arc<ModelScript>,
    state: Arc<Mutex<ScriptState>>,
    /// Whether requests are stored. Each contains all earlier messages, so storing them needs
    /// quadratic space.
    keeps_requests: bool,
}

#[derive(Debug, Default)]
struct ScriptState {
    next: usize,
    asked: usize,
    requests: Vec<ModelRequest>,
}

impl ScriptedModel {
    /// Creates a model that starts with the first turn.
    pub fn new(script: ModelScript) -> Self {
        Self {
            script: Arc::new(script),
            state: Arc::default(),
            keeps_requests: true,
        }
    }

    /// Parses a script from JSON.
    pub fn parse(json: &str) -> Result<Self, ModelError> {
        let script = serde_json::from_str(json);
        let script = script.map_err(|error| ModelError::local(format!("the script: {error}")))?;
        Ok(Self::new(script))
    }

    /// Loads a script from a file. Requests are not stored, so sessions can have any length.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let named = |error: &dyn std::fmt::Display| {
            ModelError::local(format!("the script {}: {error}", path.display()))
        };
        let json = std::fs::read_to_string(path).map_err(|error| named(&error))?;
        let script = serde_json::from_str(&json).map_err(|error| named(&error))?;
        Ok(Self {
            keeps_requests: false,
            ..Self::new(script)
        })
    }

    /// Returns the requests so far; empty for a script from a file.
    pub fn requests(&self) -> Vec<ModelRequest> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.clone()
    }

    /// Returns the turn that answers a request, and the name of its message.
    fn take(&self, request: ModelRequest) -> Result<(&ScriptedReply, String), ModelError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let aside = self.conversation_script(&request);
        let said = request.history.messages();
        let replies = said.filter(|message| message.role == Role::Assistant);
        let replies = replies.count();
        let (turns, number, name) = match aside {
            Some(aside) => {
                let asked = state.asked;
                (&aside.turns, replies, format!("aside_{asked}"))
            }
            None => (&self.script.turns, state.next, state.next.to_string()),
        };
        state.asked += 1;
        if self.keeps_requests {
            state.requests.push(request);
        }
        let turn = turns.get(number).ok_or_else(|| {
            let of = aside.map(|aside| format!(" for {:?}", aside.when));
            ModelError::local(format!(
                "the script{} has ended: it has {number} turns",
                of.unwrap_or_default()
            ))
        })?;
        if aside.is_none() {
            state.next += 1;
        }
        Ok((turn, name))
    }

    fn conversation_script(&self, request: &ModelRequest) -> Option<&ScriptedConversation> {
        let first = request.history.messages().next()?;
        let says = |text: &str| {
            first.content.iter().any(|block| match block {
                Block::Text { text: said } => said.contains(text),
                _ => false,
            })
        };
        let mut asides = self.script.conversations.iter();
        asides.find(|aside| says(&aside.when))
    }

    async fn run(
        self,
        request: ModelRequest,
        cancel: CancellationToken,
        out: StreamSender,
    ) -> Result<(), ModelError> {
        let model = request.model.clone();
        let (turn, name) = self.take(request)?;
        if turn.error.is_none() || !turn.content.is_empty() {
            let id = Some(format!("msg_{name}"));
            let model = Some(model);
            out.send(ModelEvent::Start { id, model }).await;
        }
        for event in turn.events(&name) {
            if cancel.is_cancelled() {
                return Err(ModelError::cancelled());
            }
            out.send(event).await;
        }
        if turn.hangs {
            cancel.cancelled().await;
            return Err(ModelError::cancelled());
        }
        match &turn.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

impl ScriptedReply {
    fn events(&self, name: &str) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        let mut has_calls = false;
        for (index, said) in self.content.iter().enumerate() {
            let block = match said {
                ScriptedPart::Text { .. } => BlockStart::Text,
                ScriptedPart::Thinking { .. } => BlockStart::Thinking,
                ScriptedPart::ToolUse { id, name: tool, .. } => {
                    has_calls = true;
                    BlockStart::ToolUse {
                        id: id
                            .clone()
                            .unwrap_or_else(|| format!("toolu_{name}_{index}")),
                        name: tool.clone(),
                        extra: Map::new(),
                    }
                }
            };
            events.push(ModelEvent::BlockStart { index, block });
            match said {
                ScriptedPart::Text { text } => {
                    events.extend(self.cut(text).map(|text| ModelEvent::Text { index, text }));
                }
                ScriptedPart::Thinking {
                    thinking,
                    signature,
                } => {
                    events.extend(
                        self.cut(thinking)
                            .map(|text| ModelEvent::Thinking { index, text }),
                    );
                    if !signature.is_empty() {
                        let signature = signature.clone();
                        events.push(ModelEvent::Signature { index, signature });
                    }
                }
                ScriptedPart::ToolUse {
                    input, input_text, ..
                } => {
                    let written = || Value::Object(input.clone()).to_string();
                    let json = input_text.clone().unwrap_or_else(written);
                    events.extend(
                        self.cut(&json)
                            .map(|json| ModelEvent::Input { index, json }),
                    );
                }
            }
            events.push(ModelEvent::BlockStop { index });
        }
        if self.error.is_none() && !self.hangs {
            let natural = if has_calls {
                StopReason::ToolUse
            } else {
                StopReason::EndTurn
            };
            let reason = self.stop_reason.clone().unwrap_or(natural);
            events.push(ModelEvent::Usage { usage: self.usage });
            events.push(ModelEvent::Stop { reason });
        }
        events
    }

    fn cut(&self, text: &str) -> impl Iterator<Item = String> + use<> {
        let characters: Vec<char> = text.chars().collect();
        let length = match self.pieces {
            0 => characters.len().max(1),
            length => length,
        };
        let pieces: Vec<String> = characters.chunks(length).map(String::from_iter).collect();
        pieces.into_iter()
    }
}

impl Model for ScriptedModel {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let scripted = self.clone();
        generate(move |out| scripted.run(request, cancel, out))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;
    use haft_contract::Content;

    use super::*;
    use crate::{Conversation, Message, RequestPrefix};

    async fn said(
        model: &ScriptedModel,
        conversation: &Conversation,
    ) -> Result<String, ModelError> {
        let request = ModelRequest::new(
            "m",
            Arc::new(RequestPrefix::default()),
            conversation.history(),
        );
        let events: Vec<ModelEvent> = model
            .stream(request, CancellationToken::new())
            .try_collect()
            .await?;
        let texts = events.into_iter().filter_map(|event| match event {
            ModelEvent::Text { text, .. } => Some(text),
            _ => None,
        });
        Ok(texts.collect())
    }

    #[tokio::test]
    async fn other_conversations_have_turns_of_their_own() {
        let text = |text: &str| serde_json::json!({"content": [{"type": "text", "text": text}]});
        let script = serde_json::json!({
            "turns": [text("main 1"), text("main 2")],
            "conversations": [{"when": "errand", "turns": [text("aside 1"), text("aside 2")]}],
        });
        let model = ScriptedModel::parse(&script.to_string()).unwrap();
        let begun = |words: &str| {
            let mut conversation = Conversation::new();
            conversation.user([Content::text("project notes"), Content::text(words)]);
            conversation
        };
        let (main, mut one, two) = (begun("go"), begun("an errand"), begun("an errand too"));
        assert_eq!(said(&model, &main).await.unwrap(), "main 1");
        assert_eq!(said(&model, &one).await.unwrap(), "aside 1");
        assert_eq!(said(&model, &two).await.unwrap(), "aside 1");
        assert_eq!(said(&model, &main).await.unwrap(), "main 2");
        let reply = Block::Text {
            text: "aside 1".to_owned(),
        };
        let message = Message {
            role: Role::Assistant,
            content: vec![reply],
            model: None,
        };
        for expected in [
            "aside 2",
            "the script for \"errand\" has ended: it has 2 turns",
        ] {
            one.assistant(message.clone(), Vec::new()).unwrap();
            one.user([Content::text("go on")]);
            let heard = said(&model, &one).await;
            let heard = heard.unwrap_or_else(|error| error.message);
            assert_eq!(heard, expected);
        }
    }
}
