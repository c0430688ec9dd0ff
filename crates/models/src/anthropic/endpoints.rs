//! Further endpoints of the API: counting tokens and listing models.

use haft_contract::CancellationToken;
use serde::Deserialize;
use serde_json::Value;

use super::{Anthropic, body};
use crate::{
    ModelError, ModelInfo, ModelRequest,
    http::{self, get_json},
};

impl Anthropic {
    /// Returns the number of tokens of a request, as the provider counts them.
    pub async fn count_tokens(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<u64, ModelError> {
        #[derive(Deserialize)]
        struct CountResponse {
            input_tokens: u64,
        }
        let url = http::join(self.base_url(), "v1", "messages/count_tokens")?;
        let body = body::counting(request);
        let headers = self.options.headers(&request.model, false, cancel).await?;
        let response = self.http.post(&url, headers, body, cancel).await?;
        let count: CountResponse = get_json::read(&self.http, response, cancel).await?;
        Ok(count.input_tokens)
    }

    /// Returns the models that the key can use, in the provider's order.
    pub async fn models(&self, cancel: &CancellationToken) -> Result<Vec<ModelInfo>, ModelError> {
        let mut url = http::join(self.base_url(), "v1", "models")?;
        url.query_pairs_mut().append_pair("limit", "1000");
        let headers = self.options.headers("", false, cancel).await?;
        let response = self.http.get(&url, headers, cancel).await?;
        let list: Value = get_json::read(&self.http, response, cancel).await?;
        ModelInfo::expect_list(&list)
    }
}
