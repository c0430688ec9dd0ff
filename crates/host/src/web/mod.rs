//! The web services of a session: the page fetcher, the small model that reads pages, and the
//! search backend.

mod provider_search;
mod searxng;
mod small_model;

use std::sync::Arc;

use haft_contract::{SmallModel, WebFetcher, WebSearchBackend, WebSearcher};
use haft_engine::settings::Settings;
use haft_models::{Http, HttpOptions, WebClient};
use haft_tools::WebLimits;

use crate::{Environment, HaftBuilder};

pub(crate) use provider_search::ProviderSearch;
use searxng::SearxngSearch;
pub(crate) use small_model::{PageSummarizer, small_model_name};

/// The setting for the search backend.
const SETTING: &str = "webSearch";
const VARIABLE: &str = "HAFT_SEARCH_URL";

/// The web services that require a model.
#[derive(Default)]
pub(crate) struct WebParts {
    /// The small model that reads pages, if one is configured.
    pub(crate) small: Option<Arc<dyn SmallModel>>,
    /// The search of the provider, if it has one.
    pub(crate) provider: Option<ProviderSearch>,
}

/// Returns the search backend in the user's own settings. Other files are ignored, because the
/// backend sees the queries.
pub(crate) fn setting(settings: &Settings) -> Option<String> {
    let mut layers = settings.layers.iter();
    layers.find_map(|layer| {
        let is_users = !layer.from_workspace && layer.scope.is_users();
        let value = layer.document.value.get(SETTING)?.as_str()?;
        is_users.then(|| value.to_owned())
    })
}

/// Adds the page fetcher and, if a search backend is available, the search to a session.
pub(crate) fn with_web(
    builder: HaftBuilder,
    environment: &Environment,
    setting: Option<&str>,
    parts: WebParts,
) -> Result<HaftBuilder, String> {
    let http = HttpOptions::from_variables(|name| environment.variable(name));
    let client: Arc<dyn WebFetcher> = Arc::new(WebClient::new(http.clone()));
    let limits = WebLimits::from_variables(|name| environment.variable(name));
    let mut builder = builder.service(Arc::new(client)).service(Arc::new(limits));
    if let Some(small) = parts.small {
        builder = builder.service(Arc::new(small));
    }
    let variable = environment.variable(VARIABLE);
    let chosen = SearchChoice::from_settings(variable.as_deref(), setting)?;
    if let Some(searcher) = chosen.searcher(http, parts.provider)? {
        builder = builder.service(Arc::new(searcher));
    }
    Ok(builder)
}

/// The choice of the search backend.
#[derive(Debug, PartialEq, Eq)]
enum SearchChoice {
    Searxng(String),
    Tool(String),
    /// The provider. If `is_named` is set, it is used even if it is not known to support search.
    Provider {
        is_named: bool,
    },
    Unavailable,
}

impl SearchChoice {
    /// Chooses the backend by the variable, the setting, and then the provider, if it supports
    /// search.
    fn from_settings(variable: Option<&str>, setting: Option<&str>) -> Result<Self, String> {
        let is_address = |text: &str| text.starts_with("http://") || text.starts_with("https://");
        let variable = variable.map(str::trim).filter(|text| !text.is_empty());
        if let Some(url) = variable {
            return match is_address(url) {
                true => Ok(Self::Searxng(url.to_owned())),
                false => Err(format!(
                    "{VARIABLE}={url}: expected the address of a SearXNG instance, such as http://localhost:8888"
                )),
            };
        }
        match setting.map(str::trim).unwrap_or_default() {
            "" => Ok(Self::Provider { is_named: false }),
            "provider" => Ok(Self::Provider { is_named: true }),
            "off" => Ok(Self::Unavailable),
            tool if tool.starts_with("mcp__") => Ok(Self::Tool(tool.to_owned())),
            url if is_address(url) => Ok(Self::Searxng(url.to_owned())),
            other => Err(format!(
                "{SETTING} is {other:?}: expected provider, off, mcp__SERVER__TOOL or the address of a SearXNG \
                 instance"
            )),
        }
    }

    fn searcher(
        self,
        http: HttpOptions,
        provider: Option<ProviderSearch>,
    ) -> Result<Option<WebSearcher>, String> {
        let service = |service: Box<dyn WebSearchBackend>| Ok(Some(WebSearcher::Service(service)));
        match self {
            Self::Searxng(url) => service(Box::new(SearxngSearch::new(
                &url,
                Arc::new(Http::new(http)),
            ))),
            Self::Tool(name) => Ok(Some(WebSearcher::Tool(name))),
            Self::Provider { is_named } => {
                match provider.filter(|provider| is_named || provider.is_known) {
                    Some(provider) => service(Box::new(provider)),
                    None => Ok(None),
                }
            }
            Self::Unavailable => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_over_the_setting_and_that_over_the_provider() {
        let searxng = |url: &str| Ok(SearchChoice::Searxng(url.to_owned()));
        let cases = [
            (Some("http://a:1"), Some("off"), searxng("http://a:1")),
            (
                None,
                Some("https://s.example"),
                searxng("https://s.example"),
            ),
            (Some(" "), Some("off"), Ok(SearchChoice::Unavailable)),
            (
                None,
                Some("mcp__s__find"),
                Ok(SearchChoice::Tool("mcp__s__find".to_owned())),
            ),
            (
                None,
                Some("provider"),
                Ok(SearchChoice::Provider { is_named: true }),
            ),
            (None, None, Ok(SearchChoice::Provider { is_named: false })),
        ];
        for (variable, setting, expected) in cases {
            assert_eq!(
                SearchChoice::from_settings(variable, setting),
                expected,
                "{variable:?} {setting:?}"
            );
        }
        for (variable, setting) in [(Some("a.example"), None), (None, Some("google"))] {
            assert!(SearchChoice::from_settings(variable, setting).is_err());
        }
    }
}
