//! Results that were too long to send, as resources.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::{RpcError, message::code, server::ServiceAnswer};

const SCHEME: &str = "haft://results/";
/// The maximum number of results to list, newest first.
const MAX_LISTED: usize = 200;

/// The folder of a session's stored results.
#[derive(Debug, Clone)]
pub struct StoredResults {
    folder: PathBuf,
    /// The folder's path with a trailing slash, as it appears in texts.
    prefix: String,
}

impl StoredResults {
    /// Creates the set of results in this folder, which need not exist yet.
    pub fn new(folder: PathBuf) -> Self {
        let prefix = format!("{}/", folder.display());
        Self { folder, prefix }
    }

    /// Returns a link to a stored result, or `None` for a file elsewhere.
    pub(super) fn link(&self, path: &Path) -> Option<Value> {
        let name = path.file_name()?.to_str()?;
        (path.parent()? == self.folder).then(|| {
            json!({
                "type": "resource_link",
                "uri": format!("{SCHEME}{name}"),
                "name": name,
                "description": "The whole result",
                "mimeType": "text/plain",
            })
        })
    }

    /// Returns the file of a result that a tool stored itself and named in its text.
    pub(super) fn named_in(&self, text: &str) -> Option<PathBuf> {
        // Most results are short, and searching a long text takes time.
        if text.len() < self.prefix.len() {
            return None;
        }
        let rest = &text[text.find(&self.prefix)? + self.prefix.len()..];
        let name = &rest[..rest.find(".txt")? + ".txt".len()];
        let path = self.folder.join(name);
        (is_plain(name) && path.is_file()).then_some(path)
    }

    /// Returns the answer to `resources/list`, newest first.
    pub(super) fn list(&self) -> Value {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, String, u64)> = entries
            .filter_map(|entry| {
                let facts = entry.metadata().ok()?;
                let name = entry.file_name().into_string().ok()?;
                let is_kept = facts.is_file() && is_plain(&name);
                is_kept.then(|| Some((facts.modified().ok()?, name, facts.len())))?
            })
            .collect();
        files.sort_unstable_by(|a, b| b.cmp(a));
        let resources = files.into_iter().take(MAX_LISTED).map(|(_, name, size)| {
            json!({
                "uri": format!("{SCHEME}{name}"),
                "name": name,
                "description": "A result that was too long to send",
                "mimeType": "text/plain",
                "size": size,
            })
        });
        json!({"resources": resources.collect::<Vec<_>>()})
    }

    /// Returns the answer to `resources/read`.
    pub(super) async fn read(&self, uri: &Value) -> ServiceAnswer {
        let Some(uri) = uri.as_str() else {
            return Err(RpcError::invalid_params("`uri` is missing"));
        };
        let gone = || {
            let words = format!("unknown resource {uri}; resources/list returns the resources");
            RpcError::new(code::RESOURCE_NOT_FOUND, words).with_data(json!({"uri": uri}))
        };
        let name = uri.strip_prefix(SCHEME).filter(|name| is_plain(name));
        let path = self.folder.join(name.ok_or_else(gone)?);
        let text = tokio::task::spawn_blocking(move || fs::read_to_string(path)).await;
        let text = text.ok().and_then(Result::ok).ok_or_else(gone)?;
        Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
    }
}

/// Returns whether a name is a plain file name with the store's extension.
fn is_plain(name: &str) -> bool {
    let path = Path::new(name);
    path.file_name() == Some(OsStr::new(name)) && path.extension() == Some(OsStr::new("txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_what_was_kept_is_listed_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("tool-results");
        let kept = StoredResults::new(results.clone());
        assert_eq!(kept.list(), json!({"resources": []}));
        fs::create_dir(&results).unwrap();
        fs::write(results.join("abc.txt"), "whole").unwrap();
        fs::write(results.join("abc.partial"), "half").unwrap();
        fs::write(folder.path().join("secret.txt"), "secret").unwrap();
        let listed = kept.list();
        assert_eq!(listed["resources"][0]["uri"], "haft://results/abc.txt");
        assert_eq!(listed["resources"].as_array().unwrap().len(), 1);
        let read = kept.read(&json!("haft://results/abc.txt")).await.unwrap();
        assert_eq!(read["contents"][0]["text"], "whole");
        for uri in [
            "haft://results/../secret.txt",
            "haft://results/no.txt",
            "haft://results/abc.partial",
            "file:///etc/passwd",
            "haft://results/",
        ] {
            let error = kept.read(&json!(uri)).await.unwrap_err();
            assert_eq!(error.code, code::RESOURCE_NOT_FOUND, "{uri}");
        }
    }
}
