//! Ends a search early: a deadline, a cancel signal, and the record of the one that took effect.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The conditions under which a search must end before it has finished.
#[derive(Clone)]
pub struct StopCondition {
    deadline: Option<Instant>,
    cancelled: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl StopCondition {
    /// Never ends the search early.
    pub fn never() -> Self {
        Self {
            deadline: None,
            cancelled: None,
        }
    }

    /// Ends the search when `timeout` has passed from now.
    pub fn after(timeout: Duration) -> Self {
        // A timeout beyond the range of `Instant` means no timeout.
        Self {
            deadline: Instant::now().checked_add(timeout),
            cancelled: None,
        }
    }

    /// Also ends the search when `cancelled` returns true. The function is called often and from
    /// several threads, so it must be cheap; once true, it must stay true.
    #[must_use]
    pub fn or_if(mut self, cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.cancelled = Some(Arc::new(cancelled));
        self
    }

    fn reason(&self) -> Option<SearchStop> {
        if self.cancelled.as_ref().is_some_and(|cancelled| cancelled()) {
            return Some(SearchStop::Cancelled);
        }
        self.deadline
            .filter(|deadline| Instant::now() >= *deadline)
            .map(|_| SearchStop::Timeout)
    }
}

impl fmt::Debug for StopCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopCondition")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Reports whether everything that the query covers was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchCompletion {
    /// Everything was searched.
    Complete,
    /// The search ended early, for this reason.
    Stopped(SearchStop),
}

/// The reason why a search ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStop {
    /// The deadline passed.
    Timeout,
    /// The search was cancelled.
    Cancelled,
    /// The requested number of rows was reached. The rows are final; only what follows them is
    /// unknown.
    Limit,
}

/// A [`StopCondition`] shared by the threads of one search. It records the first reason that took
/// effect in any of them.
#[derive(Clone, Debug)]
pub(crate) struct StopFlag {
    stop: StopCondition,
    met: Arc<OnceLock<SearchStop>>,
}

impl StopFlag {
    pub(crate) fn new(stop: &StopCondition) -> Self {
        Self {
            stop: stop.clone(),
            met: Arc::default(),
        }
    }

    pub(crate) fn must_stop(&self) -> bool {
        if self.met.get().is_some() {
            return true;
        }
        match self.stop.reason() {
            Some(reason) => {
                // If another thread was faster, its reason stays.
                let _ = self.met.set(reason);
                true
            }
            None => false,
        }
    }

    /// Returns whether a thread has stopped, without checking the conditions.
    pub(crate) fn has_stopped(&self) -> bool {
        self.met.get().is_some()
    }

    /// Returns the completion of the search. Only a stop that a thread acted on matters: if the
    /// deadline passes after the last file was read, the search is complete.
    pub(crate) fn completion(&self) -> SearchCompletion {
        self.met.get().map_or(SearchCompletion::Complete, |reason| {
            SearchCompletion::Stopped(*reason)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_first_reason_met_stays() {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&flag);
        let watch =
            StopFlag::new(&StopCondition::never().or_if(move || seen.load(Ordering::Relaxed)));
        assert!(!watch.must_stop());
        assert_eq!(watch.completion(), SearchCompletion::Complete);
        flag.store(true, Ordering::Relaxed);
        assert!(watch.must_stop());
        flag.store(false, Ordering::Relaxed);
        assert!(watch.clone().must_stop(), "a clone shares what was met");
        assert_eq!(
            watch.completion(),
            SearchCompletion::Stopped(SearchStop::Cancelled)
        );
    }

    #[test]
    fn a_passed_deadline_is_a_timeout() {
        let watch = StopFlag::new(&StopCondition::after(Duration::ZERO));
        assert!(watch.must_stop());
        assert_eq!(
            watch.completion(),
            SearchCompletion::Stopped(SearchStop::Timeout)
        );
    }

    #[test]
    fn an_endless_timeout_never_stops() {
        assert!(!StopFlag::new(&StopCondition::after(Duration::MAX)).must_stop());
    }
}
