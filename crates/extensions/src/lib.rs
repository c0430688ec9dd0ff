//! Extensions that users keep in folders: memory files, skills, agents, plugins and output styles.
//! This crate finds and reads them, and reports each error as a warning.
//!
//! Nothing here runs code, and no file can prevent the others from being read: an error in a file
//! is a [`ExtensionWarning`] that names it. Only regular files are read, up to a size limit.
//!
//! # Layout
//! - [`ExtensionPlaces`]: the folders to search; [`plugins`]: folders that were installed from
//!   elsewhere
//! - [`front_matter`], [`markdown`]: the file formats
//! - [`agents`]: agent kinds
//! - [`skills`]: skills and commands; [`slash`](fn@slash): prompts that call them
//! - [`memory`]: memory files with instructions for the model
//! - [`styles`]: output styles of the model

#![warn(missing_docs)]

pub mod agents;
mod bounded_read;
mod extension_places;
pub mod front_matter;
pub mod markdown;
pub mod memory;
mod patterns;
pub mod plugins;
pub mod skills;
mod slash;
pub mod styles;
mod warning;

pub use agents::{AgentDefinition, Agents};
pub use extension_places::{EnabledSources, ExtensionOrigin, ExtensionPlaces, ExtensionPlugin};
pub use skills::{Skill, Skills};
pub use slash::{SlashCall, slash};
pub use warning::ExtensionWarning;
