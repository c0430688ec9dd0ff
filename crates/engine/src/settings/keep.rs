//! Writing to settings files.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use haft_contract::CallId;

use super::document;

/// Keeps allow rules that a person agreed to in the local settings file.
#[derive(Debug, Clone)]
pub struct LocalRules {
    /// The file.
    pub file: PathBuf,
}

impl LocalRules {
    /// Adds them, keeping everything else in the file as it is.
    pub fn add(&self, rules: &[String]) -> Result<(), String> {
        // The folder is the workspace's: a link in it would say where we write.
        let parts = [self.file.parent(), Some(self.file.as_path())];
        if parts.into_iter().flatten().any(Path::is_symlink) {
            return Err("it is reached through a link".to_owned());
        }
        let text = document::read(&self.file)?.unwrap_or_default();
        let text = document::with_rules(&text, "allow", rules)?;
        replace(&self.file, &text).map_err(|error| error.to_string())
    }
}

/// Puts a text in place of a file, whole or not at all; folders are made as needed.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    // Made anew: nobody can have put a link there.
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
