//! Plugins: folders of skills, commands and agents that came from elsewhere.

use std::path::Path;

use serde_json::Value;

use crate::{ExtensionPlugin, Warning, reading};

/// A manifest longer than this is none.
const LONGEST: usize = 256 * 1024;

/// The plugin in a folder. It is named by its manifest, else after the folder.
pub fn read(root: &Path) -> Result<ExtensionPlugin, Warning> {
    if !root.is_dir() {
        return Err(Warning::of(root, "it is no folder: the plugin is left out"));
    }
    let manifest = root.join(".claude-plugin/plugin.json");
    let text = reading::read(&manifest, LONGEST)
        .map_err(|error| Warning::of(&manifest, format!("{error}: the plugin is left out")))?;
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
                Warning::of(&manifest, format!("{error}: the plugin is left out")).at(line)
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
        None => Err(Warning::of(
            manifest,
            "the plugin has no `name` of letters, digits, `-`, `_` and `.`: it is left out",
        )),
    }
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
}
