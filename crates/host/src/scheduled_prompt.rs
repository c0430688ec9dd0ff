//! A prompt whose time has come.

use haft_agent::{Prompt, random_id};
use serde_json::{Value, json};

/// A prompt whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledPrompt {
    /// The id of the schedule or wake-up.
    pub id: String,
    /// When it is said, in words.
    pub words: String,
    /// What it says.
    pub prompt: String,
    /// It was the last time.
    pub is_last: bool,
}

impl ScheduledPrompt {
    /// As it is said to the model.
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

    /// Where it comes from, for programs.
    pub fn origin(&self) -> Value {
        json!({"kind": "schedule", "id": self.id})
    }

    /// The message. It never counts as something that a person typed: no command in it is carried out, and no
    /// file that it names is read.
    pub(crate) fn to_prompt(&self) -> Prompt {
        Prompt {
            origin: Some(self.origin()),
            uuid: Some(random_id()),
            ..Prompt::from(self.text())
        }
    }
}
