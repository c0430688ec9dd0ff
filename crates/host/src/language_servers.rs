//! What a session says of its language servers.

use std::{path::PathBuf, sync::Arc, time::Duration};

use haft_contract::{Confined, NetworkAccess};
use haft_engine::{permissions::confine_program, settings::trust};
use haft_tools::CodeSetup;
use serde_json::{Value, json};

use crate::{SessionConfig, extensions, plugins, settings::Permitted};

/// How long a server may take to answer a call.
const ANSWER: Duration = Duration::from_secs(60);

/// What counts for a session of this configuration.
pub(crate) fn setup(config: &SessionConfig, permitted: &Permitted) -> CodeSetup {
    let policy = permitted.policy();
    let environment = &config.environment;
    let cache = environment.cache_folder();
    let workspace = config.cwd.canonicalize();
    let workspace = workspace.unwrap_or_else(|_| config.cwd.clone());
    // The same folder that is trusted.
    let top = trust::directory(&permitted.settings.places);
    CodeSetup {
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
            confine_program(&policy, Confined::Workspace, NetworkAccess::Nobody)
        }),
        path: environment.variable("PATH").map(Into::into),
        answer_within: ANSWER,
    }
}

/// The language servers that a session of this configuration would find.
#[derive(Debug)]
pub struct FoundLanguageServers {
    /// By name, each with its program.
    pub servers: Vec<(String, PathBuf)>,
    /// The session would start them.
    pub trusted: bool,
    /// What is wrong with those that settings and plugins name.
    pub problems: Vec<String>,
}

/// The servers that a session of this configuration would find, with their places, and whether it would start them.
pub fn found_language_servers(
    config: &SessionConfig,
    permitted: &Permitted,
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

/// Takes over the language servers that plugins bring, for tools without a conversation: of all that plugins have,
/// these are the only part that tools need.
pub(crate) fn take_plugins(config: &SessionConfig, permitted: &mut Permitted) {
    if config.bare {
        return;
    }
    // What else is wrong with plugins is no matter of these tools.
    let places = extensions::places(config, permitted, &mut Vec::new());
    permitted.plugin_servers = plugins::additions(&places, permitted).language_servers;
}

/// `lsp` of the settings. What a project names to be started counts once it is trusted; what would let servers take
/// more or run unconfined is said by the user alone.
fn settings(permitted: &Permitted) -> Value {
    let mut merged = json!({});
    // The highest rank first: what is there stays.
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
