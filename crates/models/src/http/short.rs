//! Answers that are short and read whole: counts and lists.

use haft_contract::CancellationToken;
use reqwest::Response;
use serde::Deserialize;

use super::{Http, answer, body::Body};
use crate::ModelError;

/// Such answers are no longer than this.
const LONGEST: usize = 4 * 1024 * 1024;

/// What an answer says; a refusal is an error.
pub(crate) async fn read<T: for<'de> Deserialize<'de>>(
    http: &Http,
    response: Response,
    cancel: &CancellationToken,
) -> Result<T, ModelError> {
    if !response.status().is_success() {
        return Err(answer::refusal(http, response, cancel).await);
    }
    let stream = Box::pin(response.bytes_stream());
    let mut body = Body::new(stream, http.options(), cancel.clone());
    let bytes = body.all(LONGEST).await?;
    serde_json::from_slice(&bytes).map_err(|_| {
        let text = String::from_utf8_lossy(&bytes);
        ModelError::protocol(answer::described(None, &text))
    })
}
