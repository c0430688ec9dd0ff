//! Hook events of a call.

use std::{convert::Infallible, path::Path, sync::OnceLock};

use haft_contract::{
    CallContext, Content, ContextPatch, HookVerdict, RuleOffer, ToolError, ToolOutput, ToolUse,
};
use serde_json::{Map, Value};

use super::{ExecutedCall, PreparedCall};
use crate::{
    Engine, SessionContext, hook_conditions,
    hooks::{
        HandlerOutput, HookCommonFields, HookCondition, HookDecision, HookEventKind, HookInvocation,
    },
    permissions::{CallFacts, HookPermission, PathContext, suggest},
};

/// The merged output of the PreToolUse hooks, before permissions are evaluated.
#[derive(Debug, Default)]
pub(super) struct PreToolHooks {
    /// The text for the model, if the hooks deny the call.
    pub(super) denied: Option<String>,
    pub(super) permission: HookPermission,
    /// The input that replaces the original one.
    pub(super) updated_input: Option<Value>,
    /// Whether the hooks defer the call.
    pub(super) deferred: bool,
    /// The name and reason of a hook that requires that the user is asked, if any.
    pub(super) ask_reason: Option<String>,
    pub(super) notes: HookNotes,
}

/// Notes by hooks, in addition to the result of a call.
#[derive(Debug, Default)]
pub(crate) struct HookNotes {
    /// Notes for the model.
    pub(crate) context: Vec<String>,
    /// Messages for the user.
    pub(crate) messages: Vec<String>,
    /// The reason why a hook stops the turn after this call.
    pub(crate) stop: Option<String>,
}

impl HookNotes {
    /// Adds later notes. The first reason to stop wins.
    pub(crate) fn extend(&mut self, later: Self) {
        self.context.extend(later.context);
        self.messages.extend(later.messages);
        self.stop = self.stop.take().or(later.stop);
    }

    /// Returns whether the hooks produced no notes.
    pub(crate) fn is_empty(&self) -> bool {
        self.context.is_empty() && self.messages.is_empty() && self.stop.is_none()
    }

    /// Converts the notes into the verdict that tools receive.
    pub(crate) fn verdict(&self) -> HookVerdict {
        HookVerdict {
            context: self.context.clone(),
            messages: self.messages.clone(),
            stop: self.stop.clone(),
            ..HookVerdict::default()
        }
    }

    fn add_output(&mut self, heard: &HandlerOutput) {
        let said = &heard.output;
        self.context.extend(said.context.clone());
        self.messages.extend(said.message.clone());
        if let Some(failure) = &said.failure {
            self.messages
                .push(format!("{} hook error: {failure}", heard.label));
        }
        if let Some(stop) = &said.stop {
            self.stop.get_or_insert_with(|| stop.clone());
        }
    }
}

/// Runs the PreToolUse hooks. Deny overrides defer, defer overrides ask, and ask overrides allow.
/// If several hooks replace the input, the last one wins.
pub(super) async fn run_pre_tool_use(
    engine: &Engine,
    prepared: &PreparedCall,
    context: &SessionContext,
    setting: &PathContext,
) -> PreToolHooks {
    let event = HookEventKind::PRE_TOOL_USE;
    if engine.hooks.has_no_handlers(event) {
        return PreToolHooks::default();
    }
    let fields = fields(prepared, true);
    let heard = fire(engine, event, prepared, fields, context, setting).await;
    let mut before = PreToolHooks::default();
    let mut strictest: Option<HookDecision> = None;
    for one in &heard {
        before.notes.add_output(one);
        let said = &one.output;
        let word = if said.block.is_some() {
            Some(HookDecision::Deny)
        } else {
            said.decision
        };
        if word == Some(HookDecision::Deny) && before.denied.is_none() {
            let why = said.block.as_ref().or(said.reason.as_ref());
            let why = why.map_or("no reason was given", String::as_str);
            before.denied = Some(format!("{} hook: {why}", one.label));
        }
        if word == Some(HookDecision::Ask) && before.ask_reason.is_none() {
            let why = said.reason.as_deref().unwrap_or("a hook requires approval");
            before.ask_reason = Some(format!("[{}] {why}", one.owner));
        }
        strictest = strictest.max(word);
        if said.block.is_none()
            && let Some(input) = &said.updated_input
        {
            before.updated_input = Some(input.clone());
        }
    }
    before.permission = match strictest {
        None | Some(HookDecision::Deny) => HookPermission::NoAnswer,
        Some(HookDecision::Allow) => HookPermission::Allow,
        // If nothing can defer calls here, the user decides.
        Some(HookDecision::Ask | HookDecision::Defer) => HookPermission::Ask,
    };
    before.deferred = strictest == Some(HookDecision::Defer);
    before
}

/// The answer of PermissionRequest hooks on the user's behalf.
pub(super) enum PermissionHookAnswer {
    /// No answer: the user is asked.
    NoAnswer,
    Allow {
        updated_input: Option<Value>,
        updates: Vec<Value>,
    },
    /// Denied; the text is for the model.
    Deny(String),
}

/// Runs the PermissionRequest hooks.
pub(super) async fn run_permission_request(
    engine: &Engine,
    prepared: &PreparedCall,
    offers: &[RuleOffer],
    context: &SessionContext,
    setting: &PathContext,
    notes: &mut HookNotes,
) -> PermissionHookAnswer {
    let event = HookEventKind::PERMISSION_REQUEST;
    if engine.hooks.has_no_handlers(event) {
        return PermissionHookAnswer::NoAnswer;
    }
    let mut fields = fields(prepared, false);
    if !offers.is_empty() {
        fields.insert(
            "permission_suggestions".to_owned(),
            suggest::updates(offers),
        );
    }
    let heard = fire(engine, event, prepared, fields, context, setting).await;
    heard.iter().for_each(|one| notes.add_output(one));
    let denied = heard
        .iter()
        .find(|one| one.output.decision == Some(HookDecision::Deny));
    if let Some(one) = denied {
        let reason = one.output.reason.clone();
        let message = reason.unwrap_or_else(|| format!("{} hook denied it", one.label));
        return PermissionHookAnswer::Deny(message);
    }
    let allowed = heard
        .into_iter()
        .find(|one| one.output.decision == Some(HookDecision::Allow));
    match allowed {
        None => PermissionHookAnswer::NoAnswer,
        Some(one) => PermissionHookAnswer::Allow {
            updated_input: one.output.updated_input,
            updates: one.output.updated_permissions,
        },
    }
}

/// Notifies the hooks that a call was denied without asking.
pub(super) async fn run_permission_denied(
    engine: &Engine,
    prepared: &PreparedCall,
    reason: &str,
    context: &SessionContext,
    setting: &PathContext,
    notes: &mut HookNotes,
) {
    let event = HookEventKind::PERMISSION_DENIED;
    if engine.hooks.has_no_handlers(event) {
        return;
    }
    let mut fields = fields(prepared, true);
    fields.insert("reason".to_owned(), reason.into());
    let heard = fire(engine, event, prepared, fields, context, setting).await;
    heard.iter().for_each(|one| notes.add_output(one));
    if heard.iter().any(|one| one.output.retry) {
        let name = prepared.name();
        notes.context.push(format!(
            "A hook says that this call of {name} may be tried again."
        ));
    }
}

/// Notifies the hooks that the user is asked, and then never returns: the caller drops the future.
pub(crate) async fn notify_approval_pending(engine: &Engine, what: &str, cwd: &Path) -> Infallible {
    let notice = HookNotice {
        kind: "permission_prompt",
        title: "Permission needed",
        message: &format!("Permission is needed to use {what}"),
    };
    notify(engine, &notice, cwd).await;
    if let (Some(_), Some(kind)) = (&engine.agent().id, &engine.agent().kind) {
        let notice = HookNotice {
            kind: "agent_needs_input",
            title: "An agent needs you",
            message: &format!("The subagent {kind} needs permission to use {what}"),
        };
        notify(engine, &notice, cwd).await;
    }
    std::future::pending().await
}

/// A message for the user.
pub(crate) struct HookNotice<'a> {
    pub(crate) kind: &'a str,
    pub(crate) title: &'a str,
    pub(crate) message: &'a str,
}

/// Runs the Notification hooks.
pub(crate) async fn notify(engine: &Engine, notice: &HookNotice<'_>, cwd: &Path) {
    let event = HookEventKind::NOTIFICATION;
    if engine.hooks.has_no_handlers(event) {
        return;
    }
    let mut fields = Map::new();
    let mut put = |name: &str, value: &str| fields.insert(name.to_owned(), value.into());
    put("message", notice.message);
    put("title", notice.title);
    put("notification_type", notice.kind);
    let occasion = HookInvocation {
        event,
        names: &[notice.kind],
        fields,
        call: None,
        cwd,
    };
    engine
        .hooks
        .fire_and_forget(&occasion, &engine.hook_common_fields())
        .await;
}

/// Notifies the hooks if a call has changed the working directory.
pub(crate) async fn run_cwd_changed(
    engine: &Engine,
    patches: &[ContextPatch],
    context: &SessionContext,
) -> HookNotes {
    let mut notes = HookNotes::default();
    let new = patches.iter().rev().find_map(|patch| match patch {
        ContextPatch::SetCwd { path }
        | ContextPatch::EnterWorktree { path, .. }
        | ContextPatch::LeaveWorktree { cwd: path } => Some(path.as_path()),
        _ => None,
    });
    let Some(new) = new.filter(|new| **new != *context.cwd) else {
        return notes;
    };
    let heard = fire_moved(engine, new, context).await;
    heard.iter().for_each(|one| notes.add_output(one));
    notes
}

async fn fire_moved(engine: &Engine, new: &Path, context: &SessionContext) -> Vec<HandlerOutput> {
    let event = HookEventKind::CWD_CHANGED;
    if engine.hooks.has_no_handlers(event) {
        return Vec::new();
    }
    let mut fields = Map::new();
    let old = context.cwd.to_string_lossy();
    fields.insert("old_cwd".to_owned(), old.into());
    fields.insert("new_cwd".to_owned(), new.to_string_lossy().into());
    let moved = SessionContext {
        cwd: new.into(),
        ..context.clone()
    };
    engine.fire(event, "", fields, &moved).await
}

/// Returns whether no hook receives the result of this call.
pub(crate) fn is_silent_after(engine: &Engine, outcome: &ExecutedCall) -> bool {
    engine.hooks.has_no_handlers(event_after(outcome))
}

fn event_after(outcome: &ExecutedCall) -> HookEventKind {
    match &outcome.result {
        Ok(output) if !output.failed => HookEventKind::POST_TOOL_USE,
        _ => HookEventKind::POST_TOOL_USE_FAILURE,
    }
}

/// Runs the PostToolUse hooks, or the PostToolUseFailure hooks if the call failed. They may add to the
/// text that the model reads. PostToolUse hooks may replace the output with another of the same
/// structure.
pub(crate) async fn run_post_tool_use(
    engine: &Engine,
    outcome: &mut ExecutedCall,
    cx: &CallContext,
    context: &SessionContext,
    duration: std::time::Duration,
) -> HookNotes {
    let event = event_after(outcome);
    if engine.hooks.has_no_handlers(event) {
        return HookNotes::default();
    }
    let setting = PathContext {
        cwd: cx.cwd.to_path_buf(),
        ..context.path_context()
    };
    let mut fields = fields(&outcome.call, true);
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("duration_ms", millis(duration).into());
    match &outcome.result {
        Ok(output) if output.failed => {
            let interrupted = response(output).get("interrupted") == Some(&Value::Bool(true));
            put("error", middle_cut(&text_of(output)).into());
            put("is_interrupt", interrupted.into());
        }
        Ok(output) => {
            put("tool_response", response(output));
        }
        Err(error) => {
            put("error", middle_cut(&error.to_string()).into());
            put("is_interrupt", matches!(error, ToolError::Cancelled).into());
        }
    }
    let heard = fire(engine, event, &outcome.call, fields, context, &setting).await;
    let mut notes = HookNotes::default();
    for one in &heard {
        notes.add_output(one);
        if let Some(why) = &one.output.block {
            notes.context.push(format!("{} hook: {why}", one.label));
        }
        if let (Some(new), Ok(output)) = (&one.output.updated_output, &mut outcome.result)
            && !output.failed
        {
            replace(output, new);
        }
    }
    notes
}

/// Returns a long text without its middle part.
fn middle_cut(text: &str) -> String {
    const MAX_LENGTH: usize = 10_000;
    let length = text.chars().count();
    if length <= MAX_LENGTH {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX_LENGTH / 2).collect();
    let end: String = text.chars().skip(length - MAX_LENGTH / 2).collect();
    format!(
        "{start}\n[{} characters are left out]\n{end}",
        length - MAX_LENGTH
    )
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn response(output: &ToolOutput) -> Value {
    match &output.structured {
        Some(structured) => structured.clone(),
        None => text_of(output).into(),
    }
}

fn text_of(output: &ToolOutput) -> String {
    let texts: Vec<&str> = output.content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}

/// Replaces the output if the new one has the structure of the tool's own; otherwise leaves it
/// unchanged.
fn replace(output: &mut ToolOutput, new: &Value) {
    if !has_same_shape(&response(output), new) {
        return;
    }
    let text = match new {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let part = |name: &str| fields.get(name).and_then(Value::as_str);
            match (part("stdout"), part("stderr")) {
                (Some(stdout), stderr) => {
                    let both = [stdout, stderr.unwrap_or_default()];
                    let said: Vec<&str> =
                        both.into_iter().filter(|text| !text.is_empty()).collect();
                    said.join("\n")
                }
                (None, _) => new.to_string(),
            }
        }
        // Content blocks, as MCP servers return them.
        Value::Array(blocks) if blocks.iter().all(|block| block["type"] == "text") => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|one| one["text"].as_str())
                .collect();
            texts.join("\n")
        }
        other => other.to_string(),
    };
    output.content = vec![Content::text(text)];
    if output.structured.is_some() {
        output.structured = Some(new.clone());
    }
}

/// Returns whether both values have the same type. Objects must also have the same keys, with values
/// of the same types; if the old value of a key is null, the new object may omit or change it.
fn has_same_shape(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            new.keys().all(|name| old.contains_key(name))
                && old.iter().all(|(name, value)| {
                    value.is_null() || new.get(name).is_some_and(|new| same_kind(value, new))
                })
        }
        (old, new) => same_kind(old, new),
    }
}

fn same_kind(old: &Value, new: &Value) -> bool {
    std::mem::discriminant(old) == std::mem::discriminant(new)
}

/// Returns the fields that every event about a call contains.
fn fields(prepared: &PreparedCall, with_id: bool) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("tool_name".to_owned(), prepared.name().into());
    fields.insert("tool_input".to_owned(), prepared.input().clone());
    if with_id {
        let (call, id) = prepared.ids();
        let id = if id.is_empty() { call.to_string() } else { id };
        fields.insert("tool_use_id".to_owned(), id.into());
    }
    fields
}

async fn fire(
    engine: &Engine,
    event: HookEventKind,
    prepared: &PreparedCall,
    fields: Map<String, Value>,
    context: &SessionContext,
    setting: &PathContext,
) -> Vec<HandlerOutput> {
    let aliases = prepared.spec().profile.aliases.iter();
    let mut names = vec![prepared.name()];
    names.extend(aliases.map(|alias| &**alias));
    let facts = OnceLock::new();
    let gather = || {
        let mut facts = CallFacts::from_bound_call(&*prepared.bound);
        facts.read_command(setting);
        facts
    };
    let holds = |condition: &HookCondition| {
        hook_conditions::condition_matches(condition, facts.get_or_init(gather))
    };
    let occasion = HookInvocation {
        event,
        names: &names,
        fields,
        call: Some(&holds),
        cwd: &setting.cwd,
    };
    let common = HookCommonFields {
        permission_mode: Some(context.mode.name()),
        ..engine.hook_common_fields()
    };
    engine.hooks.fire(&occasion, &common).await
}

/// Returns the call with another input.
pub(super) fn with_input(prepared: &PreparedCall, input: Value) -> ToolUse {
    ToolUse {
        id: prepared.id.clone(),
        name: prepared.name().to_owned(),
        input,
    }
}
