//! An answer that is given by a call: the run ends with it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::model_turn::Answer;

/// The tool that gives the answer of a run, and what it was called with. A service of the main agent; the tool
/// itself notes its input here.
#[derive(Debug)]
pub struct FinalAnswer {
    tool: String,
    /// So many calls of it may fail in one run.
    most_failures: u32,
    state: Mutex<AnswerState>,
}

#[derive(Debug, Default)]
struct AnswerState {
    /// By which call, and the answer.
    given: Option<(String, Value)>,
    failures: u32,
}

impl FinalAnswer {
    /// One that is given by calls of this tool.
    pub fn new(tool: impl Into<String>, most_failures: u32) -> Self {
        Self {
            tool: tool.into(),
            most_failures,
            state: Mutex::default(),
        }
    }

    /// The next run begins: nothing was given or tried yet.
    pub fn begin(&self) {
        *self.state() = AnswerState::default();
    }

    /// A call gives the answer. A later one takes its place.
    pub fn give(&self, tool_use_id: &str, value: Value) {
        self.state().given = Some((tool_use_id.to_owned(), value));
    }

    /// The answer, if it was given.
    pub fn given(&self) -> Option<Value> {
        let state = self.state();
        state.given.as_ref().map(|(_, value)| value.clone())
    }

    /// Too many calls failed.
    pub fn is_given_up(&self) -> bool {
        self.state().failures >= self.most_failures
    }

    /// Do these calls end the run? If so, what it says: the answer as text, or nothing where it is given up.
    pub(crate) fn ends(&self, answers: &[Answer]) -> Option<String> {
        let mut state = self.state();
        for Answer { finished, .. } in answers {
            if finished.name != self.tool {
                continue;
            }
            match &state.given {
                // Those of other agents do not count.
                Some((id, value)) if !finished.is_error && *id == finished.id => {
                    return Some(value.to_string());
                }
                _ => state.failures += 1,
            }
        }
        (state.failures >= self.most_failures).then(String::new)
    }

    fn state(&self) -> MutexGuard<'_, AnswerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
