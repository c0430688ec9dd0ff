//! The entry of a server in a configuration.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Map, Value, json};

use super::expand::expand;

/// The minimum for a timeout in milliseconds; a shorter one is treated as a mistake.
const MIN_LENGTH: u64 = 1_000;

/// The place of an entry. If several entries have the same name, the first scope in this order
/// applies, as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerScope {
    /// The administrator's file. If this file exists, no other entries apply.
    Managed,
    /// `--mcp-config`, an ACP client, or a request of the SDK client.
    Given,
    /// The user's entries for this project.
    Local,
    /// The project's `.mcp.json`.
    Project,
    /// The user's entries for all projects.
    User,
    /// An entry of a plugin.
    Plugin,
}

impl ServerScope {
    /// Returns the name that users and programs see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Given => "dynamic",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
        }
    }

    /// Returns whether the entry comes from a project or a plugin instead of the user. Such a
    /// server must not receive the user's keys without asking.
    pub fn is_foreign(self) -> bool {
        matches!(self, Self::Project | Self::Plugin)
    }
}

impl fmt::Display for ServerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A configured server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerEntry {
    /// Its name.
    pub name: String,
    /// The place of the entry.
    pub scope: ServerScope,
    /// The entry as written.
    pub config: Value,
    /// The way to reach the server.
    pub kind: ServerKind,
    /// The time limit for a call.
    pub timeout: Option<Duration>,
    /// True if its tools are always sent in full and the first turn waits for the server.
    pub always_load: bool,
    /// The confinement of its process, or `None` for no sandbox.
    pub sandbox: Option<ServerSandbox>,
}

/// The confinement of a server's process: `"sandbox": true`, or `{"profile": …, "network": …}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerSandbox {
    /// True if it may not change files in the working directories.
    pub is_read_only: bool,
    /// True if it may connect to other machines.
    pub has_network: bool,
}

/// The way to reach a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerKind {
    /// A program to start.
    Stdio {
        /// The program.
        command: String,
        /// The arguments.
        args: Vec<String>,
        /// Environment variables in addition to the inherited ones.
        env: BTreeMap<String, String>,
    },
    /// An address for streamable HTTP.
    Http(RemoteServer),
    /// An address for HTTP with server-sent events, as in 2024-11-05.
    Sse(RemoteServer),
    /// An address for WebSocket, which is not supported.
    WebSocket(RemoteServer),
    /// The SDK client, the program that controls haft through its input and output, runs the
    /// server.
    Sdk,
}

/// A remote server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteServer {
    /// The address.
    pub url: String,
    /// The headers to send with each request.
    pub headers: BTreeMap<String, String>,
    /// A shell command that prints further headers.
    pub headers_helper: Option<String>,
    /// The OAuth client settings.
    pub oauth: Value,
}

/// An entry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedServer {
    /// The name of the server.
    pub name: String,
    /// The category of the problem, as used in messages of the protocol.
    pub category: &'static str,
    /// The description of the problem.
    pub message: String,
}

impl SkippedServer {
    /// Creates an unusable entry.
    pub fn new(name: &str, category: &'static str, message: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            category,
            message: message.into(),
        }
    }

    /// Creates an entry that the user's settings reject: it is listed, but not a problem.
    pub fn rejected(name: &str, message: impl Into<String>) -> Self {
        Self::new(name, REJECTED, message)
    }

    /// Returns whether the entry is worth a warning.
    pub fn is_problem(&self) -> bool {
        self.category != REJECTED
    }
}

const REJECTED: &str = "rejected";

/// Reads a map from names to servers.
pub fn entries(
    servers: &Map<String, Value>,
    scope: ServerScope,
) -> Vec<Result<ServerEntry, SkippedServer>> {
    let read = servers
        .iter()
        .map(|(name, config)| ServerEntry::read(name, config, scope));
    read.collect()
}

impl ServerEntry {
    /// Creates the entry of a server that the SDK client runs.
    pub fn sdk(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            scope: ServerScope::Given,
            config: json!({"type": "sdk", "name": name}),
            kind: ServerKind::Sdk,
            timeout: None,
            always_load: false,
            sandbox: None,
        }
    }

    /// Parses an entry.
    pub fn read(name: &str, config: &Value, scope: ServerScope) -> Result<Self, SkippedServer> {
        let invalid = |message: &str| SkippedServer::new(name, "invalid_config", message);
        if name.trim().is_empty() {
            return Err(invalid("it has no name"));
        }
        if name.starts_with("plugin:") && scope != ServerScope::Plugin {
            let what = "names that begin with `plugin:` are reserved for plugins";
            return Err(SkippedServer::new(name, "reserved_name", what));
        }
        if !config.is_object() {
            return Err(invalid("it is not an object"));
        }
        let kind = match &config["type"] {
            Value::Null if config.get("url").is_some() => {
                let what = "it has a `url` and no `type`: http or sse";
                return Err(SkippedServer::new(name, "url_missing_type", what));
            }
            Value::Null => "stdio",
            Value::String(kind) => kind.as_str(),
            _ => return Err(invalid("`type` is not a string")),
        };
        let remote = || -> Result<RemoteServer, SkippedServer> {
            let url = config["url"].as_str();
            let url =
                url.ok_or_else(|| invalid(&format!("a server of type {kind} needs `url`")))?;
            Ok(RemoteServer {
                url: url.to_owned(),
                headers: texts(config, "headers").map_err(|why| invalid(&why))?,
                headers_helper: config["headersHelper"].as_str().map(str::to_owned),
                oauth: config["oauth"].clone(),
            })
        };
        let kind = match kind {
            "sdk" => ServerKind::Sdk,
            "stdio" => {
                let command = config["command"]
                    .as_str()
                    .filter(|command| !command.is_empty());
                let needed = || invalid("a server of type stdio needs `command`");
                ServerKind::Stdio {
                    command: command.ok_or_else(needed)?.to_owned(),
                    args: list(config, "args").map_err(|why| invalid(&why))?,
                    env: texts(config, "env").map_err(|why| invalid(&why))?,
                }
            }
            "http" | "streamable-http" => ServerKind::Http(remote()?),
            "sse" => ServerKind::Sse(remote()?),
            "ws" => ServerKind::WebSocket(remote()?),
            other => {
                let what = format!("unknown server type {other:?}");
                return Err(SkippedServer::new(name, "unknown_type", what));
            }
        };
        let timeout = config["timeout"].as_u64().filter(|ms| *ms >= MIN_LENGTH);
        let sandbox = sandbox(&config["sandbox"]).map_err(|why| invalid(&why))?;
        if sandbox.is_some() && !matches!(kind, ServerKind::Stdio { .. }) {
            return Err(invalid(
                "`sandbox` applies only to servers that haft starts (type stdio)",
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            scope,
            config: config.clone(),
            kind,
            timeout: timeout.map(Duration::from_millis),
            always_load: config["alwaysLoad"] == true,
            sandbox,
        })
    }

    /// Returns the way to reach the server with variables expanded, and the variables that are not
    /// set.
    pub fn expanded(&self, variable: &dyn Fn(&str) -> Option<String>) -> (ServerKind, Vec<String>) {
        let mut unset = Vec::new();
        let mut fill = |text: &String| -> String {
            let (text, names) = expand(text, variable);
            for name in names {
                if !unset.contains(&name) {
                    unset.push(name);
                }
            }
            text
        };
        let values = |map: &BTreeMap<String, String>, fill: &mut dyn FnMut(&String) -> String| {
            let filled = map.iter().map(|(name, value)| (name.clone(), fill(value)));
            filled.collect::<BTreeMap<_, _>>()
        };
        let remote =
            |server: &RemoteServer, fill: &mut dyn FnMut(&String) -> String| RemoteServer {
                url: fill(&server.url),
                headers: values(&server.headers, fill),
                ..server.clone()
            };
        let kind = match &self.kind {
            ServerKind::Stdio { command, args, env } => ServerKind::Stdio {
                command: fill(command),
                args: args.iter().map(&mut fill).collect(),
                env: values(env, &mut fill),
            },
            ServerKind::Http(server) => ServerKind::Http(remote(server, &mut fill)),
            ServerKind::Sse(server) => ServerKind::Sse(remote(server, &mut fill)),
            ServerKind::WebSocket(server) => ServerKind::WebSocket(server.clone()),
            ServerKind::Sdk => ServerKind::Sdk,
        };
        (kind, unset)
    }

    /// Returns the command or the address as one line for the user. The line contains no
    /// environment variables and no headers, because they may be secrets.
    pub fn in_short(&self) -> String {
        match &self.kind {
            ServerKind::Stdio { command, args, .. } => {
                let words = std::iter::once(command).chain(args);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            ServerKind::Http(server) => format!("{} (HTTP)", server.url),
            ServerKind::Sse(server) => format!("{} (SSE)", server.url),
            ServerKind::WebSocket(server) => format!("{} (WebSocket)", server.url),
            ServerKind::Sdk => "run by the program that started haft".to_owned(),
        }
    }
}

/// Parses the `sandbox` field. Anything invalid is an error: a server must not run with more access
/// than intended.
fn sandbox(value: &Value) -> Result<Option<ServerSandbox>, String> {
    let default = ServerSandbox {
        is_read_only: false,
        has_network: false,
    };
    let fields = match value {
        Value::Null | Value::Bool(false) => return Ok(None),
        Value::Bool(true) => return Ok(Some(default)),
        Value::Object(fields) => fields,
        _ => return Err("`sandbox` is neither true, false nor an object".to_owned()),
    };
    let mut sandbox = default;
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("profile", Value::String(profile)) if profile == "workspace" => {}
            ("profile", Value::String(profile)) if profile == "readonly" => {
                sandbox.is_read_only = true;
            }
            ("profile", _) => {
                return Err(
                    "`sandbox.profile` is neither \"workspace\" nor \"readonly\"".to_owned(),
                );
            }
            ("network", Value::Bool(network)) => sandbox.has_network = *network,
            ("network", _) => return Err("`sandbox.network` is neither true nor false".to_owned()),
            (other, _) => {
                return Err(format!(
                    "unknown key `sandbox.{other}`; the keys are `profile` and `network`"
                ));
            }
        }
    }
    Ok(Some(sandbox))
}

fn list(config: &Value, key: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` is not a list of strings");
    match &config[key] {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

fn texts(config: &Value, key: &str) -> Result<BTreeMap<String, String>, String> {
    let wrong = || format!("`{key}` is not an object with string values");
    match &config[key] {
        Value::Null => Ok(BTreeMap::new()),
        Value::Object(map) => {
            let texts = map.iter().map(|(name, value)| {
                let value = match value {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    Value::Bool(flag) => Some(flag.to_string()),
                    _ => None,
                };
                Some((name.clone(), value?))
            });
            texts.collect::<Option<_>>().ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
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
            "h": {"command": "x", "args": [1]},
            "plugin:x:y": {"command": "x"},
        });
        let read = entries(config.as_object().unwrap(), ServerScope::User);
        let told: Vec<String> = read
            .iter()
            .map(|one| match one {
                Ok(entry) => format!("{} {} {:?}", entry.name, entry.in_short(), entry.timeout),
                Err(skipped) => {
                    format!("{} {}: {}", skipped.name, skipped.category, skipped.message)
                }
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn how_a_server_is_confined_is_read_or_refused_and_never_guessed() {
        let confined = |is_read_only, has_network| {
            Some(Some(ServerSandbox {
                is_read_only,
                has_network,
            }))
        };
        let cases = [
            (json!(null), Some(None)),
            (json!(false), Some(None)),
            (json!(true), confined(false, false)),
            (json!({}), confined(false, false)),
            (
                json!({"profile": "workspace", "network": true}),
                confined(false, true),
            ),
            (json!({"profile": "readonly"}), confined(true, false)),
            (json!({"profile": "full"}), None),
            (json!({"network": "no"}), None),
            (json!({"netwrok": false}), None),
            (json!("workspace"), None),
        ];
        for (written, expected) in cases {
            let config = json!({"command": "x", "sandbox": written});
            let read = ServerEntry::read("s", &config, ServerScope::User);
            assert_eq!(read.ok().map(|entry| entry.sandbox), expected, "{written}");
        }
        let address = json!({"type": "http", "url": "https://a", "sandbox": true});
        assert!(ServerEntry::read("s", &address, ServerScope::User).is_err());
    }

    #[test]
    fn variables_are_filled_in_where_they_may_stand() {
        let config = json!({
            "command": "${BIN}/server", "args": ["--at", "${A:-b}"], "env": {"KEY": "${KEY}"},
        });
        let entry = ServerEntry::read("s", &config, ServerScope::User).unwrap();
        let variable = |name: &str| (name == "BIN").then(|| "/opt".to_owned());
        let (kind, unset) = entry.expanded(&variable);
        let env = BTreeMap::from([("KEY".to_owned(), "${KEY}".to_owned())]);
        let expected = ServerKind::Stdio {
            command: "/opt/server".to_owned(),
            args: vec!["--at".to_owned(), "b".to_owned()],
            env,
        };
        assert_eq!((kind, unset), (expected, vec!["KEY".to_owned()]));
    }

    #[test]
    fn of_several_scopes_the_first_wins() {
        let mut scopes = [
            ServerScope::Plugin,
            ServerScope::User,
            ServerScope::Local,
            ServerScope::Given,
        ];
        scopes.sort_unstable();
        assert_eq!(scopes[0], ServerScope::Given);
        assert!(ServerScope::Managed < ServerScope::Given);
        assert!(
            ServerScope::Local < ServerScope::Project && ServerScope::Project < ServerScope::User
        );
    }
}
