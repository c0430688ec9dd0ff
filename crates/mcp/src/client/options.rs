//! How servers are connected and called.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use haft_contract::HttpStreams;

use super::{ServerScope, ServerTokens, ToolApprovals, transport::ServerLaunch};

/// How servers are connected and called.
#[derive(Clone)]
pub struct ClientOptions {
    /// How long a server may take to be connected.
    pub connect: Duration,
    /// How long a call may take where its server says nothing.
    pub call: Duration,
    /// How long a call to a program may go without a report of progress; `None`: as long as it takes.
    pub idle: Option<Duration>,
    /// The same for an address.
    pub network_idle: Option<Duration>,
    /// The longest result, in characters.
    pub result_cap: usize,
    /// Tools are sent by name only, until they are asked for.
    pub deferred: bool,
    /// Where what is neither text nor a picture is kept.
    pub folder: PathBuf,
    /// Where lists of tools are kept until the next session.
    pub cache: Option<PathBuf>,
    /// How addresses are reached; `None`: they are not.
    pub http: Option<Arc<dyn HttpStreams>>,
    /// Who knows tokens for addresses.
    pub tokens: Option<Arc<dyn ServerTokens>>,
    /// Who approves tools; `None`: all of them are offered.
    pub approvals: Option<Arc<dyn ToolApprovals>>,
    /// How programs are started.
    pub launch: ServerLaunch,
    /// The whole environment of a program that is started for an entry of this scope, before its own variables.
    pub environment: EnvironmentOf,
    /// Variables that entries name.
    pub variable: VariableOf,
}

/// The environment of servers of a scope.
pub type EnvironmentOf = Arc<dyn Fn(ServerScope) -> BTreeMap<OsString, OsString> + Send + Sync>;
/// What a variable says.
pub type VariableOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How long a server may take to be connected, where no one says.
pub(super) const CONNECT: Duration = Duration::from_secs(30);
/// How long a call may take where no one says: more than a day.
pub(super) const CALL: Duration = Duration::from_secs(100_000);
/// How long a call to a program may go without a report of progress, where no one says…
pub(super) const IDLE: Duration = Duration::from_secs(30 * 60);
/// …and to an address.
pub(super) const NETWORK_IDLE: Duration = Duration::from_secs(5 * 60);

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect: CONNECT,
            call: CALL,
            idle: Some(IDLE),
            network_idle: Some(NETWORK_IDLE),
            result_cap: 100_000,
            deferred: false,
            folder: std::env::temp_dir(),
            cache: None,
            http: None,
            tokens: None,
            approvals: None,
            launch: ServerLaunch {
                cwd: PathBuf::from("/"),
                ..ServerLaunch::default()
            },
            environment: Arc::new(|_| std::env::vars_os().collect()),
            variable: Arc::new(|name| std::env::var(name).ok()),
        }
    }
}
