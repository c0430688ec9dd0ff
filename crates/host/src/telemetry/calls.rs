//! Telemetry of finished calls: the tool, the decision, the duration and the outcome.

use std::time::SystemTime;

use haft_engine::{CallListener, CallResult, DenialSource, EndedCall};
use haft_telemetry::{Attribute, EventSeverity, MeasureUnit, SpanKind};

use super::{MAX_OPEN, RecordedSpan, SessionTelemetry, milliseconds, shortened, span_of};

impl CallListener for SessionTelemetry {
    fn on_call_ended(&self, ended: &EndedCall<'_>) {
        let result = ended.result;
        let parent = {
            let mut state = self.state();
            if !self.is_tool_session && state.recorded.len() < MAX_OPEN {
                state.recorded.insert(result.call);
            }
            let agent = ended.agent.id.as_ref();
            agent.and_then(|agent| state.launches.get(agent).copied())
        };
        let (decision, source) = decided(ended);
        let mut attributes = about(result);
        attributes.push(("haft.decision", decision.into()));
        attributes.push(("haft.decision.source", source.clone().into()));
        let waited = result.metadata.waited;
        attributes.push(("haft.waited_ms", milliseconds(waited)));
        if let Some(kind) = &ended.agent.kind {
            attributes.push(("gen_ai.agent.name", kind.as_str().into()));
        }
        if let Some(id) = &ended.agent.id {
            attributes.push(("gen_ai.agent.id", id.as_str().into()));
        }
        let config = self.telemetry.config();
        if config.with_tool_inputs {
            let input = shortened(&ended.input.to_string());
            attributes.push(("gen_ai.tool.call.arguments", input.into()));
        }
        if config.with_tool_results {
            let text = shortened(&result.text());
            attributes.push(("gen_ai.tool.call.result", text.into()));
        }
        let logged = vec![
            ("gen_ai.tool.name", result.name.as_str().into()),
            ("gen_ai.tool.call.id", result.id.as_str().into()),
            ("haft.decision", decision.into()),
            ("haft.decision.source", source.into()),
        ];
        self.log("haft.tool_decision", EventSeverity::Info, logged);
        self.record(result, ended.began, parent, attributes);
    }

    fn on_call_not_evaluated(&self, result: &CallResult) {
        // In sessions with an agent it is recorded when it is answered, with the right parent span.
        if self.is_tool_session {
            self.record_unjudged(result, None);
        }
    }
}

impl SessionTelemetry {
    /// Records a call that was answered before its permission was evaluated: it is invalid or was
    /// interrupted.
    pub(super) fn record_unjudged(
        &self,
        result: &CallResult,
        parent: Option<haft_telemetry::SpanId>,
    ) {
        self.record(result, SystemTime::now(), parent, about(result));
    }

    fn record(
        &self,
        result: &CallResult,
        began: SystemTime,
        parent: Option<haft_telemetry::SpanId>,
        mut attributes: Vec<Attribute>,
    ) {
        let duration = result.metadata.duration;
        let outcome = outcome(result);
        let error = (outcome != "success").then(|| outcome.to_owned());
        if let Some(error) = &error {
            attributes.push(("error.type", error.as_str().into()));
        }
        let name: Attribute = ("gen_ai.tool.name", result.name.as_str().into());
        let of: Vec<Attribute> = vec![name, ("haft.outcome", outcome.into())];
        let severity = match error {
            Some(_) => EventSeverity::Warn,
            None => EventSeverity::Info,
        };
        let mut logged = of.clone();
        logged.push(("gen_ai.tool.call.id", result.id.as_str().into()));
        logged.push(("haft.duration_ms", milliseconds(duration)));
        self.log("haft.tool_result", severity, logged);
        self.telemetry
            .count("haft.tool.calls", "{call}", of.clone(), 1.0);
        let seconds = duration.as_secs_f64();
        self.telemetry
            .measure("haft.tool.duration", MeasureUnit::Seconds, of, seconds);
        self.span(RecordedSpan {
            id: span_of(result.call),
            parent,
            name: format!("execute_tool {}", result.name),
            kind: SpanKind::Internal,
            start: began,
            end: began + duration,
            attributes,
            error,
        });
    }
}

fn about(result: &CallResult) -> Vec<Attribute> {
    // Built-in tools are functions of this program; tools of servers are extensions.
    let kind = match result.name.starts_with("mcp__") {
        true => "extension",
        false => "function",
    };
    vec![
        ("gen_ai.operation.name", "execute_tool".into()),
        ("gen_ai.tool.name", result.name.as_str().into()),
        ("gen_ai.tool.call.id", result.id.as_str().into()),
        ("gen_ai.tool.type", kind.into()),
    ]
}

/// Returns the name of a call's outcome.
fn outcome(result: &CallResult) -> &'static str {
    match (&result.metadata.denied, result.is_error) {
        (Some(_), _) => "refused",
        (None, true) if result.metadata.deferred => "deferred",
        (None, true) => "error",
        (None, false) => "success",
    }
}

/// Returns whether a call was permitted, and the source of the decision.
fn decided(ended: &EndedCall<'_>) -> (&'static str, String) {
    match (&ended.result.metadata.denied, ended.approval) {
        (Some(DenialSource::Person), _) => ("reject", "user_reject".to_owned()),
        (Some(DenialSource::Hook), _) => ("reject", "hook".to_owned()),
        (Some(DenialSource::Unasked { kind, .. }), _) => ("reject", kind.clone().into_owned()),
        (None, Some(approval)) => ("accept", approval.name().to_owned()),
        // The call was deferred, invalid, or interrupted during admission.
        (None, None) => ("none", "none".to_owned()),
    }
}
