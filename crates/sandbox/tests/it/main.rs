//! Commands in real sandboxes.

mod ending;
mod lifetime;
mod output;
mod outside;
mod running;
mod setting;
mod soak;
