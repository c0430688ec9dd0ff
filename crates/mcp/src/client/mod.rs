//! MCP servers of other programs, and their tools among ours.
//!
//! - `entry`, `expand`: what stands in a configuration
//! - `transport`, `stdio`, `http`, `sse`: how messages get to a server and back; `remote`,
//!   `param_headers`: what is sent with them;
//!   `confined`: a program in a sandbox
//! - `handler`: what servers may ask of us; `connection`: what we may ask of them
//! - `server`: one server, kept connected; `opening`: the way to it; `log`: what it says beside its answers; `servers`: those of a session; `cache`: what is known from the last time
//! - `resources`, `prompts`: what else servers offer
//! - `definition`, `schema`, `tool`, `result`: its tools as tools of ours
//!
//! **Invariants.** One server never hurts another, nor the start: each is connected in a task of its own, with a
//! deadline. What a server says of its tools permits nothing.

mod approval;
mod cache;
mod confined;
mod connection;
mod definition;
mod entry;
mod expand;
mod handler;
mod http;
mod log;
pub mod oauth;
mod opening;
mod options;
mod param_headers;
mod prompts;
mod remote;
mod resources;
mod result;
mod schema;
mod server;
mod servers;
mod sse;
mod stdio;
mod tool;
mod transport;

pub use approval::{ApprovedTools, ToolApprovals};
pub use connection::{Connection, ServerFacts};
pub use entry::{
    RemoteServer, ServerEntry, ServerKind, ServerSandbox, ServerScope, SkippedServer, entries,
};
pub use handler::{ClientHost, Elicitation, ElicitationAnswer, ElicitationKind};
pub use options::{ClientOptions, EnvironmentOf, VariableOf};
pub use prompts::ServerPrompt;
pub use remote::ServerTokens;
pub use resources::resource_tools;
pub use result::text_of;
pub use server::ServerHandle;
pub use servers::{
    OF_PLUGINS, SeenTools, ServerChanges, ServerDetails, ServerList, Servers, ToolChange,
    is_waited_for,
};
pub use transport::{SandboxOf, ServerLaunch, ServerLink};
