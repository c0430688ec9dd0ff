//! The policy for servers: which of them settings allow and deny.

use haft_engine::{permissions::SettingsScope, settings::Settings};
use haft_mcp::client::{ServerEntry, ServerKind, SkippedServer};
use serde_json::Value;

/// The server rules in the settings.
#[derive(Debug, Default)]
pub(super) struct ServerPolicy {
    /// `None`: all servers are allowed.
    allowed: Option<Vec<Value>>,
    denied: Vec<Value>,
}

impl ServerPolicy {
    pub(super) fn from_settings(settings: &Settings) -> Self {
        let is_managed = |scope: SettingsScope| scope == SettingsScope::Managed;
        let managed_only = settings.layers.iter().any(|layer| {
            is_managed(layer.scope) && layer.document.value["allowManagedMcpServersOnly"] == true
        });
        let mut policy = Self::default();
        for layer in &settings.layers {
            let value = &layer.document.value;
            if let Some(denied) = value["deniedMcpServers"].as_array() {
                policy.denied.extend(denied.iter().cloned());
            }
            // A workspace may only restrict the allowed servers.
            let counts = !managed_only || is_managed(layer.scope);
            if let (true, Some(allowed)) = (counts, value["allowedMcpServers"].as_array()) {
                let all = policy.allowed.get_or_insert_default();
                if !layer.is_in_workspace() {
                    all.extend(allowed.iter().cloned());
                }
            }
        }
        policy
    }

    /// Returns the reason why a server may not be used.
    pub(super) fn rejection(&self, entry: &ServerEntry) -> Option<SkippedServer> {
        let why = if self
            .denied
            .iter()
            .any(|rule| is_named(rule, entry) || is_reached(rule, entry))
        {
            "the settings deny it (deniedMcpServers)"
        } else if !self.allows(entry) {
            "the settings allow only other servers (allowedMcpServers)"
        } else {
            return None;
        };
        Some(SkippedServer::new(&entry.name, "policy", why))
    }

    fn allows(&self, entry: &ServerEntry) -> bool {
        let Some(allowed) = &self.allowed else {
            return true;
        };
        // If one rule names a command, only commands decide; likewise for URLs.
        let key = match entry.kind {
            ServerKind::Stdio { .. } => "serverCommand",
            ServerKind::Sdk => "",
            _ => "serverUrl",
        };
        let by_way = allowed.iter().any(|rule| rule.get(key).is_some());
        allowed.iter().any(|rule| match by_way {
            true => is_reached(rule, entry),
            false => is_named(rule, entry),
        })
    }
}

fn is_named(rule: &Value, entry: &ServerEntry) -> bool {
    rule["serverName"] == entry.name.as_str()
}

fn is_reached(rule: &Value, entry: &ServerEntry) -> bool {
    match &entry.kind {
        ServerKind::Stdio { command, args, .. } => {
            rule["serverCommand"].as_array().is_some_and(|words| {
                let own = std::iter::once(command).chain(args);
                words
                    .iter()
                    .map(Value::as_str)
                    .eq(own.map(|word| Some(word.as_str())))
            })
        }
        ServerKind::Http(server) | ServerKind::Sse(server) | ServerKind::WebSocket(server) => {
            let pattern = rule["serverUrl"].as_str();
            pattern.is_some_and(|pattern| matches_pattern(pattern, &server.url))
        }
        ServerKind::Sdk => false,
    }
}

/// Returns whether a text matches a pattern, in which `*` matches anything.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            match rest.find(middle) {
                Some(at) => rest = &rest[at + str::len(middle)..],
                None => return false,
            }
        }
    }
    match last {
        None => rest.is_empty(),
        Some(last) => rest.ends_with(last),
    }
}

#[cfg(test)]
mod tests {
    use haft_mcp::client::ServerScope;
    use serde_json::json;

    use super::*;

    fn entry(name: &str, config: Value) -> ServerEntry {
        ServerEntry::read(name, &config, ServerScope::User).unwrap()
    }

    #[test]
    fn deny_wins_and_one_rule_about_commands_or_addresses_makes_them_decide() {
        let program = entry("a", json!({"command": "npx", "args": ["-y", "x"]}));
        let address = entry(
            "b",
            json!({"type": "http", "url": "https://mcp.example.com/v1"}),
        );
        let policy = |allowed: Value, denied: Value| ServerPolicy {
            allowed: allowed.as_array().cloned(),
            denied: denied.as_array().cloned().unwrap_or_default(),
        };
        let by_command = json!([{"serverCommand": ["npx", "-y", "x"]}, {"serverName": "b"}]);
        let cases = [
            // (allowed, denied, a, b)
            (json!(null), json!([]), true, true),
            (json!([]), json!([]), false, false),
            (json!([{"serverName": "a"}]), json!([]), true, false),
            (
                json!([{"serverName": "a"}]),
                json!([{"serverName": "a"}]),
                false,
                false,
            ),
            (by_command, json!([]), true, true),
            (
                json!([{"serverCommand": ["npx"]}, {"serverName": "a"}]),
                json!([]),
                false,
                false,
            ),
            (
                json!([{"serverUrl": "https://*.example.com/*"}]),
                json!([]),
                false,
                true,
            ),
            (
                json!(null),
                json!([{"serverUrl": "https://mcp.example.com*"}]),
                true,
                false,
            ),
            (
                json!(null),
                json!([{"serverCommand": ["npx", "-y", "x"]}]),
                false,
                true,
            ),
        ];
        for (allowed, denied, a, b) in cases {
            let policy = policy(allowed.clone(), denied.clone());
            let got = (
                policy.rejection(&program).is_none(),
                policy.rejection(&address).is_none(),
            );
            assert_eq!(got, (a, b), "{allowed} {denied}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        let cases = [
            ("https://a/*", "https://a/b", true),
            ("https://a/*", "https://b/b", false),
            ("*", "x", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXYc", false),
            ("a", "ab", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }
}
