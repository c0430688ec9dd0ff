//! What people lay in folders for their agent: found, read, and told what is wrong with it.

mod agents;

pub use agents::{AgentDefinition, Origin};
