//! One question to a model, beside any conversation.

use futures_util::StreamExt;
use haft_contract::CancellationToken;
use haft_models::{Assembler, Model, ModelError, ModelRequest, ToolChoice, Usage};

use crate::compaction::text_of;

/// Asks a model once: the text of its answer, and what it cost, also where it failed. Dropped while it
/// waits, it asks no more.
pub async fn ask(
    model: &dyn Model,
    mut request: ModelRequest,
) -> (Result<String, ModelError>, Usage) {
    request.tool_choice = ToolChoice::None;
    let mut assembler = Assembler::new(&*request.model);
    let mut stream = model.stream(request, CancellationToken::new());
    let mut failed = None;
    while let Some(next) = stream.next().await {
        match next {
            // A call is not run here, whatever the model wants.
            Ok(event) => drop(assembler.push(&event)),
            Err(error) => failed = Some(error),
        }
    }
    let reply = assembler.finish();
    let text = match failed {
        None => Ok(text_of(&reply.message.content)),
        Some(error) => Err(error),
    };
    (text, reply.usage)
}
