//! The first verb: from what the model wrote to a call that fits its tool.
//!
//! Name and alias, repair, filling in, validation, absolute paths, binding. No file is touched.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use haft_contract::{
    BoundCall, BoxFuture, CallContext, CallId, Card, CardPiece, Effects, ToolError, ToolOutput,
    ToolSpec, ToolUse,
};
use serde_json::Value;

use super::{
    ArgumentRepair, Denied, EarlyResult, coerce, misuse_card, paths, refusal::by_rule, validate,
};
use crate::{
    permissions::PathContext,
    pool::{Forbidden, Pool, PoolTool},
};

/// A call that fits its tool, and that no one has permitted yet.
#[derive(Debug)]
pub struct Prepared {
    pub(super) call: CallId,
    pub(super) id: String,
    pub(super) tool: Arc<PoolTool>,
    pub(super) bound: Box<dyn BoundCall>,
    pub(super) repairs: Vec<ArgumentRepair>,
    /// What holds of its effects whatever the files are at the moment.
    kind: OnceLock<EffectsKind>,
    /// Its effects, as they were found last, for the one who judges it.
    found: Mutex<Option<Effects>>,
}

/// What kind of effects a call has, as it was when they were first asked for: its claims were made by that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EffectsKind {
    /// It changes nothing.
    pub(crate) is_read_only: bool,
    /// It may be dropped at any time.
    pub(crate) may_be_dropped: bool,
    /// It may change the session.
    pub(crate) patches: bool,
}

impl Prepared {
    /// What the call touches.
    pub fn effects(&self) -> Effects {
        let effects = self.bound.effects();
        self.kind.get_or_init(|| EffectsKind::of(&effects));
        *self.found() = Some(effects.clone());
        effects
    }

    /// What it touches, for the one who judges it. Where it changes nothing, what was found when it was its turn is good
    /// enough, once: each path that it names is followed anew, and the tool holds itself to where they led.
    pub(super) fn take_effects(&self) -> Effects {
        let found = self.found().take().filter(Effects::is_read_only);
        found.unwrap_or_else(|| self.bound.effects())
    }

    fn found(&self) -> MutexGuard<'_, Option<Effects>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What kind of effects it has; cheaper than the effects, for which files are looked at.
    pub(crate) fn kind(&self) -> EffectsKind {
        let effects = || EffectsKind::of(&self.bound.effects());
        *self.kind.get_or_init(effects)
    }

    /// The definition of its tool.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// Runs the tool; only [`Next`](crate::layers::Next) does, for an admitted call.
    pub(crate) fn run<'a>(
        &'a self,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.bound.call(cx)
    }

    /// Our id and the provider's.
    pub fn ids(&self) -> (CallId, String) {
        (self.call, self.id.clone())
    }

    /// The tool's own name.
    pub fn name(&self) -> &str {
        &self.tool.spec().name
    }

    /// The call as a person sees it.
    pub fn card(&self) -> Card {
        self.bound.render_use()
    }

    /// The input, valid and with everything filled in.
    pub fn input(&self) -> &Value {
        self.bound.input()
    }
}

impl EffectsKind {
    fn of(effects: &Effects) -> Self {
        Self {
            is_read_only: effects.is_read_only(),
            may_be_dropped: effects.may_be_dropped(),
            patches: effects.patches,
        }
    }
}

/// Who wrote an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The model.
    Model,
    /// A person or a hook in answer to it, or the tool itself.
    Answer,
}

/// Makes a call ready to be judged, or says all that is wrong with it.
pub(crate) fn prepare(
    pool: &Pool,
    tool_use: ToolUse,
    author: Author,
    call: CallId,
    place: &PathContext,
) -> Result<Prepared, EarlyResult> {
    let name = &tool_use.name;
    let Some(tool) = pool.find(name) else {
        return Err(match (pool.forbidden(name), pool.withdrawn(name)) {
            (Some(forbidden), _) => banned(forbidden),
            (None, Some(server)) => gone(name, server),
            (None, None) => unknown(pool, name),
        });
    };
    fit(tool, tool_use, author, call, place)
}

/// The same for a call of a tool that is found already.
pub(super) fn fit(
    tool: &Arc<PoolTool>,
    tool_use: ToolUse,
    author: Author,
    call: CallId,
    place: &PathContext,
) -> Result<Prepared, EarlyResult> {
    let ToolUse { id, mut input, .. } = tool_use;
    let spec = tool.spec();

    // No schema speaks of these; the type does.
    let reserved = take(spec.profile.reserved, &mut input);
    let repairs = coerce::coerce(&spec.input_schema, &mut input);
    tool.tool().backfill(&mut input);
    let problems = validate::problems(tool.validator(), &spec.input_schema, &input)
        .or_else(|| paths::make_absolute(spec.profile.paths, &mut input, place));
    if let Some(problems) = problems {
        return Err(invalid(tool, &input, &problems, repairs));
    }
    if let (Author::Answer, Some(input)) = (author, input.as_object_mut()) {
        input.extend(reserved);
    }
    match Arc::clone(tool.tool()).bind(input) {
        Ok(mut bound) => {
            bound.locate(&place.cwd, place.home.as_deref());
            Ok(Prepared {
                call,
                id,
                tool: Arc::clone(tool),
                bound,
                repairs,
                kind: OnceLock::new(),
                found: Mutex::default(),
            })
        }
        // The schema let it pass and the type did not: still one problem of the input.
        Err(error) => Err(invalid(tool, &Value::Null, &[error.to_string()], repairs)),
    }
}

/// Takes parameters out of an input.
fn take(names: &[&str], input: &mut Value) -> Vec<(String, Value)> {
    let Some(input) = input.as_object_mut() else {
        return Vec::new();
    };
    let names = names
        .iter()
        .filter_map(|name| input.shift_remove_entry(*name));
    names.collect()
}

/// A tool that is there, and that a rule keeps out.
fn banned(forbidden: &Forbidden) -> EarlyResult {
    let message = by_rule(&forbidden.name, &forbidden.rule, "");
    let card = Card::new(forbidden.name.clone(), String::new());
    EarlyResult {
        name: forbidden.name.clone(),
        card: Box::new(card.with(CardPiece::Alarm(message.clone()))),
        message,
        repairs: Vec::new(),
        denied: Some(Box::new(Denied::Unasked {
            kind: "rule".into(),
            reason: format!("the deny rule {}", forbidden.rule),
            remedy: None,
        })),
        deferred: false,
        notes: Box::default(),
    }
}

/// A tool that was there, and whose server has it no longer.
fn gone(name: &str, server: &str) -> EarlyResult {
    let problem = format!(
        "{name} is gone: the server {server} is not there any more, or does not offer it any more. Go on \
         without it."
    );
    let card = Card::new(name.to_owned(), String::new()).with(CardPiece::Alarm(problem.clone()));
    EarlyResult::misuse(name, &problem, card, Vec::new())
}

fn unknown(pool: &Pool, name: &str) -> EarlyResult {
    let near = pool.near(name);
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
    let card = Card::new(shown, String::new()).with(CardPiece::Alarm(problem.clone()));
    EarlyResult::misuse(name, &problem, card, Vec::new())
}

fn invalid(
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
