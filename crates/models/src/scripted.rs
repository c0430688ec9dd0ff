//! A model that says what a script says: for tests, demonstrations and runs without a network.
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
//! Each request takes the next turn. With `content` and `error` in one turn the connection is lost after
//! the content. `input_text` in place of `input` is sent as it is, JSON or not; `pieces` says into how
//! long pieces (in characters) texts and inputs are cut.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use haft_contract::CancellationToken;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    BlockStart, Event, EventStream, Model, ModelError, Request, StopReason, Usage,
    generate::{Out, generate},
};

/// What is said, turn by turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// One for each request.
    pub turns: Vec<Turn>,
}

/// One reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// What is said.
    pub content: Vec<Said>,
    /// How it fails, after the content.
    pub error: Option<ModelError>,
    /// Why it stops; found out from the content if left out.
    pub stop_reason: Option<StopReason>,
    /// What it costs.
    pub usage: Usage,
    /// Characters in a piece of text or input; 0: all in one.
    pub pieces: usize,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Said {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Thinking.
    Thinking {
        /// The words.
        thinking: String,
        /// The proof.
        #[serde(default)]
        signature: String,
    },
    /// A tool call.
    ToolUse {
        /// Made up from its place in the script if left out.
        #[serde(default)]
        id: Option<String>,
        /// The tool.
        name: String,
        /// The arguments.
        #[serde(default)]
        input: Map<String, Value>,
        /// In place of `input`: a text that may be no JSON.
        #[serde(default)]
        input_text: Option<String>,
    },
}

/// A model that says what a script says.
#[derive(Debug, Clone)]
pub struct Scripted {
    script: Arc<Script>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    next: usize,
    requests: Vec<Request>,
}

impl Scripted {
    /// From the first turn on.
    pub fn new(script: Script) -> Self {
        Self {
            script: Arc::new(script),
            state: Arc::default(),
        }
    }

    /// From JSON.
    pub fn parse(json: &str) -> Result<Self, ModelError> {
        let script = serde_json::from_str(json);
        let script = script.map_err(|error| ModelError::local(format!("the script: {error}")))?;
        Ok(Self::new(script))
    }

    /// From a file.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let named = |error: &dyn std::fmt::Display| {
            ModelError::local(format!("the script {}: {error}", path.display()))
        };
        let json = std::fs::read_to_string(path).map_err(|error| named(&error))?;
        let script = serde_json::from_str(&json).map_err(|error| named(&error))?;
        Ok(Self::new(script))
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.clone()
    }

    fn take(&self, request: Request) -> Result<usize, ModelError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.push(request);
        let number = state.next;
        if number == self.script.turns.len() {
            let message = format!("the script is over: it has {number} turns");
            return Err(ModelError::local(message));
        }
        state.next += 1;
        Ok(number)
    }

    async fn run(
        self,
        request: Request,
        cancel: CancellationToken,
        out: Out,
    ) -> Result<(), ModelError> {
        let model = request.model.clone();
        let number = self.take(request)?;
        let turn = &self.script.turns[number];
        if turn.error.is_none() || !turn.content.is_empty() {
            let id = Some(format!("msg_{number}"));
            let model = Some(model);
            out.send(Event::Start { id, model }).await;
        }
        for event in turn.events(number) {
            if cancel.is_cancelled() {
                return Err(ModelError::cancelled());
            }
            out.send(event).await;
        }
        match &turn.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

impl Turn {
    fn events(&self, number: usize) -> Vec<Event> {
        let mut events = Vec::new();
        let mut has_calls = false;
        for (index, said) in self.content.iter().enumerate() {
            let block = match said {
                Said::Text { .. } => BlockStart::Text,
                Said::Thinking { .. } => BlockStart::Thinking,
                Said::ToolUse { id, name, .. } => {
                    has_calls = true;
                    BlockStart::ToolUse {
                        id: id
                            .clone()
                            .unwrap_or_else(|| format!("toolu_{number}_{index}")),
                        name: name.clone(),
                        extra: Map::new(),
                    }
                }
            };
            events.push(Event::BlockStart { index, block });
            match said {
                Said::Text { text } => {
                    events.extend(self.cut(text).map(|text| Event::Text { index, text }));
                }
                Said::Thinking {
                    thinking,
                    signature,
                } => {
                    events.extend(
                        self.cut(thinking)
                            .map(|text| Event::Thinking { index, text }),
                    );
                    if !signature.is_empty() {
                        let signature = signature.clone();
                        events.push(Event::Signature { index, signature });
                    }
                }
                Said::ToolUse {
                    input, input_text, ..
                } => {
                    let written = || Value::Object(input.clone()).to_string();
                    let json = input_text.clone().unwrap_or_else(written);
                    events.extend(self.cut(&json).map(|json| Event::Input { index, json }));
                }
            }
            events.push(Event::BlockStop { index });
        }
        if self.error.is_none() {
            let natural = if has_calls {
                StopReason::ToolUse
            } else {
                StopReason::EndTurn
            };
            let reason = self.stop_reason.clone().unwrap_or(natural);
            events.push(Event::Usage { usage: self.usage });
            events.push(Event::Stop { reason });
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

impl Model for Scripted {
    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        let scripted = self.clone();
        generate(move |out| scripted.run(request, cancel, out))
    }
}
