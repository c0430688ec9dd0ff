//! API keys that are fetched on demand because they expire.

use std::sync::Arc;

use haft_contract::{BoxFuture, CancellationToken};

use crate::{ErrorKind, ModelError, http};

/// Fetches the API key of a provider.
pub trait KeyHelper: Send + Sync {
    /// Returns the key. If `is_refused` is set, the provider has rejected the last key, so the
    /// helper must fetch a new one.
    fn key(&self, is_refused: bool) -> BoxFuture<'_, Result<String, String>>;
}

/// Returns the key from the helper, or `None` without a helper.
pub(crate) async fn fetch(
    helper: Option<&Arc<dyn KeyHelper>>,
    is_refused: bool,
    cancel: &CancellationToken,
) -> Result<Option<String>, ModelError> {
    let Some(helper) = helper else {
        return Ok(None);
    };
    let key = http::until_cancelled(cancel, helper.key(is_refused)).await?;
    key.map(Some)
        .map_err(|why| ModelError::new(ErrorKind::Auth, why))
}
