//! The MCP servers of a session: where they are named, which of them may be used, and who they may ask.
//!
//! - `sources`: the places where servers are named; `policy`, `approvals`: which of them, and which of their tools, may be used
//! - `agent_servers`: servers that kinds of agents name
//! - `session_host`: what servers may ask of this session; `elicitation_hooks`: hooks that have a say in it;
//!   `pending`: those whose tools are still to come
//! - `server_sandbox`: how their processes are confined
//! - `edit`: files of servers, changed; `check`: servers, looked at without a session; `account`: logins
//!
//! How they are connected and called is in `haft-mcp`.

mod account;
mod agent_servers;
mod approvals;
mod check;
mod differences;
mod edit;
mod elicitation_hooks;
mod hook_servers;
mod pending;
mod policy;
mod server_sandbox;
mod session_host;
mod sources;

pub use account::{login_server, logout_server};
pub(crate) use agent_servers::AgentServers;
pub(crate) use approvals::Decides;
pub(crate) use check::project_server_changes;
pub use check::{approve_server, check_servers, forget_approvals, named_servers};
pub use edit::{add_server, remove_server};
pub(crate) use elicitation_hooks::ElicitationHooks;
pub(crate) use hook_servers::HookServers;
pub(crate) use pending::PendingOf;
pub use session_host::ElicitationHost;
pub(crate) use session_host::{SessionHost, options};
pub(crate) use sources::{gather, replace_plugins};
