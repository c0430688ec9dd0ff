//! `MemoryWrite`: writes a note for later sessions.

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Effects, Idempotency, ServiceNeed, Tool,
    ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    folder::{MAX_LENGTH, MAX_SIZE, MemoryFolder, NotePath},
    memory_read::failed,
};
use crate::{blocking::blocking, plural::counted};

/// Saves a note for later sessions of this project: facts that were hard to find and the user's
/// preferences, never secrets. `MEMORY.md` is read at the start of each session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The note, such as `MEMORY.md` or `decisions/api.md`.
    path: String,
    /// The whole note, which replaces the old text; empty to delete it.
    content: String,
}

pub(crate) struct MemoryWrite;

impl Tool for MemoryWrite {
    type Input = Input;
    const NAME: &'static str = "MemoryWrite";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "memory".into(),
            deferred: true,
            search_hint: "memory note remember keep forget later session".into(),
            access: ToolAccess::Anything,
            needs: const { &[ServiceNeed::service::<MemoryFolder>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects {
            patches: false,
            repeat: Idempotency::Checkable,
            ..Effects::EXCLUSIVE
        }
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let path = NotePath::parse(&input.path)
            .map_err(ToolError::Refused)?
            .to_string();
        let new = input.content.len() as u64;
        if new > MAX_LENGTH {
            return Err(ToolError::Refused(format!(
                "The note has {}; the limit is {MAX_LENGTH}. Shorten it, or make two.",
                counted(new, "byte")
            )));
        }
        let folder = cx.services.get::<MemoryFolder>()?;
        let notes = blocking(move || folder.list()).await?.map_err(failed)?;
        let others: u64 = notes
            .iter()
            .filter(|note| note.path != path)
            .map(|note| note.bytes)
            .sum();
        if new > 0 && others + new > MAX_SIZE {
            return Err(ToolError::Refused(format!(
                "The notes would have {} together; the limit is {MAX_SIZE}. Delete outdated notes \
                 first.",
                counted(others + new, "byte")
            )));
        }
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let folder = cx.services.get::<MemoryFolder>()?;
        let path = NotePath::parse(&input.path).map_err(ToolError::Failed)?;
        let shown = path.to_string();
        if input.content.is_empty() {
            let gone = blocking(move || folder.remove(&path))
                .await?
                .map_err(failed)?;
            let text = match gone {
                true => format!("The note {shown} is deleted."),
                false => format!("The note {shown} does not exist."),
            };
            let told = json!({"path": shown, "deleted": gone});
            return Ok(ToolOutput::text(text).with_structured(told));
        }
        let content = input.content.clone();
        let written = blocking(move || folder.write(&path, &content)).await?;
        written.map_err(failed)?;
        let bytes = input.content.len();
        let text = format!(
            "The note {shown} is saved ({}).",
            counted(bytes as u64, "byte")
        );
        Ok(ToolOutput::text(text).with_structured(json!({"path": shown, "bytes": bytes})))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let card = Card::new("Memory", &*input.path);
        Some(match input.content.is_empty() {
            true => card.with_summary("delete"),
            false => card.with(CardSection::Text(input.content.trim_end().to_owned())),
        })
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let deleted = output.structured.as_ref()?["deleted"].as_bool();
        let summary = match deleted {
            Some(true) => "deleted",
            Some(false) => "did not exist",
            None => "kept",
        };
        Some(Card::new("Memory", &*input.path).with_summary(summary))
    }
}
