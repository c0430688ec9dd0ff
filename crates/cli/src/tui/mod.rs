//! The interactive terminal: `haft` on a terminal. A face of a session: it decides nothing.
//!
//! - `look`, `settings`: how things are drawn
//! - `overlay`: what a view on a screen of its own is

#![allow(dead_code, reason = "the event loop uses them")]

mod complete;
mod copy;
mod external_editor;
mod history_file;
mod keybindings;
mod look;
mod notify;
mod overlay;
pub(crate) mod plain;
mod settings;
mod status_line;
mod theme;
mod view;
