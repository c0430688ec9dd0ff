//! The tools that the model has been offered so far.
//!
//! Providers cache by prefix, so a definition keeps the position where it was first sent. Tools
//! that are activated or added later come after it. A removed tool stays in the list, because
//! removing it would invalidate the cache of everything after it; a call of it gets an error
//! result. Only a tool whose definition has changed is sent again, at its position, because a model
//! that knows an old schema makes invalid calls.

use std::sync::Arc;

use haft_contract::ToolSpec;

use super::{Pool, PoolTool};

/// The tools that a model has been offered, in the order in which they were first sent.
#[derive(Debug, Default, Clone)]
pub struct ToolOffer {
    tools: Vec<Arc<PoolTool>>,
}

impl ToolOffer {
    /// Updates the list to the tools offered now. Returns whether it has changed.
    pub fn update(&mut self, pool: &Pool, activated: &[String]) -> bool {
        let mut changed = false;
        for tool in pool.offered(activated) {
            let name = &tool.spec().name;
            match self.tools.iter_mut().find(|sent| sent.spec().name == *name) {
                Some(sent) if is_same(sent.spec(), tool.spec()) => {}
                Some(sent) => {
                    *sent = Arc::clone(tool);
                    changed = true;
                }
                None => {
                    self.tools.push(Arc::clone(tool));
                    changed = true;
                }
            }
        }
        changed
    }

    /// Returns the tools, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<PoolTool>> {
        self.tools.iter()
    }
}

impl PartialEq for ToolOffer {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<PoolTool>, &Arc<PoolTool>)| Arc::ptr_eq(a, b);
        self.tools.len() == other.tools.len() && self.tools.iter().zip(&other.tools).all(same)
    }
}

impl Eq for ToolOffer {}

/// Returns whether both tools have the same definition.
fn is_same(sent: &ToolSpec, now: &ToolSpec) -> bool {
    sent.description == now.description && sent.input_schema == now.input_schema
}
