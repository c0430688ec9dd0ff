//! What people keep in folders for their agent: found and read, with a warning for each thing that is wrong.
//!
//! Nothing here runs anything, and nothing that lies in a folder can stop the rest from being read: what
//! is wrong with a file is a [`Warning`] that names it. Files are read bounded, and only regular ones.
//!
//! # Layout
//! - [`ExtensionPlaces`]: where to look; [`plugins`]: folders that came from elsewhere
//! - [`front_matter`], [`markdown`]: how such files are written
//! - [`agents`]: kinds of subagents
//! - [`skills`]: skills and commands; [`slash`](fn@slash): prompts that call them
//! - [`memory`]: what every model is to know here
//! - [`styles`]: how the model is to speak

#![warn(missing_docs)]

pub mod agents;
pub mod front_matter;
pub mod markdown;
pub mod memory;
mod patterns;
mod places;
pub mod plugins;
mod reading;
pub mod skills;
mod slash;
pub mod styles;
mod warning;

pub use agents::{AgentDefinition, Agents};
pub use places::{ExtensionOrigin, ExtensionPlaces, ExtensionPlugin, Sources};
pub use skills::{Skill, Skills};
pub use slash::{Slash, slash};
pub use warning::Warning;
