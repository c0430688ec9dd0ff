//! What a language server knows: the tool `LSP`, and new problems after edits.
//!
//! - [`setup`]: what a session says of its servers; `table`: which there are
//! - `server`: one that runs, confined; `servers`: those of a session, and the documents they have
//! - `problems`: which problems are new; `follow`: the report after the calls of a reply
//! - `tool`, `operations`, `render`: the tool; `plan`: renames and code actions, for `ReplaceInFiles` to carry out

mod follow;
mod operations;
mod plan;
mod problems;
mod render;
mod server;
mod servers;
mod setup;
mod table;
mod tool;

pub use servers::{LanguageServers, installed_servers};
pub use setup::CodeSetup;
pub(crate) use tool::Lsp;
