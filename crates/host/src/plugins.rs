//! The parts of plugins besides skills, commands and agents: hooks, MCP servers, language servers and
//! settings. Ignored parts are reported.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_engine::{
    hooks::{HookHandler, HookOrigin, HookPlugin},
    permissions::{PatternBases, SettingsScope},
};
use haft_extensions::{ExtensionPlaces, ExtensionWarning, plugins};
use haft_mcp::client::OF_PLUGINS;
use serde_json::{Map, Value};

use crate::{SessionConfig, resolved_settings::ResolvedSettings};

/// The parts of a session's plugins.
#[derive(Default)]
pub(crate) struct PluginAdditions {
    pub(crate) handlers: Vec<HookHandler>,
    /// MCP servers, by their full names.
    pub(crate) servers: Map<String, Value>,
    /// Language servers, by their full names.
    pub(crate) language_servers: Map<String, Value>,
    /// The kind of the main agent, unless the configuration or settings name one.
    pub(crate) agent: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// Returns the folders of plugins: those that were named, and those that are installed and enabled.
pub(crate) fn folders(
    config: &SessionConfig,
    permitted: &ResolvedSettings,
    warnings: &mut Vec<ExtensionWarning>,
) -> Vec<PathBuf> {
    let mut folders = config.plugins.clone();
    let settings = &permitted.settings;
    let user = &settings.places.user;
    let mut enabled: BTreeMap<String, bool> = BTreeMap::new();
    // From the lowest rank to the highest.
    for layer in settings.layers.iter().rev() {
        let Some(named) = layer.document.value["enabledPlugins"].as_object() else {
            continue;
        };
        if layer.is_in_workspace() && !settings.trust.runs {
            if named.values().any(|on| *on == true) {
                let file = layer.file.as_deref().unwrap_or(Path::new(""));
                let what = "its enabledPlugins wait until the directory is trusted \
                            (`haft permissions trust`)";
                warnings.push(ExtensionWarning::new(file, what));
            }
            continue;
        }
        enabled.extend(named.iter().map(|(name, on)| (name.clone(), *on == true)));
    }
    for (name, _) in enabled.iter().filter(|(_, on)| **on) {
        match plugins::installed(user, name) {
            Some(folder) => folders.push(folder),
            None => warnings.push(ExtensionWarning::new(
                user.join("plugins/installed_plugins.json"),
                format!("the plugin {name} is enabled and not installed; install it, or load it from its folder"),
            )),
        }
    }
    folders
}

/// Reads the parts of the plugins.
pub(crate) fn additions(places: &ExtensionPlaces, permitted: &ResolvedSettings) -> PluginAdditions {
    let mut found = PluginAdditions::default();
    let hooks_are_off = permitted.settings.hooks_are_off();
    for plugin in &places.plugins {
        let (parts, warnings) = plugins::parts(plugin);
        found
            .warnings
            .extend(warnings.iter().map(ToString::to_string));
        let origin = Arc::new(HookPlugin {
            name: plugin.name.clone(),
            root: plugin.root.clone(),
            data: places.user.join("plugins/data").join(&plugin.name),
            options: BTreeMap::new(),
        });
        let bases = PatternBases {
            cwd: places.cwd.clone(),
            home: places.home.clone(),
            slash: places.cwd.clone(),
        };
        for (file, value) in parts.hooks {
            if hooks_are_off {
                let what = format!(
                    "the hooks of the plugin {} are left out: hooks are switched off",
                    plugin.name
                );
                found.warnings.push(what);
                continue;
            }
            let read = haft_engine::hook_conditions::read(
                SettingsScope::User,
                Some(&file),
                &value,
                &bases,
            );
            let (handlers, problems) = read;
            found
                .warnings
                .extend(problems.iter().map(ToString::to_string));
            found
                .handlers
                .extend(handlers.into_iter().map(|handler| HookHandler {
                    origin: HookOrigin::Plugin(Arc::clone(&origin)),
                    ..handler
                }));
        }
        for (name, server) in parts.servers {
            let name = format!("{OF_PLUGINS}{}:{name}", plugin.name);
            found.servers.insert(name, server);
        }
        for (name, server) in parts.language_servers {
            let name = format!("{}:{name}", plugin.name);
            found.language_servers.insert(name, server);
        }
        for (key, value) in &parts.settings {
            match (key.as_str(), value.as_str()) {
                ("agent", Some(agent)) => {
                    // The plugin's own agents are prefixed with its name.
                    let own = format!("{}:{agent}", plugin.name);
                    found.agent.get_or_insert(own);
                }
                _ => found.warnings.push(format!(
                    "the plugin {} sets {key}; of the settings of a plugin only `agent` counts",
                    plugin.name
                )),
            }
        }
    }
    found
}
