//! A scheduled prompt that is due.

use haft_agent::{Prompt, random_id};
use serde_json::{Value, json};

/// A scheduled prompt that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledPrompt {
    /// The id of the schedule or wake-up.
    pub id: String,
    /// The time, as human-readable text.
    pub words: String,
    /// The prompt.
    pub prompt: String,
    /// Whether this was the last time that a recurring schedule fires.
    pub is_last: bool,
}

impl ScheduledPrompt {
    /// Returns the text that the model reads.
    pub fn text(&self) -> String {
        let last = match self.is_last {
            true => " This was the last time.",
            false => "",
        };
        format!(
            "[Scheduled prompt {}, {}. The user did not type it now.{last}]\n{}",
            self.id, self.words, self.prompt
        )
    }

    /// Returns the origin of the message in machine-readable form.
    pub fn origin(&self) -> Value {
        json!({"kind": "schedule", "id": self.id})
    }

    /// Returns the message. It is never treated as user input: commands in it are not run, and
    /// files that it mentions are not read.
    pub(crate) fn to_prompt(&self) -> Prompt {
        Prompt {
            origin: Some(self.origin()),
            uuid: Some(random_id()),
            ..Prompt::from(self.text())
        }
    }
}
