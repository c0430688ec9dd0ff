//! One tool call, start to finish: `prepare` → `admit` → `execute` → `finish`.
//!
//! Each step takes the type the step before it returns, so a call that was never admitted cannot be
//! executed: it does not compile. Any step may settle the call early, with an error *result* that
//! the model reads.

pub mod admit;
mod coerce;
mod confinement;
pub mod execute;
mod facts;
pub mod finish;
pub(crate) mod hooks;
mod paths;
pub mod prepare;
mod refusal;
mod validate;

use std::{borrow::Cow, path::PathBuf, time::Duration};

use haft_contract::{CallId, Card, CardPiece, Content, ContextPatch, InjectedMessage, view::plain};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use admit::Admitted;
pub use execute::ExecutedCall;
pub use prepare::Prepared;
pub(crate) use {
    admit::admit,
    execute::execute,
    facts::facts,
    finish::finish,
    hooks::Notes,
    prepare::{Author, prepare},
};

/// The marker that session readers look for where a person interrupted running tools.
pub const INTERRUPTED: &str = "[Request interrupted by user for tool use]";

/// A call that is over: what the model reads, what programs read, what a person sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Our id of the call.
    pub call: CallId,
    /// The provider's id.
    pub id: String,
    /// The tool's own name, also where an alias was called.
    pub name: String,
    /// It failed, in whatever way.
    pub is_error: bool,
    /// What the model reads; never empty.
    pub content: Vec<Content>,
    /// What programs read.
    pub structured: Option<Value>,
    /// Messages for the conversation, after the result.
    pub messages: Vec<InjectedMessage>,
    /// Changes of the session, applied by the scheduler.
    pub patches: Vec<ContextPatch>,
    /// What else is worth knowing.
    #[serde(with = "WholeMetadata")]
    pub metadata: Metadata,
    /// What a person is shown.
    pub card: Card,
}

impl CallResult {
    /// Adds what hooks want said.
    pub(crate) fn with_notes(mut self, notes: Notes) -> Self {
        for context in notes.context {
            let text = format!("<system-reminder>\n{context}\n</system-reminder>");
            self.content.push(Content::text(text));
        }
        self.metadata.notices.extend(notes.messages);
        if let Some(stop) = notes.stop {
            self.metadata.stop.get_or_insert(stop);
        }
        self
    }

    /// The text the model reads, blocks of other kinds left out.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// What is worth knowing of a finished call beyond its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Metadata {
    /// How the arguments were repaired before they fitted the schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<ArgumentRepair>,
    /// Where the whole result is kept, if it was too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<PathBuf>,
    /// Patches that were dropped because the call's effects did not announce any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_patches: Vec<ContextPatch>,
    /// What hooks want the person to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// A hook wants everything to stop after this call: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// It was not permitted.
    #[serde(skip)]
    pub denied: Option<Denied>,
    /// A hook has put it off: it has not run, and is to be made again later.
    #[serde(skip)]
    pub deferred: bool,
    /// From the call's turn to its result, waiting for a person included.
    #[serde(skip)]
    pub duration: Duration,
    /// How much of that was waiting for the one who was asked.
    #[serde(skip)]
    pub waited: Duration,
}

/// The same with everything in it: what programs read of a call leaves some out.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Metadata")]
struct WholeMetadata {
    repairs: Vec<ArgumentRepair>,
    stored: Option<PathBuf>,
    dropped_patches: Vec<ContextPatch>,
    notices: Vec<String>,
    stop: Option<String>,
    denied: Option<Denied>,
    deferred: bool,
    duration: Duration,
    #[serde(default)]
    waited: Duration,
}

/// Why a call was not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denied {
    /// No one was asked: a rule, the mode or a hook said no, or there was no one to ask.
    Unasked {
        /// What sort of reason it is, as messages name it.
        kind: Cow<'static, str>,
        /// The reason, for people.
        reason: String,
        /// What would have allowed it, where something would.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
    /// A PreToolUse hook said no.
    Hook,
    /// The one who was asked said no.
    Person,
}

/// How a call came to be permitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalSource {
    /// Rules, the mode, or that it is harmless: no one was asked.
    #[default]
    Config,
    /// A hook answered in the place of a person.
    Hook,
    /// A person, this once.
    Person,
    /// A person, from now on.
    PersonAlways,
}

impl ApprovalSource {
    /// Its name in telemetry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Hook => "hook",
            Self::Person => "user_temporary",
            Self::PersonAlways => "user_permanent",
        }
    }
}

/// One repair of the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentRepair {
    /// Which parameter; empty for the arguments as a whole.
    pub parameter: String,
    /// What was done.
    pub note: String,
}

/// A call that ends before it ran.
#[derive(Debug)]
pub(crate) struct EarlyResult {
    pub(crate) name: String,
    pub(crate) message: String,
    // Boxed, so that the happy path does not carry the size of the unhappy one.
    pub(crate) card: Box<Card>,
    pub(crate) repairs: Vec<ArgumentRepair>,
    /// It was not permitted, as against: it made no sense.
    pub(crate) denied: Option<Box<Denied>>,
    /// A hook has put it off.
    pub(crate) deferred: bool,
    /// What hooks want said.
    pub(crate) notes: Box<Notes>,
}

impl EarlyResult {
    /// A problem with the call itself, in the wrapper that models know.
    pub(crate) fn misuse(
        name: &str,
        problem: &str,
        card: Card,
        repairs: Vec<ArgumentRepair>,
    ) -> Self {
        let message = format!("<tool_use_error>{problem}</tool_use_error>");
        Self {
            name: name.to_owned(),
            message,
            card: Box::new(card),
            repairs,
            denied: None,
            deferred: false,
            notes: Box::default(),
        }
    }

    /// A defect of the tool.
    pub(crate) fn broken(name: &str, message: &str) -> Self {
        let card = Card::new(name, String::new()).with(CardPiece::Alarm(message.to_owned()));
        Self {
            name: name.to_owned(),
            message: message.to_owned(),
            card: Box::new(card),
            repairs: Vec::new(),
            denied: None,
            deferred: false,
            notes: Box::default(),
        }
    }

    pub(crate) fn finish(self, call: CallId, id: String) -> CallResult {
        let notes = *self.notes;
        let finished = CallResult {
            call,
            id,
            name: self.name,
            is_error: true,
            content: vec![Content::text(self.message)],
            structured: None,
            messages: Vec::new(),
            patches: Vec::new(),
            metadata: Metadata {
                repairs: self.repairs,
                denied: self.denied.map(|denied| *denied),
                deferred: self.deferred,
                ..Metadata::default()
            },
            card: *self.card,
        };
        finished.with_notes(notes)
    }
}

/// A result for a call that no step could answer: it was interrupted before it began, or its tool
/// panicked.
pub(crate) fn without_outcome(call: CallId, id: &str, name: &str, message: &str) -> CallResult {
    EarlyResult::broken(name, message).finish(call, id.to_owned())
}

/// The card of a call whose input never fitted.
fn misuse_card(spec: &haft_contract::ToolSpec, input: &Value, problem: &str) -> Card {
    plain::call(spec, input)
        .with_summary("invalid call")
        .with(CardPiece::Alarm(problem.to_owned()))
}

#[cfg(test)]
mod tests {
    use haft_contract::{DiffHunk, Role};

    use super::*;

    #[test]
    fn a_result_survives_being_written_and_read() {
        let result = CallResult {
            call: CallId::new(),
            id: "toolu_1".to_owned(),
            name: "Edit".to_owned(),
            is_error: true,
            content: vec![Content::text("no")],
            structured: Some(serde_json::json!({"a": [1, null]})),
            messages: vec![InjectedMessage {
                role: Role::User,
                content: vec![Content::text("more")],
            }],
            patches: vec![ContextPatch::SetCwd { path: "/p".into() }],
            metadata: Metadata {
                repairs: vec![ArgumentRepair {
                    parameter: "path".to_owned(),
                    note: "a number became a text".to_owned(),
                }],
                stored: Some("/kept".into()),
                dropped_patches: vec![ContextPatch::LeavePlan],
                notices: vec!["heard".to_owned()],
                stop: Some("enough".to_owned()),
                denied: Some(Denied::Unasked {
                    kind: "rule".into(),
                    reason: "the deny rule Edit".to_owned(),
                    remedy: None,
                }),
                deferred: true,
                duration: Duration::from_micros(1_500_001),
                waited: Duration::from_millis(3),
            },
            card: Card::new("Edit", "a.rs")
                .with_summary("refused")
                .with(CardPiece::Alarm("no".to_owned()))
                .with(CardPiece::Diff(vec![DiffHunk {
                    old_start: 1,
                    old_lines: 1,
                    new_start: 1,
                    new_lines: 1,
                    lines: vec!["-a".to_owned(), "+b".to_owned()],
                }])),
        };
        let written = serde_json::to_string(&result).unwrap();
        assert_eq!(
            serde_json::from_str::<CallResult>(&written).unwrap(),
            result
        );
        // What programs read of a call is less.
        let told = serde_json::to_value(&result.metadata).unwrap();
        assert_eq!(told.get("denied"), None);
    }
}
