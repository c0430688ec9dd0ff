//! Writing to settings files.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use haft_contract::CallId;

use super::{
    SettingsPlaces, document,
    files::{LOCAL, local_root},
    written,
};

/// Keeps allow rules that a person agreed to in the local settings file.
#[derive(Debug, Clone)]
pub struct LocalRules {
    /// Where settings are.
    pub places: SettingsPlaces,
}

impl LocalRules {
    /// The file.
    pub fn file(&self) -> PathBuf {
        local_root(&self.places).join(LOCAL)
    }

    /// Adds them, keeping everything else in the file as it is. From now on they count, whatever else
    /// the file holds and wherever that came from.
    pub fn add(&self, rules: &[String]) -> Result<(), String> {
        let directory = local_root(&self.places);
        written::change_local(&self.places, &directory, rules, |old| {
            document::with_rules(old, "allow", rules)
        })
    }
}

/// Puts a text in place of a file, whole or not at all; folders are made as needed.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    // Made new: no one can have put a link there.
    let partial = folder.join(format!(".{}.partial", CallId::new()));
    let write = || {
        let mut file = File::create_new(&partial)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        fs::rename(&partial, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&partial);
    })
}
