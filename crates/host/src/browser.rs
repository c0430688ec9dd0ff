//! The browser of a session, and the secrets that may be typed into its pages.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::BoxFuture;
use haft_engine::settings::Settings;
use haft_tools::{BrowserProgram, PageSecret, PageSecrets, SecretSource};
use serde_json::Value;

use crate::{Environment, key_helper::printed_by};

const SETTING: &str = "browser";
/// The variable that disables the browser if its value is `off`.
const VARIABLE: &str = "HAFT_BROWSER";

/// Returns the browser set in the user's own settings, or otherwise the installed one. Project
/// settings are ignored.
pub fn browser_program(
    settings: &Settings,
    environment: &Environment,
    cwd: &Path,
) -> Option<BrowserProgram> {
    if environment.variable(VARIABLE).as_deref() == Some("off") {
        return None;
    }
    let said = user_settings(settings);
    let of = |name: &str| said.iter().find_map(|value| value.get(name));
    let path = of("path").and_then(Value::as_str).map(PathBuf::from);
    let folders = environment.variable("PATH").unwrap_or_default();
    let outside = [cwd.to_path_buf()];
    let mut program = BrowserProgram::find(path.as_deref(), folders.as_ref(), &outside)?;
    program.headed = of("headed").and_then(Value::as_bool).unwrap_or(false);
    if let Some(most) = of("memoryMb").and_then(Value::as_u64) {
        program.memory_mb = most.max(256);
    }
    Some(program)
}

/// Returns the browser settings in the user's own files, those with the highest rank first.
fn user_settings(settings: &Settings) -> Vec<&Value> {
    let users = settings.layers.iter();
    let users = users.filter(|layer| !layer.from_workspace && layer.scope.is_users());
    users
        .filter_map(|layer| layer.document.value.get(SETTING))
        .collect()
}

/// Returns the secrets in the user's own settings, and the problems with those that cannot be used.
/// Project settings are ignored, because their commands could read the secrets.
pub(crate) fn browser_secrets(
    settings: &Settings,
    environment: &Environment,
) -> (Option<PageSecrets>, Vec<String>) {
    let (mut list, mut commands, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    let all = user_settings(settings);
    let all = all
        .iter()
        .filter_map(|value| value.get("secrets")?.as_object());
    for (name, value) in all.flatten() {
        if commands.iter().any(|(known, _)| known == name) {
            continue;
        }
        let command = value.get("command").and_then(Value::as_str);
        let hosts = value.get("hosts").and_then(Value::as_array);
        let hosts: Vec<String> = hosts
            .into_iter()
            .flatten()
            .filter_map(|host| host.as_str().map(str::to_owned))
            .collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let wrong = hosts.iter().find(|host| !PageSecret::is_host(host));
        match (command, wrong) {
            _ if name.is_empty() || !name.chars().all(plain) => problems.push(format!(
                "browser.secrets: {name:?} is not a valid name; use letters, digits, `_` and `-`"
            )),
            (None, _) => problems.push(format!("browser.secrets.{name} has no `command`")),
            (_, Some(host)) => problems.push(format!(
                "browser.secrets.{name}: {host:?} is not a host; write app.example.com or *.example.com"
            )),
            (_, None) if hosts.is_empty() => {
                problems.push(format!("browser.secrets.{name} has no `hosts`"));
            }
            (Some(command), None) => {
                commands.push((name.clone(), command.to_owned()));
                list.push(PageSecret {
                    name: name.clone(),
                    hosts,
                });
            }
        }
    }
    let source = SecretCommands {
        commands,
        environment: environment.clone(),
        cwd: settings.places.cwd.clone(),
    };
    let secrets = (!list.is_empty()).then(|| PageSecrets::new(list, Arc::new(source)));
    (secrets, problems)
}

/// The user's commands that print secrets.
struct SecretCommands {
    commands: Vec<(String, String)>,
    environment: Environment,
    cwd: PathBuf,
}

impl SecretSource for SecretCommands {
    fn value<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let mut commands = self.commands.iter();
            let (_, line) = commands
                .find(|(known, _)| known == name)
                .ok_or_else(|| format!("no secret is named {name}"))?;
            let printed = printed_by(line, &self.environment, &self.cwd).await;
            printed.map_err(|why| {
                format!("the command of browser.secrets.{name} returned no secret: {why}")
            })
        })
    }
}
