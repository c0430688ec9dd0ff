//! Web searches by the provider: a separate request that offers only its server tool.
//!
//! The conversation is not sent: the provider's model sees only the search query.

use haft_contract::{CancellationToken, WebQuery, WebSearchResult, WebSearchResults};
use serde_json::{Value, json};

use super::Anthropic;
use crate::{
    ModelError, Usage,
    http::{self, get_json},
};

/// The type of the server tool.
const TOOL: &str = "web_search_20250305";
/// The maximum number of searches in one call.
const MAX_SEARCHES: u32 = 8;
/// The maximum length of the reply. A short summary is enough.
const MAX_TOKENS: u32 = 4096;

impl Anthropic {
    /// Searches the web with the provider's tool and this model. Also returns the tokens that it
    /// used.
    pub async fn search_web(
        &self,
        model: &str,
        query: &WebQuery,
        cancel: &CancellationToken,
    ) -> Result<(WebSearchResults, Usage), ModelError> {
        let url = http::join(self.base_url(), "v1", "messages")?;
        let headers = self.options.headers(model, false, cancel).await?;
        let body = body(model, query).to_string();
        let response = self.http.post(&url, headers, body.into(), cancel).await?;
        let answer: Value = get_json::read(&self.http, response, cancel).await?;
        Ok((hits(&answer)?, usage(&answer["usage"])))
    }
}

fn body(model: &str, query: &WebQuery) -> Value {
    let mut tool = json!({"type": TOOL, "name": "web_search", "max_uses": MAX_SEARCHES});
    if !query.allowed_domains.is_empty() {
        tool["allowed_domains"] = json!(query.allowed_domains);
    }
    if !query.blocked_domains.is_empty() {
        tool["blocked_domains"] = json!(query.blocked_domains);
    }
    let ask = format!(
        "Search the web for: {}\n\nThen say in a few sentences what the results say, with their addresses.",
        query.words
    );
    json!({
        "model": crate::model_listing::split_window(model).0,
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": ask}],
        "tools": [tool],
    })
}

fn hits(answer: &Value) -> Result<WebSearchResults, ModelError> {
    let mut found = WebSearchResults::default();
    let mut failed = None;
    for block in answer["content"].as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => found.text += block["text"].as_str().unwrap_or_default(),
            Some("web_search_tool_result") => match &block["content"] {
                Value::Array(results) => {
                    let hits = results.iter().filter_map(hit);
                    for hit in hits {
                        if !found.hits.iter().any(|known| known.url == hit.url) {
                            found.hits.push(hit);
                        }
                    }
                }
                error => failed = error["error_code"].as_str().or(Some("unknown")),
            },
            _ => {}
        }
    }
    let searches = answer["usage"]["server_tool_use"]["web_search_requests"].as_u64();
    found.searches = searches.and_then(|count| u32::try_from(count).ok());
    match failed {
        Some(code) if found.hits.is_empty() => Err(ModelError::protocol(format!(
            "the provider's search failed ({code})"
        ))),
        _ => Ok(found),
    }
}

fn hit(result: &Value) -> Option<WebSearchResult> {
    Some(WebSearchResult {
        title: result["title"].as_str().unwrap_or_default().to_owned(),
        url: result["url"].as_str()?.to_owned(),
        // The provider's excerpt of a page is encrypted; its age is not.
        snippet: result["page_age"]
            .as_str()
            .map(|age| format!("as of {age}")),
    })
}

fn usage(usage: &Value) -> Usage {
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_with_their_sources() {
        let answer = json!({
            "content": [
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
                    {"type": "web_search_result", "title": "One", "url": "https://one.example/", "encrypted_content": "e", "page_age": "May 2026"},
                    {"type": "web_search_result", "title": "Again", "url": "https://one.example/"},
                    {"type": "web_search_result", "title": "No address"},
                ]},
                {"type": "text", "text": "It says one."},
            ],
            "usage": {"input_tokens": 7, "output_tokens": 3, "server_tool_use": {"web_search_requests": 2}},
        });
        let found = hits(&answer).unwrap();
        assert_eq!(found.hits.len(), 1);
        assert_eq!(found.hits[0].snippet.as_deref(), Some("as of May 2026"));
        assert_eq!(
            (found.text.as_str(), found.searches),
            ("It says one.", Some(2))
        );
        assert_eq!(usage(&answer["usage"]).input, 7);
    }

    #[test]
    fn a_search_that_failed_is_an_error() {
        let error =
            json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"});
        let answer = json!({"content": [{"type": "web_search_tool_result", "content": error}]});
        let error = hits(&answer).unwrap_err().to_string();
        assert!(error.contains("max_uses_exceeded"), "{error}");
    }

    #[test]
    fn domains_are_the_providers_business() {
        let query = WebQuery {
            words: "rust".to_owned(),
            allowed_domains: vec!["docs.rs".to_owned()],
            ..WebQuery::default()
        };
        let body = body("m[1m]", &query);
        assert_eq!(body["model"], "m");
        let tool = json!({"type": TOOL, "name": "web_search", "max_uses": 8, "allowed_domains": ["docs.rs"]});
        assert_eq!(body["tools"], json!([tool]));
    }
}
