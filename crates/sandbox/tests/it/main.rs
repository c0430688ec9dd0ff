//! Commands in real sandboxes.

mod lifetime;
mod outside;
mod running;
mod setting;
mod soak;
