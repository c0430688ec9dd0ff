//! The MCP servers of a session: their sources, which of them may be used, and their requests to
//! the session.
//!
//! - `sources`: the files and flags that name servers; `policy`, `approvals`: the servers, and
//!   their tools, that may be used
//! - `agent_servers`: servers that agent kinds name
//! - `session_host`: requests of servers to the session; `elicitation_hooks`: the hooks for these
//!   requests; `pending_servers`: servers that are still connecting
//! - `server_sandbox`: the confinement of server processes
//! - `edit`: changes of server configuration files; `check`: inspection of servers without a
//!   session; `login`: login and logout
//!
//! Connections and calls are implemented in `haft-mcp`.

mod agent_servers;
mod approvals;
mod check;
mod edit;
mod elicitation_hooks;
mod hook_servers;
mod login;
mod pending_servers;
mod policy;
mod server_sandbox;
mod session_host;
mod sources;
mod text_diff;

pub(crate) use agent_servers::AgentServers;
pub(crate) use approvals::PinDecider;
pub(crate) use check::project_server_changes;
pub use check::{approve_server, check_servers, forget_approvals, named_servers};
pub use edit::{add_server, remove_server};
pub(crate) use elicitation_hooks::ElicitationHooks;
pub(crate) use hook_servers::HookServers;
pub use login::{login_server, logout_server};
pub(crate) use pending_servers::SessionPendingServers;
pub use session_host::ElicitationHost;
pub(crate) use session_host::{SessionHost, options};
pub(crate) use sources::{collect_servers, replace_plugins};
