//! Language servers: the tool `LSP`, and the report of new problems after edits.
//!
//! - [`setup`]: the settings of a session; `table`, `built_in`: the known servers
//! - `server`: a running server, confined; `servers`: the servers of a session and their documents
//! - `problems`: finding new problems; `follow`: the report after the calls of a reply, based on
//!   `file_looks`; `problem_report`: its text
//! - `tool`, `operations`, `render`: the tool; `plan`, `wanted_files`: renames and code actions,
//!   which `ReplaceInFiles` applies

mod built_in;
mod diagnostics_diff;
mod diagnostics_report;
mod diagnostics_tracker;
mod edit_plan;
mod file_scan;
mod planned_files;
mod queries;
mod render;
mod server;
mod servers;
mod setup;
mod table;
mod tool;

pub use servers::{LanguageServers, installed_servers};
pub use setup::LanguageServerSetup;
pub(crate) use tool::Lsp;
