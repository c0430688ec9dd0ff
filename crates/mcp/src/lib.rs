//! The Model Context Protocol, in both directions.
//!
//! # Layout
//! - [`message`], [`frames`]: JSON-RPC messages, and messages as lines of bounded length
//! - [`peer`]: one end of a connection: requests and their answers, cancellation, progress
//! - [`revision`]: the revisions of the protocol, and which one two ends agree on
//! - [`client`]: other programs' servers, their tools as tools of ours
//! - [`server`]: our tools for other programs' clients
//!
//! **Invariants.** What a peer sends is bounded before it is read, and nothing of it is lost that is within the
//! bounds: parameters and results stay the JSON they were. Nothing that a peer sends ends the process.

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
