//! The user's secrets that are typed into pages of certain hosts and never shown.
//!
//! A model writes `{{NAME}}`. The value is requested when it is typed and goes only to the page. If
//! a page, an error or a log repeats the value, `{{NAME}}` is shown instead. This does not protect
//! from the page itself, which can send the value to anywhere that its host permits: secrets are
//! for hosts that the user trusts.

use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::BASE64;
use haft_contract::{BoxFuture, ToolError};
use haft_sandbox::network::HostPattern;

use crate::web::PageUrl;

/// The minimum length of a value; shorter ones would match ordinary text.
const MIN_LENGTH: usize = 4;

/// Provides the values of secrets. Called each time that a secret is typed.
pub trait SecretSource: Send + Sync {
    /// Returns the value. The error is the reason why the value is not available.
    fn value<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// The secrets that may be typed into pages. This is a service; without it, secrets are disabled.
pub struct PageSecrets {
    list: Vec<PageSecret>,
    source: Arc<dyn SecretSource>,
    /// The names and values of secrets that were typed in this session.
    typed: Mutex<Vec<(String, String)>>,
}

/// A secret and the hosts for which it may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSecret {
    /// Its name.
    pub name: String,
    /// Host patterns: `host` or `*.host`, each with a `:port` or for all ports.
    pub hosts: Vec<String>,
}

impl PageSecrets {
    /// Creates the service from a list of secrets; the source provides their values.
    #[must_use]
    pub fn new(list: Vec<PageSecret>, source: Arc<dyn SecretSource>) -> Self {
        Self {
            list,
            source,
            typed: Mutex::default(),
        }
    }

    /// Returns the secrets that a text names, without duplicates.
    pub(super) fn named_in(&self, text: &str) -> Vec<&PageSecret> {
        let is_named = |secret: &&PageSecret| text.contains(&written(&secret.name));
        self.list.iter().filter(is_named).collect()
    }

    /// Fills secrets into a text for a field that documents at these addresses can read.
    pub(super) async fn fill_in(
        &self,
        text: &str,
        addresses: &[String],
    ) -> Result<String, ToolError> {
        let mut filled = Vec::new();
        for secret in self.named_in(text) {
            let name = &secret.name;
            if let Some(foreign) = addresses.iter().find(|address| !secret.is_for(address)) {
                return Err(ToolError::Refused(format!(
                    "{{{{{name}}}}} is typed only into pages of {}, not of {foreign}.",
                    secret.hosts.join(", ")
                )));
            }
            let value = self.source.value(name).await.map_err(ToolError::Failed)?;
            if value.len() < MIN_LENGTH {
                return Err(ToolError::Failed(format!(
                    "the output of the command of browser.secrets.{name} is too short to be hidden as a secret"
                )));
            }
            filled.push((name.clone(), value));
        }
        let mut text = text.to_owned();
        for (name, value) in &filled {
            text = text.replace(&written(name), value);
        }
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        for one in filled {
            if !typed.contains(&one) {
                typed.push(one);
            }
        }
        // If one value contains another, the longer one is replaced first.
        typed.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Ok(text)
    }

    /// Replaces the values of secrets in a text, in all usual spellings.
    pub(super) fn masked(&self, text: &str) -> String {
        let typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = text.to_owned();
        for (name, value) in typed.iter() {
            for spelling in spellings(value) {
                if text.contains(&spelling) {
                    text = text.replace(&spelling, &written(name));
                }
            }
        }
        text
    }
}

impl PageSecret {
    /// Returns whether this is a valid host pattern. A pattern for all hosts is not accepted.
    #[must_use]
    pub fn is_host(text: &str) -> bool {
        !text.starts_with("*:") && text != "*" && HostPattern::parse(text).is_ok()
    }

    fn is_for(&self, address: &str) -> bool {
        let Ok(address) = PageUrl::read(address) else {
            return false;
        };
        self.hosts.iter().any(|host| {
            HostPattern::parse(host)
                .is_ok_and(|pattern| pattern.matches(&address.host, address.port))
        })
    }
}

fn written(name: &str) -> String {
    format!("{{{{{name}}}}}")
}

/// Returns the spellings of a value: unchanged, in URLs and forms, in JSON, in HTML, in base64.
fn spellings(value: &str) -> Vec<String> {
    let url: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.trim_matches('"').to_owned();
    let html = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;");
    let mut all = vec![
        value.to_owned(),
        url.replace('+', "%20"),
        url,
        json,
        html,
        value.replace('"', "\\\""),
        value.replace('<', "&lt;"),
        BASE64.encode(value.as_bytes()),
    ];
    // Text in one line has no repeated spaces.
    all.push(value.split_whitespace().collect::<Vec<_>>().join(" "));
    all.retain(|spelling| spelling.len() >= MIN_LENGTH);
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl SecretSource for Fixed {
        fn value<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, String>> {
            Box::pin(async move {
                match name {
                    "PIN" => Ok("12".to_owned()),
                    _ => Ok("p&ss \"w<rd".to_owned()),
                }
            })
        }
    }

    fn secrets() -> PageSecrets {
        let one = |name: &str| PageSecret {
            name: name.to_owned(),
            hosts: vec!["app.example".to_owned(), "*.dev.example:8443".to_owned()],
        };
        PageSecrets::new(vec![one("PASSWORD"), one("PIN")], Arc::new(Fixed))
    }

    #[tokio::test]
    async fn a_secret_is_typed_on_its_hosts_only() {
        let secrets = secrets();
        let at = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        for good in [
            at(&["https://app.example/login"]),
            at(&["https://a.dev.example:8443/", "https://app.example/"]),
        ] {
            let filled = secrets.fill_in("x {{PASSWORD}}", &good).await;
            assert_eq!(filled.unwrap(), "x p&ss \"w<rd");
        }
        for wrong in [
            at(&["https://evil.example/app.example"]),
            at(&["https://app.example.evil.example/"]),
            at(&["https://app.example/", "https://evil.example/"]),
            at(&["https://a.dev.example/"]),
            at(&["about:blank"]),
            at(&["https://user@app.example/"]),
        ] {
            let refused = secrets.fill_in("{{PASSWORD}}", &wrong).await.unwrap_err();
            assert!(refused.to_string().contains("typed only into"), "{refused}");
        }
        let other = at(&["https://evil.example/"]);
        let plain = secrets.fill_in("{{ name }} {{OTHER}}", &other).await;
        assert_eq!(plain.unwrap(), "{{ name }} {{OTHER}}");
        let short = secrets
            .fill_in("{{PIN}}", &at(&["https://app.example/"]))
            .await;
        assert!(short.unwrap_err().to_string().contains("too short"));
    }

    #[tokio::test]
    async fn what_was_typed_is_masked_in_every_usual_spelling() {
        let secrets = secrets();
        let said =
            "value=\"p&ss \\\"w<rd\" q=p%26ss+%22w%3Crd p%26ss%20%22w%3Crd cCZzcyAidzxyZA== &lt;";
        assert_eq!(secrets.masked(said), said, "nothing was typed yet");
        let page = ["https://app.example/".to_owned()];
        secrets.fill_in("{{PASSWORD}}", &page).await.unwrap();
        assert_eq!(
            secrets.masked(said),
            "value=\"{{PASSWORD}}\" q={{PASSWORD}} {{PASSWORD}} {{PASSWORD}} &lt;"
        );
    }
}
