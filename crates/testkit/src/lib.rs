//! For tests only: a project in a temporary folder, toy tools whose behaviour a test can steer, and
//! the kit that holds any tool to the contract.
//!
//! # Layout
//! - [`project`]: files to work on
//! - [`toys`]: tools that read, write, patch, wait and panic on command
//! - [`bash`]: one in the place of Bash, which runs nothing
//! - [`contract`]: what every tool must keep to, as one function

pub mod bash;
pub mod contract;
mod control_file;
pub mod project;
pub mod toys;

pub use bash::Bash;
pub use control_file::ControlFile;
pub use project::TempProject;
