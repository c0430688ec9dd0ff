//! Handlers that ask a model.

use std::path::PathBuf;

use haft_contract::BoxFuture;

use super::config::ModelHandlerConfig;

/// A question that a handler asks a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestion {
    /// The whole prompt: the handler's text with the event inserted. The model must answer with a
    /// JSON object that has the key `ok`.
    pub prompt: String,
    /// The model to ask instead of the default one.
    pub model: Option<String>,
    /// Whether the model may use read-only tools before it answers.
    pub with_tools: bool,
    /// The working directory of the session.
    pub cwd: PathBuf,
}

/// Provides a model for handlers. The program that sets up a session supplies it, because this
/// crate has no model client.
pub trait HookModelProvider: Send + Sync {
    /// Returns the text of the model's answer. The error is a message for users. Dropping the
    /// future cancels the request.
    fn ask(&self, question: ModelQuestion) -> BoxFuture<'_, Result<String, String>>;
}

impl ModelHandlerConfig {
    /// Builds the question about an event.
    pub(super) fn question(&self, input: &str, cwd: PathBuf) -> ModelQuestion {
        ModelQuestion {
            prompt: substitute_arguments(&self.prompt, input),
            model: self.model.clone(),
            with_tools: self.with_tools,
            cwd,
        }
    }
}

/// Replaces `$ARGUMENTS` in a prompt by the event, or appends the event if the prompt does not
/// contain it. `\$` is a literal dollar sign.
fn substitute_arguments(prompt: &str, input: &str) -> String {
    const PLACE: &str = "$ARGUMENTS";
    let mut filled = String::with_capacity(prompt.len() + input.len());
    let mut has_place = false;
    let mut rest = prompt;
    while let Some(at) = rest.find(['\\', '$']) {
        filled += &rest[..at];
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix(r"\$") {
            filled.push('$');
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix(PLACE) {
            filled += input;
            has_place = true;
            rest = behind;
        } else {
            filled += &rest[..1];
            rest = &rest[1..];
        }
    }
    filled += rest;
    if !has_place {
        filled += "\n\n";
        filled += input;
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_stands_where_the_prompt_wants_it() {
        let cases = [
            ("Is $ARGUMENTS fine?", "Is {} fine?"),
            ("$ARGUMENTS$ARGUMENTS", "{}{}"),
            ("Is it fine?", "Is it fine?\n\n{}"),
            (r"It costs \$5: $ARGUMENTS", "It costs $5: {}"),
            (r"\$ARGUMENTS", "$ARGUMENTS\n\n{}"),
            (r"a\b $HOME ü $ARGUMENTS", r"a\b $HOME ü {}"),
        ];
        for (prompt, expected) in cases {
            assert_eq!(substitute_arguments(prompt, "{}"), expected, "{prompt}");
        }
    }
}
