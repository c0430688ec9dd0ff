//! Plans between preview and application.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_journal::ContentHash;

use super::rewrite::FileRewrite;

/// The maximum number of stored plans; the oldest is dropped first.
const MAX_PLANS: usize = 32;

/// A previewed change: the state of the files at that time, with the rewrite or the new contents.
#[derive(Debug, Clone)]
pub(super) struct ReplacePlan {
    pub(super) id: String,
    pub(super) rewrite: Option<FileRewrite>,
    pub(super) files: Vec<PlannedFile>,
}

#[derive(Debug, Clone)]
pub(super) struct PlannedFile {
    pub(super) path: PathBuf,
    /// The hash at the time of the preview; `None` if the file must not exist.
    pub(super) hash: Option<ContentHash>,
    pub(super) content: PlannedContent,
}

/// The new content of a file.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "code"),
    expect(
        dead_code,
        reason = "only plans of language servers contain whole files"
    )
)]
pub(super) enum PlannedContent {
    /// The result of the plan's rewrite.
    Rewritten,
    /// This content, which another tool computed.
    Whole {
        bytes: Arc<[u8]>,
        /// The number of changed places.
        places: usize,
        /// The file that is moved here, whose mode the new file gets.
        moved_from: Option<PathBuf>,
    },
    /// The file is removed.
    Nothing,
}

/// The plans of a session.
#[derive(Debug, Default)]
pub(crate) struct ReplacePlans(Mutex<VecDeque<ReplacePlan>>);

impl ReplacePlans {
    fn plans(&self) -> MutexGuard<'_, VecDeque<ReplacePlan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn store(&self, plan: ReplacePlan) {
        let mut plans = self.plans();
        plans.push_back(plan);
        while plans.len() > MAX_PLANS {
            plans.pop_front();
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<ReplacePlan> {
        self.plans().iter().find(|plan| plan.id == id).cloned()
    }

    /// Drops a plan that was applied.
    pub(super) fn remove(&self, id: &str) {
        self.plans().retain(|plan| plan.id != id);
    }
}
