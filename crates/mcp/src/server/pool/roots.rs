//! The client's root directories.
//!
//! haft asks the client for its roots at the first tool call, and again after the client reports a
//! change. A [`NarrowRoots`] function decides which directories the session uses.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::calls::CallCommand;
use crate::server::service::RequestContext;

/// The time limit for the client's answer; its call waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of roots to use.
const MAX_ROOTS: usize = 256;

/// A function that selects the session's directories from the client's roots.
pub type NarrowRoots = dyn Fn(Vec<PathBuf>) -> Vec<PathBuf> + Send + Sync;

/// The state of a client's roots.
pub(super) struct ClientRoots {
    narrow: Box<NarrowRoots>,
    is_known: AtomicBool,
    asking: Mutex<()>,
}

impl ClientRoots {
    pub(super) fn new(narrow: Box<NarrowRoots>) -> Self {
        Self {
            narrow,
            is_known: AtomicBool::new(false),
            asking: Mutex::new(()),
        }
    }

    /// Marks the roots as changed.
    pub(super) fn mark_changed(&self) {
        self.is_known.store(false, Ordering::Release);
    }

    /// Returns whether the client has roots and was not asked since they changed.
    pub(super) fn has_to_ask(&self, cx: &RequestContext) -> bool {
        let has_roots = || {
            let can = cx.client.capabilities.get("roots");
            can.is_some_and(Value::is_object) && cx.client.revision.has_initialize()
        };
        !self.is_known.load(Ordering::Acquire) && has_roots()
    }

    /// Asks the client, if it has roots and was not asked since they changed.
    pub(super) async fn update_roots(
        &self,
        cx: &RequestContext,
        calls: &mpsc::Sender<CallCommand>,
    ) {
        if !self.has_to_ask(cx) {
            return;
        }
        // Another call may already be waiting for the same answer.
        let _asking = self.asking.lock().await;
        if !self.has_to_ask(cx) {
            return;
        }
        // Set before the request, because the roots may change while the client answers.
        self.is_known.store(true, Ordering::Release);
        let answer = tokio::time::timeout(TIMEOUT, cx.ask("roots/list", json!({}))).await;
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the client did not return its roots");
                return;
            }
            Err(_) => {
                tracing::debug!("the client takes too long to return its roots");
                return;
            }
        };
        let roots = answer["roots"].as_array().into_iter().flatten();
        let roots = roots.filter_map(|root| directory(root["uri"].as_str()?));
        let roots: Vec<PathBuf> = roots.take(MAX_ROOTS).collect();
        let directories = (self.narrow)(roots);
        let (done, applied) = oneshot::channel();
        let command = CallCommand::Directories { directories, done };
        if calls.send(command).await.is_ok() {
            let _ = applied.await; // the session may have ended
        }
    }
}

/// Returns the directory of a `file:` address.
fn directory(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') || path.contains(['?', '#']) {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.bytes();
    while let Some(byte) = left.next() {
        let decoded = match byte {
            b'%' => {
                let digits = [left.next()?, left.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => byte,
        };
        bytes.push(decoded);
    }
    (!bytes.contains(&0)).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_directories() {
        let cases = [
            ("file:///a/b", Some("/a/b")),
            ("file://localhost/a", Some("/a")),
            ("file:///a%20b/%C3%A4", Some("/a b/ä")),
            ("file:///", Some("/")),
            ("file://elsewhere/a", None),
            ("file:///a%0", None),
            ("file:///a%zz", None),
            ("file:///a%00b", None),
            ("file:///a?b", None),
            ("http://localhost/a", None),
            ("/a", None),
            ("", None),
        ];
        for (uri, expected) in cases {
            assert_eq!(directory(uri), expected.map(PathBuf::from), "{uri}");
        }
    }
}
