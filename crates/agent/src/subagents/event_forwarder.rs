//! Forwards the events of a subagent.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use haft_contract::{BackgroundTasks, TaskUsage, TokenCount};
use haft_models::{Block, Usage};

use crate::{AgentEvent, AgentEventSink};

/// The identity of a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubagentInfo {
    /// The id.
    pub id: String,
    /// The agent kind.
    pub kind: String,
    /// The name under which it receives messages, in addition to its id.
    pub name: Option<String>,
    /// A short description of its task.
    pub description: String,
    /// The provider's id of the call that launched it.
    pub tool_use_id: Arc<str>,
}

/// Receives the events of a subagent, counts them, and forwards the relevant ones.
pub(super) struct EventForwarder {
    tag: Arc<SubagentInfo>,
    sink: Option<Arc<dyn AgentEventSink>>,
    notices: Option<Arc<BackgroundTasks>>,
    started: Instant,
    totals: Mutex<ForwardedTotals>,
}

/// The totals of a subagent's events so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ForwardedTotals {
    pub(super) tool_uses: u64,
    pub(super) models: Vec<String>,
    /// The most recent text.
    pub(super) text: String,
    /// The tokens of the last request.
    pub(super) tokens: TokenCount,
}

impl EventForwarder {
    pub(super) fn new(
        tag: Arc<SubagentInfo>,
        sink: Option<Arc<dyn AgentEventSink>>,
        notices: Option<Arc<BackgroundTasks>>,
    ) -> Self {
        Self {
            tag,
            sink,
            notices,
            started: Instant::now(),
            totals: Mutex::default(),
        }
    }

    pub(super) fn totals(&self) -> MutexGuard<'_, ForwardedTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the usage so far.
    pub(super) fn usage(&self) -> TaskUsage {
        let heard = self.totals();
        let millis = self.started.elapsed().as_millis();
        TaskUsage {
            total_tokens: heard.tokens.total(),
            tool_uses: heard.tool_uses,
            duration_ms: u64::try_from(millis).unwrap_or(u64::MAX),
        }
    }
}

impl AgentEventSink for EventForwarder {
    fn on_event(&self, event: &AgentEvent) {
        match event {
            AgentEvent::Model(haft_models::ModelEvent::Usage { usage }) => {
                self.totals().tokens = tokens(usage);
                return;
            }
            // Streaming events are frequent, and no front end shows those of a subagent.
            AgentEvent::Model(_) => return,
            AgentEvent::BlockCompleted(said) => {
                let mut heard = self.totals();
                if !heard.models.contains(&said.model) {
                    heard.models.push(said.model.clone());
                }
                if let Block::Text { text } = &said.block {
                    heard.text.clone_from(text);
                }
            }
            AgentEvent::CallFinished { .. } => self.totals().tool_uses += 1,
            _ => {}
        }
        if let Some(sink) = &self.sink {
            sink.on_event(&AgentEvent::Subagent {
                agent: Arc::clone(&self.tag),
                event: Box::new(event.clone()),
            });
        }
        if let (AgentEvent::CallFinished { finished, .. }, Some(notices)) = (event, &self.notices) {
            let tool = Some(finished.name.clone());
            notices.progress(&self.tag.id, self.usage(), tool);
        }
    }
}

fn tokens(usage: &Usage) -> TokenCount {
    TokenCount {
        input: usage.input,
        output: usage.output,
        cache_write: usage.cache_write,
        cache_read: usage.cache_read,
    }
}
