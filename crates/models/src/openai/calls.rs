//! Assembles tool calls from the pieces that servers send, conforming or not.
//!
//! Pieces are matched to their call by index, by id or by order, depending on what the server
//! sends. A call is handed out early only if later pieces cannot change it: it has an id, its
//! arguments are a complete object, and another call has begun. All other calls wait for the end of
//! the reply.

use serde_json::{Map, Value};

use super::repair_json;

/// The maximum length of stored arguments in bytes. The assembler's limit is lower, so it rejects
/// arguments of this length.
const MAX_LENGTH: usize = 17 * 1024 * 1024;

/// The tool calls of one reply.
#[derive(Debug, Default)]
pub(super) struct CallAssembler {
    calls: Vec<PartialCall>,
    by_index: std::collections::HashMap<u64, usize>,
    /// The calls that began in the most recent chunk in which a call began.
    opened: Vec<usize>,
    /// The number of calls that were handed out. Later pieces do not change them.
    handed_out: usize,
}

#[derive(Debug, Default)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
}

/// An assembled call.
#[derive(Debug, PartialEq)]
pub(super) struct AssembledCall {
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments: JSON if they could be repaired, otherwise as the server sent them.
    pub(super) arguments: String,
    pub(super) extra: Map<String, Value>,
}

/// A piece of a call. A missing field, `null` and `""` are treated alike.
struct CallPiece<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: Option<&'a Value>,
}

impl<'a> CallPiece<'a> {
    fn read(entry: &'a Value) -> Self {
        let function = &entry["function"];
        Self {
            index: entry["index"].as_u64(),
            id: entry["id"].as_str().unwrap_or_default(),
            name: function["name"].as_str().unwrap_or_default(),
            arguments: function.get("arguments").filter(|value| !value.is_null()),
        }
    }
}

impl PartialCall {
    fn is_complete(&self) -> bool {
        !self.name.is_empty() && is_json(&self.arguments)
    }
}

impl CallAssembler {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds the `tool_calls` of one chunk.
    pub(super) fn push(&mut self, entries: &[Value]) {
        let mut opened = Vec::new();
        for (position, entry) in entries.iter().enumerate() {
            let piece = CallPiece::read(entry);
            let several = entries.len() > 1;
            let call = match self.belongs_to(&piece, several.then_some(position)) {
                Some(call) => call,
                None => {
                    let call = self.calls.len();
                    self.calls.push(PartialCall::default());
                    opened.push(call);
                    call
                }
            };
            if let Some(index) = piece.index {
                self.by_index.insert(index, call);
            }
            self.calls[call].take(&piece, entry);
        }
        if !opened.is_empty() {
            self.opened = opened;
        }
    }

    /// Returns the call that a piece continues, or `None` if the piece begins a new one.
    fn belongs_to(&self, piece: &CallPiece<'_>, position: Option<usize>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        if let Some(index) = piece.index {
            let known = *self.by_index.get(&index)?;
            return (!self.is_another(piece, &self.calls[known])).then_some(known);
        }
        if !piece.id.is_empty() {
            return self.calls.iter().rposition(|call| call.id == piece.id);
        }
        if !piece.name.is_empty() {
            return last.filter(|last| !self.calls[*last].is_complete());
        }
        let by_position = position.and_then(|position| self.opened.get(position).copied());
        by_position.or(last)
    }

    /// Returns whether the piece begins another call under an index that is already in use.
    fn is_another(&self, piece: &CallPiece<'_>, call: &PartialCall) -> bool {
        if call.name.is_empty() {
            return false;
        }
        match (piece.id, call.id.as_str()) {
            ("", "") => {
                let differs = || {
                    let arguments = piece.arguments.map(text_of).unwrap_or_default();
                    piece.name != call.name || arguments != call.arguments
                };
                !piece.name.is_empty() && differs() && is_json(&call.arguments)
            }
            ("", _) | (_, "") => false,
            (new, known) => new != known && (!piece.name.is_empty() || is_json(&call.arguments)),
        }
    }

    /// Returns the next call that is certainly complete.
    pub(super) fn ready(&mut self) -> Option<AssembledCall> {
        let is_last = self.handed_out + 1 >= self.calls.len();
        let call = self.calls.get_mut(self.handed_out).filter(|_| !is_last)?;
        if call.id.is_empty() || !call.is_complete() || !call.arguments.starts_with('{') {
            return None;
        }
        self.handed_out += 1;
        // The call remains in the list: it distinguishes later calls that reuse its index.
        let extra = std::mem::take(&mut call.extra);
        Some(AssembledCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            extra,
        })
    }

    /// Returns the calls that were not handed out yet, in order. `cut_off` means that the reply
    /// ended because it ran out of tokens, so brackets must not be closed.
    pub(super) fn finish(self, cut_off: bool) -> Vec<AssembledCall> {
        let rest = self.calls.into_iter().skip(self.handed_out);
        let named = rest.filter(|call| {
            if call.name.is_empty() {
                tracing::debug!(arguments = call.arguments, "a tool call without a name");
            }
            !call.name.is_empty()
        });
        named
            .map(|call| AssembledCall {
                arguments: repair_json::repair_json(&call.arguments, cut_off),
                id: match call.id.is_empty() {
                    true => made_up_id(),
                    false => call.id,
                },
                name: call.name,
                extra: call.extra,
            })
            .collect()
    }
}

impl PartialCall {
    fn take(&mut self, piece: &CallPiece<'_>, entry: &Value) {
        if self.id.is_empty() {
            piece.id.clone_into(&mut self.id);
        }
        if !piece.name.is_empty() && piece.name != self.name && self.arguments.is_empty() {
            // A few servers send names in pieces.
            self.name.push_str(piece.name);
        }
        match piece.arguments {
            Some(Value::String(more)) => {
                let is_repetition = *more == self.arguments
                    && self.arguments.starts_with(['{', '['])
                    && is_json(&self.arguments);
                if !is_repetition && self.arguments.len() <= MAX_LENGTH {
                    self.arguments.push_str(more);
                }
            }
            Some(other) => self.arguments = other.to_string(),
            None => {}
        }
        for (key, value) in entry.as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "index" | "id" | "type" | "function") {
                self.extra.insert(key.clone(), value.clone());
            }
        }
    }
}

fn text_of(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Returns `call_` and 24 random letters and digits.
fn made_up_id() -> String {
    const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut random = [0; 24];
    // Without entropy all ids are equal; the assembler makes them unique.
    let _ = getrandom::getrandom(&mut random);
    let letters = random
        .iter()
        .map(|byte| char::from(LETTERS[usize::from(*byte) % 62]));
    std::iter::once("call_".to_owned())
        .chain(letters.map(String::from))
        .collect()
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
