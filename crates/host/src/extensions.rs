//! Extensions: skills, commands, agents, memory files and output styles in folders.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, RwLock},
};

use haft_agent::prompt::InstructionSources;
use haft_contract::SessionId;
use haft_engine::{
    permissions::{List, PatternBases, RuleSet, RuleSource, SettingsScope, rules::RuleClass},
    settings::TrustFile,
};
use haft_extensions::{
    EnabledSources, ExtensionPlaces, ExtensionPlugin, ExtensionWarning, Skills,
    memory::{self, Memory},
    plugins, skills,
    styles::{self, OutputStyle},
};
use haft_tools::{SkillEffects, SkillService};
use serde_json::Value;

use crate::{
    Environment, SessionConfig, commands::BUILT_IN, live_changes::ExtensionReload, main_agent,
    resolved_settings::ResolvedSettings,
};

/// The extensions of a session.
pub(crate) struct SessionExtensions {
    /// None if they are disabled.
    pub(crate) skills: Option<Arc<Skills>>,
    /// The folders of extensions.
    pub(crate) places: ExtensionPlaces,
    pub(crate) style: Option<OutputStyle>,
    styles: Vec<String>,
    memory: Option<memory::MemoryOptions>,
    trusts_project: bool,
    /// The name of an output style that was requested but does not exist.
    unknown_style: Option<String>,
    warnings: Vec<ExtensionWarning>,
}

impl SessionExtensions {
    /// Loads the extensions. A bare session has none.
    pub(crate) fn load(config: &SessionConfig, permitted: &ResolvedSettings) -> Self {
        let environment = &config.environment;
        let settings = permitted.settings.merged();
        let mut warnings = Vec::new();
        let places = places(config, permitted, &mut warnings);
        let trust = permitted.settings.trust;
        let mut found = Self {
            skills: None,
            places,
            style: None,
            styles: Vec::new(),
            memory: None,
            trusts_project: trust.allows,
            unknown_style: None,
            warnings,
        };
        if config.bare {
            return found;
        }
        if !config.without_slash_commands {
            let of_skills =
                skills::SkillSettings::from_settings(&settings, |name| environment.variable(name));
            let (skills, warnings) = Skills::load(found.places.clone(), of_skills);
            found.warnings.extend(warnings);
            found.skills = Some(Arc::new(skills));
        }
        found.take_style(&settings);
        found.memory = Some(memory_options(
            environment,
            permitted,
            &settings,
            &found.places,
        ));
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
            self.unknown_style = Some(name.to_owned());
        }
    }

    /// Returns the files outside the project that its memory files import without the user's
    /// approval.
    pub(crate) fn left_out_imports(&self) -> BTreeSet<PathBuf> {
        let options = self.memory.clone();
        let memory = options.map(|options| Memory::new(self.places.clone(), options));
        memory.map_or_else(BTreeSet::new, |memory| memory.left_out_imports())
    }

    /// Returns the problems of the extensions.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let style = self.unknown_style.iter();
        let style =
            style.map(|name| format!("no output style is called {name:?}; the default is used"));
        style
            .chain(self.warnings.iter().map(ToString::to_string))
            .collect()
    }

    /// Returns the service through which skills are called.
    pub(crate) fn skill_service(
        &self,
        session: SessionId,
        effort: Option<String>,
    ) -> Option<SkillService> {
        Some(SkillService {
            skills: Arc::clone(self.skills.as_ref()?),
            trusts_project: self.trusts_project,
            session: Arc::new(RwLock::new(session.to_string())),
            effort,
            records_reads: true,
            effects: SkillEffects::default(),
        })
    }

    /// Allows reading the folders of the user's own skills without asking.
    pub(crate) fn open_folders(&self, rules: &mut RuleSet, bases: &PatternBases) {
        let folders = self
            .skills
            .iter()
            .flat_map(|skills| skills.readable_folders());
        for folder in folders {
            let path = folder.to_string_lossy();
            // A path that would be parsed as a pattern is skipped.
            if path.contains(['*', '?', '[', ']', '{', '}', '(', ')', '!', '\\']) {
                continue;
            }
            let rule = format!("Read(/{path}/**)");
            if let Err(problem) = rules.add(
                List::Allow,
                &rule,
                RuleSource::from_scope(SettingsScope::Session),
                bases,
            ) {
                tracing::warn!(%problem, "the folder of a skill is not opened");
            }
        }
    }

    /// Takes the instruction sources that the model reads before the first message; `None` in a bare
    /// session. Skills are included only if the model has the tool to call them.
    pub(crate) fn knowledge(&mut self, has_skill_tool: bool) -> Option<InstructionSources> {
        let options = self.memory.take()?;
        let knowledge = InstructionSources::new(Memory::new(self.places.clone(), options));
        Some(match &self.skills {
            Some(skills) if has_skill_tool => knowledge.with_skills(Arc::clone(skills)),
            _ => knowledge,
        })
    }

    /// Returns the names of the extensions, as reported at the start of a session.
    pub(crate) fn names(&self) -> ExtensionNames {
        let all = self.skills.iter().flat_map(|skills| skills.all());
        let all: Vec<_> = all.collect();
        let named = |keep: &dyn Fn(&skills::Skill) -> bool| -> Vec<String> {
            let kept = all.iter().filter(|skill| keep(skill));
            kept.map(|skill| skill.name.clone()).collect()
        };
        let mut commands = named(&|skill| skill.user_invocable);
        if self.skills.is_some() {
            commands.extend(BUILT_IN.iter().map(|one| one.name.to_owned()));
            commands.sort_unstable();
            commands.dedup();
        }
        ExtensionNames {
            commands,
            skills: named(&|skill| skill.folder.is_some()),
            agents: Vec::new(),
            plugins: self
                .places
                .plugins
                .iter()
                .map(PluginDetails::from_plugin)
                .collect(),
            output_style: match (&self.style, &self.unknown_style) {
                (Some(style), _) => style.name.clone(),
                // The name as given, so that the user recognizes it.
                (None, Some(name)) => name.clone(),
                (None, None) => styles::DEFAULT.to_owned(),
            },
        }
    }

    /// Returns the details of the extensions.
    pub(crate) fn details(&self) -> ExtensionDetails {
        let mut styles = vec![styles::DEFAULT.to_owned()];
        styles.extend(self.styles.iter().cloned());
        ExtensionDetails {
            commands: commands(self.skills.as_deref()),
            output_style: self.names().output_style,
            styles,
        }
    }

    /// Returns the data that is needed to reload the extensions.
    pub(crate) fn reload(
        &self,
        config: &SessionConfig,
        permitted: &ResolvedSettings,
        main_of_plugins: Option<&str>,
    ) -> ExtensionReload {
        ExtensionReload {
            config: config.clone(),
            main_name: Mutex::new(main_agent::name(config, permitted, main_of_plugins)),
            main: OnceLock::new(),
            skills: self.skills.clone(),
            hooks: permitted.hooks.clone(),
            places: Mutex::new(self.places.clone()),
            subagents: OnceLock::new(),
        }
    }
}

/// Returns all slash commands.
pub(crate) fn commands(skills: Option<&Skills>) -> Vec<CommandDetails> {
    let Some(skills) = skills else {
        return Vec::new();
    };
    let own = own_commands(skills).into_iter();
    let built_in = BUILT_IN.iter().map(|one| CommandDetails {
        name: one.name.to_owned(),
        description: one.description.to_owned(),
        argument_hint: one.hint.to_owned(),
    });
    own.chain(built_in).collect()
}

/// Returns the slash commands from folders.
pub(crate) fn own_commands(skills: &Skills) -> Vec<CommandDetails> {
    let all = skills.all();
    let own = all.iter().filter(|skill| skill.user_invocable);
    let own = own.map(|skill| CommandDetails {
        name: skill.name.clone(),
        description: skill.description.clone(),
        argument_hint: skill.argument_hint.clone().unwrap_or_default(),
    });
    own.collect()
}

/// Returns the names of all output styles.
pub(crate) fn style_names(found: &[OutputStyle]) -> Vec<String> {
    let names = found.iter().map(|style| style.name.clone());
    std::iter::once(styles::DEFAULT.to_owned())
        .chain(names)
        .collect()
}

/// A loaded plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginDetails {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// Its version, from its manifest.
    pub version: Option<String>,
}

impl PluginDetails {
    pub(crate) fn from_plugin(plugin: &ExtensionPlugin) -> Self {
        Self {
            name: plugin.name.clone(),
            path: plugin.root.clone(),
            version: plugin.version.clone(),
        }
    }
}

/// The names of the extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionNames {
    /// Slash commands.
    pub commands: Vec<String>,
    /// Skills.
    pub skills: Vec<String>,
    /// Agent kinds.
    pub agents: Vec<String>,
    /// The active output style.
    pub output_style: String,
    /// Plugins.
    pub plugins: Vec<PluginDetails>,
}

/// The details of the extensions, for a front end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionDetails {
    /// Slash commands.
    pub commands: Vec<CommandDetails>,
    /// The active output style.
    pub output_style: String,
    /// All output styles.
    pub styles: Vec<String>,
}

/// A slash command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandDetails {
    /// Its name, without the slash.
    pub name: String,
    /// A description of what it does.
    pub description: String,
    /// A hint about its arguments; empty if it has none.
    pub argument_hint: String,
}

pub(crate) fn places(
    config: &SessionConfig,
    permitted: &ResolvedSettings,
    warnings: &mut Vec<ExtensionWarning>,
) -> ExtensionPlaces {
    let known = &permitted.settings.places;
    let sources = match &permitted.flags.sources {
        _ if config.bare => EnabledSources {
            user: false,
            project: false,
            local: false,
        },
        None => EnabledSources::default(),
        Some(named) => EnabledSources {
            user: named.contains(&SettingsScope::User),
            project: named.contains(&SettingsScope::Project),
            local: named.contains(&SettingsScope::Local),
        },
    };
    let mut plugins = Vec::new();
    let folders = match config.bare {
        true => Vec::new(),
        false => crate::plugins::folders(config, permitted, warnings),
    };
    for folder in &folders {
        match plugins::read(folder) {
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
    environment: &Environment,
    permitted: &ResolvedSettings,
    settings: &Value,
    places: &ExtensionPlaces,
) -> memory::MemoryOptions {
    let managed = permitted.settings.layers.iter();
    let managed = managed.filter(|layer| layer.scope == SettingsScope::Managed);
    let managed_text = managed
        .filter_map(|layer| layer.document.value["claudeMd"].as_str())
        .next();
    let rules = Arc::new(permitted.rules.clone());
    let hidden = rules.hidden_by_classes(&[RuleClass::Reads]);
    memory::MemoryOptions {
        managed_text: managed_text.map(str::to_owned),
        auto_memory: maintained_memory_file(permitted, places),
        approved_imports: TrustFile::read(&permitted.settings.places)
            .imports(&permitted.settings.places),
        denied: (!hidden.is_empty())
            .then(|| Arc::new(move |path: &std::path::Path| hidden.hides(path)) as _),
        ..memory::MemoryOptions::from_settings(settings, |name| environment.variable(name))
    }
}

/// Returns the memory file that the model maintains, unless it is disabled.
fn maintained_memory_file(
    permitted: &ResolvedSettings,
    places: &ExtensionPlaces,
) -> Option<PathBuf> {
    let folder = permitted.memory.as_ref().filter(|_| places.sources.user)?;
    Some(folder.join("MEMORY.md"))
}
