//! A client of language servers, for any program that can start one: bytes in, bytes out.
//!
//! # Layout
//! - [`wire`]: frames of `Content-Length` and JSON-RPC messages, bounded
//! - [`types`]: the part of the protocol that is used, read tolerantly: what is unknown passes, one bad item does
//!   not lose a list
//! - [`uri`]: paths as addresses; [`position`]: places in a text, as servers and as people count them
//! - [`connection`]: requests and their answers, what a server asks and tells
//! - [`client`]: a server with its documents; `pull`: asking for problems; `first_look`: waiting for it; `report`: what it found in them;
//!   `capabilities`: what we say of ourselves
//! - [`edits`]: what a server wants changed, as whole new texts
//!
//! It starts no process and touches no file.

#![warn(missing_docs)]

mod capabilities;
pub mod client;
pub mod connection;
pub mod edits;
mod first_look;
pub mod position;
mod pull;
mod report;
pub mod types;
pub mod uri;
pub mod wire;

pub use client::{LspClient, LspDocument, LspOptions};
pub use connection::{LspConnection, LspError, LspEvents};
pub use edits::{EditStep, OnExisting, PlannedEdits, TextChangeError};
pub use position::{PositionEncoding, TextPosition};
pub use report::DocumentReport;
