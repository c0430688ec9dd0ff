//! What the model has been sent so far.
//!
//! Providers cache by prefix, so a definition stays where it was first sent: what is activated or comes late
//! goes behind it, and a tool that is gone stays in the list, since taking it out would cost the cache of
//! everything behind it; a call of it is answered by saying that it is gone. Only a tool whose definition has
//! changed is sent anew, in its place: a model that knows an old schema makes wrong calls.

use std::sync::Arc;

use haft_contract::ToolSpec;

use super::{Pool, PoolTool};

/// The tools that a model has been offered, in the order in which they first were.
#[derive(Debug, Default, Clone)]
pub struct ToolOffer {
    tools: Vec<Arc<PoolTool>>,
}

impl ToolOffer {
    /// Takes over what is offered now. Is it another list than before?
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

    /// The tools, in order.
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

/// Do both have the same definition?
fn is_same(sent: &ToolSpec, now: &ToolSpec) -> bool {
    sent.description == now.description && sent.input_schema == now.input_schema
}
