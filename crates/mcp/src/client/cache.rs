//! Cached lists of tools from earlier sessions, so that tools are known before their server is
//! connected.
//!
//! A list is stored under a hash of the whole entry: a different command or address has a different
//! list.

use std::{
    fs::{self, DirBuilder},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ServerEntry;

/// The maximum size in bytes of a cache file; longer files are ignored.
const MAX_LENGTH: u64 = 32 * 1024 * 1024;

/// The cached tool list of a server, with the revision of the protocol that the server used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CachedToolList {
    pub(super) revision: String,
    pub(super) tools: Vec<Value>,
}

pub(super) fn read(folder: &Path, entry: &ServerEntry) -> Option<CachedToolList> {
    let path = path(folder, entry);
    let length = fs::metadata(&path).ok()?.len();
    let text = (length <= MAX_LENGTH).then(|| fs::read(&path).ok())??;
    serde_json::from_slice(&text).ok()
}

/// Stores a list. If that fails, the next session starts without it.
pub(super) fn write(folder: &Path, entry: &ServerEntry, kept: &CachedToolList) {
    if read(folder, entry).as_ref() == Some(kept) {
        return;
    }
    let written = || -> std::io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let path = path(folder, entry);
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(&serde_json::to_vec(kept)?)?;
        fs::rename(new, path)
    };
    if let Err(error) = written() {
        tracing::debug!(%error, server = entry.name, "its list of tools cannot be cached");
    }
}

fn path(folder: &Path, entry: &ServerEntry) -> PathBuf {
    let written = format!("{}\0{}\0{}", entry.name, entry.scope, entry.config);
    let hash = blake3::hash(written.as_bytes()).to_hex();
    folder.join(format!("{}.json", &hash[..32]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::ServerScope;

    #[test]
    fn a_list_is_kept_for_the_very_same_entry() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("lists");
        let entry = |command: &str| {
            ServerEntry::read("s", &json!({"command": command}), ServerScope::User).unwrap()
        };
        let kept = CachedToolList {
            revision: "2025-11-25".to_owned(),
            tools: vec![json!({"name": "t"})],
        };
        assert_eq!(read(&folder, &entry("a")), None);
        write(&folder, &entry("a"), &kept);
        assert_eq!(read(&folder, &entry("a")), Some(kept));
        assert_eq!(read(&folder, &entry("b")), None);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}
