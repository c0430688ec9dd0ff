//! Commands in real sandboxes.

mod running;
mod setting;
