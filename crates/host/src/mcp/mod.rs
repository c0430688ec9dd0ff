//! The MCP servers of a session: where they are named, which of them may be used, and who they may ask.
//!
//! - `sources`: the places where servers are named; `policy`: which of them may be used
//! - `session_host`: what servers may ask of this session; `pending`: those whose tools are still to come
//!
//! How they are connected and called is in `haft-mcp`.

mod pending;
mod policy;
mod session_host;
mod sources;

pub(crate) use pending::PendingOf;
pub(crate) use session_host::{SessionHost, options};
pub(crate) use sources::gather;
