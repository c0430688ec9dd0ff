//! The sources of MCP servers.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use haft_contract::{SecretFile, SecretPath};
use haft_engine::{
    permissions::SettingsScope,
    settings::{SettingsPlaces, files::repository_root},
};
use haft_mcp::client::{ServerEntry, ServerScope, Servers, SkippedServer, entries};
use serde_json::{Map, Value};

use super::policy::ServerPolicy;
use crate::{SessionConfig, resolved_settings::ResolvedSettings};

type ReadServers = Vec<Result<ServerEntry, SkippedServer>>;

/// Returns all servers of a session with this configuration, including those of plugins.
pub(crate) fn collect_servers(
    config: &SessionConfig,
    permitted: &ResolvedSettings,
    of_plugins: &Map<String, Value>,
) -> anyhow::Result<Servers> {
    let servers = Servers::default();
    let places = &permitted.settings.places;
    let policy = ServerPolicy::from_settings(&permitted.settings);
    // If an administrator has configured servers, only these are used.
    if let Some(managed) = managed_file(places) {
        servers.add(read_server_file(&managed, ServerScope::Managed));
        servers.retain(|entry| policy.rejection(entry));
        return Ok(servers);
    }
    servers.add(from_flag(&config.mcp_servers, &config.cwd)?);
    if !config.strict_mcp && !config.bare {
        let user = UserConfigFile::read(&places.home, &places.user, &config.cwd);
        let counts = |scope: SettingsScope| {
            let sources = permitted.flags.sources.as_ref();
            sources.is_none_or(|sources| sources.contains(&scope))
        };
        if counts(SettingsScope::Local) {
            servers.add(entries(&user.local, ServerScope::Local));
        }
        if counts(SettingsScope::Project) {
            project(&servers, config, permitted);
        }
        if counts(SettingsScope::User) {
            servers.add(entries(&user.servers, ServerScope::User));
        }
        servers.add(entries_of_plugins(&servers, of_plugins));
        servers.disable(|entry| user.disabled.contains(&entry.name));
    }
    servers.retain(|entry| policy.rejection(entry));
    Ok(servers)
}

/// Returns the path of the administrator's file, if it exists.
pub(super) fn managed_file(places: &SettingsPlaces) -> Option<PathBuf> {
    let file = places.managed.join("managed-mcp.json");
    file.is_file().then_some(file)
}

/// Returns the names of servers that are disabled here, regardless of their source.
pub(super) fn disabled(config: &SessionConfig, permitted: &ResolvedSettings) -> Vec<String> {
    let places = &permitted.settings.places;
    UserConfigFile::read(&places.home, &places.user, &config.cwd).disabled
}

/// Reads the servers of `--mcp-config`: files, or JSON. A later server replaces an earlier one with
/// the same name.
fn from_flag(given: &[String], cwd: &Path) -> anyhow::Result<ReadServers> {
    let mut all: Map<String, Value> = Map::new();
    for text in given {
        let written = if text.trim_start().starts_with('{') {
            text.clone()
        } else {
            let path = cwd.join(text);
            fs::read_to_string(&path).with_context(|| format!("MCP configuration {text}"))?
        };
        let config: Value =
            serde_json::from_str(&written).with_context(|| format!("MCP configuration {text}"))?;
        let servers = config["mcpServers"].as_object().with_context(|| {
            format!("MCP configuration {text}: expected an object with the key `mcpServers`")
        })?;
        all.extend(servers.clone());
    }
    Ok(entries(&all, ServerScope::Given))
}

/// Reads the servers of a file. A problem with the file is reported as a skipped server.
fn read_server_file(file: &Path, scope: ServerScope) -> ReadServers {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let wrong = |why: String| vec![Err(SkippedServer::new(&name, "invalid_config", why))];
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return wrong(format!("{} cannot be read: {error}", file.display())),
    };
    match serde_json::from_str::<Value>(&text) {
        Err(error) => wrong(format!("{} is not valid JSON: {error}", file.display())),
        Ok(value) => match value["mcpServers"].as_object() {
            Some(servers) => entries(servers, scope),
            None => wrong(format!("{} has no object `mcpServers`", file.display())),
        },
    }
}

/// Returns the path of `.mcp.json` in the starting directory, or in the root of its repository.
pub(crate) fn project_file(cwd: &Path) -> Option<PathBuf> {
    let own = cwd.join(".mcp.json");
    if own.is_file() {
        return Some(own);
    }
    let root = repository_root(cwd)?.join(".mcp.json");
    root.is_file().then_some(root)
}

/// Adds the project's servers: enabled if the directory is trusted, otherwise only listed.
fn project(servers: &Servers, config: &SessionConfig, permitted: &ResolvedSettings) {
    let Some(file) = project_file(&config.cwd) else {
        return;
    };
    let settings = permitted.settings.merged();
    let is_rejected = |name: &str| {
        let list = settings["disabledMcpjsonServers"].as_array();
        list.is_some_and(|list| list.iter().any(|one| one == name))
    };
    let trusted = permitted.settings.trust.runs;
    let read = read_server_file(&file, ServerScope::Project).into_iter();
    let read = read.map(|read| match read {
        Ok(entry) if is_rejected(&entry.name) => {
            let why = "disabledMcpjsonServers in the settings names it";
            Err(SkippedServer::rejected(&entry.name, why))
        }
        Ok(entry) if !trusted => {
            let why = format!(
                "it is the project's (.mcp.json), and the directory is not trusted, or .mcp.json has changed since; \
                 it would start: {}. Look at it and trust it with `haft permissions trust`",
                entry.in_short()
            );
            Err(SkippedServer::new(&entry.name, "untrusted", why))
        }
        read => read,
    });
    servers.add(read);
}

/// Reloads the servers of plugins, with the same rules as at the start.
pub(crate) async fn replace_plugins(
    servers: &Servers,
    config: &SessionConfig,
    permitted: &ResolvedSettings,
    of_plugins: &Map<String, Value>,
) {
    let places = &permitted.settings.places;
    let managed_only = places.managed.join("managed-mcp.json").is_file();
    if managed_only || config.strict_mcp || config.bare {
        return;
    }
    let user = UserConfigFile::read(&places.home, &places.user, &config.cwd);
    let policy = ServerPolicy::from_settings(&permitted.settings);
    let read = entries_of_plugins(servers, of_plugins).into_iter();
    let read = read.map(|read| match read {
        Ok(entry) => policy.rejection(&entry).map_or(Ok(entry), Err),
        skipped => skipped,
    });
    let is_off = |entry: &ServerEntry| user.disabled.contains(&entry.name);
    servers.set_of_plugins(read.collect(), is_off).await;
}

/// Reads the servers of plugins. Those with the same command or URL as another server are left out.
fn entries_of_plugins(servers: &Servers, of_plugins: &Map<String, Value>) -> ReadServers {
    let others = servers.all().into_iter();
    let others = others.filter(|server| server.entry().scope != ServerScope::Plugin);
    let taken: Vec<String> = others.map(|server| server.entry().in_short()).collect();
    let mut read = entries(of_plugins, ServerScope::Plugin);
    read.retain(|read| match read {
        Ok(entry) => !taken.contains(&entry.in_short()),
        Err(_) => true,
    });
    read
}

/// The user's own file, `.claude.json`.
#[derive(Debug, Default)]
pub(crate) struct UserConfigFile {
    /// Servers for all projects.
    pub(crate) servers: Map<String, Value>,
    /// Servers for this project.
    pub(crate) local: Map<String, Value>,
    /// Servers that are disabled in this project.
    pub(crate) disabled: Vec<String>,
}

impl UserConfigFile {
    /// Returns its path: in the home directory, or in the folder that replaces the settings folder.
    pub(crate) fn path(home: &Path, user: &Path) -> SecretPath {
        let moved = SecretFile::UserServers.below(user);
        // With CLAUDE_CONFIG_DIR everything is in one folder.
        match user == home.join(".claude") && !moved.is_file() {
            true => SecretFile::UserServers.below(home),
            false => moved,
        }
    }

    fn read(home: &Path, user: &Path, cwd: &Path) -> Self {
        let text = fs::read_to_string(Self::path(home, user)).unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let mut found = Self {
            servers: object(&value["mcpServers"]),
            ..Self::default()
        };
        for directory in project_keys(cwd) {
            let project = &value["projects"][directory.as_str()];
            for (name, server) in object(&project["mcpServers"]) {
                found.local.entry(name).or_insert(server);
            }
            let disabled = project["disabledMcpServers"]
                .as_array()
                .into_iter()
                .flatten();
            found
                .disabled
                .extend(disabled.filter_map(Value::as_str).map(str::to_owned));
        }
        found
    }
}

/// Returns the keys of a project in the user's file: its directory, and the root of its repository.
pub(crate) fn project_keys(cwd: &Path) -> Vec<String> {
    let mut keys = vec![cwd.to_string_lossy().into_owned()];
    if let Some(root) = repository_root(cwd) {
        let root = root.to_string_lossy().into_owned();
        if !keys.contains(&root) {
            keys.push(root);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_json_together_and_the_last_of_a_name_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}"#;
        fs::write(dir.path().join("servers.json"), file).unwrap();
        let texts = [
            "servers.json".to_owned(),
            r#"{"mcpServers": {"a": {"type": "sdk"}}}"#.to_owned(),
        ];
        let read = from_flag(&texts, dir.path()).unwrap();
        let read: Vec<String> = read
            .into_iter()
            .map(|one| {
                one.map(|entry| format!("{} {}", entry.name, entry.in_short()))
                    .unwrap()
            })
            .collect();
        assert_eq!(read, ["a run by the program that started haft", "b y"]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["no-such-file", "{", "{}", r#"{"mcpServers": []}"#] {
            assert!(from_flag(&[text.to_owned()], dir.path()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_users_file_names_servers_everywhere_and_for_a_project() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("project");
        fs::create_dir(&cwd).unwrap();
        let text = serde_json::json!({
            "mcpServers": {"u": {"command": "u"}},
            "projects": {
                cwd.to_str().unwrap(): {"mcpServers": {"l": {"command": "l"}}, "disabledMcpServers": ["u"]},
                "/elsewhere": {"mcpServers": {"x": {"command": "x"}}},
            },
        });
        fs::write(dir.path().join(".claude.json"), text.to_string()).unwrap();
        let read = UserConfigFile::read(dir.path(), &dir.path().join(".claude"), &cwd);
        assert_eq!(read.servers.keys().collect::<Vec<_>>(), ["u"]);
        assert_eq!(read.local.keys().collect::<Vec<_>>(), ["l"]);
        assert_eq!(read.disabled, ["u"]);
    }
}
