//! Reads short responses as a whole, such as counts and lists.

use haft_contract::CancellationToken;
use reqwest::Response;
use serde::Deserialize;

use super::{Http, body::ResponseBody, error_response};
use crate::ModelError;

/// The maximum length of a short response in bytes.
const MAX_LENGTH: usize = 4 * 1024 * 1024;

/// Parses the response. An error status becomes an error.
pub(crate) async fn read<T: for<'de> Deserialize<'de>>(
    http: &Http,
    response: Response,
    cancel: &CancellationToken,
) -> Result<T, ModelError> {
    if !response.status().is_success() {
        return Err(error_response::refusal(http, response, cancel).await);
    }
    let stream = Box::pin(response.bytes_stream());
    let mut body = ResponseBody::new(stream, http.options(), cancel.clone());
    let bytes = body.all(MAX_LENGTH).await?;
    serde_json::from_slice(&bytes).map_err(|_| {
        let text = String::from_utf8_lossy(&bytes);
        ModelError::protocol(error_response::describe_body(None, &text))
    })
}
