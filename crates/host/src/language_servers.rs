//! The language servers of a session.

use std::{path::PathBuf, sync::Arc, time::Duration};

use haft_contract::{ConfinementProfile, NetworkAccess};
use haft_engine::{permissions::confine_program, settings::trust};
use haft_tools::LanguageServerSetup;
use serde_json::{Value, json};

use crate::{SessionConfig, extensions, plugins, resolved_settings::ResolvedSettings};

/// The timeout of a request to a server.
const ANSWER: Duration = Duration::from_secs(60);

/// Returns the setup of language servers for a session with this configuration.
pub(crate) fn setup(config: &SessionConfig, permitted: &ResolvedSettings) -> LanguageServerSetup {
    let policy = permitted.policy();
    let environment = &config.environment;
    let cache = environment.cache_folder();
    let workspace = config.cwd.canonicalize();
    let workspace = workspace.unwrap_or_else(|_| config.cwd.clone());
    // The same folder that trust applies to.
    let top = trust::directory(&permitted.settings.places);
    LanguageServerSetup {
        top: match workspace.starts_with(&top) {
            true => top,
            false => workspace.clone(),
        },
        workspace,
        trusted: permitted.settings.trust.runs && config.program.is_some() && cache.is_some(),
        settings: settings(permitted),
        plugins: Value::Object(permitted.plugin_servers.clone()),
        cache: cache
            .map(|folder| folder.join("lsp"))
            .unwrap_or_else(|| PathBuf::from("/nonexistent")),
        confinement: Arc::new(move || {
            confine_program(
                &policy,
                ConfinementProfile::Workspace,
                NetworkAccess::Nobody,
            )
        }),
        path: environment.variable("PATH").map(Into::into),
        answer_within: ANSWER,
    }
}

/// The language servers that a session with this configuration would find.
#[derive(Debug)]
pub struct FoundLanguageServers {
    /// The programs, by name of the server.
    pub servers: Vec<(String, PathBuf)>,
    /// Whether the session would start them.
    pub trusted: bool,
    /// Problems with the servers that settings and plugins name.
    pub problems: Vec<String>,
}

/// Finds the servers for a session with this configuration, with their programs, and whether it
/// would start them.
pub fn found_language_servers(
    config: &SessionConfig,
    permitted: &ResolvedSettings,
) -> FoundLanguageServers {
    let mut permitted = permitted.clone();
    take_plugins(config, &mut permitted);
    let setup = setup(config, &permitted);
    FoundLanguageServers {
        servers: haft_tools::installed_servers(&setup),
        trusted: setup.trusted,
        problems: setup.problems(),
    }
}

/// Adds the language servers of plugins to a session of tools. Tools need no other part of plugins.
pub(crate) fn take_plugins(config: &SessionConfig, permitted: &mut ResolvedSettings) {
    if config.bare {
        return;
    }
    // Other problems of plugins do not affect these tools.
    let places = extensions::places(config, permitted, &mut Vec::new());
    permitted.plugin_servers = plugins::additions(&places, permitted).language_servers;
}

/// Returns the merged `lsp` settings. A project's servers are used only if the project is trusted.
/// Settings that give servers more access, or let them run unconfined, are only read from the
/// user's files.
fn settings(permitted: &ResolvedSettings) -> Value {
    let mut merged = json!({});
    // The layer with the highest rank comes first, and its values are not overwritten.
    for layer in &permitted.settings.layers {
        let said = match &layer.document.value["lsp"] {
            Value::Bool(false) => return Value::Bool(false),
            Value::Object(said) => said,
            _ => continue,
        };
        for (name, value) in said {
            let counts = match layer.is_in_workspace() {
                false => true,
                true if value.is_object() => permitted.settings.may_run(layer),
                true => name == "diagnostics",
            };
            if counts && merged.get(name).is_none() {
                merged[name] = value.clone();
            }
        }
    }
    merged
}
