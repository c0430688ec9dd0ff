//! Handlers that ask a model.

use std::path::PathBuf;

use haft_contract::BoxFuture;

use super::config::Asked;

/// What a handler asks a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestion {
    /// Everything it reads: the handler's words with the event in them. It is to answer with an
    /// object that says `ok`.
    pub prompt: String,
    /// Another model than the usual one.
    pub model: Option<String>,
    /// It may look around with tools that only read, before it answers.
    pub with_tools: bool,
    /// Where the session is.
    pub cwd: PathBuf,
}

/// Asks a model. The engine knows none: the one who sets a session up brings it.
pub trait AskModel: Send + Sync {
    /// The text of its answer. The error is for people. Dropped while it waits, it asks no more.
    fn ask(&self, question: ModelQuestion) -> BoxFuture<'_, Result<String, String>>;
}

impl Asked {
    /// The question about this event.
    pub(super) fn question(&self, input: &str, cwd: PathBuf) -> ModelQuestion {
        ModelQuestion {
            prompt: filled(&self.prompt, input),
            model: self.model.clone(),
            with_tools: self.with_tools,
            cwd,
        }
    }
}

/// Puts the event in place of `$ARGUMENTS`, or behind a prompt without it. `\$` is a dollar sign.
fn filled(prompt: &str, input: &str) -> String {
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
            assert_eq!(filled(prompt, "{}"), expected, "{prompt}");
        }
    }
}
