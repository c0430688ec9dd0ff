//! Files as the user sees them in the editor, including unsaved changes.

use std::{path::Path, sync::Weak, time::Duration};

use haft_contract::{BoxFuture, EditorFiles};
use serde_json::json;
use tokio::time::timeout;

use crate::{sessions::EditorSession, wire::RequestFailure};

/// The timeout for reading a buffer. If the editor does not answer in time, the file on disk is
/// used.
const READING: Duration = Duration::from_millis(500);
/// The timeout for writing a file. The editor may format the file first.
const WRITING: Duration = Duration::from_secs(10);

/// The files of the editor that drives a session.
pub(crate) struct EditorBuffers(pub(crate) Weak<EditorSession>);

impl EditorFiles for EditorBuffers {
    fn text<'a>(&'a self, real: &'a Path) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let session = self.0.upgrade()?;
            // A path that is not UTF-8 cannot be sent.
            let path = real.to_str()?;
            let params = json!({"sessionId": session.id.to_string(), "path": path});
            let asking = session.client.ask("fs/read_text_file", params);
            let mut answer = timeout(READING, asking).await.ok()?.ok()?;
            match answer["content"].take() {
                serde_json::Value::String(text) => Some(text),
                _ => None,
            }
        })
    }

    fn can_write(&self) -> bool {
        let session = self.0.upgrade();
        session.is_some_and(|session| session.capabilities.write_files)
    }

    fn reviews_changes(&self) -> bool {
        self.0.upgrade().is_some_and(|session| session.reviews())
    }

    fn write<'a>(&'a self, real: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let gone = || "the editor has disconnected".to_owned();
            let session = self.0.upgrade().ok_or_else(gone)?;
            let path = real.to_str().ok_or("its path is not UTF-8")?;
            let id = session.id.to_string();
            let params = json!({"sessionId": id, "path": path, "content": text});
            let asking = session.client.ask("fs/write_text_file", params);
            match timeout(WRITING, asking).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(RequestFailure::Refused(why))) => Err(why),
                Ok(Err(RequestFailure::TooLong)) => Err("it is too long to be sent".to_owned()),
                Ok(Err(RequestFailure::Gone)) => Err(gone()),
                Err(_) => Err(format!("no answer within {} s", WRITING.as_secs())),
            }
        })
    }
}
