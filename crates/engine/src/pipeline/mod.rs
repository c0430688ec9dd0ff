//! One tool call, start to finish: `prepare` → `admit` → `execute` → `finish`.
//!
//! Each step takes the type that the step before it returns. Code that executes a call that was
//! never admitted does not compile. Any step may end the call early with an error *result* that the
//! model reads.

pub mod admit;
mod coerce;
mod confinement;
mod denial;
pub mod execute;
mod facts;
pub mod finish;
pub(crate) mod hooks;
mod paths;
pub mod prepare;
mod private_paths;
mod undo_note;
mod validate;

use std::{borrow::Cow, path::PathBuf, time::Duration};

use haft_contract::{
    CallId, Card, CardSection, Content, ContextPatch, InjectedMessage, card::plain,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use admit::AdmittedCall;
pub use execute::ExecutedCall;
pub use prepare::PreparedCall;
pub(crate) use {
    admit::admit,
    confinement::prepare_sandboxes,
    execute::execute,
    facts::facts,
    finish::finish,
    hooks::HookNotes,
    prepare::{InputAuthor, prepare},
};

/// The marker of an interrupt by the user while tools were running. Programs that read transcripts
/// search for it.
pub const INTERRUPTED: &str = "[Request interrupted by user for tool use]";

/// The result of a finished call, with parts for the model, programs and the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Our id of the call.
    pub call: CallId,
    /// The provider's id.
    pub id: String,
    /// The tool's own name, even if an alias was called.
    pub name: String,
    /// Whether the call failed or did not run.
    pub is_error: bool,
    /// The content that the model reads; never empty.
    pub content: Vec<Content>,
    /// The structured result that programs receive.
    pub structured: Option<Value>,
    /// Messages to add to the conversation after the result.
    pub messages: Vec<InjectedMessage>,
    /// Changes of the session, applied by the scheduler.
    pub patches: Vec<ContextPatch>,
    /// Further information about the call.
    #[serde(with = "FullMetadata")]
    pub metadata: Metadata,
    /// The card shown to the user.
    pub card: Card,
}

impl CallResult {
    /// Adds the notes by hooks.
    pub(crate) fn with_notes(mut self, notes: HookNotes) -> Self {
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

    /// Returns the text that the model reads, without blocks of other types.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// Further information about a finished call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Metadata {
    /// The repairs of the arguments that were necessary to match the schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<ArgumentRepair>,
    /// The path of the whole result, if it was too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<PathBuf>,
    /// Patches that were dropped because the call's effects did not announce any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_patches: Vec<ContextPatch>,
    /// Messages by hooks for the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The reason why a hook stops the turn after this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Set if the call was denied.
    #[serde(skip)]
    pub denied: Option<DenialSource>,
    /// Whether a hook has deferred the call. It has not run then, and must be made again later.
    #[serde(skip)]
    pub deferred: bool,
    /// The time from the start of the call to its result, including the time spent waiting for the
    /// user.
    #[serde(skip)]
    pub duration: Duration,
    /// The part of that time spent waiting for an approval.
    #[serde(skip)]
    pub waited: Duration,
}

/// Serializes all fields of [`Metadata`], some of which its own serialization omits.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Metadata")]
struct FullMetadata {
    repairs: Vec<ArgumentRepair>,
    stored: Option<PathBuf>,
    dropped_patches: Vec<ContextPatch>,
    notices: Vec<String>,
    stop: Option<String>,
    denied: Option<DenialSource>,
    deferred: bool,
    duration: Duration,
    #[serde(default)]
    waited: Duration,
}

/// The source of a denial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenialSource {
    /// Denied without asking: by a rule, the mode or a hook, or because no user can be asked.
    Unasked {
        /// The kind of the reason, as messages name it.
        kind: Cow<'static, str>,
        /// The human-readable reason.
        reason: String,
        /// A change that would have allowed it, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
    /// Denied by a PreToolUse hook.
    Hook,
    /// Denied by the user, or by the program that answered for them.
    Person,
}

/// The source of an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalSource {
    /// Rules, the mode, or read-only effects: nothing was asked.
    #[default]
    Config,
    /// A hook answered instead of the user.
    Hook,
    /// The user, this once.
    User,
    /// The user, who also saved rules.
    UserAlways,
}

impl ApprovalSource {
    /// Returns its name in telemetry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Hook => "hook",
            Self::User => "user_temporary",
            Self::UserAlways => "user_permanent",
        }
    }
}

/// A repair of the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentRepair {
    /// The parameter; empty for the arguments as a whole.
    pub parameter: String,
    /// A description of the repair.
    pub note: String,
}

/// The result of a call that ended before it ran.
#[derive(Debug)]
pub(crate) struct EarlyResult {
    pub(crate) name: String,
    pub(crate) message: String,
    // Boxed, so that `Result`s with this error stay small.
    pub(crate) card: Box<Card>,
    pub(crate) repairs: Vec<ArgumentRepair>,
    /// The source of the denial; `None` if the call was not denied.
    pub(crate) denied: Option<Box<DenialSource>>,
    /// Whether a hook has deferred the call.
    pub(crate) deferred: bool,
    /// Notes by hooks.
    pub(crate) notes: Box<HookNotes>,
}

impl EarlyResult {
    /// Creates a result for an invalid call, in the markup that models know.
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

    /// Creates a result for a defect of the tool.
    pub(crate) fn broken(name: &str, message: &str) -> Self {
        let card = Card::new(name, String::new()).with(CardSection::Alarm(message.to_owned()));
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

/// Creates a result for a call without an outcome: it was interrupted before it started, or its
/// tool panicked.
pub(crate) fn without_outcome(call: CallId, id: &str, name: &str, message: &str) -> CallResult {
    EarlyResult::broken(name, message).finish(call, id.to_owned())
}

/// Returns the card of a call whose input did not match the schema.
fn misuse_card(spec: &haft_contract::ToolSpec, input: &Value, problem: &str) -> Card {
    plain::call(spec, input)
        .with_summary("invalid call")
        .with(CardSection::Alarm(problem.to_owned()))
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
                denied: Some(DenialSource::Unasked {
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
                .with(CardSection::Alarm("no".to_owned()))
                .with(CardSection::Diff(vec![DiffHunk {
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
