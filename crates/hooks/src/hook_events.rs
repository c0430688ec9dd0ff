//! What is reported of handlers while they run.

use std::sync::Arc;

use haft_contract::CallId;

use super::HookMoment;

/// Observes handlers as they start, print and end.
pub trait HearHooks: Send + Sync {
    /// Something happened. Called from wherever the handler is waited for: be quick.
    fn hear(&self, news: &HookNews);
}

/// Something that happened to a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookNews {
    /// This run of it.
    pub id: String,
    /// The event and what was matched, such as `PreToolUse:Bash`.
    pub name: String,
    /// The event.
    pub event: HookMoment,
    /// What a person may be shown while it runs.
    pub status: Option<String>,
    /// What happened.
    pub stage: HookStage,
}

/// How far a handler is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookStage {
    /// It starts.
    Started,
    /// It has printed more: all of it so far.
    Printed {
        /// What it said.
        stdout: String,
        /// Its standard error.
        stderr: String,
    },
    /// It is over.
    Ended {
        /// What it said.
        stdout: String,
        /// Its standard error, or why it failed.
        stderr: String,
        /// Of a process that ended by itself.
        code: Option<i32>,
        /// How it ended.
        outcome: HookOutcome,
    },
}

/// How a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOutcome {
    /// Well.
    Success,
    /// Badly, or with an objection.
    Error,
    /// It took too long, or no one waited for it any more.
    Cancelled,
}

impl HookOutcome {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Reports one run of a handler. One that is dropped before its end was cancelled.
pub(super) struct Teller {
    ear: Option<Arc<dyn HearHooks>>,
    news: HookNews,
}

impl Teller {
    /// Reports that it starts, if anyone observes.
    pub(super) fn start(
        ear: Option<Arc<dyn HearHooks>>,
        event: HookMoment,
        name: &str,
        status: Option<&str>,
    ) -> Self {
        let teller = Self {
            ear,
            news: HookNews {
                id: CallId::new().to_string(),
                name: name.to_owned(),
                event,
                status: status.map(str::to_owned),
                stage: HookStage::Started,
            },
        };
        teller.tell(HookStage::Started);
        teller
    }

    /// Is there anyone to tell?
    pub(super) fn is_heard(&self) -> bool {
        self.ear.is_some()
    }

    pub(super) fn tell(&self, stage: HookStage) {
        if let Some(ear) = &self.ear {
            let news = HookNews {
                stage,
                ..self.news.clone()
            };
            ear.hear(&news);
        }
    }

    /// Tells that it is over.
    pub(super) fn end(mut self, stage: HookStage) {
        self.tell(stage);
        self.ear = None;
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.tell(HookStage::Ended {
            stdout: String::new(),
            stderr: String::new(),
            code: None,
            outcome: HookOutcome::Cancelled,
        });
    }
}
