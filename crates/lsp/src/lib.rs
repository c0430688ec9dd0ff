//! A client for language servers, for any program that can start one: bytes in, bytes out.
//!
//! # Layout
//! - [`wire`]: frames with `Content-Length` and JSON-RPC messages, with a size limit
//! - [`types`]: the part of the protocol that is used. It is parsed tolerantly: unknown fields are
//!   ignored, and one invalid item does not invalidate a list
//! - [`uri`]: paths as `file:` addresses; [`position`]: positions in a text, as servers and as
//!   users number them
//! - [`connection`]: requests and answers, and the server's own requests and notifications
//! - [`client`]: a server with its documents; `pull_diagnostics`: requests diagnostics;
//!   `first_diagnostics`: waits for the first analysis; `report`: the diagnostics of a document;
//!   `capabilities`: the client capabilities
//! - [`edits`]: the edits that a server requests, applied to whole texts
//!
//! The crate starts no process and accesses no file.

#![warn(missing_docs)]

mod capabilities;
pub mod client;
pub mod connection;
pub mod edits;
mod first_diagnostics;
pub mod position;
mod pull_diagnostics;
mod report;
pub mod types;
pub mod uri;
pub mod wire;

pub use client::{LspClient, LspDocument, LspOptions};
pub use connection::{LspConnection, LspError, LspEvents};
pub use edits::{EditStep, OnExisting, PlannedEdits, TextChangeError};
pub use position::{PositionEncoding, TextPosition};
pub use report::DocumentReport;
