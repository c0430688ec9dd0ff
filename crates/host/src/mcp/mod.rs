//! The MCP servers of a session: where they are named, which of them may be used, and who they may ask.
//!
//! - `sources`: the places where servers are named; `policy`, `approvals`: which of them, and which of their tools, may be used
//! - `session_host`: what servers may ask of this session; `pending`: those whose tools are still to come
//! - `edit`: files of servers, changed; `check`: servers, looked at without a session; `account`: logins
//!
//! How they are connected and called is in `haft-mcp`.

mod account;
mod approvals;
mod check;
mod edit;
mod hook_servers;
mod pending;
mod policy;
mod session_host;
mod sources;

pub use account::{login_server, logout_server};
pub(crate) use approvals::Decides;
pub use check::{approve_server, check_servers, named_servers};
pub use edit::{add_server, remove_server};
pub(crate) use hook_servers::HookServers;
pub(crate) use pending::PendingOf;
pub(crate) use session_host::{SessionHost, options};
pub(crate) use sources::{gather, replace_plugins};
