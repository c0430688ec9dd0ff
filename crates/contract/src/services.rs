//! What a call may reach beyond its input.
//!
//! Services are kept by type. The contract knows only those it defines itself; a tool family brings
//! its own (the journal, the search engine) and asks for it by that type, so that a subagent can be
//! given the same tools with a ledger of its own, and this crate need not know what a journal is.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use crate::{
    ToolError,
    approval::{Approver, NobodyToAsk},
};

/// The services of one session or subagent. Cheap to clone.
#[derive(Clone)]
pub struct Services {
    approver: Arc<dyn Approver>,
    others: Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Services {
    /// No services, and no one to ask.
    pub fn none() -> Self {
        Self {
            approver: Arc::new(NobodyToAsk),
            others: Arc::default(),
        }
    }

    /// The same with someone to ask.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// The same with one more service, in place of any other of its type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, service: Arc<T>) -> Self {
        Arc::make_mut(&mut self.others).insert(TypeId::of::<T>(), service);
        self
    }

    /// Who asks the person.
    pub fn approver(&self) -> &Arc<dyn Approver> {
        &self.approver
    }

    /// The service of this type, or an error that names it.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        self.others
            .get(&TypeId::of::<T>())
            .and_then(|service| Arc::clone(service).downcast().ok())
            .ok_or_else(|| ToolError::NoService(plain_name(type_name::<T>())))
    }
}

/// The name of a type for those who read no Rust: without its path, and of what it is wrapped in.
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
