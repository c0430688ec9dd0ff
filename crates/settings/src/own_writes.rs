//! Local settings that haft itself wrote.
//!
//! `.claude/settings.local.json` is in the workspace, where any program that runs there may have
//! created it. Loosening settings in it apply without trust only if the file is, byte for byte,
//! what haft wrote last. To verify this, haft stores a hash in the user's own folder, next to the
//! trusted directories. If the file had other content when a rule was saved, only the rule itself
//! is remembered: saving it does not approve the rest of the file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::{
    SettingsDocument, SettingsPlaces, document, files::LOCAL, rule_lists, rule_writer, trust,
};
use crate::real_path;

/// The number of attempts to lock the record while another session holds it; `RETRY_PAUSE` is
/// the time between two attempts.
const TRIES: u32 = 100;
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// The record of what haft wrote into one local settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnWrites {
    /// A hash of the whole text, if haft wrote all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Allow rules that the user approved and haft saved.
    #[serde(default)]
    rules: BTreeSet<String>,
}

impl OwnWrites {
    /// Returns whether haft wrote exactly this text.
    pub(super) fn is_all_of(&self, text: &str) -> bool {
        self.content.as_deref() == Some(&*hash(text))
    }

    /// Returns the rules that the user approved.
    pub(super) fn into_rules(self) -> BTreeSet<String> {
        self.rules
    }
}

/// The record of what haft wrote, by the real path of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnWritesFile {
    #[serde(default)]
    files: BTreeMap<String, OwnWrites>,
}

impl OwnWritesFile {
    /// Returns the path of the record: in the user's own folder, where no confined command can
    /// write.
    pub fn path(places: &SettingsPlaces) -> PathBuf {
        places.user.join("haft/written.json")
    }

    /// Reads the record; if it is missing or damaged, haft wrote nothing.
    pub(super) fn read(places: &SettingsPlaces) -> Self {
        fs::read_to_string(Self::path(places))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Returns what haft wrote into the local settings of this directory. A link to another
    /// directory's file is not followed, so the rules of that file do not apply here.
    pub(super) fn for_directory(&self, directory: &Path) -> OwnWrites {
        let known = self.files.get(&key(directory));
        known.cloned().unwrap_or_default()
    }

    fn write(&self, places: &SettingsPlaces) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        rule_writer::replace(&Self::path(places), &text)
    }
}

/// Changes a directory's local settings and records which part haft wrote. `change` computes the
/// new text from the old one; `agreed` are the allow rules in it that the user has just approved.
pub(super) fn change_local(
    places: &SettingsPlaces,
    directory: &Path,
    agreed: &[String],
    change: impl FnOnce(&str) -> Result<String, String>,
) -> Result<(), String> {
    let file = directory.join(LOCAL);
    // The folder belongs to the workspace: a link in it would decide where we write.
    if is_linked(directory) {
        return Err("it is reached through a link".to_owned());
    }
    // If two sessions save concurrently, both changes must be recorded.
    let _lock = lock(places).map_err(|error| error.to_string())?;
    let old = document::read(&file)?.unwrap_or_default();
    let new = change(&old)?;
    let before = OwnWritesFile::read(places);
    let known = before.for_directory(directory);
    let ours = is_blank(&old) || known.is_all_of(&old);
    let standing = rule_lists::allow_rules(&new);
    let mut rules = known.into_rules();
    rules.extend(agreed.iter().map(|rule| rule.trim().to_owned()));
    rules.retain(|rule| standing.contains(rule));
    let mut after = before.clone();
    after.files.insert(
        key(directory),
        OwnWrites {
            content: ours.then(|| hash(&new)),
            rules,
        },
    );
    // The record is written first: if haft is killed in between, the file gets less trust, not
    // more.
    let unknown = |error: io::Error| format!("it cannot be remembered that haft wrote it: {error}");
    after.write(places).map_err(unknown)?;
    rule_writer::replace(&file, &new).map_err(|error| {
        // The file was not written, so the previous record is still correct.
        let _ = before.write(places);
        error.to_string()
    })
}

/// Returns whether the local settings of a directory are reached through a link.
pub(super) fn is_linked(directory: &Path) -> bool {
    let file = directory.join(LOCAL);
    let parts = [file.parent(), Some(file.as_path())];
    parts.into_iter().flatten().any(Path::is_symlink)
}

/// Locks the record. Any process that can read the file can lock it too, so the wait is limited.
fn lock(places: &SettingsPlaces) -> io::Result<File> {
    let path = OwnWritesFile::path(places).with_extension("lock");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    for _ in 0..TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(RETRY_PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "another process holds the list of what haft wrote",
    ))
}

/// Returns whether a text has no settings, so that nothing in it has another origin.
fn is_blank(text: &str) -> bool {
    SettingsDocument::parse(text)
        .is_ok_and(|document| document.value.as_object().is_some_and(|map| map.is_empty()))
}

fn key(directory: &Path) -> String {
    trust::name(&real_path::resolve_links(directory).join(LOCAL))
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
