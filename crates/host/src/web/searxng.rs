//! Searches with a SearXNG instance, through its JSON API.

use std::{fmt::Write, sync::Arc, time::Duration};

use haft_contract::{
    BoxFuture, CancellationToken, HttpMethod, HttpRequest, HttpTransport, WebQuery,
    WebSearchBackend, WebSearchResult, WebSearchResults,
};
use serde_json::Value;
use tokio::time::timeout;

/// The timeout of a search.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_LENGTH: usize = 4 << 20;

pub(super) struct SearxngSearch {
    /// The base URL, without a trailing slash.
    base: String,
    http: Arc<dyn HttpTransport>,
}

impl SearxngSearch {
    /// Creates a backend with the instance at this URL. Any address is allowed, because the user
    /// configured it.
    pub(super) fn new(base: &str, http: Arc<dyn HttpTransport>) -> Self {
        let base = base.trim().trim_end_matches('/');
        let base = base.strip_suffix("/search").unwrap_or(base).to_owned();
        Self { base, http }
    }

    async fn ask(&self, query: &WebQuery) -> Result<WebSearchResults, String> {
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: format!(
                "{}/search?q={}&format=json",
                self.base,
                encoded(&query_text(query))
            ),
            headers: vec![("accept".to_owned(), "application/json".to_owned())],
            body: Vec::new(),
        };
        let response = self.http.open(request).await;
        let mut response = response.map_err(|failure| failure.message)?;
        let bytes = response.body.bytes(MAX_LENGTH).await;
        match response.status {
            200 => {}
            403 => {
                return Err(
                    "the SearXNG instance refuses JSON (403): its settings.yml must list json in search.formats"
                        .to_owned(),
                );
            }
            status => return Err(format!("the SearXNG instance answered {status}")),
        }
        let bytes = bytes.map_err(|why| format!("the response of the SearXNG instance: {why}"))?;
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|_| "the response of the SearXNG instance is not JSON".to_owned())?;
        Ok(hits(&answer, query))
    }
}

impl WebSearchBackend for SearxngSearch {
    fn search<'a>(
        &'a self,
        query: &'a WebQuery,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<WebSearchResults, String>> {
        Box::pin(async move {
            let asked = timeout(TIMEOUT, self.ask(query));
            tokio::select! {
                answered = asked => answered.unwrap_or_else(|_| {
                    Err(format!("the SearXNG instance has not answered within {} s", TIMEOUT.as_secs()))
                }),
                () = cancel.cancelled() => Err("it was interrupted".to_owned()),
            }
        })
    }
}

/// Returns the query text, with hosts in the syntax of most engines.
fn query_text(query: &WebQuery) -> String {
    let mut words = query.words.clone();
    let sites: Vec<String> = query
        .allowed_domains
        .iter()
        .map(|domain| format!("site:{domain}"))
        .collect();
    if !sites.is_empty() {
        let _ = write!(words, " {}", sites.join(" OR "));
    }
    for domain in &query.blocked_domains {
        let _ = write!(words, " -site:{domain}");
    }
    words
}

fn hits(answer: &Value, query: &WebQuery) -> WebSearchResults {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let results = answer["results"].as_array().into_iter().flatten();
    let hits = results.filter_map(|result| {
        let url = result["url"].as_str()?;
        // Not every engine respects the requested hosts.
        is_wanted(url, query).then(|| WebSearchResult {
            title: text(&result["title"]),
            url: url.to_owned(),
            snippet: Some(text(&result["content"])).filter(|snippet| !snippet.is_empty()),
        })
    });
    let hits: Vec<WebSearchResult> = hits.collect();
    let answers = answer["answers"].as_array().into_iter().flatten();
    let answers = answers.filter_map(|one| one.as_str().or_else(|| one["answer"].as_str()));
    WebSearchResults {
        hits,
        text: answers.collect::<Vec<_>>().join("\n"),
        searches: Some(1),
    }
}

fn is_wanted(url: &str, query: &WebQuery) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host
        .split(':')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_of = |domain: &String| {
        let domain = domain.split('/').next().unwrap_or_default();
        let domain = domain.trim_start_matches("*.").to_ascii_lowercase();
        host == domain || host.ends_with(&format!(".{domain}"))
    };
    let allowed = query.allowed_domains.is_empty() || query.allowed_domains.iter().any(is_of);
    matches!(scheme, "http" | "https") && allowed && !query.blocked_domains.iter().any(is_of)
}

fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte as char);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_of_other_hosts_are_left_out() {
        let answer = json!({
            "results": [
                {"url": "https://docs.example.com/a", "title": "A", "content": "about a"},
                {"url": "https://evilexample.com/", "title": "B"},
                {"url": "https://example.com@evil.net/", "title": "C"},
                {"url": "javascript:alert(1)", "title": "D"},
                {"title": "no address"},
            ],
            "answers": ["42", {"answer": "43"}],
        });
        let query = WebQuery {
            words: "a&b".to_owned(),
            allowed_domains: vec!["example.com".to_owned()],
            ..WebQuery::default()
        };
        let found = hits(&answer, &query);
        assert_eq!(found.hits.len(), 1);
        assert_eq!(found.hits[0].snippet.as_deref(), Some("about a"));
        assert_eq!(found.text, "42\n43");
        assert_eq!(query_text(&query), "a&b site:example.com");
        assert_eq!(encoded("a&b ü\r\n"), "a%26b%20%C3%BC%0D%0A");
        let blocked = WebQuery {
            blocked_domains: vec!["example.com".to_owned()],
            ..WebQuery::default()
        };
        assert_eq!(hits(&answer, &blocked).hits.len(), 2);
    }
}
