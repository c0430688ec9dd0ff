//! Language servers: the tool `LSP`, and the report of new problems after edits.
//!
//! - [`setup`]: the settings of a session; `table`, `built_in`: the known servers
//! - `server`: a running, sandboxed server; `servers`: the servers of a session
//! - `diagnostics_diff`: finds new problems; `diagnostics_tracker`: the report after the calls of a
//!   reply, based on `file_scan`; `diagnostics_report`: its text
//! - `tool`, `queries`, `render`: the tool; `edit_plan`, `planned_files`: renames and code actions,
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
