//! Further endpoints of OpenAI-compatible servers: the list of models and their context windows.

use haft_contract::CancellationToken;
use reqwest::Url;
use serde_json::Value;

use super::{BASE_URL, OpenAi};
use crate::{
    ModelError, ModelInfo,
    http::{self, get_json},
};

impl OpenAi {
    /// Returns the models of the server. If it has only one and its list does not contain the
    /// context window, requests `/props`, an endpoint of llama.cpp.
    pub async fn models(&self, cancel: &CancellationToken) -> Result<Vec<ModelInfo>, ModelError> {
        let list = self.get(self.options.url("models")?, cancel).await?;
        let mut models = ModelInfo::expect_list(&list)?;
        if let [only] = models.as_mut_slice()
            && only.window.is_none()
            && self.options.base() != BASE_URL
        {
            only.window = self.window_of_server(cancel).await;
        }
        Ok(models)
    }

    /// Returns the context window, or `None` if the server does not have this endpoint.
    async fn window_of_server(&self, cancel: &CancellationToken) -> Option<u64> {
        let base = self.options.base().trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        let url = http::join(base, "", "props").ok()?;
        let props = self.get(url, cancel).await.ok()?;
        let places = ["/default_generation_settings/n_ctx", "/n_ctx"];
        let mut numbers = places.iter().filter_map(|at| props.pointer(at)?.as_u64());
        numbers.find(|tokens| *tokens > 0)
    }

    async fn get(&self, url: Url, cancel: &CancellationToken) -> Result<Value, ModelError> {
        let headers = self.options.headers(false, cancel).await?;
        let response = self.http.get(&url, headers, cancel).await?;
        get_json::read(&self.http, response, cancel).await
    }
}
