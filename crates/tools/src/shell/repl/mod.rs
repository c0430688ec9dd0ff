//! `REPL`: an interpreter that keeps its state between calls.
//!
//! - this module: the tool, and the interpreters of a session
//! - `interpreter`: a running interpreter
//! - `driver.py`, `driver.js`: the driver inside the interpreter
//! - `frames`: the messages of the driver
//! - `output`: the output of the code

mod frames;
mod interpreter;
mod output;

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Confinement, Content, ControlFiles, Effects,
    RuleMatch, ServiceNeed, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile, ToolUse,
};
#[cfg(feature = "browser")]
use haft_sandbox::{CommandNetwork, ProcessInfo};
use haft_shell::{LineLocation, analyze};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Mutex as AsyncMutex;

use super::{
    ShellProgram, ShellService, change_tracking, host_questions::NamedCall, limits,
    limits::CommandLimits,
};
use interpreter::{Interpreter, ReplEnd, ReplOutcome};

/// The maximum length of the code, in bytes.
const MAX_LENGTH: usize = 200_000;
/// The maximum length of the first line in the title of a card.
const SUBJECT: usize = 80;

/// Runs code in an interpreter that keeps its state: variables, imports and functions of one call are available
/// in the next. Returns what the code prints and the value of the last expression. Figures (matplotlib) and
/// images are returned as images; `display(x)` shows more of them.
///
/// - For trying things out, data and plots. For commands use Bash.
/// - `await` works at the top level. In node, `const` and `let` cannot be declared twice: use `var` for names
///   that you may declare again.
/// - Code that takes longer than `timeout` is interrupted; the state remains if the interrupt works.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The interpreter.
    language: ReplLanguage,
    /// The code to run.
    #[serde(default)]
    code: String,
    /// The timeout in milliseconds (default 120000, at most 600000).
    timeout: Option<f64>,
    /// Start with a new interpreter.
    #[serde(default)]
    restart: bool,
}

/// A supported interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReplLanguage {
    /// python3
    Python,
    /// node
    Node,
}

impl ReplLanguage {
    fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }
}

/// The interpreters of a session, one per language. They end with the session.
#[derive(Default)]
pub(crate) struct Interpreters(Mutex<HashMap<ReplLanguage, Arc<AsyncMutex<Option<Interpreter>>>>>);

impl fmt::Debug for Interpreters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interpreters")
    }
}

impl Interpreters {
    fn slot(&self, language: ReplLanguage) -> Arc<AsyncMutex<Option<Interpreter>>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(language).or_default())
    }

    /// Returns the processes of each interpreter, and its own network, if any. Skips interpreters
    /// that are running code.
    #[cfg(feature = "browser")]
    pub(crate) fn running(&self) -> Vec<(&'static str, Vec<ProcessInfo>, Option<CommandNetwork>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = all.iter().filter_map(|(language, one)| {
            let one = one.try_lock().ok()?;
            let (processes, network) = one.as_ref()?.running();
            Some((language.name(), processes, network))
        });
        running.collect()
    }

    /// Ends all interpreters.
    pub(crate) async fn close(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for one in all.into_values() {
            // An interpreter that is running code ends with its call.
            let ended = one.try_lock().ok().and_then(|mut one| one.take());
            if let Some(ended) = ended {
                ended.end().await;
            }
        }
    }
}

pub(crate) struct Repl;

impl Tool for Repl {
    type Input = Input;
    const NAME: &'static str = "REPL";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "shell".into(),
            search_hint:
                "python node javascript interpreter notebook evaluate code plot figure data".into(),
            deferred: true,
            access: ToolAccess::Anything,
            result_cap: None,
            // The effects of the code are unknown, so it is confined like a command that runs the
            // interpreter.
            rules: RuleMatch::Command("language"),
            needs: const { &[ServiceNeed::service::<ShellProgram>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::EXCLUSIVE
    }

    async fn check(&self, input: &Input, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        if input.code.trim().is_empty() && !input.restart {
            return Err(ToolError::Refused(
                "`code` is empty: there is nothing to run.".to_owned(),
            ));
        }
        if input.code.len() > MAX_LENGTH {
            return Err(ToolError::Refused(format!(
                "`code` is longer than {MAX_LENGTH} bytes: write it to a file and import that."
            )));
        }
        Ok(CheckOutcome::Pass)
    }

    fn classifier_input(&self, input: &Input) -> Option<String> {
        Some(input.code.clone())
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let shell = cx.services.get::<ShellService>()?;
        let confinement = cx.permissions.confinement.clone();
        shell
            .gate()
            .open_for(cx, &confinement.network, &named(input, cx));
        let place = shell.interpreters().slot(input.language);
        let mut held = tokio::select! {
            held = place.lock() => held,
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
        };
        let mut notes = Vec::new();
        let mut was_lost = false;
        if let Some(found) = held.take() {
            if input.restart {
                found.end().await;
            } else if !found.is_alive() {
                was_lost = true;
                notes.push(format!(
                    "The interpreter has ended since the last call: {BEGINS_ANEW}"
                ));
            } else if let Some(why) = found.misfit(&confinement) {
                found.end().await;
                was_lost = true;
                notes.push(format!(
                    "The permissions have changed since the interpreter started ({why}): {BEGINS_ANEW}"
                ));
            } else {
                *held = Some(found);
            }
        }
        let is_new = held.is_none();
        if input.code.trim().is_empty() {
            let text = format!("The next call starts a new {}.", input.language.name());
            return Ok(ToolOutput::text(text).with_structured(json!({
                "language": input.language, "restarted": true,
            })));
        }
        let watched = before(&shell, &confinement, input, cx).await?;
        if is_new {
            let starting = Interpreter::start(input.language, &shell, &confinement, cx);
            let started = tokio::select! {
                started = starting => started?,
                () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            *held = Some(started);
        }
        let Some(interpreter) = held.as_mut() else {
            return Err(ToolError::Unavailable("an interpreter"));
        };
        let limits = CommandLimits::read(|name| variable(&confinement, name));
        let longest = limits.foreground(input.timeout);
        let outcome = interpreter.run(&input.code, longest, cx).await;
        let makes_none = interpreter.is_mediated();
        if matches!(outcome.end, ReplEnd::Lost(_))
            && let Some(lost) = held.take()
        {
            lost.end().await;
        }
        if let Some(watched) = watched {
            let control = match makes_none {
                true => ControlFiles::default(),
                false => confinement.control.clone(),
            };
            let what = format!("REPL {}", input.language.name());
            let report = change_tracking::record_changes(watched, control, what, None).await?;
            notes.extend(report.notes);
            let uncovered = report
                .uncovered
                .and_then(|why| shell.take_undo_warning(&why));
            notes.extend(uncovered);
        }
        let mut output = answer(input, outcome, longest, notes, is_new);
        if let Some(structured) = output.structured.as_mut().filter(|_| was_lost) {
            structured["stateLost"] = json!(true);
        }
        Ok(output)
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let code = input.code.trim();
        let first = code.lines().next().unwrap_or_default();
        let is_long = code.lines().nth(1).is_some() || first.chars().count() > SUBJECT;
        let mut subject: String = first.chars().take(SUBJECT).collect();
        if is_long {
            subject.push('…');
        }
        let mut card = Card::new(Self::NAME, subject).with_summary(input.language.name());
        if is_long {
            card = card.with(CardSection::Text(code.to_owned()));
        }
        if input.restart {
            card = card.with(CardSection::Muted("in a new interpreter".to_owned()));
        }
        Some(card)
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let mut card = self.render_use(input)?;
        card.body.clear();
        let texts = output.content.iter().filter_map(Content::as_text);
        let text = texts.collect::<Vec<_>>().join("\n");
        Some(card.with(CardSection::Text(text)))
    }
}

const BEGINS_ANEW: &str = "this is a new one, without its state.";

/// Records the state of the files that the code may change, so that the changes can be undone.
async fn before(
    shell: &ShellService,
    confinement: &Confinement,
    input: &Input,
    cx: &CallContext,
) -> Result<Option<change_tracking::ChangeBaseline>, ToolError> {
    let place = LineLocation {
        cwd: cx.cwd.to_path_buf(),
        home: std::env::var_os("HOME").map(PathBuf::from),
    };
    let analysis = analyze(input.language.name(), &place);
    let own = [shell.folder().to_path_buf(), shell.scratch_folder()];
    change_tracking::record_baseline(confinement, &analysis, cx, own).await
}

/// Returns a variable from the settings, otherwise from our own environment.
fn variable(confinement: &Confinement, name: &str) -> Option<String> {
    let set = confinement.env.get(name).cloned();
    set.or_else(|| std::env::var(name).ok())
}

/// Returns the call for questions about hosts that the code contacts.
fn named(input: &Input, cx: &CallContext) -> NamedCall {
    NamedCall {
        card: Repl.render_use(input).unwrap_or_default(),
        asked: ToolUse {
            id: cx.tool_use_id.to_string(),
            name: Repl::NAME.to_owned(),
            input: json!({"language": input.language, "code": input.code}),
        },
    }
}

fn answer(
    input: &Input,
    outcome: ReplOutcome,
    longest: Duration,
    mut notes: Vec<String>,
    is_new: bool,
) -> ToolOutput {
    let ReplOutcome {
        printed,
        answer,
        images,
        end,
    } = outcome;
    let mut parts = Vec::new();
    match &end {
        ReplEnd::Done => {}
        ReplEnd::TimedOut => parts.push(format!(
            "Interrupted after {}: the code had not finished. The state remains; set a longer `timeout` if needed.",
            limits::format(longest)
        )),
        ReplEnd::Interrupted => {
            parts.push("[Request interrupted by user for tool use] The state remains.".to_owned());
        }
        ReplEnd::Lost(why) => parts.push(format!(
            "The interpreter has ended: {why}. Its state is lost; the next call starts a new one."
        )),
    }
    if !printed.trim_end().is_empty() {
        parts.push(printed.trim_end().to_owned());
    }
    if let Some(value) = &answer.value {
        parts.push(format!("=> {value}"));
    }
    if let Some(error) = &answer.error {
        parts.push(error.trim_end().to_owned());
    }
    let (pictures, unshown) = pictures(images);
    notes.extend(unshown);
    if answer.left_out > 0 {
        notes.push(format!(
            "{} more images were left out: show fewer in one call.",
            answer.left_out
        ));
    }
    if parts.is_empty() && pictures.is_empty() {
        parts.push("(no output, no value)".to_owned());
    }
    parts.extend(notes.into_iter().map(|note| format!("[{note}]")));
    let failed = answer.error.is_some() || end != ReplEnd::Done;
    let structured = json!({
        "language": input.language,
        "stdout": printed,
        "value": answer.value,
        "error": answer.error,
        "interrupted": matches!(end, ReplEnd::Interrupted),
        "timedOut": matches!(end, ReplEnd::TimedOut),
        "stateLost": matches!(end, ReplEnd::Lost(_)),
        "isNew": is_new,
        "images": pictures.len(),
    });
    let mut content = Vec::new();
    if !parts.is_empty() {
        content.push(Content::text(parts.join("\n")));
    }
    content.extend(pictures);
    ToolOutput {
        content,
        structured: Some(structured),
        failed,
        ..ToolOutput::default()
    }
}

/// Converts images for a model. Also returns notes about data that is not an image.
fn pictures(images: Vec<Vec<u8>>) -> (Vec<Content>, Vec<String>) {
    let (mut shown, mut notes) = (Vec::new(), Vec::new());
    for bytes in images {
        match picture(&bytes) {
            Ok(content) => shown.push(content),
            Err(why) => notes.push(format!("An image cannot be shown: {why}")),
        }
    }
    (shown, notes)
}

#[cfg(feature = "fs")]
fn picture(bytes: &[u8]) -> Result<Content, String> {
    crate::fs::image_content(bytes)
}

#[cfg(not(feature = "fs"))]
fn picture(_: &[u8]) -> Result<Content, String> {
    Err("this build has no file tools, so it cannot read images".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_small() {
        let definition = haft_contract::erase(Repl).spec().clone();
        let text = json!([definition.description, definition.input_schema]).to_string();
        assert!(text.len() < 2_000, "{}", text.len());
        assert!(
            definition.profile.deferred,
            "it costs nothing until it is looked for"
        );
    }

    #[test]
    fn what_is_empty_is_said() {
        let input: Input =
            serde_json::from_value(json!({"language": "python", "code": "x"})).unwrap();
        let outcome = |end| ReplOutcome {
            printed: String::new(),
            answer: frames::DriverAnswer::default(),
            images: Vec::new(),
            end,
        };
        let done = answer(
            &input,
            outcome(ReplEnd::Done),
            Duration::ZERO,
            Vec::new(),
            false,
        );
        assert_eq!(done.content, [Content::text("(no output, no value)")]);
        let lost = answer(
            &input,
            outcome(ReplEnd::Lost("x".to_owned())),
            Duration::ZERO,
            Vec::new(),
            false,
        );
        let structured = lost.structured.as_ref().unwrap();
        assert!(lost.failed && structured["stateLost"] == true);
    }
}
