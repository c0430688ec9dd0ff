//! `Bash`: runs a command line.

use std::{
    any::Any,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use haft_contract::{
    CallContext, Card, CardSection, CheckOutcome, Effects, RuleMatch, ServiceNeed, Tool,
    ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use haft_shell::{Analysis, AnalyzedLine, EffectVerdict, LineLocation, analyze};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ShellProgram, run};
use crate::plural::counted;

/// The maximum length of a read-only command line, in bytes. The permission check has the same
/// limit: it never treats longer lines as read-only.
const MAX_READ_ONLY_BYTES: usize = 10_000;
/// The maximum length of a command in the title line of a card.
const SUBJECT: usize = 120;

/// Runs a command line in bash and returns what it prints, stdout and stderr together and in order.
///
/// - For files, use the dedicated tools: Read instead of cat, head and tail, Grep and Glob instead
///   of grep and find, Edit and Write instead of sed and echo. They are exact, and report what they
///   did.
/// - Every call is a new shell: variables, functions and options do not carry over. The working
///   directory does, as long as it stays inside the project. Use absolute paths rather than `cd`.
/// - Input is empty and there is no terminal: use the options that stop programs from asking.
/// - Join commands that depend on each other with `&&`; send independent ones as separate calls.
/// - If a command fails, the result is `Exit code N` and its output. Long output is saved to a file,
///   and the result names that file.
/// - Set `run_in_background` for servers, watchers and commands that take longer than the timeout,
///   and do not write `&`. You get the id of a task and its output file: Read that file, wait with
///   TaskOutput, end it with TaskStop. Do not wait with `sleep`.
/// - Commands run in a sandbox. If it refuses an access, the user is asked and may allow it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The command line.
    pub(crate) command: String,
    /// The timeout in milliseconds (default 120000, at most 600000). When it expires, the command
    /// moves to the background. For background tasks: their lifetime (default 1800000, at most
    /// 7200000).
    pub(crate) timeout: Option<f64>,
    /// A description of the command for the user, in 5 to 10 words.
    pub(crate) description: Option<String>,
    /// Start it as a background task and return immediately.
    #[serde(default)]
    pub(crate) run_in_background: bool,
    /// Run it without the sandbox, for a command that failed because of it. The user is always asked.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    pub(crate) dangerously_disable_sandbox: bool,
    /// The analysis of the command line, filled in by haft.
    #[serde(skip)]
    pub(crate) read: CachedAnalysis,
}

/// The analysis of a command line, computed once for the directory in which the line would run.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedAnalysis {
    place: Option<LineLocation>,
    line: OnceLock<Arc<AnalyzedLine>>,
}

impl Input {
    /// Returns the input as JSON, as a model would write it: without unset fields.
    pub(crate) fn written(&self) -> Value {
        let mut written = json!({"command": self.command});
        if let Some(timeout) = self.timeout {
            written["timeout"] = json!(timeout);
        }
        if let Some(description) = &self.description {
            written["description"] = json!(description);
        }
        if self.run_in_background {
            written["run_in_background"] = json!(true);
        }
        if self.dangerously_disable_sandbox {
            written["dangerouslyDisableSandbox"] = json!(true);
        }
        written
    }
}

pub(crate) struct Bash;

impl Tool for Bash {
    type Input = Input;
    const NAME: &'static str = "Bash";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "shell".into(),
            search_hint: "run execute command shell terminal script build test git".into(),
            access: ToolAccess::Anything,
            result_cap: None,
            rules: RuleMatch::Command("command"),
            basic: true,
            needs: const { &[ServiceNeed::service::<ShellProgram>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, input: &Input) -> Effects {
        let read = read_line(input);
        let analysis = read.analysis();
        if !is_read_only(analysis, input) || input.dangerously_disable_sandbox {
            return Effects::EXCLUSIVE;
        }
        Effects {
            patches: may_change_directory(analysis),
            ..Effects::READS
        }
    }

    fn set_location(&self, input: &mut Input, cwd: &Path, home: Option<&Path>) {
        input.read = CachedAnalysis {
            place: Some(place(cwd, home)),
            line: OnceLock::new(),
        };
    }

    fn parsed_input(&self, input: &Input) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(read_line(input)) as Arc<dyn Any + Send + Sync>)
    }

    async fn check(&self, input: &Input, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        if input.command.contains('\0') {
            return Err(ToolError::Refused(
                "`command` contains a NUL byte, which no command line can.".to_owned(),
            ));
        }
        if input.command.trim().is_empty() {
            return Err(ToolError::Refused(
                "`command` is empty: there is nothing to run.".to_owned(),
            ));
        }
        Ok(CheckOutcome::Pass)
    }

    fn classifier_input(&self, input: &Input) -> Option<String> {
        Some(input.command.clone())
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        run::run(input, cx).await
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let mut lines = input.command.trim().lines();
        let first = lines.next().unwrap_or_default();
        let long = lines.next().is_some() || first.chars().count() > SUBJECT;
        let subject = match long {
            true => first.chars().take(SUBJECT).chain(['…']).collect(),
            false => first.to_owned(),
        };
        let mut card = Card::new(Self::NAME, subject);
        if let Some(description) = &input.description {
            card = card.with_summary(description.trim());
        }
        if long {
            card = card.with(CardSection::Text(input.command.trim().to_owned()));
        }
        if input.run_in_background {
            card = card.with(CardSection::Muted("in the background".to_owned()));
        }
        if input.dangerously_disable_sandbox {
            card = card.with(CardSection::Alarm("without the sandbox".to_owned()));
        }
        Some(card)
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let mut card = self.render_use(input)?;
        card.body.clear();
        let texts: Vec<&str> = output
            .content
            .iter()
            .filter_map(haft_contract::Content::as_text)
            .collect();
        let text = texts.join("\n");
        card.summary = match (&input.description, output.failed) {
            (Some(description), false) => description.trim().to_owned(),
            _ => summary(output, &text),
        };
        // Text that the summary already contains is not repeated.
        let shown = match text.split_once('\n') {
            Some((first, rest)) if first.eq_ignore_ascii_case(&card.summary) => rest,
            _ => &text,
        };
        match shown.is_empty() {
            true => Some(card),
            false => Some(card.with(CardSection::Text(shown.to_owned()))),
        }
    }
}

/// Returns a one-line summary of the result.
fn summary(output: &ToolOutput, text: &str) -> String {
    let structured = output.structured.as_ref();
    let field = |name: &str| structured.and_then(|fields| fields.get(name));
    if let Some(task) = field("backgroundTaskId").and_then(Value::as_str) {
        return format!("in the background: {task}");
    }
    if output.failed {
        return text.lines().next().unwrap_or("failed").to_lowercase();
    }
    if field("isImage") == Some(&Value::Bool(true)) {
        return "an image".to_owned();
    }
    match text.lines().count() as u64 {
        0 => "no output".to_owned(),
        lines => counted(lines, "line"),
    }
}

/// Returns the analysis of the line for this directory.
pub(crate) fn line_analysis(input: &Input, cwd: &Path) -> Arc<Analysis> {
    let known = input.read.place.as_ref();
    let home = known.and_then(|place| place.home.as_deref());
    let place = place(cwd, home);
    let read = read_line(input);
    if read.is_of(&input.command, &place) {
        return Arc::clone(read.analysis());
    }
    Arc::new(analyze(&input.command, &place))
}

/// Returns the analysis of the line for the directory in which it would run. If the directory is
/// not known yet, `/` is used, because the directory does not affect whether the line is read-only.
fn read_line(input: &Input) -> &Arc<AnalyzedLine> {
    input.read.line.get_or_init(|| {
        let known = input.read.place.clone();
        let place = known.unwrap_or_else(|| place(Path::new("/"), None));
        Arc::new(AnalyzedLine::new(&input.command, place))
    })
}

/// Returns the location of an analysis. Without `home`, this process's home directory applies.
fn place(cwd: &Path, home: Option<&Path>) -> LineLocation {
    let own = || std::env::var_os("HOME").map(PathBuf::from);
    LineLocation {
        cwd: cwd.to_path_buf(),
        home: home.map(Path::to_path_buf).or_else(own),
    }
}

/// Returns whether the line is read-only.
pub(crate) fn is_read_only(analysis: &Analysis, input: &Input) -> bool {
    analysis.verdict == EffectVerdict::ReadOnly && input.command.len() <= MAX_READ_ONLY_BYTES
}

/// Returns whether the line may end in a different directory.
pub(crate) fn may_change_directory(analysis: &Analysis) -> bool {
    let names = |name| matches!(name, Some("cd" | "pushd" | "popd"));
    analysis.parts.iter().any(|part| names(part.command_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(command: &str) -> Input {
        serde_json::from_value(serde_json::json!({"command": command})).unwrap()
    }

    #[test]
    fn what_only_reads_runs_beside_others_and_a_change_of_directory_is_announced() {
        let effects = |command: &str| Bash.effects(&input(command));
        let moving = Effects {
            patches: true,
            ..Effects::READS
        };
        assert_eq!(effects("ls -la"), Effects::READS);
        assert_eq!(effects("cat ~/a | grep b"), Effects::READS);
        assert_eq!(effects("cd src && ls"), moving);
        assert_eq!(effects("touch x"), Effects::EXCLUSIVE);
        assert_eq!(effects("ls $("), Effects::EXCLUSIVE);
        let long = format!("echo {}", "x".repeat(MAX_READ_ONLY_BYTES));
        assert_eq!(effects(&long), Effects::EXCLUSIVE);
    }
}
