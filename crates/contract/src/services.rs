//! The services that a call may use.
//!
//! Services are stored by type. This crate knows only those that it defines. A tool family adds its
//! own services (the journal, the search engine) and requests them by their types. Thus a subagent
//! can have the same tools with its own ledger.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use crate::{
    ToolError,
    approval::{Approver, NoApprover},
};

/// The services of one session or subagent. Cheap to clone.
#[derive(Clone)]
pub struct Services {
    approver: Arc<dyn Approver>,
    others: Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Services {
    /// Creates an empty set of services without a user to ask.
    pub fn none() -> Self {
        Self {
            approver: Arc::new(NoApprover),
            others: Arc::default(),
        }
    }

    /// Sets the approver.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// Adds a service, replacing any other of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, service: Arc<T>) -> Self {
        Arc::make_mut(&mut self.others).insert(TypeId::of::<T>(), service);
        self
    }

    /// Returns the approver, which asks the user.
    pub fn approver(&self) -> &Arc<dyn Approver> {
        &self.approver
    }

    /// Returns the service of this type, or an error that names it.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        self.others
            .get(&TypeId::of::<T>())
            .and_then(|service| Arc::clone(service).downcast().ok())
            .ok_or_else(|| ToolError::NoService(plain_name(type_name::<T>())))
    }
}

/// Returns the name of a type for readers who do not know Rust: without its path and wrappers.
fn plain_name(path: &'static str) -> &'static str {
    let path = path.trim_end_matches('>');
    path.rsplit([':', '<', ' ']).next().unwrap_or(path)
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("others", &self.others.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_found_by_its_type_and_a_missing_one_is_named() {
        let services = Services::none().with(Arc::new(7_u32));
        assert_eq!(*services.get::<u32>().unwrap(), 7);
        let error = services.get::<String>().unwrap_err().to_string();
        assert_eq!(error, "the service String is not available in this session");
        let error = services.get::<Arc<dyn Approver>>().err().unwrap();
        assert!(error.to_string().contains("service Approver"), "{error}");
    }
}
