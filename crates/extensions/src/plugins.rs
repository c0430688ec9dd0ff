//! Plugins: folders of skills, commands and agents that came from elsewhere.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use crate::{ExtensionPlugin, ExtensionWarning, bounded_read};

/// The maximum size of a manifest, in bytes.
const MAX_LENGTH: usize = 256 * 1024;

/// Reads the plugin in a folder. Its name is in the manifest; without a manifest it is the name of
/// the folder.
pub fn read(root: &Path) -> Result<ExtensionPlugin, ExtensionWarning> {
    if !root.is_dir() {
        return Err(ExtensionWarning::new(
            root,
            "it is not a folder: the plugin is left out",
        ));
    }
    let manifest = root.join(".claude-plugin/plugin.json");
    let text = bounded_read::read(&manifest, MAX_LENGTH).map_err(|error| {
        ExtensionWarning::new(&manifest, format!("{error}: the plugin is left out"))
    })?;
    let of_folder = || {
        let name = root.file_name()?;
        Some(name.to_string_lossy().into_owned())
    };
    let (name, version) = match text {
        None => (of_folder(), None),
        Some(text) => {
            let manifest_of = |text: &str| serde_json::from_str::<Value>(text);
            let value = manifest_of(&text.text).map_err(|error| {
                let line = u64::try_from(error.line()).ok();
                ExtensionWarning::new(&manifest, format!("{error}: the plugin is left out"))
                    .with_line(line)
            })?;
            let text = |key: &str| value[key].as_str().map(str::to_owned);
            (text("name"), text("version"))
        }
    };
    let is_name = |name: &String| {
        let good = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && name.chars().all(good)
    };
    match name.filter(is_name) {
        Some(name) => Ok(ExtensionPlugin {
            name,
            version,
            root: root.to_path_buf(),
        }),
        None => Err(ExtensionWarning::new(
            manifest,
            "the plugin has no `name` of letters, digits, `-`, `_` and `.`: it is left out",
        )),
    }
}

/// Parts of a plugin besides skills, commands and agents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginParts {
    /// Hooks by event, with the file that defines them.
    pub hooks: Vec<(PathBuf, Value)>,
    /// MCP servers by name; references to the plugin's folder are replaced by its path.
    pub servers: Map<String, Value>,
    /// Language servers by name; references to the plugin's folder are replaced by its path.
    pub language_servers: Map<String, Value>,
    /// Its settings.
    pub settings: Map<String, Value>,
}

/// Reads the parts of a plugin. Files that cannot be read become warnings; the others are used.
pub fn parts(plugin: &ExtensionPlugin) -> (PluginParts, Vec<ExtensionWarning>) {
    let mut warnings = Vec::new();
    let mut parts = PluginParts::default();
    let manifest = plugin.root.join(".claude-plugin/plugin.json");
    let told = read_json(&manifest, &mut warnings).unwrap_or_default();
    for (file, value) in component(plugin, &told["hooks"], "hooks/hooks.json", &mut warnings) {
        let hooks = match value.get("hooks") {
            Some(hooks) => hooks.clone(),
            None => value,
        };
        parts.hooks.push((file, hooks));
    }
    for (file, value) in component(plugin, &told["mcpServers"], ".mcp.json", &mut warnings) {
        let servers = value.get("mcpServers").unwrap_or(&value);
        match servers.as_object() {
            Some(servers) => parts.servers.extend(servers.clone()),
            None => warnings.push(ExtensionWarning::new(
                file,
                "it holds no servers: it is left out",
            )),
        }
    }
    for server in parts.servers.values_mut() {
        fill_in(server, &plugin.root.to_string_lossy());
    }
    for (file, value) in component(plugin, &told["lspServers"], ".lsp.json", &mut warnings) {
        let servers = value.get("lspServers").unwrap_or(&value);
        match servers.as_object() {
            Some(servers) => parts.language_servers.extend(servers.clone()),
            None => warnings.push(ExtensionWarning::new(
                file,
                "it holds no servers: it is left out",
            )),
        }
    }
    for server in parts.language_servers.values_mut() {
        fill_in(server, &plugin.root.to_string_lossy());
    }
    let settings = plugin.root.join("settings.json");
    match read_json(&settings, &mut warnings) {
        Some(Value::Object(read)) => parts.settings = read,
        Some(_) => warnings.push(ExtensionWarning::new(
            settings,
            "it is not an object: it is left out",
        )),
        None => {}
    }
    (parts, warnings)
}

/// Reads a component: from its default file, and from files or objects in the manifest.
fn component(
    plugin: &ExtensionPlugin,
    declared: &Value,
    default_file: &str,
    warnings: &mut Vec<ExtensionWarning>,
) -> Vec<(PathBuf, Value)> {
    let mut files = vec![plugin.root.join(default_file)];
    let mut found = Vec::new();
    let several = match declared {
        Value::Array(several) => several.as_slice(),
        one => std::slice::from_ref(one),
    };
    for one in several {
        match one {
            Value::String(path) => match inside(&plugin.root, path) {
                Some(file) if !files.contains(&file) => files.push(file),
                Some(_) => {}
                None => warnings.push(ExtensionWarning::new(
                    plugin.root.join(path),
                    "it is not inside the plugin: it is left out",
                )),
            },
            Value::Object(_) => {
                let manifest = plugin.root.join(".claude-plugin/plugin.json");
                found.push((manifest, one.clone()));
            }
            _ => {}
        }
    }
    for file in files {
        if let Some(value) = read_json(&file, warnings) {
            found.push((file, value));
        }
    }
    found
}

/// Returns the path of a plugin's file; `None` if it is outside the plugin.
fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let plain = |part| matches!(part, Component::CurDir | Component::Normal(_));
    let stays = path.components().all(plain);
    stays.then(|| {
        root.components()
            .chain(path.components())
            .filter(|part| *part != Component::CurDir)
            .collect()
    })
}

fn read_json(file: &Path, warnings: &mut Vec<ExtensionWarning>) -> Option<Value> {
    let text = match bounded_read::read(file, MAX_LENGTH) {
        Ok(text) => text?,
        Err(error) => {
            warnings.push(ExtensionWarning::new(
                file,
                format!("{error}: it is left out"),
            ));
            return None;
        }
    };
    match serde_json::from_str(&text.text) {
        Ok(value) => Some(value),
        Err(error) => {
            let line = u64::try_from(error.line()).ok();
            warnings.push(
                ExtensionWarning::new(file, format!("{error}: it is left out")).with_line(line),
            );
            None
        }
    }
}

fn fill_in(value: &mut Value, root: &str) {
    match value {
        Value::String(text) => *text = text.replace("${CLAUDE_PLUGIN_ROOT}", root),
        Value::Array(list) => list.iter_mut().for_each(|one| fill_in(one, root)),
        Value::Object(map) => map.values_mut().for_each(|one| fill_in(one, root)),
        _ => {}
    }
}

/// Returns the folder of a plugin that is installed for the user, by its full name
/// `plugin@marketplace`.
pub fn installed(user: &Path, name: &str) -> Option<PathBuf> {
    let list = user.join("plugins/installed_plugins.json");
    let list = read_json(&list, &mut Vec::new())?;
    let entry = list["plugins"].get(name)?;
    // One location, or a list of them by scope.
    let place = match entry {
        Value::Array(places) => places.last()?,
        place => place,
    };
    place["installPath"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_plugin_is_named_by_its_manifest_or_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("kit");
        assert!(read(&root).is_err());
        fs::create_dir_all(root.join(".claude-plugin")).unwrap();
        assert_eq!(read(&root).unwrap().name, "kit");
        let manifest = root.join(".claude-plugin/plugin.json");
        for (text, name) in [
            ("{\"name\": \"tools\", \"version\": \"1\"}", Some("tools")),
            ("{\"name\": \"a:b\"}", None),
            ("{}", None),
            ("{", None),
        ] {
            fs::write(&manifest, text).unwrap();
            let read = read(&root).ok().map(|plugin| plugin.name);
            assert_eq!(read.as_deref(), name, "{text}");
        }
    }

    #[test]
    fn hooks_servers_and_settings_are_read_wherever_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("kit");
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            ".claude-plugin/plugin.json",
            r#"{"name": "kit", "hooks": ["./more.json", "../out.json"], "mcpServers": {"b": {"command": "y"}}}"#,
        );
        put(
            "hooks/hooks.json",
            r#"{"description": "x", "hooks": {"Stop": []}}"#,
        );
        put("more.json", r#"{"PreToolUse": []}"#);
        put(
            ".mcp.json",
            r#"{"a": {"command": "${CLAUDE_PLUGIN_ROOT}/run"}}"#,
        );
        put(
            ".lsp.json",
            r#"{"go": {"command": "${CLAUDE_PLUGIN_ROOT}/gopls", "extensionToLanguage": {".go": "go"}}}"#,
        );
        put("settings.json", "{\"agent\": \"a\"");
        let plugin = read(&root).unwrap();
        let (parts, warnings) = parts(&plugin);
        let hooks: Vec<String> = parts
            .hooks
            .iter()
            .map(|(_, value)| value.to_string())
            .collect();
        assert_eq!(hooks, [r#"{"Stop":[]}"#, r#"{"PreToolUse":[]}"#]);
        let command = format!("{}/run", root.display());
        assert_eq!(parts.servers["a"]["command"], command);
        assert_eq!(parts.servers["b"]["command"], "y");
        let command = format!("{}/gopls", root.display());
        assert_eq!(parts.language_servers["go"]["command"], command);
        assert!(parts.settings.is_empty());
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }

    #[test]
    fn where_a_plugin_is_installed() {
        let user = tempfile::tempdir().unwrap();
        fs::create_dir(user.path().join("plugins")).unwrap();
        let list = r#"{"version": 2, "plugins": {"a@m": [{"installPath": "/p/a"}], "b@m": {"installPath": "/p/b"}}}"#;
        fs::write(user.path().join("plugins/installed_plugins.json"), list).unwrap();
        assert_eq!(installed(user.path(), "a@m"), Some("/p/a".into()));
        assert_eq!(installed(user.path(), "b@m"), Some("/p/b".into()));
        assert_eq!(installed(user.path(), "c@m"), None);
    }
}
