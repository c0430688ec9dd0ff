//! Searches with the provider's own tool.

use haft_agent::AgentHandle;
use haft_contract::{BoxFuture, CancellationToken, WebQuery, WebSearchBackend, WebSearchResults};
use haft_models::Anthropic;

use crate::model_names::ModelNames;

/// Uses the provider as the search backend.
pub(crate) struct ProviderSearch {
    pub(crate) client: Anthropic,
    /// The model that searches.
    pub(crate) model: String,
    pub(crate) names: ModelNames,
    /// Receives the usage, which counts towards the session.
    pub(crate) control: AgentHandle,
    /// Whether the provider is known to support search. Another server with the same API may not
    /// support it.
    pub(crate) is_known: bool,
}

impl WebSearchBackend for ProviderSearch {
    fn search<'a>(
        &'a self,
        query: &'a WebQuery,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<WebSearchResults, String>> {
        Box::pin(async move {
            let model = self.names.resolve(&self.model).await?;
            let found = self.client.search_web(&model, query, cancel).await;
            let (hits, usage) = found.map_err(|error| error.to_string())?;
            self.control.spend(model, usage);
            Ok(hits)
        })
    }
}
