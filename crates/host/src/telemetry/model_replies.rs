//! Telemetry of model replies: requests, tokens, cost, retries and failures.

use std::{
    fmt,
    sync::Arc,
    time::{Instant, SystemTime},
};

use futures_util::StreamExt;
use haft_contract::CancellationToken;
use haft_models::{
    EventStream, Model, ModelError, ModelEvent, ModelRequest, Prices, StopReason, Usage,
};
use haft_telemetry::{Attribute, AttributeValue, EventSeverity, MeasureUnit, SpanId, SpanKind};
use serde_json::Value;

use super::{RecordedSpan, SessionTelemetry, milliseconds, usage_attributes};

pub(super) fn wrap_model(
    telemetry: &Arc<SessionTelemetry>,
    inner: Arc<dyn Model>,
    provider: &'static str,
    prices: Prices,
) -> Arc<dyn Model> {
    Arc::new(MeasuredModel {
        telemetry: Arc::clone(telemetry),
        inner,
        provider,
        prices,
    })
}

/// A model whose replies are recorded.
struct MeasuredModel {
    telemetry: Arc<SessionTelemetry>,
    inner: Arc<dyn Model>,
    provider: &'static str,
    prices: Prices,
}

impl fmt::Debug for MeasuredModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Model for MeasuredModel {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let mut reply = MeasuredReply {
            telemetry: Arc::clone(&self.telemetry),
            provider: self.provider,
            prices: self.prices.clone(),
            model: request.model.clone(),
            max_tokens: request.max_tokens,
            answered: None,
            id: None,
            usage: Usage::default(),
            stop: None,
            failure: None,
            start: SystemTime::now(),
            clock: Instant::now(),
            first: None,
        };
        let stream = self.inner.stream(request, cancel);
        Box::pin(stream.inspect(move |event| reply.record_event(event)))
    }
}

/// A reply in progress. It is recorded when its stream is dropped.
struct MeasuredReply {
    telemetry: Arc<SessionTelemetry>,
    provider: &'static str,
    prices: Prices,
    /// The requested model.
    model: String,
    max_tokens: u32,
    /// The model that answered, as named by its provider.
    answered: Option<String>,
    id: Option<String>,
    usage: Usage,
    stop: Option<StopReason>,
    failure: Option<String>,
    start: SystemTime,
    clock: Instant,
    first: Option<std::time::Duration>,
}

impl MeasuredReply {
    fn record_event(&mut self, event: &Result<ModelEvent, ModelError>) {
        match event {
            Err(error) => {
                self.failure = Some(kind_of(error));
                self.record_failure("haft.api_error", EventSeverity::Error, error, None);
            }
            Ok(ModelEvent::Start { id, model }) => {
                self.id.clone_from(id);
                self.answered.clone_from(model);
            }
            Ok(ModelEvent::BlockStart { .. }) => {
                self.first.get_or_insert(self.clock.elapsed());
            }
            Ok(ModelEvent::Usage { usage }) => self.usage = *usage,
            Ok(ModelEvent::Stop { reason }) => self.stop = Some(reason.clone()),
            Ok(ModelEvent::Retry { attempt, error, .. }) => {
                let attempt = Some(*attempt);
                self.record_failure("haft.api_retry", EventSeverity::Warn, error, attempt);
            }
            Ok(ModelEvent::Fallback { to, error, .. }) => {
                self.record_failure("haft.api_fallback", EventSeverity::Warn, error, None);
                self.model.clone_from(to);
            }
            Ok(ModelEvent::CutOff { error }) => self.failure = Some(kind_of(error)),
            Ok(_) => {}
        }
    }

    fn record_failure(
        &self,
        name: &'static str,
        severity: EventSeverity,
        error: &ModelError,
        attempt: Option<u32>,
    ) {
        let mut attributes = vec![
            ("gen_ai.request.model", self.model.as_str().into()),
            ("error.type", kind_of(error).into()),
            ("haft.duration_ms", milliseconds(self.clock.elapsed())),
        ];
        if let Some(status) = error.status {
            let status = u64::from(status).into();
            attributes.push(("http.response.status_code", status));
        }
        if let Some(attempt) = attempt {
            attributes.push(("haft.attempt", u64::from(attempt).into()));
        }
        self.telemetry.log(name, severity, attributes);
    }

    fn common(&self) -> Vec<Attribute> {
        vec![
            ("gen_ai.operation.name", "chat".into()),
            ("gen_ai.provider.name", self.provider.into()),
            ("gen_ai.request.model", self.model.as_str().into()),
        ]
    }
}

impl Drop for MeasuredReply {
    fn drop(&mut self) {
        // A reply that is dropped before it stopped or failed was cancelled.
        let error = self.failure.take().or_else(|| {
            let is_cut = self.stop.is_none();
            is_cut.then(|| "cancelled".to_owned())
        });
        let took = self.clock.elapsed();
        let telemetry = &self.telemetry.telemetry;
        let cost = self.prices.cost(&self.model, &self.usage);
        let mut attributes = self.common();
        let answered = self.answered.clone().unwrap_or_else(|| self.model.clone());
        attributes.push(("gen_ai.response.model", answered.into()));
        let most = u64::from(self.max_tokens);
        attributes.push(("gen_ai.request.max_tokens", most.into()));
        if let Some(id) = &self.id {
            attributes.push(("gen_ai.response.id", id.as_str().into()));
        }
        if let Some(stop) = &self.stop {
            let stop = match serde_json::to_value(stop) {
                Ok(Value::String(stop)) => stop,
                _ => "other".to_owned(),
            };
            let stops = AttributeValue::Texts(vec![stop]);
            attributes.push(("gen_ai.response.finish_reasons", stops));
        }
        attributes.extend(usage_attributes(&self.usage));
        if let Some(first) = self.first {
            attributes.push(("haft.time_to_first_token_ms", milliseconds(first)));
        }
        if let Some(cost) = cost {
            attributes.push(("haft.cost.usd", AttributeValue::Double(cost)));
        }
        let mut of = self.common();
        if let Some(error) = &error {
            attributes.push(("error.type", error.as_str().into()));
            of.push(("error.type", error.as_str().into()));
        }
        telemetry.measure(
            "gen_ai.client.operation.duration",
            MeasureUnit::Seconds,
            of,
            took.as_secs_f64(),
        );
        let usage = &self.usage;
        let read = usage
            .input
            .saturating_add(usage.cache_read)
            .saturating_add(usage.cache_write);
        for (kind, tokens) in [("input", read), ("output", usage.output)] {
            if tokens > 0 {
                let mut of = self.common();
                of.push(("gen_ai.token.type", kind.into()));
                let name = "gen_ai.client.token.usage";
                telemetry.measure(name, MeasureUnit::Tokens, of, tokens as f64);
            }
        }
        let parts = [
            ("input", usage.input),
            ("output", usage.output),
            ("cache_read", usage.cache_read),
            ("cache_creation", usage.cache_write),
        ];
        for (kind, tokens) in parts.into_iter().filter(|(_, tokens)| *tokens > 0) {
            let of = vec![
                ("gen_ai.request.model", self.model.as_str().into()),
                ("haft.token.type", kind.into()),
            ];
            telemetry.count("haft.token.usage", "{token}", of, tokens as f64);
        }
        if let Some(cost) = cost {
            let of = vec![("gen_ai.request.model", self.model.as_str().into())];
            telemetry.count("haft.cost.usage", "USD", of, cost);
        }
        let mut logged = attributes.clone();
        logged.push(("haft.duration_ms", milliseconds(took)));
        let severity = match error {
            Some(_) => EventSeverity::Warn,
            None => EventSeverity::Info,
        };
        self.telemetry.log("haft.api_request", severity, logged);
        self.telemetry.span(RecordedSpan {
            id: SpanId::random(),
            parent: None,
            name: format!("chat {}", self.model),
            kind: SpanKind::Client,
            start: self.start,
            end: self.start + took,
            attributes,
            error,
        });
    }
}

/// Returns the name of an error kind, such as `rate_limited`.
fn kind_of(error: &ModelError) -> String {
    let mut word = String::new();
    for (at, c) in format!("{:?}", error.kind).char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            word.push('_');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}
