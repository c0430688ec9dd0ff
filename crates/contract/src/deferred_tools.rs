//! Tools that are there and whose definitions are not sent yet.

use std::sync::{Arc, Mutex, PoisonError};

use crate::DynTool;

/// The deferred tools of a session as they are now. A service: the one who holds the pool sets it whenever the
/// pool changes, so that a tool that came later is found like one that was there from the start.
#[derive(Debug, Default)]
pub struct DeferredTools(Mutex<Arc<[Arc<dyn DynTool>]>>);

impl DeferredTools {
    /// One with these.
    pub fn of(tools: Vec<Arc<dyn DynTool>>) -> Self {
        Self(Mutex::new(tools.into()))
    }

    /// From now on these are deferred.
    pub fn set(&self, tools: Vec<Arc<dyn DynTool>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tools.into();
    }

    /// Those there are now.
    pub fn tools(&self) -> Arc<[Arc<dyn DynTool>]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
