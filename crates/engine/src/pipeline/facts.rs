//! The facts that the permission decision on a call is based on.

use std::sync::Arc;

use haft_contract::{
    CallContext, CallId, CancellationToken, NestedCalls, ProgressSender, ToolPermission, ToolUse,
};

use super::{InputAuthor, prepare, prepare::prepare_with_tool};
use crate::{
    Engine, SessionContext,
    permissions::{CallFacts, PathContext},
};

/// Gathers the facts of a call without running or deciding it. The call is found, matched with its
/// tool and completed by the same functions as in [`admit`](super::admit).
pub(crate) async fn facts(
    engine: &Engine,
    tool_use: ToolUse,
    context: &SessionContext,
) -> Result<CallFacts, String> {
    let place = context.path_context();
    let call = CallId::new();
    let id = tool_use.id.clone();
    let prepared = prepare(&engine.pool(), tool_use, InputAuthor::Model, call, &place);
    let mut prepared = prepared.map_err(|settled| settled.message)?;
    let cx = CallContext {
        session: engine.session(),
        call,
        tool_use_id: id.as_str().into(),
        cwd: Arc::clone(&context.cwd),
        cancel: CancellationToken::new(),
        progress: ProgressSender::disabled(call),
        permissions: context.permissions(),
        model: engine.model.clone(),
        services: engine.services.clone(),
        nested: NestedCalls::default(),
    };
    if let Some(input) = prepared.bound.complete_input(&cx).await {
        let again = super::hooks::with_input(&prepared, input);
        let fitted = prepare_with_tool(&prepared.tool, again, InputAuthor::Answer, call, &place);
        prepared = fitted.map_err(|settled| settled.message)?;
    }
    let mut facts = CallFacts::from_call(&*prepared.bound, &cx);
    facts.read_command(&place);
    Ok(facts)
}

/// Parses the command line of a call, if it has one, on a blocking thread.
pub(super) async fn read_command(mut facts: CallFacts, setting: PathContext) -> CallFacts {
    if !facts.has_command() {
        return facts;
    }
    let mut spare = facts.clone();
    let read = tokio::task::spawn_blocking(move || {
        facts.read_command(&setting);
        facts
    });
    read.await.unwrap_or_else(|_| {
        // Nothing is known about the command in this case, so deny it.
        spare.tool_permission = ToolPermission::Deny("its command could not be read".to_owned());
        spare
    })
}
