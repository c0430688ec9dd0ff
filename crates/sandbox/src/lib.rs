//! Confined processes.

pub mod network;
mod profile;

pub use profile::{Network, Profile, Reading, Workspace};
