//! Cards that are shown to users, without colours or widths: the front end that draws them decides
//! those.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A call or its result, as shown to the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The display name of the tool.
    pub title: String,
    /// The subject of the call: a path, a pattern, a command.
    pub subject: String,
    /// One line with the result, such as `12 lines`.
    pub summary: String,
    /// The sections of the body.
    pub body: Vec<CardSection>,
}

/// A section of a card's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardSection {
    /// Plain text, any number of lines.
    Text(String),
    /// Less important text.
    Muted(String),
    /// Text about a failure.
    Alarm(String),
    /// The changes of a file.
    Diff(Vec<DiffHunk>),
}

/// A range of changed lines with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffHunk {
    /// The first line in the old file, from 1.
    pub old_start: u64,
    /// The number of lines in the old file.
    pub old_lines: u64,
    /// The first line in the new file, from 1.
    pub new_start: u64,
    /// The number of lines in the new file.
    pub new_lines: u64,
    /// The lines, each prefixed with a space (in both files), `-` (old) or `+` (new).
    pub lines: Vec<String>,
}

impl Card {
    /// Creates a card with a title and a subject.
    pub fn new(title: impl Into<String>, subject: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subject: subject.into(),
            ..Self::default()
        }
    }

    /// Sets the summary line.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    /// Adds a section to the body.
    #[must_use]
    pub fn with(mut self, piece: CardSection) -> Self {
        self.body.push(piece);
        self
    }
}

/// Plain text: a heading, then the body. A terminal front end can draw it better.
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
                CardSection::Text(text) | CardSection::Muted(text) | CardSection::Alarm(text) => {
                    writeln!(f, "{text}")?
                }
                CardSection::Diff(hunks) => {
                    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
                        writeln!(f, "{line}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Plain cards for calls of tools that define no cards.
pub mod plain {
    use serde_json::Value;

    use super::{Card, CardSection};
    use crate::{Content, ToolError, ToolOutput, ToolSpec};

    /// Returns the card of a call, with its first argument as the subject.
    pub fn call(spec: &ToolSpec, input: &Value) -> Card {
        let subject = match input.as_object().and_then(|object| object.values().next()) {
            Some(Value::String(text)) => text.lines().next().unwrap_or_default().to_owned(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        Card::new(spec.title(), subject)
    }

    /// Adds the text that the model reads to the card of a call.
    pub fn result(call: Card, output: &ToolOutput) -> Card {
        let texts = output.content.iter().filter_map(Content::as_text);
        texts.fold(call, |card, text| {
            card.with(CardSection::Text(text.to_owned()))
        })
    }

    /// Adds an error to the card of a call.
    pub fn error(call: Card, error: &ToolError) -> Card {
        call.with_summary("failed")
            .with(CardSection::Alarm(error.to_string()))
    }

    /// Adds the reason of a denial to the card of a call.
    pub fn rejected(call: Card, reason: &str) -> Card {
        call.with_summary("not permitted")
            .with(CardSection::Alarm(reason.to_owned()))
    }
}
