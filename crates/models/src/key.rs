//! Keys that are fetched when they are needed, because they do not last.

use std::sync::Arc;

use haft_contract::{BoxFuture, CancellationToken};

use crate::{ErrorKind, ModelError, http};

/// Fetches the key of a provider.
pub trait KeyHelper: Send + Sync {
    /// The key. `is_refused`: the one that was given last was refused, so it must be a new one.
    fn key(&self, is_refused: bool) -> BoxFuture<'_, Result<String, String>>;
}

/// The key of a helper, where there is one.
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
