//! Tracks the running calls and their run times.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use haft_engine::{
    CallObserver, CallResult,
    pipeline::{AdmittedCall, PreparedCall},
};
use tokio::{sync::Notify, time::Instant};

use crate::{AgentEvent, AgentEventSink, transcript::Transcript};

/// The interval at which running calls are reported.
pub(crate) const EVERY: Duration = Duration::from_secs(5);

/// Observes calls for the transcript and tracks the running ones.
pub(crate) struct RunningCallTracker {
    transcript: Arc<Transcript>,
    calls: Mutex<Vec<TrackedCall>>,
    /// Events of validated calls that were not reported yet.
    bound: Mutex<Vec<AgentEvent>>,
    /// Events of started calls that were not reported yet.
    started: Mutex<Vec<AgentEvent>>,
    wakes: Notify,
}

struct TrackedCall {
    id: String,
    name: String,
    since: Instant,
}

impl RunningCallTracker {
    pub(crate) fn new(transcript: &Arc<Transcript>) -> Self {
        Self {
            transcript: Arc::clone(transcript),
            calls: Mutex::default(),
            bound: Mutex::default(),
            started: Mutex::default(),
            wakes: Notify::new(),
        }
    }

    /// Reports all running calls.
    pub(crate) fn report_running(&self, sink: &dyn AgentEventSink) {
        // The lock is released first, because the sink may be slow.
        let events: Vec<AgentEvent> = self
            .calls()
            .iter()
            .map(|call| AgentEvent::CallRunning {
                tool_use_id: call.id.clone(),
                tool_name: call.name.clone(),
                elapsed: call.since.elapsed(),
            })
            .collect();
        for event in &events {
            sink.on_event(event);
        }
    }

    /// Reports calls that were validated since the last report.
    pub(crate) fn report_bound(&self, sink: &dyn AgentEventSink) {
        let events = std::mem::take(&mut *self.bound_calls());
        for event in &events {
            sink.on_event(event);
        }
    }

    /// Waits until a call has started that was not reported yet.
    pub(crate) async fn wait_for_start(&self) {
        self.wakes.notified().await;
    }

    /// Reports calls that have started since the last report.
    pub(crate) fn report_started(&self, sink: &dyn AgentEventSink) {
        let events = std::mem::take(&mut *self.started_calls());
        for event in &events {
            sink.on_event(event);
        }
    }

    fn started_calls(&self) -> MutexGuard<'_, Vec<AgentEvent>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bound_calls(&self) -> MutexGuard<'_, Vec<AgentEvent>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, Vec<TrackedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallObserver for RunningCallTracker {
    fn on_bound(&self, call: &PreparedCall) {
        let (id, tool_use_id) = call.ids();
        let event = AgentEvent::CallBound {
            call: id,
            tool_use_id,
            tool_name: call.name().to_owned(),
            card: call.card(),
        };
        self.bound_calls().push(event);
    }

    fn on_started(&self, call: &AdmittedCall) {
        self.transcript.on_started(call);
        let (_, id) = call.call().ids();
        let event = AgentEvent::CallStarted {
            tool_use_id: id.clone(),
        };
        self.started_calls().push(event);
        self.wakes.notify_one();
        self.calls().push(TrackedCall {
            id,
            name: call.call().name().to_owned(),
            since: Instant::now(),
        });
    }

    fn on_ended(&self, finished: &CallResult) {
        self.calls().retain(|call| call.id != finished.id);
        self.transcript.on_ended(finished);
    }
}
