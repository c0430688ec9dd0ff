//! Storage on disk for results that are too long for the model. The whole text is stored, and the
//! model reads its path.

mod preview;
mod store;

pub use store::{ResultBudget, ResultStore};
