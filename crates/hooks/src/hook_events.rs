//! Events about running handlers, for front ends.

use std::sync::Arc;

use haft_contract::CallId;

use super::HookEventKind;

/// Receives events when handlers start, print and end.
pub trait HookEventSink: Send + Sync {
    /// Handles an event. Called synchronously while the handler runs, so it must return quickly.
    fn on_event(&self, news: &HookRunEvent);
}

/// An event of a running handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRunEvent {
    /// The id of this run.
    pub id: String,
    /// The event and the matched value, such as `PreToolUse:Bash`.
    pub name: String,
    /// The hook event.
    pub event: HookEventKind,
    /// A status message for the user while it runs.
    pub status: Option<String>,
    /// The stage of the run.
    pub stage: HookStage,
}

/// The stage of a handler run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookStage {
    /// The handler has started.
    Started,
    /// The handler has printed more; contains everything so far.
    Printed {
        /// Its standard output.
        stdout: String,
        /// Its standard error.
        stderr: String,
    },
    /// The handler has ended.
    Ended {
        /// Its standard output.
        stdout: String,
        /// Its standard error, or the reason of the failure.
        stderr: String,
        /// The exit code of a process that exited itself.
        code: Option<i32>,
        /// The outcome.
        outcome: HookOutcome,
    },
}

/// The outcome of a handler run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOutcome {
    /// The handler succeeded.
    Success,
    /// The handler failed or objected.
    Error,
    /// The handler timed out or was cancelled.
    Cancelled,
}

impl HookOutcome {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Reports one run of a handler. If it is dropped before the end, the run is reported as cancelled.
pub(super) struct HookReporter {
    ear: Option<Arc<dyn HookEventSink>>,
    news: HookRunEvent,
}

impl HookReporter {
    /// Reports the start of a run, if there is an observer.
    pub(super) fn start(
        ear: Option<Arc<dyn HookEventSink>>,
        event: HookEventKind,
        name: &str,
        status: Option<&str>,
    ) -> Self {
        let teller = Self {
            ear,
            news: HookRunEvent {
                id: CallId::new().to_string(),
                name: name.to_owned(),
                event,
                status: status.map(str::to_owned),
                stage: HookStage::Started,
            },
        };
        teller.report(HookStage::Started);
        teller
    }

    /// Returns whether there is an observer.
    pub(super) fn is_observed(&self) -> bool {
        self.ear.is_some()
    }

    pub(super) fn report(&self, stage: HookStage) {
        if let Some(ear) = &self.ear {
            let news = HookRunEvent {
                stage,
                ..self.news.clone()
            };
            ear.on_event(&news);
        }
    }

    /// Reports the end of the run.
    pub(super) fn finish(mut self, stage: HookStage) {
        self.report(stage);
        self.ear = None;
    }
}

impl Drop for HookReporter {
    fn drop(&mut self) {
        self.report(HookStage::Ended {
            stdout: String::new(),
            stderr: String::new(),
            code: None,
            outcome: HookOutcome::Cancelled,
        });
    }
}
