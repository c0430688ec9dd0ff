//! The servers that an agent kind names (`mcpServers`), by the name of a session's server or with a
//! definition. The same checks apply to them as to other servers: settings that deny them, the
//! user's approval, and trust in the directory.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use haft_agent::subagents::AgentServerTools;
use haft_contract::BoxFuture;
use haft_extensions::{AgentDefinition, ExtensionOrigin, ExtensionPlaces};
use haft_mcp::client::{ServerEntry, ServerScope, Servers, SkippedServer};
use serde_json::Value;

use super::{policy::ServerPolicy, sources};
use crate::{SessionConfig, event::EventEmitter, resolved_settings::ResolvedSettings};

/// Connects the servers of agents.
#[derive(Clone)]
pub(crate) struct AgentServers {
    /// The servers of the session.
    servers: Arc<Servers>,
    admission: Arc<ServerAdmission>,
    problems: Arc<WarnOnce>,
}

/// Warns about each problem only once, regardless of the number of subagents that have it.
struct WarnOnce {
    events: Arc<EventEmitter>,
    reported: Mutex<BTreeSet<String>>,
}

impl WarnOnce {
    fn warn(&self, problems: &[String]) {
        for problem in problems {
            let mut said = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            if said.insert(problem.clone()) {
                self.events.warn(problem.as_str());
            }
        }
    }
}

/// Decides which servers defined by agents may start.
struct ServerAdmission {
    policy: ServerPolicy,
    /// The reason why only servers of an administrator may be used, if so.
    exclusive: Option<&'static str>,
    is_strict: bool,
    trusted: bool,
    places: ExtensionPlaces,
    disabled: Vec<String>,
}

/// The servers that an agent names, by type.
#[derive(Default)]
struct NamedServers {
    /// Servers of the session.
    of_session: Vec<String>,
    own: Vec<ServerEntry>,
    /// Servers that cannot be used, with the reasons.
    refused: Vec<SkippedServer>,
}

impl AgentServers {
    pub(crate) fn new(
        servers: &Arc<Servers>,
        config: &SessionConfig,
        permitted: &ResolvedSettings,
        places: &ExtensionPlaces,
        events: &Arc<EventEmitter>,
    ) -> Self {
        let settings = &permitted.settings;
        let exclusive = sources::managed_file(&settings.places)
            .is_some()
            .then_some("an administrator says which servers there are (managed-mcp.json)");
        let door = ServerAdmission {
            policy: ServerPolicy::from_settings(settings),
            exclusive,
            is_strict: config.strict_mcp,
            trusted: settings.trust.runs,
            places: places.clone(),
            disabled: sources::disabled(config, permitted),
        };
        Self {
            servers: Arc::clone(servers),
            admission: Arc::new(door),
            problems: Arc::new(WarnOnce {
                events: Arc::clone(events),
                reported: Mutex::default(),
            }),
        }
    }

    /// Adds the servers of the main agent's kind to the session.
    pub(crate) fn add_main_agent_servers(&self, main: &AgentDefinition) {
        let named = self.admission.read(main);
        let unknown = named.of_session.iter();
        let unknown = unknown.filter(|name| !self.servers.has(name));
        let mut problems: Vec<String> = unknown
            .map(|name| {
                format!(
                    "the agent {} names the MCP server {name}, which is not there",
                    main.name
                )
            })
            .collect();
        problems.extend(named.refused.iter().map(skipped_server_text));
        self.servers.add(named.own.into_iter().map(Ok));
        self.problems.warn(&problems);
    }

    /// Returns the tools of the servers that a kind names; `None` if it names none.
    pub(crate) fn tools(
        &self,
        kind: &AgentDefinition,
    ) -> Option<BoxFuture<'static, AgentServerTools>> {
        if kind.mcp_servers.is_empty() {
            return None;
        }
        let (named, servers) = (self.admission.read(kind), Arc::clone(&self.servers));
        let problems = Arc::clone(&self.problems);
        Some(Box::pin(async move {
            let found = connect(named, servers).await;
            problems.warn(&found.missing);
            found
        }))
    }
}

async fn connect(named: NamedServers, servers: Arc<Servers>) -> AgentServerTools {
    let mut found = AgentServerTools {
        missing: named.refused.iter().map(skipped_server_text).collect(),
        ..AgentServerTools::default()
    };
    let own: Vec<String> = named.own.iter().map(|entry| entry.name.clone()).collect();
    let beside = match own.is_empty() {
        true => None,
        false => servers.connect_separately(named.own.into_iter().map(Ok)),
    };
    let beside = beside.map(|servers| AgentServersGuard(Arc::new(servers)));
    let all = named.of_session.iter().map(|name| (name, Some(&servers)));
    let own = own.iter();
    let all = all.chain(own.map(|name| (name, beside.as_ref().map(|beside| &beside.0))));
    // Connect concurrently: each server is waited for separately.
    let asked = all.map(|(name, servers)| async move {
        let tools = match servers {
            Some(servers) => servers.tools_of(name).await,
            None => Err("this session connects no MCP servers".to_owned()),
        };
        (name.clone(), tools)
    });
    for (name, tools) in futures_util::future::join_all(asked).await {
        match tools {
            Ok(tools) => found.servers.push((name, tools)),
            Err(why) => found.missing.push(format!("MCP server {name}: {why}")),
        }
    }
    found.end = beside.map(|beside| -> BoxFuture<'static, ()> {
        Box::pin(async move { beside.0.close().await })
    });
    found
}

/// Ends the servers of a subagent when it is dropped.
struct AgentServersGuard(Arc<Servers>);

impl Drop for AgentServersGuard {
    fn drop(&mut self) {
        self.0.close_now();
    }
}

impl ServerAdmission {
    fn read(&self, kind: &AgentDefinition) -> NamedServers {
        let mut named = NamedServers::default();
        for one in &kind.mcp_servers {
            match one {
                Value::String(name) => named.of_session.push(name.clone()),
                Value::Object(entries) => {
                    for (name, config) in entries {
                        match self.entry(kind, name, config) {
                            Ok(entry) => named.own.push(entry),
                            Err(refused) => named.refused.push(refused),
                        }
                    }
                }
                other => {
                    let what = format!("{other} is neither a name nor a server");
                    named
                        .refused
                        .push(SkippedServer::new(&kind.name, "invalid_config", what));
                }
            }
        }
        named
    }

    fn entry(
        &self,
        kind: &AgentDefinition,
        name: &str,
        config: &Value,
    ) -> Result<ServerEntry, SkippedServer> {
        let refused = |category, why: &str| {
            let why = format!("{why} (it is defined by the agent {})", kind.name);
            SkippedServer::new(name, category, why)
        };
        let scope = match kind.origin {
            ExtensionOrigin::Managed => ServerScope::Managed,
            ExtensionOrigin::Given | ExtensionOrigin::BuiltIn => ServerScope::Given,
            ExtensionOrigin::User => ServerScope::User,
            ExtensionOrigin::Project if self.may_start_of(kind.file.as_deref()) => {
                ServerScope::Project
            }
            ExtensionOrigin::Project => {
                let why = "the directory is not trusted, or has changed since; check it and trust it with `haft \
                           permissions trust`";
                return Err(refused("untrusted", why));
            }
            ExtensionOrigin::Plugin => {
                return Err(refused("policy", "agents of plugins cannot define servers"));
            }
        };
        if let (Some(why), true) = (self.exclusive, scope != ServerScope::Managed) {
            return Err(refused("policy", why));
        }
        if self.is_strict && !matches!(scope, ServerScope::Managed | ServerScope::Given) {
            let why = "only servers that this run was given are used";
            return Err(refused("policy", why));
        }
        if self.disabled.iter().any(|disabled| disabled == name) {
            return Err(refused("policy", "it is switched off here"));
        }
        let entry = ServerEntry::read(name, config, scope)?;
        match self.policy.rejection(&entry) {
            Some(refused) => Err(refused),
            None => Ok(entry),
        }
    }

    /// Returns whether a file of the project may start servers. Trust in the project does not
    /// extend to additional directories.
    fn may_start_of(&self, file: Option<&Path>) -> bool {
        self.trusted && file.is_some_and(|file| self.places.is_of_project(file))
    }
}

fn skipped_server_text(refused: &SkippedServer) -> String {
    format!(
        "MCP server {} is left out: {}",
        refused.name, refused.message
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn door(project: &Path) -> ServerAdmission {
        ServerAdmission {
            policy: ServerPolicy::default(),
            exclusive: None,
            is_strict: false,
            trusted: true,
            places: ExtensionPlaces {
                cwd: project.to_path_buf(),
                home: "/h".into(),
                user: "/h/.claude".into(),
                managed: "/m".into(),
                directories: Vec::new(),
                plugins: Vec::new(),
                sources: Default::default(),
            },
            disabled: vec!["off".to_owned()],
        }
    }

    #[test]
    fn servers_of_agents_go_through_the_same_door() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("k.md");
        std::fs::write(&file, "").unwrap();
        let door = || door(dir.path());
        let servers = json!(["github", {"own": {"command": "x"}, "off": {"command": "y"}}, {"bad": {"url": "z"}}, 7]);
        let outcome = |door: &ServerAdmission, origin: ExtensionOrigin| {
            let mut kind = AgentDefinition::new("k", "d", "p", origin);
            kind.file = Some(file.clone());
            kind.mcp_servers = servers.as_array().cloned().unwrap();
            let read = door.read(&kind);
            let own = read
                .own
                .iter()
                .map(|entry| entry.name.as_str())
                .collect::<Vec<_>>();
            let refused = read
                .refused
                .iter()
                .map(|one| format!("{} {}", one.name, one.category));
            (
                read.of_session,
                own.join(","),
                refused.collect::<Vec<_>>().join(","),
            )
        };
        let named = vec!["github".to_owned()];
        let usual = "off policy,bad url_missing_type,k invalid_config";
        let user = outcome(&door(), ExtensionOrigin::User);
        assert_eq!(user, (named.clone(), "own".to_owned(), usual.to_owned()));
        let trusted = outcome(&door(), ExtensionOrigin::Project);
        assert_eq!(trusted.1, "own");
        let closed = [
            (
                ServerAdmission {
                    trusted: false,
                    ..door()
                },
                ExtensionOrigin::Project,
                "untrusted",
            ),
            (
                ServerAdmission {
                    is_strict: true,
                    ..door()
                },
                ExtensionOrigin::User,
                "policy",
            ),
            (
                ServerAdmission {
                    exclusive: Some("m"),
                    ..door()
                },
                ExtensionOrigin::Given,
                "policy",
            ),
        ];
        for (door, origin, category) in closed {
            let (_, own, refused) = outcome(&door, origin);
            assert_eq!(own, "");
            assert!(refused.starts_with(&format!("own {category}")), "{refused}");
        }
    }
}
