//! A final answer that the model gives with a tool call, which ends the run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::model_turn::CompletedCall;

/// The tool that gives the final answer of a run, and the answer. This is a service of the main
/// agent; the tool itself stores its input here.
#[derive(Debug)]
pub struct FinalAnswer {
    tool: String,
    /// The maximum number of failed calls in one run.
    max_failures: u32,
    state: Mutex<AnswerState>,
}

#[derive(Debug, Default)]
struct AnswerState {
    /// The id of the call, and the answer.
    answer: Option<(String, Value)>,
    failures: u32,
}

impl FinalAnswer {
    /// Creates the service for calls of this tool.
    pub fn new(tool: impl Into<String>, max_failures: u32) -> Self {
        Self {
            tool: tool.into(),
            max_failures,
            state: Mutex::default(),
        }
    }

    /// Resets the state at the start of a run.
    pub fn begin(&self) {
        *self.state() = AnswerState::default();
    }

    /// Stores the answer of a call. A later call replaces it.
    pub fn set(&self, tool_use_id: &str, value: Value) {
        self.state().answer = Some((tool_use_id.to_owned(), value));
    }

    /// Returns the answer, if the model gave one.
    pub fn value(&self) -> Option<Value> {
        let state = self.state();
        state.answer.as_ref().map(|(_, value)| value.clone())
    }

    /// Returns whether too many calls failed.
    pub fn is_given_up(&self) -> bool {
        self.state().failures >= self.max_failures
    }

    /// Returns the final text if these calls end the run: the answer as text, or an empty text if
    /// too many calls failed.
    pub(crate) fn final_text(&self, answers: &[CompletedCall]) -> Option<String> {
        let mut state = self.state();
        for CompletedCall {
            result: finished, ..
        } in answers
        {
            if finished.name != self.tool {
                continue;
            }
            match &state.answer {
                // An answer of another agent's call is ignored.
                Some((id, value)) if !finished.is_error && *id == finished.id => {
                    return Some(value.to_string());
                }
                _ => state.failures += 1,
            }
        }
        (state.failures >= self.max_failures).then(String::new)
    }

    fn state(&self) -> MutexGuard<'_, AnswerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
