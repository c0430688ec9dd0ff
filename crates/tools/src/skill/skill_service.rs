//! Calling a skill: its text is read anew, filled in, and what its commands print is put in their place.

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

/// At most this many files one command may mention.
const MOST_MENTIONS: usize = 20;

/// The skills of a session, as a service for `Skill` and for faces that read what a person types.
#[derive(Debug, Clone)]
pub struct SkillBook {
    /// The skills.
    pub skills: Arc<Skills>,
    /// The directory is trusted, so that the project's skills may permit what they say.
    pub trusts_project: bool,
    /// The id of the conversation; another one may begin in the same session.
    pub session: Arc<RwLock<String>>,
    /// How hard the model tries.
    pub effort: Option<String>,
    /// It is kept count of what the model has read of them. Not for a subagent: its conversation is
    /// another.
    pub counts: bool,
    /// What a skill brings beside its text.
    pub effects: SkillEffects,
}

/// What the session does for a skill that is called: it knows models and hooks, which tools do not.
#[derive(Clone, Default)]
pub struct SkillEffects {
    /// The id of a model, out of what people call it; the error says why it cannot be asked.
    pub model: Option<Arc<ResolveModel>>,
    /// Its hooks run from now on, until the session ends. What is wrong with them.
    pub hooks: Option<Arc<RegisterHooks>>,
}

type ResolveModel = dyn Fn(String) -> BoxFuture<'static, Result<String, String>> + Send + Sync;
type RegisterHooks = dyn Fn(&Skill) -> Vec<String> + Send + Sync;

impl fmt::Debug for SkillEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SkillEffects")
    }
}

/// Who calls a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The model, by the tool.
    Model,
    /// A person, by `/name`.
    Person,
}

/// A skill that was called.
#[derive(Debug, Clone, PartialEq)]
pub struct Invoked {
    /// As it is on disk now.
    pub skill: Skill,
    /// What it says.
    pub text: String,
    /// The model has these very words before it already.
    pub is_known: bool,
    /// What it permits until the person speaks again.
    pub allowed: Vec<String>,
    /// It would permit more, but the directory is not trusted.
    pub is_held_back: bool,
    /// The model that is asked until the person speaks again, by its id.
    pub model: Option<String>,
    /// What it wants and does not get, and why.
    pub warnings: Vec<String>,
    /// What hooks said of its commands and files. Where the model called it, they are reported already.
    pub hooks: HookVerdict,
}

impl Invoked {
    /// What changes in the session while it is at work.
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

impl SkillBook {
    /// Another conversation begins.
    pub fn set_session(&self, id: &str) {
        let mut session = self.session.write().unwrap_or_else(PoisonError::into_inner);
        id.clone_into(&mut session);
    }

    fn session(&self) -> String {
        let session = self.session.read().unwrap_or_else(PoisonError::into_inner);
        session.clone()
    }

    /// Is there one that the model may call?
    pub(crate) fn has_any(&self) -> bool {
        self.skills.all().iter().any(|skill| skill.model_invocable)
    }

    /// The skill, if this caller may call it. The error says why not, and what there is instead.
    pub fn find(&self, name: &str, caller: Caller) -> Result<Arc<Skill>, String> {
        let name = name.trim().trim_start_matches('/');
        let Some(skill) = self.skills.get(name) else {
            let near = self.skills.near(name);
            let hint = match near.is_empty() {
                true => String::new(),
                false => format!(" Did you mean {}?", near.join(", ")),
            };
            return Err(format!("No skill is called {name:?}.{hint}"));
        };
        if self.skills.is_held(&skill) {
            return Err(format!(
                "The skill {name:?} has changed, and a hook (ConfigChange) objects to the change."
            ));
        }
        match caller {
            Caller::Model if !skill.model_invocable => Err(format!(
                "The skill {name:?} can be called by a person only (disable-model-invocation): they \
                 type /{name}."
            )),
            Caller::Person if !skill.user_invocable => Err(format!(
                "The skill {name:?} can be called by the model only (user-invocable: false)."
            )),
            _ => Ok(skill),
        }
    }

    /// Calls a skill. Commands in its text, and files that a command mentions, go through `aside`. The
    /// error is for the caller; nothing of the skill has been said then.
    pub async fn invoke(
        &self,
        name: &str,
        arguments: &str,
        caller: Caller,
        aside: &NestedCalls,
        cancel: &CancellationToken,
    ) -> Result<Invoked, String> {
        let (skill, body) = self.find(name, caller)?.again()?;
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
                SkillPart::Text(said) => {
                    // Only the flat form has them: a skill names its files to be read when needed.
                    if skill.folder.is_none() {
                        mentioned.extend(mentions(&said).into_iter().map(str::to_owned));
                    }
                    text += &said;
                }
                SkillPart::Command { line, .. } if self.skills.settings().without_commands => {
                    text +=
                        &format!("[not run: {line}: the settings switch off commands of skills]");
                }
                SkillPart::Command { line, .. } => {
                    let call = command(&skill, &line)?;
                    let ran = aside.run(call, &allowed, cancel).await;
                    let ran = ran.map_err(|error| not_loaded(&skill, &error.to_string()))?;
                    hooks.extend(ran.hooks.clone());
                    text += printed(&skill, &line, ran)?.trim_end();
                }
            }
        }
        mentioned.dedup();
        for path in mentioned.iter().take(MOST_MENTIONS) {
            let file = self.mentioned(path);
            let call = ToolUse {
                id: format!("mention-{path}"),
                name: "Read".to_owned(),
                input: json!({"file_path": file}),
            };
            if let Ok(ran) = aside.run(call, &allowed, cancel).await {
                hooks.extend(ran.hooks.clone());
                text += &content(&file, ran);
            }
        }
        // What a subagent reads, the model does not.
        let counts = self.counts && skill.fork.is_none();
        let is_known = counts && !self.skills.note_read(&skill.name, &text);
        let is_held_back = allowed.len() < skill.allowed_tools.len();
        let (mut model, mut warnings) = (None, Vec::new());
        if let (Some(name), Some(resolve), None) = (&skill.model, &self.effects.model, &skill.fork)
        {
            match resolve(name.clone()).await {
                Ok(id) => model = Some(id),
                Err(why) => warnings.push(format!(
                    "the skill {} wants the model {name}, and goes on without: {why}",
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
        Ok(Invoked {
            model,
            warnings,
            skill,
            text,
            is_known,
            allowed,
            is_held_back,
            hooks,
        })
    }

    /// Where a file is that a command mentions.
    fn mentioned(&self, path: &str) -> PathBuf {
        let places = self.skills.places();
        match path.strip_prefix("~/") {
            Some(below) => places.home.join(below),
            None => places.cwd.join(path),
        }
    }
}

/// The call that runs a command of a skill's text.
fn command(skill: &Skill, line: &str) -> Result<ToolUse, String> {
    let name = &skill.name;
    if let Some(shell) = skill.shell.as_deref().filter(|shell| *shell != "bash") {
        let why = format!("its commands want {shell}, and there is only bash here");
        return Err(not_loaded(skill, &why));
    }
    Ok(ToolUse {
        id: format!("skill-{name}"),
        name: "Bash".to_owned(),
        input: json!({"command": line, "description": format!("Part of the skill {name}")}),
    })
}

/// What it printed.
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

/// What a file says that a command mentions; nothing, if there is none.
fn content(file: &Path, ran: NestedResult) -> String {
    match (ran.is_error, ran.denied) {
        (false, _) => format!("\n\nContents of {}:\n{}", file.display(), ran.text),
        // Words like `@someone` name no file. What may not be read is worth a word.
        (true, false) => String::new(),
        (true, true) => format!("\n\n{} may not be read here.", file.display()),
    }
}
