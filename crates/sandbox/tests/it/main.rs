//! Commands in real sandboxes.

mod ending;
mod lifetime;
mod outside;
mod running;
mod setting;
mod soak;
