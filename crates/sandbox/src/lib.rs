//! Confined processes.

mod profile;

pub use profile::{Network, Profile, Reading, Workspace};
