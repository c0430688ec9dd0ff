//! The interactive terminal: `haft` on a terminal. A face of a session: it decides nothing.
//!
//! - `look`, `settings`: how things are drawn
//! - `overlay`: what a view on a screen of its own is

mod look;
mod overlay;
mod settings;
