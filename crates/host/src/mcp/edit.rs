//! Adds servers to configuration files and removes them. Everything else in these files stays
//! unchanged.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use haft_mcp::client::{ServerEntry, ServerScope};
use serde_json::{Map, Value, json};

use super::{
    approvals::{PinDecider, PinnedTools},
    sources::{UserConfigFile, project_file, project_keys},
};
use crate::SessionConfig;

/// Adds a server to the file of a scope. Returns the path of the file.
pub fn add_server(
    config: &SessionConfig,
    scope: ServerScope,
    name: &str,
    entry: &Value,
) -> anyhow::Result<PathBuf> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    anyhow::ensure!(
        !name.is_empty() && name.chars().all(fits),
        "{name:?}: the name of a server has letters, digits, - and _ only"
    );
    let named = ServerEntry::read(name, entry, scope)
        .map_err(|skipped| anyhow::anyhow!("{name}: {}", skipped.message))?;
    let file = file_of(config, scope)?;
    let mut document = read(&file)?;
    let servers = servers_of(&mut document, config, scope)?;
    anyhow::ensure!(
        !servers.contains_key(name),
        "there is a server {name} in {} already; remove it first: `haft mcp remove {name} -s {scope}`",
        file.display()
    );
    servers.insert(name.to_owned(), entry.clone());
    write(&file, &document)?;
    // Users approve an entry by writing it, except in the project's file, which is also for others.
    if scope != ServerScope::Project {
        PinnedTools::for_session(config, PinDecider::without_user()).forget_server(&named)?;
    }
    Ok(file)
}

/// Removes a server from the file of this scope, or from the only file that names it. Returns the
/// scope and the path of the file.
pub fn remove_server(
    config: &SessionConfig,
    scope: Option<ServerScope>,
    name: &str,
) -> anyhow::Result<(ServerScope, PathBuf)> {
    let scopes = [ServerScope::Local, ServerScope::Project, ServerScope::User];
    let mut found = Vec::new();
    for one in scopes
        .into_iter()
        .filter(|one| scope.is_none_or(|scope| scope == *one))
    {
        let file = file_of(config, one)?;
        let mut document = read(&file)?;
        if servers_of(&mut document, config, one)?.contains_key(name) {
            found.push((one, file, document));
        }
    }
    let (scope, file, mut document) = match found.len() {
        0 => anyhow::bail!("no server is called {name:?} there; `haft mcp list` shows them"),
        1 => found.remove(0),
        _ => {
            let names: Vec<&str> = found.iter().map(|(scope, ..)| scope.name()).collect();
            anyhow::bail!(
                "{name} is named in several scopes; say which with -s: {}",
                names.join(", ")
            )
        }
    };
    servers_of(&mut document, config, scope)?.shift_remove(name);
    write(&file, &document)?;
    Ok((scope, file))
}

fn file_of(config: &SessionConfig, scope: ServerScope) -> anyhow::Result<PathBuf> {
    let places = config.environment.settings_places(&config.cwd);
    match scope {
        ServerScope::Local | ServerScope::User => {
            Ok(UserConfigFile::path(&places.home, &places.user).into_path_buf())
        }
        ServerScope::Project => {
            let there = project_file(&config.cwd);
            Ok(there.unwrap_or_else(|| config.cwd.join(".mcp.json")))
        }
        other => anyhow::bail!("servers of the scope {other} are not in a file that haft can edit"),
    }
}

fn read(file: &Path) -> anyhow::Result<Value> {
    match fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => Ok(json!({})),
        Ok(text) => {
            let value: Value = serde_json::from_str(&text)
                .with_context(|| format!("{} is not valid JSON", file.display()))?;
            anyhow::ensure!(value.is_object(), "{} holds no object", file.display());
            Ok(value)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(json!({})),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

fn servers_of<'a>(
    document: &'a mut Value,
    config: &SessionConfig,
    scope: ServerScope,
) -> anyhow::Result<&'a mut Map<String, Value>> {
    let around = match scope {
        ServerScope::Local => {
            let key = project_keys(&config.cwd).pop().unwrap_or_default();
            object(object(document, "projects")?, &key)?
        }
        _ => document,
    };
    let servers = object(around, "mcpServers")?;
    servers
        .as_object_mut()
        .context("`mcpServers` is not an object")
}

fn object<'a>(value: &'a mut Value, key: &str) -> anyhow::Result<&'a mut Value> {
    let map = value
        .as_object_mut()
        .with_context(|| format!("the parent of {key:?} is not an object"))?;
    let inner = map.entry(key).or_insert_with(|| json!({}));
    anyhow::ensure!(inner.is_object(), "{key:?} is not an object");
    Ok(inner)
}

/// Writes atomically, so that no reader sees an incomplete file.
fn write(file: &Path, document: &Value) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // A symlink stays a symlink.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let mode = fs::metadata(&target).map(|found| {
        use std::os::unix::fs::PermissionsExt;
        found.permissions().mode() & 0o777
    });
    let new = target.with_extension(format!("{}.new", std::process::id()));
    let written = || -> std::io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut open = options
            .write(true)
            .create_new(true)
            .mode(mode.unwrap_or(0o600))
            .open(&new)?;
        open.write_all(text.as_bytes())?;
        open.sync_all()?;
        fs::rename(&new, &target)
    };
    written().with_context(|| format!("{} cannot be written", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    #[test]
    fn servers_come_and_go_and_the_rest_of_the_files_stays() {
        let home = tempfile::tempdir().unwrap();
        let cwd = home.path().join("project");
        fs::create_dir(&cwd).unwrap();
        let file = home.path().join(".claude.json");
        fs::write(
            &file,
            r#"{"theme": "dark", "projects": {"/x": {"a": 1}}, "zoom": 2}"#,
        )
        .unwrap();
        let mut config = SessionConfig::new(&cwd);
        config.environment = Environment::from_variables([("HOME", home.path().to_str().unwrap())]);
        let entry = json!({"command": "x"});
        for scope in [ServerScope::User, ServerScope::Local, ServerScope::Project] {
            add_server(&config, scope, "one", &entry).unwrap();
            assert!(add_server(&config, scope, "one", &entry).is_err());
        }
        assert!(add_server(&config, ServerScope::User, "a b", &entry).is_err());
        assert!(add_server(&config, ServerScope::User, "two", &json!({})).is_err());
        let kept: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let keys: Vec<&String> = kept.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["theme", "projects", "zoom", "mcpServers"]);
        assert_eq!(kept["projects"]["/x"], json!({"a": 1}));
        assert_eq!(
            kept["projects"][cwd.to_str().unwrap()]["mcpServers"]["one"],
            entry
        );
        assert!(cwd.join(".mcp.json").is_file());

        let several = remove_server(&config, None, "one").unwrap_err().to_string();
        assert!(several.contains("local, project, user"), "{several}");
        for scope in [ServerScope::User, ServerScope::Local, ServerScope::Project] {
            assert_eq!(remove_server(&config, Some(scope), "one").unwrap().0, scope);
        }
        assert!(remove_server(&config, None, "one").is_err());
    }
}
