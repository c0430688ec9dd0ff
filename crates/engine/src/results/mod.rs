//! What is too long for the model is kept on disk, whole, and the model reads where.

mod preview;
mod store;

pub use store::{Budget, ResultStore};
