//! What people laid in folders: skills, commands, agents, memory files, output styles.

use std::{path::PathBuf, sync::Arc};

use haft::{
    SessionId,
    engine::permissions::{Bases, List, RuleSource, Rules, Scope},
    tools::SkillBook,
};
use haft_agent::prompt::{Knowledge, SystemPrompt};
use haft_extensions::{
    ExtensionPlaces, Skills, Sources, Warning,
    memory::{self, Memory},
    plugins, skills,
    styles::{self, OutputStyle},
};
use haft_protocol::DescribedCommand;
use serde_json::Value;

use super::{flags::Headless, model::variable, slash::BUILT_IN};
use crate::{args::SessionArgs, settings::Permitted, show};

/// What people laid in folders.
pub(super) struct Extensions {
    /// None if they are switched off.
    pub(super) skills: Option<Arc<Skills>>,
    /// Where they are.
    pub(super) places: ExtensionPlaces,
    style: Option<OutputStyle>,
    styles: Vec<String>,
    memory: Option<memory::MemoryOptions>,
    trusts_project: bool,
    warnings: Vec<Warning>,
}

impl Extensions {
    /// Finds them. With `--bare` there are none.
    pub(super) fn load(session: &SessionArgs, flags: &Headless, permitted: &Permitted) -> Self {
        let settings = permitted.settings.merged();
        let mut warnings = Vec::new();
        let places = places(session, flags, permitted, &mut warnings);
        let trust = permitted.settings.trust;
        let mut found = Self {
            skills: None,
            places,
            style: None,
            styles: Vec::new(),
            memory: None,
            trusts_project: trust.allows,
            warnings,
        };
        if session.bare {
            return found;
        }
        if !flags.disable_slash_commands {
            let of_skills = skills::SkillSettings::of(&settings, variable);
            let (skills, warnings) = Skills::load(found.places.clone(), of_skills);
            found.warnings.extend(warnings);
            found.skills = Some(Arc::new(skills));
        }
        found.take_style(&settings);
        found.memory = Some(memory_options(permitted, &settings, &found.places));
        found
    }

    fn take_style(&mut self, settings: &Value) {
        let (styles, warnings) = styles::load(&self.places);
        self.warnings.extend(warnings);
        self.styles = styles.iter().map(|style| style.name.clone()).collect();
        let Some(name) = settings["outputStyle"].as_str() else {
            return;
        };
        let same = |style: &OutputStyle| style.name.eq_ignore_ascii_case(name);
        self.style = styles.into_iter().find(same);
        if self.style.is_none() && !name.eq_ignore_ascii_case(styles::DEFAULT) {
            show::warn(&format!(
                "haft: no output style is called {name:?}; the default is used"
            ));
        }
    }

    /// Tells a person what is wrong with what was found.
    pub(super) fn warn(&self) {
        for warning in &self.warnings {
            show::warn(&format!("haft: {}", show::clean(&warning.to_string())));
        }
    }

    /// The service by which skills are called.
    pub(super) fn book(&self, session: SessionId, effort: Option<String>) -> Option<SkillBook> {
        Some(SkillBook {
            skills: Arc::clone(self.skills.as_ref()?),
            trusts_project: self.trusts_project,
            session: session.to_string(),
            effort,
            counts: true,
        })
    }

    /// The folders of the user's own skills may be read without asking.
    pub(super) fn open_folders(&self, rules: &mut Rules, bases: &Bases) {
        let folders = self
            .skills
            .iter()
            .flat_map(|skills| skills.readable_folders());
        for folder in folders {
            let path = folder.to_string_lossy();
            // A name that would be read as a pattern opens nothing.
            if path.contains(['*', '?', '[', ']', '{', '}', '(', ')', '!', '\\']) {
                continue;
            }
            let rule = format!("Read(/{path}/**)");
            if let Err(problem) =
                rules.add(List::Allow, &rule, RuleSource::of(Scope::Session), bases)
            {
                tracing::warn!(%problem, "the folder of a skill is not opened");
            }
        }
    }

    /// What the model is told of them before the first words; `None` if nothing. Skills only where it has
    /// the tool to call them.
    pub(super) fn knowledge(&mut self, has_skill_tool: bool) -> Option<Knowledge> {
        let options = self.memory.take()?;
        let knowledge = Knowledge::new(Memory::new(self.places.clone(), options));
        Some(match &self.skills {
            Some(skills) if has_skill_tool => knowledge.with_skills(Arc::clone(skills)),
            _ => knowledge,
        })
    }

    /// The system prompt with the output style that was chosen.
    pub(super) fn styled(&self, mut system: SystemPrompt) -> SystemPrompt {
        let Some(style) = &self.style else {
            return system;
        };
        if !style.keep_coding_instructions && system.base.is_none() {
            system.base = Some(String::new());
        }
        let parts = [Some(style.text.clone()), system.append.take()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        system.append = Some(parts.join("\n\n"));
        system
    }

    /// Their names, as init tells them.
    pub(super) fn told(&self) -> ExtensionNames {
        let all = self.skills.iter().flat_map(|skills| skills.all());
        let all: Vec<_> = all.collect();
        let named = |keep: &dyn Fn(&skills::Skill) -> bool| -> Vec<String> {
            let kept = all.iter().filter(|skill| keep(skill));
            kept.map(|skill| skill.name.clone()).collect()
        };
        let mut commands = named(&|skill| skill.user_invocable);
        if self.skills.is_some() {
            commands.extend(BUILT_IN.iter().map(|(name, _)| (*name).to_owned()));
            commands.sort();
            commands.dedup();
        }
        ExtensionNames {
            commands,
            skills: named(&|skill| skill.folder.is_some()),
            agents: Vec::new(),
            output_style: match &self.style {
                Some(style) => style.name.clone(),
                None => styles::DEFAULT.to_owned(),
            },
        }
    }

    /// The same in full, as `initialize` is answered.
    pub(super) fn described(&self) -> Described {
        let all = self.skills.iter().flat_map(|skills| skills.all());
        let mut commands: Vec<DescribedCommand> = all
            .filter(|skill| skill.user_invocable)
            .map(|skill| DescribedCommand {
                name: skill.name.clone(),
                description: skill.description.clone(),
                argument_hint: skill.argument_hint.clone().unwrap_or_default(),
            })
            .collect();
        if self.skills.is_some() {
            let built_in = BUILT_IN.iter();
            commands.extend(built_in.map(|(name, description)| DescribedCommand {
                name: (*name).to_owned(),
                description: (*description).to_owned(),
                argument_hint: String::new(),
            }));
        }
        let mut styles = vec![styles::DEFAULT.to_owned()];
        styles.extend(self.styles.iter().cloned());
        Described {
            commands,
            output_style: self.told().output_style,
            styles,
        }
    }
}

/// Names of what there is.
#[derive(Debug, Clone, Default)]
pub(super) struct ExtensionNames {
    pub(super) commands: Vec<String>,
    pub(super) skills: Vec<String>,
    pub(super) agents: Vec<String>,
    pub(super) output_style: String,
}

/// What there is, for a program that shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Described {
    pub(super) commands: Vec<DescribedCommand>,
    pub(super) output_style: String,
    pub(super) styles: Vec<String>,
}

fn places(
    session: &SessionArgs,
    flags: &Headless,
    permitted: &Permitted,
    warnings: &mut Vec<Warning>,
) -> ExtensionPlaces {
    let known = &permitted.settings.places;
    let sources = match &permitted.flags.sources {
        _ if session.bare => Sources {
            user: false,
            project: false,
            local: false,
        },
        None => Sources::default(),
        Some(named) => Sources {
            user: named.contains(&Scope::User),
            project: named.contains(&Scope::Project),
            local: named.contains(&Scope::Local),
        },
    };
    let mut plugins = Vec::new();
    for folder in flags.plugin_dir.iter().filter(|_| !session.bare) {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        match plugins::read(&folder) {
            Ok(plugin) => plugins.push(plugin),
            Err(warning) => warnings.push(warning),
        }
    }
    ExtensionPlaces {
        cwd: known.cwd.clone(),
        home: known.home.clone(),
        user: known.user.clone(),
        managed: known.managed.clone(),
        directories: permitted.directories.clone(),
        plugins,
        sources,
    }
}

fn memory_options(
    permitted: &Permitted,
    settings: &Value,
    places: &ExtensionPlaces,
) -> memory::MemoryOptions {
    let managed = permitted.settings.layers.iter();
    let managed = managed.filter(|layer| layer.scope == Scope::Managed);
    let managed_text = managed
        .filter_map(|layer| layer.document.value["claudeMd"].as_str())
        .next();
    let rules = Arc::new(permitted.rules.clone());
    let hidden = rules.keep_from(&["Read"]);
    memory::MemoryOptions {
        managed_text: managed_text.map(str::to_owned),
        kept: kept(permitted, places),
        denied: (!hidden.is_empty())
            .then(|| Arc::new(move |path: &std::path::Path| hidden.hides(path)) as _),
        ..memory::MemoryOptions::of(settings, variable)
    }
}

/// The file that models keep themselves, if that is not switched off.
fn kept(permitted: &Permitted, places: &ExtensionPlaces) -> Option<PathBuf> {
    let folder = permitted.memory.as_ref().filter(|_| places.sources.user)?;
    Some(folder.join("MEMORY.md"))
}
