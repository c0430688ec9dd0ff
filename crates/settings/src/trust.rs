//! Trust: the directories that the user trusts.
//!
//! haft stores trust in its own file: each directory as a real path, with a hash of each item that
//! would run code, so that the user is asked again after a change. The flag that Claude Code stores
//! is respected only for settings that loosen permissions ([`TrustState::allows`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SettingsFlags, SettingsPlaces, files::repository_root, rule_writer};
use crate::{SettingsScope, real_path};

/// The parts of a workspace that are trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrustState {
    /// Settings that loosen permissions, such as allow rules and additional directories.
    pub allows: bool,
    /// Settings that run code: hooks, variables, servers.
    pub runs: bool,
}

/// The file of trusted directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustFile {
    /// By the real path of the directory: the hash of each item that runs code.
    #[serde(default)]
    pub directories: BTreeMap<String, BTreeMap<String, String>>,
    /// By the real path of the directory: real paths of outside files that its memory files may
    /// import.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<String, BTreeSet<String>>,
    /// Hashes of the sentences in `autoMode.hard_deny` that the user has read: haft cannot enforce
    /// them, and the user uses the mode `auto` nevertheless.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub auto_sentences: BTreeSet<String>,
}

impl TrustFile {
    /// Returns the path of the file.
    pub fn path(places: &SettingsPlaces) -> PathBuf {
        places.user.join("haft/trust.json")
    }

    /// Reads the file. If it is missing or damaged, no directory is trusted.
    pub fn read(places: &SettingsPlaces) -> Self {
        fs::read_to_string(Self::path(places))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Trusts this directory with these items, in addition to those trusted before.
    pub fn add(places: &SettingsPlaces, things: &BTreeMap<String, Value>) -> io::Result<PathBuf> {
        let mut file = Self::read(places);
        let directory = directory(places);
        let key = name(&directory);
        file.directories
            .entry(key)
            .or_default()
            .extend(hashes(things));
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other)?;
        rule_writer::replace(&Self::path(places), &text)?;
        places.untrusted().trust(&directory)?;
        Ok(directory)
    }

    /// Allows the memory files of this directory to import these files.
    pub fn add_imports(places: &SettingsPlaces, files: &BTreeSet<PathBuf>) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let mut file = Self::read(places);
        let names = files.iter().map(|path| name(path));
        let key = name(&directory(places));
        file.imports.entry(key).or_default().extend(names);
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other)?;
        rule_writer::replace(&Self::path(places), &text)
    }

    /// Records that the user has read these sentences of `autoMode.hard_deny`.
    pub fn add_auto_sentences(places: &SettingsPlaces, sentences: &[String]) -> io::Result<()> {
        let mut file = Self::read(places);
        file.auto_sentences
            .extend(sentences.iter().map(|sentence| hash(sentence)));
        let text = serde_json::to_string_pretty(&file).map_err(io::Error::other)?;
        rule_writer::replace(&Self::path(places), &text)
    }

    /// Returns whether the user has read this sentence of `autoMode.hard_deny`.
    pub fn has_auto_sentence(&self, sentence: &str) -> bool {
        self.auto_sentences.contains(&hash(sentence))
    }

    /// Returns the files that memory files of this directory may import; paths that are not UTF-8
    /// are never stored.
    pub fn imports(&self, places: &SettingsPlaces) -> BTreeSet<PathBuf> {
        let known = self.imports.get(&name(&directory(places)));
        known.into_iter().flatten().map(PathBuf::from).collect()
    }

    /// Returns the differences to the trusted items; `None` if the directory was never trusted.
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

impl TrustState {
    /// Determines the trust from the stored file and the command line flags.
    pub fn evaluate(
        places: &SettingsPlaces,
        flags: &SettingsFlags,
        things: &BTreeMap<String, Value>,
    ) -> Self {
        let stored = TrustFile::read(places).changes(places, things);
        let unchanged = stored.as_ref().is_some_and(Vec::is_empty);
        let named = flags.sources.as_ref().is_some_and(|sources| {
            sources.contains(&SettingsScope::Project) || sources.contains(&SettingsScope::Local)
        });
        // Another directory with this path may have been trusted.
        if !named && places.untrusted().include(&places.cwd) {
            return Self::default();
        }
        Self {
            allows: stored.is_some() || is_accepted(places),
            runs: unchanged || named,
        }
    }
}

/// Returns the directory that is trusted: the root of the repository, or the working directory
/// outside of one. A directory that a command created is trusted on its own.
pub fn directory(places: &SettingsPlaces) -> PathBuf {
    let cwd = real_path::resolve_links(&places.cwd);
    let root = repository_root(&cwd).filter(|root| *root != real_path::resolve_links(&places.home));
    let created = places.untrusted().outermost(&cwd);
    match (root, created) {
        (Some(root), Some(created)) if !root.starts_with(&created) => created,
        (Some(root), _) => root,
        (None, Some(created)) => created,
        (None, None) => cwd,
    }
}

/// Returns a unique name for a path, even if it is not valid UTF-8.
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

/// Returns whether Claude Code's own trust flag is set, in the home directory or the user's
/// configuration folder.
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
    let hashes = things
        .iter()
        .map(|(name, value)| (name.clone(), hash(&value.to_string())));
    hashes.collect()
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
