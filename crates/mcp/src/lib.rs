//! The Model Context Protocol, in both directions.
//!
//! # Layout
//! - [`message`], [`frames`]: JSON-RPC messages, and messages as lines of limited length
//! - [`peer`]: one end of a connection: requests and their answers, cancellation, progress
//! - [`revision`]: the revisions of the protocol, and how two ends agree on one
//! - [`client`]: connects to MCP servers and offers their tools as haft's
//! - [`server`]: offers haft's tools to MCP clients
//!
//! **Invariants.** The size of input is limited before it is read, and within the limits nothing is
//! lost: parameters and results stay the JSON that was received. No input from a peer can end the
//! process.

#![warn(missing_docs)]

pub mod client;
pub mod frames;
pub mod message;
pub mod peer;
pub mod revision;
pub mod server;

pub use message::{RpcError, RpcId, RpcMessage};
pub use peer::{Peer, PeerError, PeerHandler};
pub use revision::Revision;
