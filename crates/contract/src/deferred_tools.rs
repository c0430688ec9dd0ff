//! Tools that are available but whose definitions are not sent to the model yet.

use std::sync::{Arc, Mutex, PoisonError};

use crate::DynTool;

/// The currently deferred tools of a session. A service: the owner of the pool updates it whenever
/// the pool changes, so that a tool search also finds tools that were added later.
#[derive(Debug, Default)]
pub struct DeferredTools(Mutex<Arc<[Arc<dyn DynTool>]>>);

impl DeferredTools {
    /// Creates the service with these tools.
    pub fn new(tools: Vec<Arc<dyn DynTool>>) -> Self {
        Self(Mutex::new(tools.into()))
    }

    /// Replaces the deferred tools.
    pub fn set(&self, tools: Vec<Arc<dyn DynTool>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tools.into();
    }

    /// Returns the currently deferred tools.
    pub fn tools(&self) -> Arc<[Arc<dyn DynTool>]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
