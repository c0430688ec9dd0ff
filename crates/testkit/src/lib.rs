//! For tests only: a project in a temporary folder, toy tools whose behaviour a test can steer, and
//! the kit that holds any tool to the contract.
//!
//! # Layout
//! - [`project`]: files to work on
//! - [`toys`]: tools that read, write, patch, wait and panic on command
//! - [`bash`]: one in the place of Bash, which runs nothing; [`testing_permission`]: one that asks in every mode
//! - [`contract`]: what every tool must keep to, as one function
//! - [`http`]: a server with prepared replies; [`pages`]: one for real browsers; [`anthropic`]: such replies; [`strict`]: what providers refuse
//! - [`obedient`]: a model that does what prompts ask for; [`model_line`]: one that a benchmark steers
//! - [`measure`]: what benchmarks report
//! - [`tasks`]: one in the background; [`tmux`]: a real terminal
//! - [`skip`](mod@skip): what cannot be tried here; [`thorough`]: how much is repeated; [`wait`]: waiting that ends

pub mod anthropic;
pub mod bash;
pub mod contract;
mod control_file;
pub mod http;
pub mod measure;
pub mod model_line;
pub mod obedient;
pub mod pages;
pub mod project;
pub mod skip;
pub mod strict;
pub mod tasks;
pub mod testing_permission;
pub mod thorough;
pub mod tmux;
pub mod toys;
pub mod wait;

pub use bash::Bash;
pub use control_file::ControlFile;
pub use model_line::ModelLine;
pub use pages::PageServer;
pub use project::TempProject;
pub use skip::skip;
pub use testing_permission::TestingPermission;
pub use thorough::is_thorough;
pub use tmux::TmuxServer;
pub use wait::{bound_this_process, command, until, until_blocking};
