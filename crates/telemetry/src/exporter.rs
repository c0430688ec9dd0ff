//! Sends the telemetry from a background task, without blocking the session.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use haft_contract::{CancellationToken, HttpMethod, HttpRequest, HttpTransport};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Duration, Instant, sleep_until, timeout},
};

use crate::{
    Attribute, LoggedEvent, MeasureUnit, SignalTarget, TelemetryConfig, TelemetrySpan,
    WireEncoding, config::place, message::ProtoMessage, metrics::MetricStore, otlp::OtlpResource,
};

/// The maximum number of stored spans, and of stored events.
const MAX_WAITING: usize = 4_096;

/// The maximum number of spans or events in a message. If this number is stored, they are sent
/// immediately.
const BATCH: usize = 512;

/// The maximum number of bytes that are read from a response. Its content does not matter.
const MAX_ANSWER: usize = 1 << 16;

/// Receives the first error message, once.
type ErrorReporter = dyn Fn(String) + Send + Sync;

/// The telemetry of one session. Cloning it is cheap. Dropping the last clone stops it.
#[derive(Clone)]
pub struct Telemetry(Arc<TelemetryHandle>);

struct TelemetryHandle {
    shared: Arc<ExporterShared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for TelemetryHandle {
    fn drop(&mut self) {
        // The task sends the remaining data and ends.
        self.shared.closing.cancel();
    }
}

struct ExporterShared {
    config: TelemetryConfig,
    sender: OtlpResource,
    http: Arc<dyn HttpTransport>,
    started_at: SystemTime,
    waiting: Mutex<PendingSignals>,
    /// Signals that a full batch is stored.
    batch_ready: Notify,
    closing: CancellationToken,
    report: Mutex<Option<Box<ErrorReporter>>>,
}

#[derive(Default)]
struct PendingSignals {
    spans: VecDeque<TelemetrySpan>,
    events: VecDeque<LoggedEvent>,
    metrics: MetricStore,
    /// The number of changes to the metrics, and the number at the time they were last sent.
    changes: u64,
    sent_changes: u64,
}

/// The outcome of sending a message.
enum DeliveryOutcome {
    Accepted,
    /// The message was not accepted, but may be accepted later.
    Retry(String),
    /// The message will never be accepted.
    Refused(String),
}

impl Telemetry {
    /// Starts the background task; requires a tokio runtime. `report` receives the first error
    /// message, once.
    pub fn start(
        config: TelemetryConfig,
        version: &str,
        http: Arc<dyn HttpTransport>,
        report: impl Fn(String) + Send + Sync + 'static,
    ) -> Self {
        let sender = OtlpResource {
            resource: config.resource.clone(),
            version: version.to_owned(),
        };
        let shared = Arc::new(ExporterShared {
            config,
            sender,
            http,
            started_at: SystemTime::now(),
            waiting: Mutex::default(),
            batch_ready: Notify::new(),
            closing: CancellationToken::new(),
            report: Mutex::new(Some(Box::new(report))),
        });
        let task = tokio::spawn(send_until_closed(Arc::clone(&shared)));
        let task = Mutex::new(Some(task));
        Self(Arc::new(TelemetryHandle { shared, task }))
    }

    fn waiting(&self) -> MutexGuard<'_, PendingSignals> {
        lock(&self.0.shared.waiting)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &TelemetryConfig {
        &self.0.shared.config
    }

    /// Stores a finished span.
    pub fn span(&self, span: TelemetrySpan) {
        if self.config().traces.is_some() {
            push(&mut self.waiting().spans, span, &self.0.shared.batch_ready);
        }
    }

    /// Stores an event.
    pub fn event(&self, event: LoggedEvent) {
        if self.config().logs.is_some() {
            push(
                &mut self.waiting().events,
                event,
                &self.0.shared.batch_ready,
            );
        }
    }

    /// Adds `by` to a counter.
    pub fn count(&self, name: &'static str, unit: &'static str, of: Vec<Attribute>, by: f64) {
        if self.config().metrics.is_some() {
            let mut waiting = self.waiting();
            waiting.metrics.count(name, unit, of, by);
            waiting.changes += 1;
        }
    }

    /// Adds a value to a histogram.
    pub fn measure(
        &self,
        name: &'static str,
        measured: MeasureUnit,
        of: Vec<Attribute>,
        number: f64,
    ) {
        if self.config().metrics.is_some() {
            let mut waiting = self.waiting();
            waiting.metrics.measure(name, measured, of, number);
            waiting.changes += 1;
        }
    }

    /// Sends the remaining data and ends the task. Waits at most `at_most`, or the configured
    /// timeout if that is shorter.
    pub async fn close(&self, at_most: Duration) {
        let shared = &self.0.shared;
        shared.closing.cancel();
        let task = lock(&self.0.task).take();
        let Some(mut task) = task else { return };
        let bound = at_most.min(shared.config.last_flush);
        if timeout(bound, &mut task).await.is_err() {
            task.abort();
            shared.report(format!(
                "telemetry: not everything was sent within {} ms",
                bound.as_millis()
            ));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn push<T>(list: &mut VecDeque<T>, one: T, enough: &Notify) {
    if list.len() >= MAX_WAITING {
        list.pop_front();
    }
    list.push_back(one);
    if list.len() >= BATCH {
        enough.notify_one();
    }
}

/// The times at which the signals are sent next.
struct DueTimes {
    traces: Instant,
    metrics: Instant,
    logs: Instant,
}

async fn send_until_closed(shared: Arc<ExporterShared>) {
    let after = |target: &Option<SignalTarget>| {
        // A signal without a target is never sent; its timer fires once a day without effect.
        let interval = target.as_ref().map(|target| target.interval);
        Instant::now() + interval.unwrap_or(Duration::from_secs(86_400))
    };
    let config = &shared.config;
    let mut due = DueTimes {
        traces: after(&config.traces),
        metrics: after(&config.metrics),
        logs: after(&config.logs),
    };
    loop {
        let next = due.traces.min(due.metrics).min(due.logs);
        let mut is_full = false;
        let is_closing = tokio::select! {
            biased;
            () = shared.closing.cancelled() => true,
            () = shared.batch_ready.notified() => {
                is_full = true;
                false
            }
            () = sleep_until(next) => false,
        };
        let now = Instant::now();
        if is_closing {
            // The signals are sent concurrently, so that a collector that does not answer does not
            // delay the others.
            tokio::join!(
                shared.send_spans(true),
                shared.send_events(true),
                shared.send_metrics()
            );
            return;
        }
        let work = async {
            if is_full || now >= due.traces {
                due.traces = after(&config.traces);
                shared.send_spans(false).await;
            }
            if is_full || now >= due.logs {
                due.logs = after(&config.logs);
                shared.send_events(false).await;
            }
            if now >= due.metrics {
                due.metrics = after(&config.metrics);
                shared.send_metrics().await;
            }
        };
        // Closing does not wait for a message in flight, because the final flush has its own
        // timeout. The data of that message is stored and sent again.
        tokio::select! {
            biased;
            () = work => {}
            () = shared.closing.cancelled() => {}
        }
    }
}

impl ExporterShared {
    /// Sends one batch of spans, or all of them if `all` is set.
    async fn send_spans(&self, all: bool) {
        let Some(target) = &self.config.traces else {
            return;
        };
        loop {
            let spans = InFlightBatch::take(self, |waiting| &mut waiting.spans);
            if spans.items.is_empty() {
                return;
            }
            let message = self.sender.traces(&spans.items);
            let delivery = self.deliver(target, &message).await;
            if !self.handle_outcome(target, delivery, spans) || !all {
                return;
            }
        }
    }

    async fn send_events(&self, all: bool) {
        let Some(target) = &self.config.logs else {
            return;
        };
        loop {
            let events = InFlightBatch::take(self, |waiting| &mut waiting.events);
            if events.items.is_empty() {
                return;
            }
            let message = self.sender.logs(&events.items);
            let delivery = self.deliver(target, &message).await;
            if !self.handle_outcome(target, delivery, events) || !all {
                return;
            }
        }
    }

    async fn send_metrics(&self) {
        let Some(target) = &self.config.metrics else {
            return;
        };
        let message = {
            let waiting = lock(&self.waiting);
            if waiting.changes == waiting.sent_changes {
                return;
            }
            let now = SystemTime::now();
            let message = self.sender.metrics(&waiting.metrics, self.started_at, now);
            (message, waiting.changes)
        };
        let (message, changes) = message;
        // Metrics are cumulative: the next message repeats what was not accepted.
        match self.deliver(target, &message).await {
            DeliveryOutcome::Accepted => lock(&self.waiting).sent_changes = changes,
            DeliveryOutcome::Retry(why) | DeliveryOutcome::Refused(why) => {
                self.report_failure(target, &why)
            }
        }
    }

    /// Handles the outcome of a batch. Returns whether it was accepted. If it may be accepted
    /// later, its data is stored again.
    fn handle_outcome<T>(
        &self,
        target: &SignalTarget,
        delivery: DeliveryOutcome,
        mut held: InFlightBatch<'_, T>,
    ) -> bool {
        match delivery {
            DeliveryOutcome::Accepted => {
                held.items.clear();
                true
            }
            DeliveryOutcome::Refused(why) => {
                held.items.clear();
                self.report_failure(target, &why);
                false
            }
            DeliveryOutcome::Retry(why) => {
                self.report_failure(target, &why);
                false
            }
        }
    }

    async fn deliver(&self, target: &SignalTarget, message: &ProtoMessage) -> DeliveryOutcome {
        let (kind, body) = match target.encoding {
            WireEncoding::Protobuf => ("application/x-protobuf", message.to_protobuf()),
            WireEncoding::Json => (
                "application/json",
                message.to_json().to_string().into_bytes(),
            ),
        };
        let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
        headers.extend(target.headers.iter().cloned());
        let request = HttpRequest {
            method: HttpMethod::Post,
            url: target.url.clone(),
            headers,
            body,
        };
        let sent = timeout(target.timeout, async {
            let mut response = self.http.open(request).await?;
            // Reading the response lets the connection be reused; a longer response is not worth
            // it.
            let _ = response.body.bytes(MAX_ANSWER).await;
            Ok::<_, haft_contract::HttpFailure>(response.status)
        });
        match sent.await {
            Err(_) => {
                let waited = target.timeout.as_millis();
                DeliveryOutcome::Retry(format!("no response within {waited} ms"))
            }
            Ok(Err(failure)) => DeliveryOutcome::Retry(failure.message),
            Ok(Ok(200..=299)) => DeliveryOutcome::Accepted,
            Ok(Ok(status @ (408 | 429 | 502 | 503 | 504))) => {
                DeliveryOutcome::Retry(format!("it answers {status}"))
            }
            Ok(Ok(status @ 300..=399)) => {
                let why = format!("it answers {status}, and redirects are not followed");
                DeliveryOutcome::Refused(why)
            }
            Ok(Ok(status)) => DeliveryOutcome::Refused(format!("it answers {status}")),
        }
    }

    fn report_failure(&self, target: &SignalTarget, why: &str) {
        let place = place(&target.url);
        self.report(format!(
            "telemetry: {place} does not accept data: {why}; the session continues without telemetry"
        ));
    }

    /// Reports an error. Only the first one is reported, because the same error would repeat.
    fn report(&self, text: String) {
        let report = lock(&self.report).take();
        if let Some(report) = report {
            report(text);
        }
    }
}

/// A batch that is being sent. If it is dropped with data in it, the data is stored again.
struct InFlightBatch<'a, T> {
    shared: &'a ExporterShared,
    list: fn(&mut PendingSignals) -> &mut VecDeque<T>,
    items: Vec<T>,
}

impl<'a, T> InFlightBatch<'a, T> {
    fn take(shared: &'a ExporterShared, list: fn(&mut PendingSignals) -> &mut VecDeque<T>) -> Self {
        let mut waiting = lock(&shared.waiting);
        let waiting = list(&mut waiting);
        let count = waiting.len().min(BATCH);
        let items = waiting.drain(..count).collect();
        Self {
            shared,
            list,
            items,
        }
    }
}

impl<T> Drop for InFlightBatch<'_, T> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.shared.waiting);
        let waiting = (self.list)(&mut waiting);
        for one in mem::take(&mut self.items).into_iter().rev() {
            if waiting.len() < MAX_WAITING {
                waiting.push_front(one);
            }
        }
    }
}

#[cfg(test)]
#[path = "exporter_tests.rs"]
mod tests;
