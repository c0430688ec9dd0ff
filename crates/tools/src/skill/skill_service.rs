//! Calling a skill: reads its text, fills in its placeholders, and replaces its commands by their
//! output.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use haft_contract::{
    BoxFuture, CancellationToken, ContextPatch, HookVerdict, NestedCalls, NestedResult, RuleList,
    ToolUse,
};
use haft_extensions::{
    ExtensionOrigin, Skill, Skills,
    markdown::mentions,
    skills::{SkillCall, SkillPart, render},
};
use serde_json::json;

/// The maximum number of files that one command may mention.
const MAX_MENTIONS: usize = 20;

/// The skills of a session, as a service for `Skill` and for front ends that parse user input.
#[derive(Debug, Clone)]
pub struct SkillService {
    /// The skills.
    pub skills: Arc<Skills>,
    /// Whether the directory is trusted, so that the permissions in the project's skills apply.
    pub trusts_project: bool,
    /// The id of the conversation; another one may start in the same session.
    pub session: Arc<RwLock<String>>,
    /// The effort level of the model.
    pub effort: Option<String>,
    /// Whether to record which skills the model has read. Not for a subagent, which has its own
    /// conversation.
    pub records_reads: bool,
    /// The effects of a skill besides its text.
    pub effects: SkillEffects,
}

/// The effects of a called skill that only the session can provide, because tools do not know
/// models and hooks.
#[derive(Clone, Default)]
pub struct SkillEffects {
    /// Resolves a model name to its id; the error is the reason why the model cannot be used.
    pub model: Option<Arc<ResolveModel>>,
    /// Registers the skill's hooks until the session ends; returns problems.
    pub hooks: Option<Arc<RegisterHooks>>,
}

type ResolveModel = dyn Fn(String) -> BoxFuture<'static, Result<String, String>> + Send + Sync;
type RegisterHooks = dyn Fn(&Skill) -> Vec<String> + Send + Sync;

impl fmt::Debug for SkillEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SkillEffects")
    }
}

/// The caller of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillCaller {
    /// The model, with the tool.
    Model,
    /// The user, with `/name`.
    User,
}

/// A skill that was called.
#[derive(Debug, Clone, PartialEq)]
pub struct InvokedSkill {
    /// The skill, just read from disk.
    pub skill: Skill,
    /// Its rendered text.
    pub text: String,
    /// Whether the same text is already in the model's context.
    pub is_known: bool,
    /// The permission rules that apply until the next user prompt.
    pub allowed: Vec<String>,
    /// Whether the skill would permit more if the directory were trusted.
    pub needs_trust: bool,
    /// The id of the model until the next user prompt.
    pub model: Option<String>,
    /// Requests of the skill that cannot be fulfilled, with the reason.
    pub warnings: Vec<String>,
    /// The output of hooks about its commands and files. If the model called the skill, it is
    /// already reported.
    pub hooks: HookVerdict,
}

impl InvokedSkill {
    /// Returns the changes to the session while the skill is active.
    pub fn patches(&self) -> Vec<ContextPatch> {
        let rules = |list, rules: &[String]| {
            let rules = rules.iter().cloned();
            let patches = rules.map(move |rule| ContextPatch::AddRuleForTurn { list, rule });
            patches.collect::<Vec<_>>()
        };
        let mut patches = rules(RuleList::Allow, &self.allowed);
        patches.extend(rules(RuleList::Deny, &self.skill.disallowed_tools));
        let (model, effort) = (self.model.clone(), self.skill.effort.clone());
        if model.is_some() || effort.is_some() {
            patches.push(ContextPatch::AskForTurn { model, effort });
        }
        patches
    }
}

impl SkillService {
    /// Sets the id of a new conversation.
    pub fn set_session(&self, id: &str) {
        let mut session = self.session.write().unwrap_or_else(PoisonError::into_inner);
        id.clone_into(&mut session);
    }

    fn session(&self) -> String {
        let session = self.session.read().unwrap_or_else(PoisonError::into_inner);
        session.clone()
    }

    /// Returns whether there is a skill that the model may call.
    pub(crate) fn has_any(&self) -> bool {
        self.skills.all().iter().any(|skill| skill.model_invocable)
    }

    /// Returns the skill, if this caller may call it. The error is the reason why not, with
    /// suggestions.
    pub fn find(&self, name: &str, caller: SkillCaller) -> Result<Arc<Skill>, String> {
        let name = name.trim().trim_start_matches('/');
        let Some(skill) = self.skills.get(name) else {
            let near = self.skills.similar_names(name);
            let hint = match near.is_empty() {
                true => String::new(),
                false => format!(" Did you mean {}?", near.join(", ")),
            };
            return Err(format!("No skill is called {name:?}.{hint}"));
        };
        if self.skills.is_vetoed(&skill) {
            return Err(format!(
                "The skill {name:?} has changed, and a hook (ConfigChange) objects to the change."
            ));
        }
        match caller {
            SkillCaller::Model if !skill.model_invocable => Err(format!(
                "The skill {name:?} can be called only by the user (disable-model-invocation), who \
                 types /{name}."
            )),
            SkillCaller::User if !skill.user_invocable => Err(format!(
                "The skill {name:?} can be called only by the model (user-invocable: false)."
            )),
            _ => Ok(skill),
        }
    }

    /// Calls a skill. Commands in its text, and files that a command mentions, run as nested calls
    /// through `nested`. On an error, the model receives no part of the skill.
    pub async fn invoke(
        &self,
        name: &str,
        arguments: &str,
        caller: SkillCaller,
        nested: &NestedCalls,
        cancel: &CancellationToken,
    ) -> Result<InvokedSkill, String> {
        let (skill, body) = self.find(name, caller)?.reload()?;
        let trusted = match skill.origin {
            ExtensionOrigin::Project => {
                self.trusts_project && self.skills.places().is_of_project(&skill.file)
            }
            _ => true,
        };
        let allowed = match trusted {
            true => skill.allowed_tools.clone(),
            false => Vec::new(),
        };
        let project = self.skills.places().project();
        let data = skill.plugin.as_deref().and_then(Path::file_name);
        let data = data.map(|name| self.skills.places().user.join("plugins/data").join(name));
        let session = self.session();
        let given = SkillCall {
            arguments,
            session: &session,
            effort: self.effort.as_deref(),
            project: &project,
            plugin_data: data.as_deref(),
        };
        let mut text = String::new();
        let mut hooks = HookVerdict::default();
        let mut mentioned: Vec<String> = Vec::new();
        for part in render(&skill, &body, given) {
            match part {
                SkillPart::Text(piece) => {
                    // Only commands (single files) include mentioned files: skills refer to files
                    // that are read when needed.
                    if skill.folder.is_none() {
                        mentioned.extend(mentions(&piece).into_iter().map(str::to_owned));
                    }
                    text += &piece;
                }
                SkillPart::Command { line, .. } if self.skills.settings().without_commands => {
                    text +=
                        &format!("[not run: {line}: the settings switch off commands of skills]");
                }
                SkillPart::Command { line, .. } => {
                    let call = command(&skill, &line)?;
                    let ran = nested.run(call, &allowed, cancel).await;
                    let ran = ran.map_err(|error| not_loaded(&skill, &error.to_string()))?;
                    hooks.extend(ran.hooks.clone());
                    text += printed(&skill, &line, ran)?.trim_end();
                }
            }
        }
        mentioned.dedup();
        for path in mentioned.iter().take(MAX_MENTIONS) {
            let file = self.mentioned(path);
            let call = ToolUse {
                id: format!("mention-{path}"),
                name: "Read".to_owned(),
                input: json!({"file_path": file}),
            };
            if let Ok(ran) = nested.run(call, &allowed, cancel).await {
                hooks.extend(ran.hooks.clone());
                text += &content(&file, ran);
            }
        }
        // If a subagent runs the skill, the calling model does not read its text.
        let counts = self.records_reads && skill.fork.is_none();
        let is_known = counts && !self.skills.record_read(&skill.name, &text);
        let is_held_back = allowed.len() < skill.allowed_tools.len();
        let (mut model, mut warnings) = (None, Vec::new());
        if let (Some(name), Some(resolve), None) = (&skill.model, &self.effects.model, &skill.fork)
        {
            match resolve(name.clone()).await {
                Ok(id) => model = Some(id),
                Err(why) => warnings.push(format!(
                    "the skill {} requests the model {name}, but runs without it: {why}",
                    skill.name
                )),
            }
        }
        if let Some(register) = self
            .effects
            .hooks
            .as_ref()
            .filter(|_| skill.hooks.is_some())
        {
            warnings.extend(register(&skill));
        }
        Ok(InvokedSkill {
            model,
            warnings,
            skill,
            text,
            is_known,
            allowed,
            needs_trust: is_held_back,
            hooks,
        })
    }

    /// Returns the path of a file that a command mentions.
    fn mentioned(&self, path: &str) -> PathBuf {
        let places = self.skills.places();
        match path.strip_prefix("~/") {
            Some(below) => places.home.join(below),
            None => places.cwd.join(path),
        }
    }
}

/// Returns the call that runs a command of a skill's text.
fn command(skill: &Skill, line: &str) -> Result<ToolUse, String> {
    let name = &skill.name;
    if let Some(shell) = skill.shell.as_deref().filter(|shell| *shell != "bash") {
        let why = format!("its commands require {shell}, but only bash is available here");
        return Err(not_loaded(skill, &why));
    }
    Ok(ToolUse {
        id: format!("skill-{name}"),
        name: "Bash".to_owned(),
        input: json!({"command": line, "description": format!("Part of the skill {name}")}),
    })
}

/// Returns the output of a command.
fn printed(skill: &Skill, line: &str, ran: NestedResult) -> Result<String, String> {
    if !ran.is_error {
        let printed = ran.structured.as_ref().map(|value| &value["stdout"]);
        let printed = printed.and_then(|value| value.as_str()).map(str::to_owned);
        return Ok(printed.unwrap_or(ran.text));
    }
    let why = match ran.denied {
        true => "was not permitted",
        false => "failed",
    };
    let why = not_loaded(skill, &format!("its command `{line}` {why}"));
    Err(format!("{why}\n{}", ran.text))
}

fn not_loaded(skill: &Skill, why: &str) -> String {
    format!("The skill {:?} was not loaded: {why}.", skill.name)
}

/// Returns the content of a mentioned file; empty if it does not exist.
fn content(file: &Path, ran: NestedResult) -> String {
    match (ran.is_error, ran.denied) {
        (false, _) => format!("\n\nContents of {}:\n{}", file.display(), ran.text),
        // Text like `@name` is not a file; but a file that may not be read is reported.
        (true, false) => String::new(),
        (true, true) => format!("\n\n{} may not be read here.", file.display()),
    }
}
