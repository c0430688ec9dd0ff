//! Replaces telemetry in a build without it. If telemetry is requested, the user is warned.

use std::{convert::Infallible, sync::Arc};

use haft_contract::{Content, SessionId};
use haft_engine::CallListener;
use haft_models::{Model, Prices};

use crate::{Environment, SessionEvent, StopKind, event::EventEmitter};

/// Cannot be created in this build.
pub(crate) struct NoTelemetry(Infallible);

pub(crate) use NoTelemetry as SessionTelemetry;

impl NoTelemetry {
    pub(crate) fn from_environment(
        environment: &Environment,
        events: &Arc<EventEmitter>,
    ) -> Option<Arc<Self>> {
        let switch = "CLAUDE_CODE_ENABLE_TELEMETRY";
        if environment.is_on(switch) && !environment.is_on("OTEL_SDK_DISABLED") {
            events.warn(format!(
                "{switch} is set, but this build has no telemetry (feature `otel`): nothing is sent"
            ));
        }
        None
    }

    pub(crate) fn for_tool_session(&self) -> Arc<Self> {
        match self.0 {}
    }

    pub(crate) fn set_session(&self, _: SessionId) {
        match self.0 {}
    }

    pub(crate) fn on_event(&self, _: &SessionEvent) {
        match self.0 {}
    }

    pub(crate) fn on_prompt(&self, _: &[Content]) {
        match self.0 {}
    }

    pub(crate) fn wrap_model(
        self: &Arc<Self>,
        _: Arc<dyn Model>,
        _: &'static str,
        _: Prices,
    ) -> Arc<dyn Model> {
        match self.0 {}
    }

    pub(crate) fn listener(self: &Arc<Self>) -> Arc<dyn CallListener> {
        match self.0 {}
    }

    pub(crate) async fn close(&self, _: Option<StopKind>) {
        match self.0 {}
    }
}
