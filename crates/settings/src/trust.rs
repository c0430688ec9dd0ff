//! Which directories a person trusts.
//!
//! Kept in a file of our own: the directory as a real path, and a hash of each thing that would run,
//! so that a change is asked about again. The boolean of the common convention counts for allow
//! rules only.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Flags, SettingsPlaces, files::repository_root, keep};
use crate::{Scope, resolve};

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
    /// By the real path of the directory: files outside of it that its memory files may import, by their real
    /// paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<String, BTreeSet<String>>,
}

impl TrustFile {
    /// Where it is.
    pub fn path(places: &SettingsPlaces) -> PathBuf {
        places.user.join("haft/trust.json")
    }

    /// Reads it; a missing or damaged one trusts nothing.
    pub fn read(places: &SettingsPlaces) -> Self {
        fs::read_to_string(Self::path(places))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Trusts this directory with these things, beside those it was trusted with before.
    pub fn add(places: &SettingsPlaces, things: &BTreeMap<String, Value>) -> io::Result<PathBuf> {
        let mut file = Self::read(places);
        let directory = directory(places);
        let key = name(&directory);
        file.directories
            .entry(key)
            .or_default()
            .extend(hashes(things));
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other)?;
        keep::replace(&Self::path(places), &text)?;
        Ok(directory)
    }

    /// Memory files of this directory may import these.
    pub fn add_imports(places: &SettingsPlaces, files: &BTreeSet<PathBuf>) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let mut file = Self::read(places);
        let names = files.iter().map(|path| name(path));
        let key = name(&directory(places));
        file.imports.entry(key).or_default().extend(names);
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other)?;
        keep::replace(&Self::path(places), &text)
    }

    /// The files that memory files of this directory may import; those whose names are no text are not kept.
    pub fn imports(&self, places: &SettingsPlaces) -> BTreeSet<PathBuf> {
        let known = self.imports.get(&name(&directory(places)));
        known.into_iter().flatten().map(PathBuf::from).collect()
    }

    /// What differs from what was trusted; `None` if the directory never was.
    pub fn changes(
        &self,
        places: &SettingsPlaces,
        things: &BTreeMap<String, Value>,
    ) -> Option<Vec<String>> {
        let key = name(&directory(places));
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
    pub fn of(places: &SettingsPlaces, flags: &Flags, things: &BTreeMap<String, Value>) -> Self {
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
pub fn directory(places: &SettingsPlaces) -> PathBuf {
    let cwd = resolve::real(&places.cwd);
    repository_root(&cwd)
        .filter(|root| *root != resolve::real(&places.home))
        .unwrap_or(cwd)
}

/// A path as a name that no other path has, whatever its bytes are.
pub(super) fn name(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => path
            .as_os_str()
            .as_encoded_bytes()
            .escape_ascii()
            .to_string(),
    }
}

/// The boolean of the common convention, kept in the home directory or in what stands in for it.
fn is_accepted(places: &SettingsPlaces) -> bool {
    let root = directory(places);
    let Some(key) = root.to_str() else {
        return false;
    };
    [&places.home, &places.user].into_iter().any(|folder| {
        let text = fs::read_to_string(folder.join(".claude.json")).unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        value["projects"][key]["hasTrustDialogAccepted"] == true
    })
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
