//! Progress of running calls, as events. The agent of a call is known from the events that report
//! the call.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_agent::{AgentEvent, SubagentInfo};
use haft_contract::{CallId, ProgressSender, ProgressUpdate, progress};
use tokio::task::JoinHandle;

use crate::{SessionEvent, event::EventEmitter};

/// Calls that have started and are not answered.
#[derive(Default)]
pub(crate) struct ProgressCalls(Mutex<HashMap<CallId, ProgressCall>>);

#[derive(Clone)]
struct ProgressCall {
    tool_use_id: String,
    agent: Option<Arc<SubagentInfo>>,
}

impl ProgressCalls {
    /// Updates the calls from an event.
    pub(crate) fn record_event(&self, event: &AgentEvent) {
        self.record_agent_event(event, None);
    }

    fn record_agent_event(&self, event: &AgentEvent, by: Option<&Arc<SubagentInfo>>) {
        match event {
            AgentEvent::CallBound {
                call, tool_use_id, ..
            } => {
                let open = ProgressCall {
                    tool_use_id: tool_use_id.clone(),
                    agent: by.cloned(),
                };
                self.calls().insert(*call, open);
            }
            AgentEvent::CallFinished { finished, .. } => {
                self.calls().remove(&finished.call);
            }
            AgentEvent::Subagent { agent, event } => self.record_agent_event(event, Some(agent)),
            _ => {}
        }
    }

    /// Returns the event for a progress update. `None`: the call is not open.
    fn event(&self, call: CallId, update: ProgressUpdate) -> Option<AgentEvent> {
        let ProgressCall { tool_use_id, agent } = self.calls().get(&call).cloned()?;
        let event = AgentEvent::Progress {
            call,
            tool_use_id,
            update,
        };
        Some(match agent {
            None => event,
            Some(agent) => AgentEvent::Subagent {
                agent,
                event: Box::new(event),
            },
        })
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<CallId, ProgressCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forwards updates until it is dropped.
pub(crate) struct ProgressForwarder(JoinHandle<()>);

impl Drop for ProgressForwarder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns a sender for the progress of calls, and the guard of the task that forwards it: as
/// events, and to the embedder's receiver, which gets only updates of the main agent.
pub(crate) fn forward_progress(
    events: &Arc<EventEmitter>,
    given: Option<ProgressSender>,
) -> (ProgressSender, ProgressForwarder) {
    let (progress, mut updates) = progress::channel(CallId::new());
    let events = Arc::clone(events);
    let task = haft_contract::spawn_boxed(async move {
        while let Some((call, update)) = updates.recv().await {
            let event = events.open_calls.event(call, update.clone());
            if let Some(given) = &given
                && !matches!(event, Some(AgentEvent::Subagent { .. }))
            {
                given.for_call(call).report(update);
            }
            if let Some(event) = event {
                events.emit(&SessionEvent::Agent(event));
            }
        }
    });
    (progress.including_subagents(), ProgressForwarder(task))
}
