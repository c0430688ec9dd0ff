//! A single request to a model, outside any conversation.

use futures_util::StreamExt;
use haft_contract::CancellationToken;
use haft_models::{Model, ModelError, ModelRequest, ReplyAssembler, ToolChoice, Usage};

use crate::compaction::reply_text;

/// Sends one request to a model. Returns the text of the reply and the usage, which is also set if
/// the request fails. Dropping the future cancels the request.
pub async fn ask(
    model: &dyn Model,
    mut request: ModelRequest,
) -> (Result<String, ModelError>, Usage) {
    request.tool_choice = ToolChoice::None;
    let mut assembler = ReplyAssembler::new(&*request.model);
    let mut stream = model.stream(request, CancellationToken::new());
    let mut failure = None;
    while let Some(next) = stream.next().await {
        match next {
            // Tool calls in the reply are ignored.
            Ok(event) => drop(assembler.push(&event)),
            Err(error) => failure = Some(error),
        }
    }
    let reply = assembler.finish();
    let text = match failure {
        None => Ok(reply_text(&reply.message.content)),
        Some(error) => Err(error),
    };
    (text, reply.usage)
}
