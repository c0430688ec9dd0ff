//! Questions of a guard about files that it cannot store for undo.
//!
//! Before the first change of a file, the guard stores the old state. If a limit or an error prevents
//! that, the guard holds the call and asks our process. The other calls of the command continue.

use std::{
    fmt,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// A file that a guard cannot store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnstoredFile {
    /// The path.
    pub path: PathBuf,
    /// The size that a hard link would count, in bytes, if the file loses a name and a link is
    /// possible.
    pub link_bytes: Option<u64>,
    /// The size of a copy in bytes, without holes.
    pub copy_bytes: u64,
    /// The error; `None` if only limits prevent it.
    pub error: Option<String>,
}

/// The answer about a file that a guard cannot store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StorageAnswer {
    /// The command may store these bytes in addition, so the guard tries again.
    Lease(StorageLease),
    /// The guard stores a copy of the file, regardless of the limits.
    Copy,
    /// The call is carried out although undo does not cover the file; the text is the reason.
    Skip(String),
    /// The call fails.
    Refuse,
}

/// The bytes that a command may store for undo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageLease {
    /// The bytes of copies.
    pub copy_bytes: u64,
    /// The sizes of removed files that are stored by a hard link.
    pub pin_bytes: u64,
}

/// The future of a [`StorageAnswer`].
pub type StorageFuture = Pin<Box<dyn Future<Output = StorageAnswer> + Send>>;

/// Decides about files that a guard cannot store.
pub trait StoragePolicy: fmt::Debug + Send + Sync {
    /// Returns the answer. The call of the command waits for it, so it may ask the user.
    fn decide(self: Arc<Self>, file: UnstoredFile) -> StorageFuture;

    /// Called when storing a file of this size takes long.
    fn on_slow_copy(&self, path: &Path, bytes: u64);
}
