//! What a language server knows: the tool `LSP`, and new problems after edits.
//!
//! - [`setup`]: what a session says of its servers; `table`, `built_in`: which there are
//! - `server`: one that runs, confined; `servers`: those of a session, and the documents they have
//! - `problems`: which problems are new; `follow`: the report after the calls of a reply, of `file_looks`;
//!   `problem_report`: its words
//! - `tool`, `operations`, `render`: the tool; `plan`, `wanted_files`: renames and code actions, for
//!   `ReplaceInFiles` to carry out

mod built_in;
mod file_looks;
mod follow;
mod operations;
mod plan;
mod problem_report;
mod problems;
mod render;
mod server;
mod servers;
mod setup;
mod table;
mod tool;
mod wanted_files;

pub use servers::{LanguageServers, installed_servers};
pub use setup::CodeSetup;
pub(crate) use tool::Lsp;
