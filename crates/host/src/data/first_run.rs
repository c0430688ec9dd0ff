//! Queries before a session starts: whether the directory is trusted, and which key is used.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use haft_contract::{SecretFile, SecretPath};
use haft_engine::settings::{
    Settings, SettingsFlags, SettingsPlaces, TrustFile, TrustState, trust,
};
use serde_json::Value;

use crate::{
    Environment, ModelProvider, OpenError, ResolvedSettings, SessionConfig,
    extensions::SessionExtensions, key_helper, mcp::project_server_changes, model,
};

/// The items of a directory that need trust, and whether the directory is trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustReport {
    /// The directory that is trusted: the root of the repository, or the directory itself.
    pub directory: PathBuf,
    /// Whether the directory is trusted in its current state, or has nothing that needs trust.
    pub is_trusted: bool,
    /// The changes since it was trusted, each followed by lines with the difference.
    pub changed: Vec<String>,
    /// The items that take effect if it is trusted.
    pub things: Vec<TrustItem>,
}

/// An item that takes effect only in a trusted directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustItem {
    /// Its kind and location, such as `.claude/settings.json hooks`.
    pub name: String,
    /// Its contents; empty if the name is sufficient.
    pub contents: String,
}

/// A place that was searched for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPlace {
    /// The name of a variable, a setting or a file.
    pub name: String,
    /// Whether the place contains a key.
    pub is_set: bool,
}

/// The key that a session would use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReport {
    /// Its origin; `None`: no key was found.
    pub source: Option<String>,
    /// The places that were searched, in this order.
    pub looked_at: Vec<KeyPlace>,
    /// The host of the provider.
    pub base_url: String,
}

/// The item of a directory that a command created.
const CREATED: &str = "memory files and extensions: a command created this directory";

/// Returns the items in a session's directory that need trust.
pub fn trust_report(config: &SessionConfig) -> Result<TrustReport, OpenError> {
    let settings = settings(config);
    let places = &settings.places;
    let running = settings.executable_items();
    let known = trust_changes(config, places, &running);
    let trusted = TrustState::evaluate(places, &config.settings, &running);
    let loosening = settings.loosening_items();
    let mut things: Vec<TrustItem> = Vec::new();
    for (name, value) in &running {
        let contents = serde_json::to_string_pretty(value).unwrap_or_default();
        things.push(TrustItem {
            name: name.clone(),
            contents,
        });
    }
    things.extend(loosening.into_iter().map(|name| TrustItem {
        name,
        contents: String::new(),
    }));
    if places.untrusted().include(&places.cwd) {
        things.push(TrustItem {
            name: CREATED.to_owned(),
            contents: String::new(),
        });
    }
    let is_trusted = things.is_empty() || (trusted.runs && trusted.allows);
    let mut changed = known.unwrap_or_default();
    let imports = outside_imports(config)?;
    for path in &imports {
        let name = format!("memory files import {}", path.display());
        changed.push(format!("{name}, which is outside"));
        things.push(TrustItem {
            name,
            contents: String::new(),
        });
    }
    Ok(TrustReport {
        directory: trust::directory(places),
        is_trusted: is_trusted && imports.is_empty(),
        changed,
        things,
    })
}

/// Returns how these items differ from the trusted ones; `None` if the directory was never trusted.
/// Further lines show the difference, if it is known.
pub fn trust_changes(
    config: &SessionConfig,
    places: &SettingsPlaces,
    things: &BTreeMap<String, Value>,
) -> Option<Vec<String>> {
    let changed = TrustFile::read(places).changes(places, things)?;
    let with_difference = |change: String| {
        let thing = things
            .iter()
            .find(|(name, _)| change == format!("{name} has changed"));
        let server = thing.and_then(|(name, entry)| {
            let name = name.strip_prefix(".mcp.json server ")?;
            Some(project_server_changes(config, name, entry))
        });
        match server.filter(|difference| !difference.is_empty()) {
            Some(difference) => format!("{change}\n{difference}"),
            None => change,
        }
    };
    Some(changed.into_iter().map(with_difference).collect())
}

/// Returns the files outside the project that its memory files import without the user's approval.
pub fn outside_imports(config: &SessionConfig) -> Result<BTreeSet<PathBuf>, OpenError> {
    if config.bare {
        return Ok(BTreeSet::new());
    }
    let permitted = ResolvedSettings::load(config)?;
    Ok(SessionExtensions::load(config, &permitted).left_out_imports())
}

/// Trusts the directory of a session in its current state. Returns the directory.
pub fn accept_trust(config: &SessionConfig) -> Result<PathBuf, OpenError> {
    let settings = settings(config);
    let imports = outside_imports(config)?;
    let added = TrustFile::add_imports(&settings.places, &imports);
    added.map_err(anyhow::Error::from)?;
    let added = TrustFile::add(&settings.places, &settings.executable_items());
    Ok(added.map_err(anyhow::Error::from)?)
}

/// Loads the settings independently of the flags, since later sessions may be started without them.
fn settings(config: &SessionConfig) -> Settings {
    let places = config.environment.settings_places(&config.cwd);
    Settings::load(places, &SettingsFlags::default(), TrustState::default())
}

/// Returns the origin of the key that a session would use, and the places that were searched.
pub fn key_report(config: &SessionConfig) -> Result<KeyReport, OpenError> {
    let permitted = ResolvedSettings::load(config)?;
    let environment = &permitted.environment;
    let (_, source) = model::provider_client(&config.model, &permitted.settings, environment);
    let provider = model::provider(&config.model, environment);
    let mut looked_at = Vec::new();
    let variables: &[&str] = match provider {
        ModelProvider::Anthropic => &["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"],
        ModelProvider::OpenAi => &["OPENAI_API_KEY"],
    };
    looked_at.extend(variables.iter().map(|name| KeyPlace {
        name: (*name).to_owned(),
        is_set: environment.variable(name).is_some(),
    }));
    let helper = key_helper::KeyCommand::from_settings(&permitted.settings, environment);
    let user = permitted.settings.places.user.join("settings.json");
    looked_at.push(KeyPlace {
        name: format!("{} in {}", key_helper::SETTING, user.display()),
        is_set: helper.is_some(),
    });
    looked_at.push(KeyPlace {
        name: key_file(environment).display().to_string(),
        is_set: stored_key(environment).is_some(),
    });
    Ok(KeyReport {
        source: (source != "none").then(|| source.to_owned()),
        looked_at,
        base_url: model::base_url(&config.model, provider, environment),
    })
}

/// Returns the path of the stored key.
fn key_file(environment: &Environment) -> SecretPath {
    let places = environment.settings_places(std::path::Path::new("/"));
    SecretFile::ApiKey.below(&places.user)
}

/// Returns the stored key. A key file that other users can read is ignored.
pub(crate) fn stored_key(environment: &Environment) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let path = key_file(environment);
    let is = fs::symlink_metadata(&path).ok()?;
    let is_ours = is.is_file() && is.mode() & 0o077 == 0;
    let key = fs::read_to_string(&path).ok().filter(|_| is_ours)?;
    let key = key.trim();
    (!key.is_empty()).then(|| key.to_owned())
}

/// Stores a key in a file that only the user can read. Returns the path of the file.
pub fn store_key(environment: &Environment, key: &str) -> Result<PathBuf, OpenError> {
    let key = key.trim();
    let is_plain = !key.is_empty() && key.chars().all(|letter| letter.is_ascii_graphic());
    if !is_plain {
        let problem =
            anyhow::anyhow!("not a valid key: expected printable ASCII characters without spaces");
        return Err(problem.into());
    }
    let path = key_file(environment);
    let write = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(std::path::Path::new("/"));
        fs::create_dir_all(folder)?;
        // A new file: an existing file could be readable by others.
        let partial = folder.join(format!(".key.{}.partial", std::process::id()));
        let _ = fs::remove_file(&partial);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&partial)?;
        file.write_all(format!("{key}\n").as_bytes())?;
        fs::rename(&partial, &path)
    };
    write().map_err(|error| anyhow::anyhow!("{} cannot be written: {error}", path.display()))?;
    Ok(path.into_path_buf())
}

/// Deletes the stored key. Returns the path of the file, if it existed.
pub fn remove_key(environment: &Environment) -> Result<Option<PathBuf>, OpenError> {
    let path = key_file(environment);
    match fs::remove_file(&path) {
        Ok(()) => Ok(Some(path.into_path_buf())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let problem = anyhow::anyhow!("{} cannot be removed: {error}", path.display());
            Err(problem.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rig() -> (tempfile::TempDir, SessionConfig) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir(home.join("p")).unwrap();
        let mut config = SessionConfig::new(home.join("p"));
        config.environment = Environment::from_variables([("HOME", home.to_str().unwrap())]);
        (folder, config)
    }

    #[test]
    fn a_key_is_kept_for_the_user_alone_and_used_last() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let (_folder, config) = rig();
        let report = key_report(&config).unwrap();
        assert_eq!(report.source, None);
        let names: Vec<&str> = report.looked_at.iter().map(|one| &*one.name).collect();
        assert_eq!(names[..2], ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"]);
        assert!(names[2].starts_with("apiKeyHelper in "));
        assert!(store_key(&config.environment, "two words").is_err());
        let path = store_key(&config.environment, " sk-1 \n").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(stored_key(&config.environment), Some("sk-1".to_owned()));
        let report = key_report(&config).unwrap();
        assert_eq!(report.source.as_deref(), Some("haft login"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(stored_key(&config.environment), None);
        assert_eq!(remove_key(&config.environment).unwrap(), Some(path));
        assert_eq!(remove_key(&config.environment).unwrap(), None);
    }

    #[test]
    fn what_would_run_is_shown_and_trusted_as_it_is() {
        let (_folder, config) = rig();
        let report = trust_report(&config).unwrap();
        assert!(report.is_trusted && report.things.is_empty());
        let hooks = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make"}]}]}}"#;
        let file = config.cwd.join(".claude/settings.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, hooks).unwrap();
        let report = trust_report(&config).unwrap();
        assert!(!report.is_trusted);
        assert_eq!(report.things[0].name, ".claude/settings.json hooks");
        assert!(report.things[0].contents.contains("make"));
        assert_eq!(accept_trust(&config).unwrap(), config.cwd);
        assert!(trust_report(&config).unwrap().is_trusted);
        fs::write(&file, hooks.replace("make", "rm")).unwrap();
        let report = trust_report(&config).unwrap();
        assert!(!report.is_trusted);
        assert_eq!(report.changed, [".claude/settings.json hooks has changed"]);
    }
}
