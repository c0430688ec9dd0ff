//! Commands whose changes the sandbox witnesses: the log of a command becomes an undo unit.
//!
//! - `log_summary`, `log_tree`: the log as names and objects, and the moves of directories
//! - `trees`: the touched entries before and after; `fold`: the records of the changes
//! - `unit`: a running command, and commands that a crash interrupted

mod fold;
mod log_summary;
mod log_tree;
mod overlap;
mod trees;
mod unit;

pub(crate) use fold::identity;
pub use unit::WitnessUnit;
pub(crate) use unit::{FinishedUnit, folder_name};
