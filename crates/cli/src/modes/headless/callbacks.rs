//! Hooks that the SDK client runs itself.

use std::{borrow::Cow, sync::Arc, time::Duration};

use haft::engine::hooks::{Callback, HookAction, HookEventKind, HookHandler, HookMatcher};
use haft_protocol::{
    CallbackMatcher, HookCallbackRequest, HookReply, HookSpecificReply, NamedList, SessionRequest,
};
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::channel::ControlChannel;

/// The default timeout of a callback.
const USUAL: Duration = Duration::from_secs(600);
const ON_PROMPT: Duration = Duration::from_secs(30);
const ON_DISPLAY: Duration = Duration::from_secs(10);

/// The fields that identify a callback handler.
#[derive(Serialize)]
struct CallbackIdentity<'a> {
    callback: &'a str,
    event: &'a str,
    matcher: &'a str,
}

/// Returns a handler for each callback of the `initialize` request. Returns an error message for
/// invalid definitions.
pub(super) fn read(
    hooks: &NamedList<CallbackMatcher>,
    channel: &Arc<ControlChannel>,
) -> Result<Vec<HookHandler>, String> {
    let mut handlers = Vec::new();
    for (name, groups) in &hooks.0 {
        let event = HookEventKind::from_name(name)
            .ok_or_else(|| format!("hooks: no event is called {name}"))?;
        for group in groups {
            let text = group.matcher.as_deref().unwrap_or("");
            let (matcher, broken) = HookMatcher::new(event, text);
            if let Some(what) = broken {
                return Err(format!("hooks.{name}: {what}"));
            }
            let limit = match group.timeout {
                Some(seconds) => Duration::try_from_secs_f64(seconds)
                    .map_err(|error| format!("hooks.{name}: timeout {seconds}: {error}"))?,
                None if event == HookEventKind::USER_PROMPT_SUBMIT => ON_PROMPT,
                None if event.name() == "MessageDisplay" => ON_DISPLAY,
                None => USUAL,
            };
            for id in &group.hook_callback_ids {
                let Some(id) = id.parsed() else {
                    return Err(format!("hooks.{name}: an id is not a string"));
                };
                let action = HookAction::Callback(callback(id, event, limit, channel));
                let identity = CallbackIdentity {
                    callback: id,
                    event: name,
                    matcher: text,
                };
                handlers.push(HookHandler {
                    // The handler's own timeout is longer: the callback times out first.
                    timeout: limit.saturating_mul(2).saturating_add(ON_PROMPT),
                    fails_closed: group.on_failure.as_deref() == Some("block"),
                    written: value(&identity)?,
                    ..HookHandler::new(event, matcher.clone(), action)
                });
            }
        }
    }
    Ok(handlers)
}

fn callback(
    id: &str,
    event: HookEventKind,
    limit: Duration,
    channel: &Arc<ControlChannel>,
) -> Callback {
    let (id, channel) = (id.to_owned(), Arc::clone(channel));
    Callback(Arc::new(move |input| {
        let (id, channel) = (id.clone(), Arc::clone(&channel));
        Box::pin(async move {
            let request = SessionRequest::HookCallback(HookCallbackRequest {
                callback_id: id.into(),
                tool_use_id: input.get("tool_use_id").map(Cow::Borrowed),
                input: Cow::Borrowed(&input),
            });
            match timeout(limit, channel.ask(request)).await {
                Ok(answer) => answer,
                Err(_) => late(event, limit),
            }
        })
    }))
}

/// Returns the hook output for a callback that did not answer in time.
fn late(event: HookEventKind, limit: Duration) -> Result<Value, String> {
    let why = format!("the {} hook did not answer within {limit:?}", event.name());
    if event == HookEventKind::PRE_TOOL_USE {
        return value(&HookReply {
            hook_specific_output: Some(HookSpecificReply {
                hook_event_name: event.name().into(),
                permission_decision: Some("deny".into()),
                permission_decision_reason: Some(why.into()),
            }),
            ..HookReply::default()
        });
    }
    if event == HookEventKind::USER_PROMPT_SUBMIT || event == HookEventKind::USER_PROMPT_EXPANSION {
        return value(&HookReply {
            decision: Some("block".into()),
            reason: Some(why.into()),
            ..HookReply::default()
        });
    }
    Err(why)
}

fn value(of: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(of).map_err(|error| error.to_string())
}
