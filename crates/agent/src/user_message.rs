//! The user's prompts.

use haft_contract::Content;
use haft_extensions::markdown::mentions;
use serde_json::Value;
use uuid::Uuid;

/// A prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The text and other content.
    pub content: Vec<Content>,
    /// The id of the message, if it has one.
    pub uuid: Option<Uuid>,
    /// The origin of the prompt, as its sender stated it; returned with the result.
    pub origin: Option<Value>,
    /// The files and folders that the prompt mentions, in the user's notation.
    pub mentions: Vec<String>,
}

impl Prompt {
    /// Creates a prompt that the user typed, with the files and folders that it mentions with `@`
    /// outside code.
    pub fn typed(text: impl Into<String>) -> Self {
        let text = text.into();
        let mentions = mentioned(&text);
        Self {
            mentions,
            ..text.into()
        }
    }
}

/// Returns the paths that a text mentions as `@path` or `@"a path"`.
pub fn mentioned(text: &str) -> Vec<String> {
    let plain = mentions(text).into_iter();
    let plain = plain.filter(|path| !path.starts_with('"'));
    let mut found: Vec<String> = plain.map(str::to_owned).collect();
    for (index, _) in text.match_indices("@\"") {
        let starts_word = text[..index]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        let rest = &text[index + 2..];
        let path = rest.find('"').map(|end| &rest[..end]);
        if let Some(path) =
            path.filter(|path| starts_word && !path.is_empty() && !path.contains('\n'))
        {
            found.push(path.to_owned());
        }
    }
    found
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        vec![Content::text(text)].into()
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        vec![Content::text(text)].into()
    }
}

impl From<Vec<Content>> for Prompt {
    fn from(content: Vec<Content>) -> Self {
        Self {
            content,
            uuid: None,
            origin: None,
            mentions: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_with_an_at_outside_of_code() {
        let prompt = Prompt::typed("fix @src/a.rs:1-2, see @\"my notes.md\" and `@b`; mail a@b.c");
        assert_eq!(prompt.mentions, ["src/a.rs:1-2", "my notes.md"]);
        assert_eq!(Prompt::from("@a").mentions, [""; 0]);
    }
}
