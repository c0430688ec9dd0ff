//! What a session says of its language servers.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{Confined, NetworkAccess};
use haft_engine::permissions::confine_program;
use haft_tools::CodeSetup;
use serde_json::{Value, json};

use crate::{SessionConfig, settings::Permitted};

/// What counts for a session of this configuration.
pub(crate) fn setup(config: &SessionConfig, permitted: &Permitted) -> CodeSetup {
    let policy = permitted.policy();
    let environment = &config.environment;
    let cache = environment.cache_folder();
    let workspace = config.cwd.canonicalize();
    CodeSetup {
        workspace: workspace.unwrap_or_else(|_| config.cwd.clone()),
        trusted: permitted.settings.trust.runs && config.program.is_some() && cache.is_some(),
        settings: settings(permitted),
        cache: cache
            .map(|folder| folder.join("lsp"))
            .unwrap_or_else(|| PathBuf::from("/nonexistent")),
        confinement: Arc::new(move || {
            confine_program(&policy, Confined::Workspace, NetworkAccess::Nobody)
        }),
        path: environment.variable("PATH").map(Into::into),
    }
}

/// The servers that a session of this configuration would find, with their places, and whether it would start them.
pub fn found_language_servers(
    config: &SessionConfig,
    permitted: &Permitted,
) -> (Vec<(String, PathBuf)>, bool) {
    let setup = setup(config, permitted);
    (haft_tools::installed_servers(&setup), setup.trusted)
}

/// `lsp` of the settings. A project can switch servers off, but names none: what it would start was not shown to the
/// one who trusted it.
fn settings(permitted: &Permitted) -> Value {
    let mut merged = json!({});
    // The highest rank first: what is there stays.
    for layer in &permitted.settings.layers {
        match &layer.document.value["lsp"] {
            Value::Bool(false) => return Value::Bool(false),
            Value::Object(said) if !layer.is_in_workspace() => {
                for (name, value) in said {
                    if merged.get(name).is_none() {
                        merged[name] = value.clone();
                    }
                }
            }
            Value::Object(said) => {
                let option = said
                    .get("diagnostics")
                    .filter(|_| merged.get("diagnostics").is_none());
                if let Some(option) = option {
                    merged["diagnostics"] = option.clone();
                }
            }
            _ => {}
        }
    }
    merged
}
