//! Which directories a person trusts.
//!
//! Kept in a file of our own: the directory as a real path, and a hash of each thing that would run,
//! so that a change is asked about again. The boolean of the common convention counts for allow
//! rules only.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Flags, Places, files::repository_root};
use crate::{permissions::Scope, resolve};

/// What of a workspace counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trust {
    /// Its allow rules and further directories.
    pub allows: bool,
    /// What runs code: hooks, variables, servers.
    pub runs: bool,
}

/// The directories that are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustFile {
    /// By the real path of the directory: a hash of each thing that runs.
    #[serde(default)]
    pub directories: BTreeMap<String, BTreeMap<String, String>>,
}

impl TrustFile {
    /// Where it is.
    pub fn path(places: &Places) -> PathBuf {
        places.user.join("haft/trust.json")
    }

    /// Reads it; a missing or damaged one trusts nothing.
    pub fn read(places: &Places) -> Self {
        fs::read_to_string(Self::path(places))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Trusts this directory with these things.
    pub fn add(places: &Places, things: &BTreeMap<String, Value>) -> io::Result<PathBuf> {
        let mut file = Self::read(places);
        let directory = directory(places);
        let key = directory.to_string_lossy().into_owned();
        file.directories.insert(key, hashes(things));
        let path = Self::path(places);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder)?;
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other)?;
        let partial = path.with_extension("json.partial");
        fs::write(&partial, text)?;
        fs::rename(&partial, &path)?;
        Ok(directory)
    }

    /// What differs from what was trusted; `None` if the directory never was.
    pub fn changes(
        &self,
        places: &Places,
        things: &BTreeMap<String, Value>,
    ) -> Option<Vec<String>> {
        let key = directory(places).to_string_lossy().into_owned();
        let known = self.directories.get(&key)?;
        let now = hashes(things);
        let mut changed = Vec::new();
        for (name, hash) in &now {
            match known.get(name) {
                None => changed.push(format!("{name} is new")),
                Some(old) if old != hash => changed.push(format!("{name} has changed")),
                Some(_) => {}
            }
        }
        Some(changed)
    }
}

impl Trust {
    /// What counts, by what is stored and what the flags name.
    pub fn of(places: &Places, flags: &Flags, things: &BTreeMap<String, Value>) -> Self {
        let stored = TrustFile::read(places).changes(places, things);
        let unchanged = stored.as_ref().is_some_and(Vec::is_empty);
        let named = flags.sources.as_ref().is_some_and(|sources| {
            sources.contains(&Scope::Project) || sources.contains(&Scope::Local)
        });
        Self {
            allows: stored.is_some() || is_accepted(places),
            runs: unchanged || named,
        }
    }
}

/// The directory that is trusted: the root of the repository, or this one outside of any.
pub fn directory(places: &Places) -> PathBuf {
    let cwd = resolve::real(&places.cwd);
    repository_root(&cwd)
        .filter(|root| *root != resolve::real(&places.home))
        .unwrap_or(cwd)
}

/// The boolean of the common convention.
fn is_accepted(places: &Places) -> bool {
    let file = places.home.join(".claude.json");
    let Ok(text) = fs::read_to_string(file) else {
        return false;
    };
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        return false;
    };
    let root = directory(places);
    let key = root.to_string_lossy();
    value["projects"][&*key]["hasTrustDialogAccepted"] == true
}

fn hashes(things: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let hash = |value: &Value| {
        blake3::hash(value.to_string().as_bytes())
            .to_hex()
            .to_string()
    };
    things
        .iter()
        .map(|(name, value)| (name.clone(), hash(value)))
        .collect()
}

/// Keeps allow rules that a person agreed to in the local settings file.
#[derive(Debug, Clone)]
pub struct LocalRules {
    /// The file.
    pub file: PathBuf,
}

impl LocalRules {
    /// Adds them, keeping everything else in the file as it is.
    pub fn add(&self, rules: &[String]) -> Result<(), String> {
        let text = super::document::read(&self.file)?.unwrap_or_default();
        let text = super::document::with_rules(&text, "allow", rules)?;
        let write = |path: &Path| -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let partial = path.with_extension("json.partial");
            fs::write(&partial, &text)?;
            fs::rename(&partial, path)
        };
        write(&self.file).map_err(|error| error.to_string())
    }
}
