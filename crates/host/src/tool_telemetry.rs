//! Telemetry of sessions of tools, which have no model and no runs. It is shared by all sessions of
//! a process.

use std::sync::{Arc, OnceLock};

use crate::{Environment, StopKind, event::EventEmitter, telemetry::SessionTelemetry};

/// Exports telemetry of sessions of tools, if the variables request it. All clones share one
/// exporter.
#[derive(Clone, Default)]
pub struct ToolTelemetry(Arc<OnceLock<Option<Arc<SessionTelemetry>>>>);

impl ToolTelemetry {
    /// Returns the telemetry of a session. The first session determines the exporter.
    pub(crate) fn for_session(
        &self,
        environment: &Environment,
        events: &Arc<EventEmitter>,
    ) -> Option<Arc<SessionTelemetry>> {
        let all = self
            .0
            .get_or_init(|| SessionTelemetry::from_environment(environment, events));
        all.as_ref().map(|all| all.for_tool_session())
    }

    /// Sends the remaining data, if there is time.
    pub async fn close(&self, stopped: Option<StopKind>) {
        if let Some(Some(all)) = self.0.get() {
            all.close(stopped).await;
        }
    }
}
