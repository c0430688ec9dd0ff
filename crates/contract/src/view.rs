//! What a person is shown: parts of a card, without colours or widths. Who draws it decides those.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A call, or its result, as a person sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The tool, as people call it.
    pub title: String,
    /// What it is about: a path, a pattern, a command.
    pub subject: String,
    /// One line of outcome, such as `12 lines`.
    pub summary: String,
    /// The rest.
    pub body: Vec<CardPiece>,
}

/// A part of a card's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardPiece {
    /// Plain text, any number of lines.
    Text(String),
    /// The same, less important.
    Muted(String),
    /// Something went wrong.
    Alarm(String),
    /// What changed in a file.
    Diff(Vec<DiffHunk>),
}

/// A run of changed lines with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffHunk {
    /// First line in the old file, from 1.
    pub old_start: u64,
    /// How many lines of the old file.
    pub old_lines: u64,
    /// First line in the new file, from 1.
    pub new_start: u64,
    /// How many lines of the new file.
    pub new_lines: u64,
    /// Each begins with a blank (both), `-` (old) or `+` (new).
    pub lines: Vec<String>,
}

impl Card {
    /// A card with a title and a subject.
    pub fn new(title: impl Into<String>, subject: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subject: subject.into(),
            ..Self::default()
        }
    }

    /// The same with a line of outcome.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    /// The same with one more part.
    #[must_use]
    pub fn with(mut self, piece: CardPiece) -> Self {
        self.body.push(piece);
        self
    }
}

/// Plain text: a heading, then the body. Who draws for a terminal does better.
impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = [&self.title, &self.subject, &self.summary].map(String::as_str);
        let heading: Vec<&str> = heading
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        writeln!(f, "{}", heading.join(" · "))?;
        for piece in &self.body {
            match piece {
                CardPiece::Text(text) | CardPiece::Muted(text) | CardPiece::Alarm(text) => {
                    writeln!(f, "{text}")?
                }
                CardPiece::Diff(hunks) => {
                    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
                        writeln!(f, "{line}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The cards of calls whose tool draws none of its own.
pub mod plain {
    use serde_json::Value;

    use super::{Card, CardPiece};
    use crate::{Content, ToolError, ToolOutput, ToolSpec};

    /// The call: its first argument is the subject.
    pub fn call(spec: &ToolSpec, input: &Value) -> Card {
        let subject = match input.as_object().and_then(|object| object.values().next()) {
            Some(Value::String(text)) => text.lines().next().unwrap_or_default().to_owned(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        Card::new(spec.title(), subject)
    }

    /// The call with what the model was given.
    pub fn result(call: Card, output: &ToolOutput) -> Card {
        let texts = output.content.iter().filter_map(Content::as_text);
        texts.fold(call, |card, text| {
            card.with(CardPiece::Text(text.to_owned()))
        })
    }

    /// The call with what went wrong.
    pub fn error(call: Card, error: &ToolError) -> Card {
        call.with_summary("failed")
            .with(CardPiece::Alarm(error.to_string()))
    }

    /// The call with why it was not permitted.
    pub fn rejected(call: Card, reason: &str) -> Card {
        call.with_summary("not permitted")
            .with(CardPiece::Alarm(reason.to_owned()))
    }
}
