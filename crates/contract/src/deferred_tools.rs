//! Tools that are there and whose definitions are not sent yet.

use std::sync::{Arc, OnceLock};

use crate::DynTool;

/// The deferred tools of a session. A service: filled once the pool is made, since only then it is
/// known which they are.
#[derive(Debug, Default)]
pub struct DeferredTools(OnceLock<Vec<Arc<dyn DynTool>>>);

impl DeferredTools {
    /// One that is filled already.
    pub fn of(tools: Vec<Arc<dyn DynTool>>) -> Self {
        Self(OnceLock::from(tools))
    }

    /// These they are. Only the first word counts.
    pub fn fill(&self, tools: Vec<Arc<dyn DynTool>>) {
        let _ = self.0.set(tools);
    }

    /// Those there are.
    pub fn tools(&self) -> &[Arc<dyn DynTool>] {
        self.0.get().map_or(&[], Vec::as_slice)
    }
}
