//! `MemoryRead`: shows a note of an earlier session, or lists all notes.

use haft_contract::{
    CallContext, Card, Effects, ServiceNeed, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::folder::{MemoryFolder, NotePath};
use crate::{blocking::blocking, plural::counted};

/// Reads a note that was saved for this project in an earlier session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The note. Without it, all notes are listed.
    path: Option<String>,
}

pub(crate) struct MemoryRead;

impl Tool for MemoryRead {
    type Input = Input;
    const NAME: &'static str = "MemoryRead";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "memory".into(),
            deferred: true,
            search_hint: "memory notes remember recall earlier session".into(),
            access: ToolAccess::Reads,
            needs: const { &[ServiceNeed::service::<MemoryFolder>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::queueing("memory")
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let folder = cx.services.get::<MemoryFolder>()?;
        let given = input.path.as_deref().filter(|path| !path.is_empty());
        let Some(given) = given else {
            let notes = blocking(move || folder.list()).await?.map_err(failed)?;
            let text = match notes.is_empty() {
                true => "The memory folder has no notes yet.".to_owned(),
                false => {
                    let lines = notes
                        .iter()
                        .map(|note| format!("{} ({})", note.path, counted(note.bytes, "byte")));
                    lines.collect::<Vec<_>>().join("\n")
                }
            };
            let notes: Vec<Value> = notes
                .iter()
                .map(|note| json!({"path": note.path, "bytes": note.bytes}))
                .collect();
            return Ok(ToolOutput::text(text).with_structured(json!({"notes": notes})));
        };
        let path = NotePath::parse(given).map_err(ToolError::Failed)?;
        let shown = path.to_string();
        let content = blocking(move || folder.read(&path))
            .await?
            .map_err(failed)?;
        match content {
            Some(content) => Ok(ToolOutput::text(&*content)
                .with_structured(json!({"path": shown, "content": content}))),
            None => Err(ToolError::Failed(format!(
                "The note {shown} does not exist. Call MemoryRead without `path` to list all notes."
            ))),
        }
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new(
            "Memory",
            input.path.as_deref().unwrap_or_default(),
        ))
    }
}

pub(super) fn failed(error: std::io::Error) -> ToolError {
    ToolError::Failed(format!("The memory folder cannot be used: {error}"))
}
