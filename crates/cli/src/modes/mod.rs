//! The subcommands of `haft`, one module each.

pub(crate) mod acp;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod headless;
pub(crate) mod help;
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod permissions;
pub(crate) mod session_stats;
pub(crate) mod sessions;
pub(crate) mod tools;
pub(crate) mod undo;
