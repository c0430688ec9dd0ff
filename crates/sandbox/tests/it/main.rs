//! Commands in real sandboxes.

mod running;
mod scenarios;
mod setting;
