//! Options for connecting and calling servers.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use haft_contract::HttpTransport;

use super::{ServerScope, ServerTokens, ToolApprovals, transport::ServerLaunch};

/// Options for connecting and calling servers.
#[derive(Clone)]
pub struct ClientOptions {
    /// The time limit for connecting a server.
    pub connect: Duration,
    /// The default time limit for a call.
    pub call: Duration,
    /// The time a call to a local server may take without a progress report; `None` for no limit.
    pub idle: Option<Duration>,
    /// Like `idle`, for remote servers.
    pub network_idle: Option<Duration>,
    /// The maximum length of a result in characters.
    pub result_cap: usize,
    /// If true, only the names of tools are sent until the model requests them.
    pub deferred: bool,
    /// The folder for results that are neither text nor an image.
    pub folder: PathBuf,
    /// The folder for cached tool lists.
    pub cache: Option<PathBuf>,
    /// The HTTP client for remote servers; `None` disables them.
    pub http: Option<Arc<dyn HttpTransport>>,
    /// The source of tokens for remote servers.
    pub tokens: Option<Arc<dyn ServerTokens>>,
    /// The source of approvals for tools; `None` offers all tools.
    pub approvals: Option<Arc<dyn ToolApprovals>>,
    /// The parameters for starting local servers.
    pub launch: ServerLaunch,
    /// Returns the whole environment of a local server with an entry of this scope, before the
    /// entry's own variables.
    pub environment: EnvironmentOf,
    /// Returns the variables that entries refer to.
    pub variable: VariableOf,
}

/// A function that returns the environment for servers of a scope.
pub type EnvironmentOf = Arc<dyn Fn(ServerScope) -> BTreeMap<OsString, OsString> + Send + Sync>;
/// A function that returns the value of a variable.
pub type VariableOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The default time limit for connecting.
pub(super) const CONNECT: Duration = Duration::from_secs(30);
/// The default time limit for a call: more than a day.
pub(super) const CALL: Duration = Duration::from_secs(100_000);
/// The default time without a progress report for a local server.
pub(super) const IDLE: Duration = Duration::from_secs(30 * 60);
/// The default time without a progress report for a remote server.
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
