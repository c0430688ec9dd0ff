//! The client: connects to MCP servers and offers their tools in haft's tool pool.
//!
//! - `entry`, `expand`: entries of a configuration
//! - `approval`: decides which servers and tools may be used; `options`: limits and services
//! - `transport`, `stdio`, `http`, `sse`: carry messages to a server and back; `remote`,
//!   `param_headers`: the headers of HTTP messages; `confined_transport`: a program in a sandbox;
//!   [`oauth`]: logins to remote servers
//! - `handler`: handles requests of servers; `connection`: sends requests to them
//! - `server`: connects and reconnects one server; `open_transport`: opens its transport;
//!   `server_log`: its output besides answers; `servers`: all servers of a session; `cache`: tool
//!   lists of earlier sessions
//! - `resources`, `prompts`: the resources and prompts of servers
//! - `definition`, `schema`, `tool`, `result`: the server's tools in the form of haft's tools
//!
//! **Invariants.** A server never affects another one or delays the start: each is connected in its
//! own task with a deadline. A server's description of its tools never grants a permission.

mod approval;
mod cache;
mod confined_transport;
mod connection;
mod definition;
mod entry;
mod expand;
mod handler;
mod http;
pub mod oauth;
mod open_transport;
mod options;
mod param_headers;
mod prompts;
mod remote;
mod resources;
mod result;
mod schema;
mod server;
mod server_log;
mod servers;
mod sse;
mod stdio;
mod tool;
mod transport;

pub use approval::{ApprovedTools, ToolApprovals};
pub use connection::{Connection, ServerInfo};
pub use entry::{
    RemoteServer, ServerEntry, ServerKind, ServerSandbox, ServerScope, SkippedServer, entries,
};
pub use handler::{ClientHost, ElicitationAnswer, ElicitationKind, ServerElicitation};
pub use options::{ClientOptions, EnvironmentOf, VariableOf};
pub use prompts::ServerPrompt;
pub use remote::ServerTokens;
pub use resources::resource_tools;
pub use result::text_of;
pub use server::ServerHandle;
pub use servers::{
    OF_PLUGINS, ServerChanges, ServerDetails, ServerList, Servers, ToolChange, ToolVersions,
    is_waited_for,
};
pub use transport::{SandboxOf, ServerLaunch, ServerLink};
