//! The first step: converts the model's request into a call that matches its tool.
//!
//! It resolves the name or alias, repairs and completes the input, validates it, makes paths
//! absolute and binds the tool. It accesses no file.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use haft_contract::{
    BoundCall, BoxFuture, CallContext, CallId, Card, CardSection, Effects, ToolError, ToolOutput,
    ToolSpec, ToolUse,
};
use serde_json::Value;

use super::{
    ArgumentRepair, DenialSource, EarlyResult, coerce, denial::by_rule, misuse_card, paths,
    private_paths::PrivateNames, validate,
};
use crate::{
    permissions::PathContext,
    pool::{BannedTool, Pool, PoolTool},
};

/// A valid call whose permission is not decided yet.
#[derive(Debug)]
pub struct PreparedCall {
    pub(super) call: CallId,
    pub(super) id: String,
    pub(super) tool: Arc<PoolTool>,
    pub(super) bound: Box<dyn BoundCall>,
    pub(super) repairs: Vec<ArgumentRepair>,
    /// The kind of the call's effects, computed only once, so that it does not change with the files.
    effects_kind: OnceLock<EffectsKind>,
    /// The paths that its result must contain instead of the places of the session's own files.
    pub(super) private_names: PrivateNames,
    /// The effects that were computed last, to be reused by `admit`.
    last_effects: Mutex<Option<Effects>>,
}

/// The kind of a call's effects. It is computed once, because the claims of the call are based on
/// it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EffectsKind {
    /// Whether the call changes nothing.
    pub(crate) is_read_only: bool,
    /// Whether the call may be dropped at any time.
    pub(crate) may_be_dropped: bool,
    /// Whether the call may change the session.
    pub(crate) patches: bool,
}

impl PreparedCall {
    /// Returns the effects of the call.
    pub fn effects(&self) -> Effects {
        let effects = self.bound.effects();
        self.effects_kind
            .get_or_init(|| EffectsKind::from_effects(&effects));
        *self.last_effects() = Some(effects.clone());
        effects
    }

    /// Takes the effects for the permission decision. The effects that were computed when the call
    /// was scheduled are reused once if the call is read-only. This is safe, because each of its
    /// paths is resolved again, and the tool opens only the resolved files.
    pub(super) fn take_effects(&self) -> Effects {
        let found = self.last_effects().take().filter(Effects::is_read_only);
        found.unwrap_or_else(|| self.bound.effects())
    }

    fn last_effects(&self) -> MutexGuard<'_, Option<Effects>> {
        self.last_effects
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the kind of its effects. Cheaper than the effects, which may access files.
    pub(crate) fn effects_kind(&self) -> EffectsKind {
        let effects = || EffectsKind::from_effects(&self.bound.effects());
        *self.effects_kind.get_or_init(effects)
    }

    /// Returns the definition of its tool.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// Runs the tool. Only [`LayerChain`](crate::layers::LayerChain) calls this, for an admitted call.
    pub(crate) fn run<'a>(
        &'a self,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.bound.call(cx)
    }

    /// Returns our id and the provider's.
    pub fn ids(&self) -> (CallId, String) {
        (self.call, self.id.clone())
    }

    /// Returns the tool's own name.
    pub fn name(&self) -> &str {
        &self.tool.spec().name
    }

    /// Returns the card of the call.
    pub fn card(&self) -> Card {
        self.bound.render_use()
    }

    /// Returns the valid, completed input.
    pub fn input(&self) -> &Value {
        self.bound.input()
    }
}

impl EffectsKind {
    fn from_effects(effects: &Effects) -> Self {
        Self {
            is_read_only: effects.is_read_only(),
            may_be_dropped: effects.may_be_dropped(),
            patches: effects.patches,
        }
    }
}

/// The author of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputAuthor {
    /// The model.
    Model,
    /// The user or a hook that answered the request, or the tool itself.
    Answer,
}

/// Prepares a call for the permission decision, or returns everything that is wrong with it.
pub(crate) fn prepare(
    pool: &Pool,
    tool_use: ToolUse,
    author: InputAuthor,
    call: CallId,
    place: &PathContext,
) -> Result<PreparedCall, EarlyResult> {
    let name = &tool_use.name;
    let Some(tool) = pool.find(name) else {
        return Err(match (pool.forbidden(name), pool.withdrawn(name)) {
            (Some(forbidden), _) => banned_tool_result(forbidden),
            (None, Some(server)) => removed_tool_result(name, server),
            (None, None) => unknown_tool_result(pool, name),
        });
    };
    prepare_with_tool(tool, tool_use, author, call, place)
}

/// Like [`prepare`], but for a tool that has already been found.
pub(super) fn prepare_with_tool(
    tool: &Arc<PoolTool>,
    tool_use: ToolUse,
    author: InputAuthor,
    call: CallId,
    place: &PathContext,
) -> Result<PreparedCall, EarlyResult> {
    let ToolUse { id, mut input, .. } = tool_use;
    let spec = tool.spec();

    // Reserved parameters are not part of the schema; only the input type knows them.
    let reserved = remove_parameters(spec.profile.reserved, &mut input);
    let repairs = coerce::coerce(&spec.input_schema, &mut input);
    tool.tool().backfill(&mut input);
    let problems = validate::problems(tool.validator(), &spec.input_schema, &input)
        .or_else(|| paths::make_absolute(spec.profile.paths, &mut input, place));
    if let Some(problems) = problems {
        return Err(invalid_input_result(tool, &input, &problems, repairs));
    }
    if let (InputAuthor::Answer, Some(input)) = (author, input.as_object_mut()) {
        input.extend(reserved);
    }
    match Arc::clone(tool.tool()).bind(input) {
        Ok(mut bound) => {
            bound.set_location(&place.cwd, place.home.as_deref());
            Ok(PreparedCall {
                call,
                id,
                tool: Arc::clone(tool),
                bound,
                repairs,
                effects_kind: OnceLock::new(),
                private_names: PrivateNames::default(),
                last_effects: Mutex::default(),
            })
        }
        // The schema accepted it, but the type did not: that is also a problem with the input.
        Err(error) => Err(invalid_input_result(
            tool,
            &Value::Null,
            &[error.to_string()],
            repairs,
        )),
    }
}

/// Removes parameters from an input and returns them.
fn remove_parameters(names: &[&str], input: &mut Value) -> Vec<(String, Value)> {
    let Some(input) = input.as_object_mut() else {
        return Vec::new();
    };
    let names = names
        .iter()
        .filter_map(|name| input.shift_remove_entry(*name));
    names.collect()
}

/// Returns the result for a tool that a rule bans.
fn banned_tool_result(forbidden: &BannedTool) -> EarlyResult {
    let message = by_rule(&forbidden.name, &forbidden.rule, "");
    let card = Card::new(forbidden.name.clone(), String::new());
    EarlyResult {
        name: forbidden.name.clone(),
        card: Box::new(card.with(CardSection::Alarm(message.clone()))),
        message,
        repairs: Vec::new(),
        denied: Some(Box::new(DenialSource::Unasked {
            kind: "rule".into(),
            reason: format!("the deny rule {}", forbidden.rule),
            remedy: None,
        })),
        deferred: false,
        notes: Box::default(),
    }
}

/// Returns the result for a tool that its server has removed.
fn removed_tool_result(name: &str, server: &str) -> EarlyResult {
    let problem = format!(
        "{name} is not available: the server {server} was removed, or no longer offers it. Continue \
         without it."
    );
    let card = Card::new(name.to_owned(), String::new()).with(CardSection::Alarm(problem.clone()));
    EarlyResult::misuse(name, &problem, card, Vec::new())
}

fn unknown_tool_result(pool: &Pool, name: &str) -> EarlyResult {
    let near = pool.similar_names(name);
    let hint = if near.is_empty() {
        let all: Vec<_> = pool.iter().map(|tool| tool.spec().name.as_str()).collect();
        match all.as_slice() {
            [] => "This session offers no tools.".to_owned(),
            all => format!("Available: {}.", all.join(", ")),
        }
    } else {
        format!("Did you mean {}?", near.join(", "))
    };
    let shown: String = name.chars().take(100).collect();
    let problem = format!("Unknown tool: {shown}. {hint}");
    let card = Card::new(shown, String::new()).with(CardSection::Alarm(problem.clone()));
    EarlyResult::misuse(name, &problem, card, Vec::new())
}

fn invalid_input_result(
    tool: &PoolTool,
    input: &Value,
    problems: &[String],
    repairs: Vec<ArgumentRepair>,
) -> EarlyResult {
    let spec = tool.spec();
    let count = match problems.len() {
        1 => "1 problem".to_owned(),
        several => format!("{several} problems"),
    };
    let lines: String = problems
        .iter()
        .map(|problem| format!("\n- {problem}"))
        .collect();
    let text = format!(
        "InputValidationError: {} was not run: {count} with its input{lines}",
        spec.name
    );
    let card = misuse_card(spec, input, &problems.join("\n"));
    EarlyResult::misuse(&spec.name, &text, card, repairs)
}
