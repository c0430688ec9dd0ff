//! Hooks that the program at the other end runs itself.

use std::{sync::Arc, time::Duration};

use haft::engine::hooks::{Action, Callback, Handler, HookMoment, Matcher};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::channel::Channel;

/// How long an answer may take where nobody says.
const USUAL: Duration = Duration::from_secs(600);
const ON_PROMPT: Duration = Duration::from_secs(30);
const ON_DISPLAY: Duration = Duration::from_secs(10);

/// Handlers that ask the other end, as `initialize` names them. What makes no sense is told in words.
pub(super) fn read(hooks: &Value, channel: &Arc<Channel>) -> Result<Vec<Handler>, String> {
    let mut handlers = Vec::new();
    let Some(events) = hooks.as_object() else {
        return Ok(handlers);
    };
    for (name, groups) in events {
        let event =
            HookMoment::named(name).ok_or_else(|| format!("hooks: no event is called {name}"))?;
        for group in groups.as_array().into_iter().flatten() {
            let text = group["matcher"].as_str().unwrap_or("");
            let (matcher, broken) = Matcher::new(event, text);
            if let Some(what) = broken {
                return Err(format!("hooks.{name}: {what}"));
            }
            let limit = match group["timeout"].as_f64() {
                Some(seconds) => Duration::try_from_secs_f64(seconds)
                    .map_err(|error| format!("hooks.{name}: timeout {seconds}: {error}"))?,
                None if event == HookMoment::USER_PROMPT_SUBMIT => ON_PROMPT,
                None if event.name() == "MessageDisplay" => ON_DISPLAY,
                None => USUAL,
            };
            for id in group["hookCallbackIds"].as_array().into_iter().flatten() {
                let Some(id) = id.as_str() else {
                    return Err(format!("hooks.{name}: an id is no text"));
                };
                let action = Action::Callback(callback(id, event, limit, channel));
                handlers.push(Handler {
                    // The callback ends by itself before that.
                    timeout: limit.saturating_mul(2).saturating_add(ON_PROMPT),
                    guards: group["onFailure"] == "block",
                    written: json!({"callback": id, "event": name, "matcher": text}),
                    ..Handler::new(event, matcher.clone(), action)
                });
            }
        }
    }
    Ok(handlers)
}

fn callback(id: &str, event: HookMoment, limit: Duration, channel: &Arc<Channel>) -> Callback {
    let (id, channel) = (id.to_owned(), Arc::clone(channel));
    Callback(Arc::new(move |input| {
        let (id, channel) = (id.clone(), Arc::clone(&channel));
        Box::pin(async move {
            let mut request = json!({
                "subtype": "hook_callback",
                "callback_id": id,
                "input": input,
            });
            if let Some(call) = request["input"].get("tool_use_id").cloned() {
                request["tool_use_id"] = call;
            }
            match timeout(limit, channel.ask(request)).await {
                Ok(answer) => answer,
                Err(_) => late(event, limit),
            }
        })
    }))
}

/// What no answer in time means.
fn late(event: HookMoment, limit: Duration) -> Result<Value, String> {
    let why = format!("the {} hook did not answer within {limit:?}", event.name());
    if event == HookMoment::PRE_TOOL_USE {
        return Ok(json!({"hookSpecificOutput": {
            "hookEventName": event.name(),
            "permissionDecision": "deny",
            "permissionDecisionReason": why,
        }}));
    }
    if event == HookMoment::USER_PROMPT_SUBMIT || event == HookMoment::USER_PROMPT_EXPANSION {
        return Ok(json!({"decision": "block", "reason": why}));
    }
    Err(why)
}
