//! What people lay in folders for their agent: found, read, and told what is wrong with it.
//!
//! Nothing here runs anything, and nothing that lies in a folder can stop the rest from being read: what
//! is wrong with a file is a [`Warning`] that names it. Files are read bounded, and only regular ones.

pub mod agents;
pub mod front_matter;
mod places;
mod reading;
mod warning;

pub use agents::{AgentDefinition, Agents};
pub use places::{Origin, Places, Plugin, Sources};
pub use warning::Warning;
