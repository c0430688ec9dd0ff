//! Test helpers: a project in a temporary folder, toy tools that a test can steer, and checks that
//! every tool must pass.
//!
//! # Layout
//! - [`project`]: a temporary project with files
//! - [`toy_tools`]: tools that read, write, patch, wait and panic on command
//! - [`bash`]: a replacement of Bash that runs nothing; [`testing_permission`]: a tool that asks in
//!   every mode
//! - [`contract`]: checks that every tool must pass
//! - [`http`]: a server with prepared replies; [`pages`]: a server for real browsers;
//!   [`anthropic`]: builds replies in Anthropic's format; [`strict`]: rejects requests that
//!   providers reject
//! - [`obedient_model`]: a fake model that follows simple prompts; [`model_line`]: a fake model
//!   that a benchmark steers
//! - [`measure`]: reports of benchmarks
//! - [`tasks`]: a background task; [`tmux`]: a real terminal
//! - [`skip`](mod@skip): tests that this machine cannot run; [`thoroughness`]: the number of
//!   repetitions; [`wait`]: waiting with a timeout

pub mod anthropic;
pub mod bash;
pub mod contract;
mod control_file;
pub mod http;
pub mod measure;
pub mod model_line;
pub mod obedient_model;
pub mod pages;
pub mod project;
pub mod skip;
pub mod strict;
pub mod tasks;
pub mod testing_permission;
pub mod thoroughness;
pub mod tmux;
pub mod toy_tools;
pub mod wait;

pub use bash::FakeBash;
pub use control_file::ControlFile;
pub use model_line::StepwiseModelServer;
pub use pages::PageServer;
pub use project::TempProject;
pub use skip::{lacks, skip};
pub use testing_permission::TestingPermission;
pub use thoroughness::is_thorough;
pub use tmux::TmuxServer;
pub use wait::{bound_this_process, command, until, until_blocking};
