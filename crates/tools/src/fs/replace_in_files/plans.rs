//! Plans between preview and application.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_journal::ContentHash;

use super::rewrite::Rewrite;

/// How many plans wait at most; the oldest goes first.
const KEPT: usize = 32;

/// What a preview promised: of these files as they were, this rewrite or the contents they have.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) id: String,
    pub(super) rewrite: Option<Rewrite>,
    pub(super) files: Vec<PlannedFile>,
}

#[derive(Debug, Clone)]
pub(super) struct PlannedFile {
    pub(super) path: PathBuf,
    /// What it held; `None`: there must be none.
    pub(super) hash: Option<ContentHash>,
    pub(super) content: PlannedContent,
}

/// What a file shall hold.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "code"),
    expect(dead_code, reason = "only plans of language servers say it whole")
)]
pub(super) enum PlannedContent {
    /// What the rewrite of the plan makes of it.
    Rewritten,
    /// This, which someone else found out.
    Whole {
        bytes: Arc<[u8]>,
        /// In how many places it differs.
        places: usize,
        /// A new one gets the mode of this one, which goes.
        moved_from: Option<PathBuf>,
    },
    /// It goes.
    Nothing,
}

/// The plans of a session.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<VecDeque<Plan>>);

impl Plans {
    fn plans(&self) -> MutexGuard<'_, VecDeque<Plan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep(&self, plan: Plan) {
        let mut plans = self.plans();
        plans.push_back(plan);
        while plans.len() > KEPT {
            plans.pop_front();
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<Plan> {
        self.plans().iter().find(|plan| plan.id == id).cloned()
    }

    /// A plan that was carried out, or can never be again.
    pub(super) fn forget(&self, id: &str) {
        self.plans().retain(|plan| plan.id != id);
    }
}
