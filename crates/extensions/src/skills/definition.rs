//! The definition of a skill or command, and reading it from its file.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::render;
use crate::{
    ExtensionOrigin, ExtensionWarning,
    bounded_read::{self, MAX_LENGTH},
    front_matter::{self, FrontMatterFields},
};

/// The maximum length of a description that is taken from the text, in characters.
const MAX_DERIVED_LENGTH: usize = 1536;

/// The location of a skill or command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundSkill {
    /// Its name, without regard to the front matter.
    pub(super) name: String,
    /// Its file.
    pub(super) file: PathBuf,
    /// The folder of a skill; `None` for a command.
    pub(super) folder: Option<PathBuf>,
    pub(super) origin: ExtensionOrigin,
    /// The plugin's name and folder.
    pub(super) plugin: Option<(String, PathBuf)>,
}

/// Instructions for a kind of task: a folder with `SKILL.md`, or a single file in `commands`.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The name for calling it, without the slash.
    pub name: String,
    /// The title in front ends.
    pub title: Option<String>,
    /// The purpose.
    pub description: String,
    /// Additional text for the model about when to use it.
    pub when_to_use: Option<String>,
    /// A hint about its arguments, for users.
    pub argument_hint: Option<String>,
    /// The names of its arguments, for `$name`.
    pub arguments: Vec<String>,
    /// Whether the model may call it.
    pub model_invocable: bool,
    /// Whether the user may call it with `/name`.
    pub user_invocable: bool,
    /// Whether only its name is listed.
    pub name_only: bool,
    /// Permission rules for tools that it may use without asking while it is active.
    pub allowed_tools: Vec<String>,
    /// Tools that may not be used while it is active.
    pub disallowed_tools: Vec<String>,
    /// The model for the rest of the turn.
    pub model: Option<String>,
    /// The effort level of the model.
    pub effort: Option<String>,
    /// The kind of the subagent that gets its text as prompt, if it runs in a subagent.
    pub fork: Option<String>,
    /// Whether that subagent runs in the background.
    pub background: Option<bool>,
    /// Hooks that are active while it is.
    pub hooks: Option<Map<String, Value>>,
    /// Patterns: it is listed only after a matching file was read.
    pub paths: Vec<String>,
    /// The shell for its commands.
    pub shell: Option<String>,
    /// Whether its text runs commands.
    pub runs_commands: bool,
    /// Its source.
    pub origin: ExtensionOrigin,
    /// Its file.
    pub file: PathBuf,
    /// Its folder; `None` for a command.
    pub folder: Option<PathBuf>,
    /// The folder of its plugin.
    pub plugin: Option<PathBuf>,
    found: FoundSkill,
}

impl Skill {
    /// Reads a skill. An error in its front matter is a warning, and its text is used nevertheless.
    pub(super) fn read(
        found: FoundSkill,
        warnings: &mut Vec<ExtensionWarning>,
    ) -> io::Result<Option<(Self, String)>> {
        let Some(text) = bounded_read::read(&found.file, MAX_LENGTH)? else {
            return Ok(None);
        };
        if text.is_cut {
            let what = format!(
                "it is longer than {} KiB: the rest is left out",
                MAX_LENGTH >> 10
            );
            warnings.push(ExtensionWarning::new(&found.file, what));
        }
        let parsed = front_matter::parse(&text.text);
        if let Some(fault) = &parsed.error {
            let what = format!("{}: only the text below it is used", fault.message);
            warnings.push(ExtensionWarning::new(&found.file, what).with_line(fault.line));
        }
        parsed.warn_of_duplicate_key(&found.file, warnings);
        let body = parsed.body.trim().to_owned();
        Ok(Some((Self::from_fields(found, &parsed.head, &body), body)))
    }

    fn from_fields(found: FoundSkill, head: &FrontMatterFields, body: &str) -> Self {
        let is_skill = found.folder.is_some();
        let title = head.text("name").filter(|_| is_skill);
        let name = match (&found.plugin, &title) {
            (Some((plugin, _)), Some(title)) => format!("{plugin}:{title}"),
            _ => found.name.clone(),
        };
        let forks = head.text("context").is_some_and(|text| text == "fork");
        let agent = || {
            head.text("agent")
                .unwrap_or_else(|| "general-purpose".to_owned())
        };
        let dirs = |rule: &String| {
            let mut rule = rule.clone();
            for (variable, path) in directories(&found) {
                rule = rule.replace(variable, &path.to_string_lossy());
            }
            rule
        };
        let list = |key: &str| head.list(key).unwrap_or_default();
        Self {
            name,
            title,
            description: head
                .text("description")
                .unwrap_or_else(|| first_paragraph(body)),
            when_to_use: head.text("when_to_use"),
            argument_hint: head.text("argument-hint"),
            arguments: list("arguments"),
            model_invocable: !head.boolean("disable-model-invocation").unwrap_or(false),
            user_invocable: head.boolean("user-invocable").unwrap_or(true),
            name_only: false,
            allowed_tools: list("allowed-tools").iter().map(dirs).collect(),
            disallowed_tools: list("disallowed-tools"),
            model: head.text("model").filter(|model| model != "inherit"),
            effort: head.text("effort").filter(|effort| effort != "inherit"),
            fork: forks.then(agent),
            background: head.boolean("background"),
            hooks: head.get("hooks").and_then(Value::as_object).cloned(),
            paths: head
                .patterns("paths")
                .filter(|_| is_skill)
                .unwrap_or_default(),
            shell: head.text("shell"),
            runs_commands: render::runs_commands(body),
            origin: found.origin,
            file: found.file.clone(),
            folder: found.folder.clone(),
            plugin: found.plugin.as_ref().map(|(_, root)| root.clone()),
            found,
        }
    }

    /// Reads the skill again from disk, with its text, because users change skills while they use
    /// them. The error is the reason why that failed.
    pub fn reload(&self) -> Result<(Self, String), String> {
        let mut warnings = Vec::new();
        let read = Self::read(self.found.clone(), &mut warnings);
        match read {
            Ok(Some((skill, body))) => {
                let same = Self {
                    name: self.name.clone(),
                    // Overrides from the settings stay in effect.
                    model_invocable: skill.model_invocable && self.model_invocable,
                    name_only: self.name_only,
                    ..skill
                };
                Ok((same, body))
            }
            Ok(None) => Err(format!("{} no longer exists", self.file.display())),
            Err(error) => Err(format!("{} cannot be read: {error}", self.file.display())),
        }
    }

    /// Returns whether it is only text: calling it permits nothing and runs nothing.
    pub fn is_plain(&self) -> bool {
        self.allowed_tools.is_empty()
            && self.hooks.is_none()
            && self.fork.is_none()
            && !self.runs_commands
    }

    /// Returns its purpose and when to use it, as the model reads it.
    pub(super) fn purpose(&self) -> String {
        let mut text = self.description.clone();
        if let Some(when) = &self.when_to_use {
            text += &format!(" {when}");
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Returns the variables for folders, with their paths.
pub(super) fn directories(found: &FoundSkill) -> Vec<(&'static str, PathBuf)> {
    let mut all = Vec::new();
    if let Some(folder) = &found.folder {
        all.push(("${CLAUDE_SKILL_DIR}", folder.clone()));
    }
    if let Some((_, root)) = &found.plugin {
        all.push(("${CLAUDE_PLUGIN_ROOT}", root.clone()));
    }
    all
}

impl Skill {
    pub(super) fn directories(&self) -> Vec<(&'static str, PathBuf)> {
        directories(&self.found)
    }

    /// Returns the last part of its name, which is an alias for a command in a subfolder.
    pub(super) fn bare_name(&self) -> Option<&str> {
        let is_command = self.folder.is_none() && self.found.plugin.is_none();
        let (_, bare) = self.name.rsplit_once(':')?;
        is_command.then_some(bare)
    }

    /// Returns the skill with another name, if two have the same one.
    pub(super) fn renamed(self, name: String) -> Self {
        let found = FoundSkill {
            name: name.clone(),
            ..self.found
        };
        Self {
            name,
            found,
            ..self
        }
    }
}

/// Returns the first paragraph that is not a heading; if there are only headings, the first one.
fn first_paragraph(body: &str) -> String {
    let mut paragraph = String::new();
    let mut heading = None;
    for line in body.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            if !paragraph.is_empty() {
                break;
            }
            let title = line.trim_start_matches('#').trim();
            if !title.is_empty() {
                heading.get_or_insert(title);
            }
            continue;
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph += line;
        if paragraph.len() > MAX_DERIVED_LENGTH {
            break;
        }
    }
    if paragraph.is_empty() {
        paragraph = heading.unwrap_or_default().to_owned();
    }
    paragraph.chars().take(MAX_DERIVED_LENGTH).collect()
}

/// Returns the name of a command by its path: `a/b.md` is `a:b`.
pub(super) fn command_name(folder: &Path, file: &Path) -> Option<String> {
    let below = file.strip_prefix(folder).ok()?.with_extension("");
    let parts: Vec<String> = below
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    Some(parts.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_paragraph_is_the_description() {
        for (body, description) in [
            ("One\ntwo.\n\nThree", "One two."),
            ("# Title\n\nText here.\nMore.\n## Next", "Text here. More."),
            ("# Title\n", "Title"),
            ("", ""),
        ] {
            assert_eq!(first_paragraph(body), description, "{body:?}");
        }
        assert_eq!(
            first_paragraph(&"ä ".repeat(5000)).chars().count(),
            MAX_DERIVED_LENGTH
        );
    }
}
