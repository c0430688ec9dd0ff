//! Which servers there are to be: `--mcp-config`, and what `initialize` names.

use std::{fs, path::Path, time::Duration};

use anyhow::Context;
use serde_json::{Map, Value, json};

/// A limit on calls that is shorter than this is a mistake.
const SHORTEST: u64 = 1_000;

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// As it was written.
    pub(super) config: Value,
    pub(super) kind: TransportKind,
    /// How long one call may take.
    pub(super) timeout: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TransportKind {
    /// The program at the other end runs it.
    Sdk,
    /// A program or an address.
    External,
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedServer {
    /// Its name.
    pub name: String,
    /// What is wrong with it, as messages name it.
    pub category: &'static str,
    /// The same in words.
    pub message: String,
}

/// Reads `--mcp-config`: files, or JSON itself. The same name again takes the place of the first.
pub(super) fn read(
    given: &[String],
    cwd: &Path,
) -> anyhow::Result<Vec<Result<Entry, SkippedServer>>> {
    let mut all: Map<String, Value> = Map::new();
    for text in given {
        let written = if text.trim_start().starts_with('{') {
            text.clone()
        } else {
            let path = cwd.join(text);
            fs::read_to_string(&path).with_context(|| format!("MCP configuration {text}"))?
        };
        let config: Value =
            serde_json::from_str(&written).with_context(|| format!("MCP configuration {text}"))?;
        let servers = config["mcpServers"].as_object().with_context(|| {
            format!("MCP configuration {text}: expected an object with the key `mcpServers`")
        })?;
        all.extend(servers.clone());
    }
    Ok(entries(&all))
}

/// The entries of a map from names to servers.
pub(super) fn entries(servers: &Map<String, Value>) -> Vec<Result<Entry, SkippedServer>> {
    let read = servers.iter().map(|(name, config)| entry(name, config));
    read.collect()
}

/// A server of which only the name is known.
pub(super) fn sdk(name: &str) -> Entry {
    Entry {
        name: name.to_owned(),
        config: json!({"type": "sdk", "name": name}),
        kind: TransportKind::Sdk,
        timeout: None,
    }
}

fn entry(name: &str, config: &Value) -> Result<Entry, SkippedServer> {
    let skipped = |category, message: &str| SkippedServer {
        name: name.to_owned(),
        category,
        message: message.to_owned(),
    };
    if !config.is_object() {
        return Err(skipped("invalid_config", "it is no object"));
    }
    let kind = match &config["type"] {
        Value::Null if config.get("url").is_some() => {
            return Err(skipped(
                "url_missing_type",
                "it has a `url` and no `type`: http, sse or ws",
            ));
        }
        Value::Null => "stdio",
        Value::String(kind) => kind.as_str(),
        _ => return Err(skipped("invalid_config", "`type` is no text")),
    };
    let needed = match kind {
        "sdk" => None,
        "stdio" => Some("command"),
        "http" | "streamable-http" | "sse" | "ws" => Some("url"),
        other => {
            let what = format!("no server is of type {other:?}");
            return Err(skipped("unknown_type", &what));
        }
    };
    if let Some(needed) = needed
        && !config[needed].is_string()
    {
        let what = format!("a server of type {kind} needs `{needed}`");
        return Err(skipped("invalid_config", &what));
    }
    let timeout = config["timeout"].as_u64().filter(|ms| *ms >= SHORTEST);
    Ok(Entry {
        name: name.to_owned(),
        config: config.clone(),
        kind: match kind {
            "sdk" => TransportKind::Sdk,
            _ => TransportKind::External,
        },
        timeout: timeout.map(Duration::from_millis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_or_told_why_not() {
        let config = json!({
            "a": {"type": "sdk", "name": "a", "timeout": 5000},
            "b": {"command": "x", "timeout": 10},
            "c": {"type": "http", "url": "https://example.com"},
            "d": {"url": "https://example.com"},
            "e": {"type": "pigeon"},
            "f": {"type": "stdio"},
            "g": 1,
        });
        let read = entries(config.as_object().unwrap());
        let told: Vec<String> = read
            .iter()
            .map(|one| match one {
                Ok(entry) => format!("{} {:?} {:?}", entry.name, entry.kind, entry.timeout),
                Err(skipped) => {
                    format!("{} {}: {}", skipped.name, skipped.category, skipped.message)
                }
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn files_and_json_together_and_the_last_of_a_name_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}"#;
        fs::write(dir.path().join("servers.json"), file).unwrap();
        let given = [
            "servers.json".to_owned(),
            r#"{"mcpServers": {"a": {"type": "sdk"}}}"#.to_owned(),
        ];
        let read: Vec<_> = read(&given, dir.path()).unwrap();
        let names: Vec<_> = read
            .into_iter()
            .map(|one| one.map(|entry| (entry.name, entry.kind)).unwrap())
            .collect();
        assert_eq!(
            names,
            [
                ("a".to_owned(), TransportKind::Sdk),
                ("b".to_owned(), TransportKind::External)
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        for given in ["no-such-file", "{", "{}", r#"{"mcpServers": []}"#] {
            assert!(read(&[given.to_owned()], dir.path()).is_err(), "{given}");
        }
    }
}
