//! What else the API answers: how long a request is, and which models there are.

use haft_contract::CancellationToken;
use reqwest::Response;
use serde::{Deserialize, Serialize};

use super::{Anthropic, body};
use crate::{
    ModelError, ModelRequest,
    http::{self, answer, body::Body},
};

/// Such answers are short.
const LONGEST: usize = 4 * 1024 * 1024;

/// A model of the provider's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The name to ask it by.
    pub id: String,
    /// The name people know.
    #[serde(default)]
    pub display_name: String,
}

impl Anthropic {
    /// How many tokens a request has, by the provider's own count.
    pub async fn count_tokens(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<u64, ModelError> {
        #[derive(Deserialize)]
        struct Count {
            input_tokens: u64,
        }
        let url = http::join(self.base_url(), "v1", "messages/count_tokens")?;
        let body = body::counting(request);
        let headers = self.options.headers()?;
        let response = self.http.post(&url, headers, body, cancel).await?;
        let count: Count = self.whole(response, cancel).await?;
        Ok(count.input_tokens)
    }

    /// The models this key may ask, as the provider lists them first.
    pub async fn models(&self, cancel: &CancellationToken) -> Result<Vec<ModelInfo>, ModelError> {
        #[derive(Deserialize)]
        struct List {
            data: Vec<ModelInfo>,
        }
        let mut url = http::join(self.base_url(), "v1", "models")?;
        url.query_pairs_mut().append_pair("limit", "1000");
        let headers = self.options.headers()?;
        let response = self.http.get(&url, headers, cancel).await?;
        let list: List = self.whole(response, cancel).await?;
        Ok(list.data)
    }

    async fn whole<T: for<'de> Deserialize<'de>>(
        &self,
        response: Response,
        cancel: &CancellationToken,
    ) -> Result<T, ModelError> {
        if !response.status().is_success() {
            return Err(answer::refusal(&self.http, response, cancel).await);
        }
        let stream = Box::pin(response.bytes_stream());
        let mut body = Body::new(stream, self.http.options(), cancel.clone());
        let bytes = body.all(LONGEST).await?;
        serde_json::from_slice(&bytes).map_err(|_| {
            let text = String::from_utf8_lossy(&bytes);
            ModelError::protocol(answer::described(None, &text))
        })
    }
}
