//! For tests only: a project in a temporary folder, toy tools whose behaviour a test can steer, and
//! the kit that holds any tool to the contract.
//!
//! # Layout
//! - [`project`]: files to work on
//! - [`toys`]: tools that read, write, patch, wait and panic on command
//! - [`contract`]: what every tool must keep to, as one function

pub mod contract;
pub mod project;
pub mod toys;

pub use project::TempProject;
