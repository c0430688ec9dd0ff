//! The last step: converts the outcome into the result, with parts for the model, programs and the
//! user.

use std::time::Duration;

use haft_contract::{Card, Content, ToolError, ToolOutput};

use super::{CallResult, ExecutedCall, INTERRUPTED, Metadata, PreparedCall};
use crate::results::ResultStore;

/// Converts an outcome into a result. A text over the tool's cap is stored on disk, and the model
/// gets its path. The card is drawn only if a front end may show it.
pub(crate) fn finish(
    outcome: ExecutedCall,
    results: &ResultStore,
    draws: bool,
    duration: Duration,
) -> CallResult {
    let may_patch = outcome.call.effects_kind().patches;
    let ExecutedCall {
        call:
            PreparedCall {
                call,
                id,
                tool,
                bound,
                repairs,
                private_names,
                ..
            },
        result,
    } = outcome;
    let name = tool.spec().name.clone();
    let mut metadata = Metadata {
        repairs,
        duration,
        ..Metadata::default()
    };
    let is_error = result.as_ref().map_or(true, |output| output.failed);
    let (mut content, card, mut output) = match result {
        Ok(output) => {
            let content = bound.to_model(&output);
            let card = draws.then(|| bound.render_result(&output));
            (content, card, output)
        }
        Err(error) => {
            let message = match &error {
                ToolError::Cancelled => INTERRUPTED.to_owned(),
                error => error.to_string(),
            };
            let content = vec![Content::text(message)];
            let card = draws.then(|| bound.render_error(&error));
            (content, card, ToolOutput::default())
        }
    };
    private_names.in_content(&mut content);
    if let Some(structured) = &mut output.structured {
        private_names.in_value(structured);
    }
    if let Some(cap) = tool.spec().profile.result_cap {
        metadata.stored = results.cap_content(&mut content, cap);
    }
    never_empty(&mut content, &name);
    let patches = if may_patch {
        output.patches
    } else {
        metadata.dropped_patches = output.patches;
        Vec::new()
    };
    CallResult {
        call,
        id,
        name,
        is_error,
        content,
        structured: output.structured,
        messages: output.messages,
        patches,
        metadata,
        card: card.unwrap_or_else(|| Card::new(tool.spec().title(), String::new())),
    }
}

/// Removes empty blocks, which providers reject. If no block is left, adds a placeholder.
fn never_empty(content: &mut Vec<Content>, name: &str) {
    content.retain(|block| block.as_text().is_none_or(|text| !text.trim().is_empty()));
    if content.is_empty() {
        content.push(Content::text(format!("(no output from {name})")));
    }
}
