use haft_contract::{BoxFuture, HttpBody, HttpEvent, HttpFailure, HttpResponse};
use serde_json::Value;

use super::*;
use crate::{AttributeValue, EventSeverity, SpanId, SpanKind, TraceId};

/// A collector, as far as its answers go.
#[derive(Default)]
struct Collector {
    /// The first of these comes next; the last stays.
    answers: Mutex<VecDeque<Behaviour>>,
    taken: Mutex<Vec<HttpRequest>>,
}

#[derive(Clone, Copy)]
enum Behaviour {
    Status(u16),
    Refuses,
    NeverAnswers,
    AnswersWithoutEnd,
}

struct EndlessBody(bool);

impl HttpBody for EndlessBody {
    fn bytes(&mut self, longest: usize) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        let is_endless = self.0;
        Box::pin(async move {
            assert!(longest <= MAX_ANSWER);
            match is_endless {
                true => std::future::pending().await,
                false => Ok(Vec::new()),
            }
        })
    }

    fn event(&mut self, _: usize) -> BoxFuture<'_, Result<Option<HttpEvent>, String>> {
        Box::pin(async { Ok(None) })
    }
}

impl HttpTransport for Collector {
    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>> {
        lock(&self.taken).push(request);
        let mut answers = lock(&self.answers);
        let answer = match answers.len() {
            0 => Behaviour::Status(200),
            1 => answers[0],
            _ => answers.pop_front().unwrap(),
        };
        Box::pin(async move {
            let status = match answer {
                Behaviour::Status(status) => status,
                Behaviour::AnswersWithoutEnd => 200,
                Behaviour::NeverAnswers => std::future::pending().await,
                Behaviour::Refuses => {
                    return Err(HttpFailure {
                        message: "connection refused".to_owned(),
                        is_transient: true,
                    });
                }
            };
            Ok(HttpResponse {
                status,
                headers: Vec::new(),
                body: Box::new(EndlessBody(matches!(answer, Behaviour::AnswersWithoutEnd))),
            })
        })
    }
}

struct Rig {
    collector: Arc<Collector>,
    telemetry: Telemetry,
    reported: Arc<Mutex<Vec<String>>>,
}

impl Rig {
    fn new(answers: &[Behaviour]) -> Self {
        let variables = [
            (crate::config::SWITCH, "1"),
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "http://user:pass@collector:4318/x?key=hunter2",
            ),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter2"),
        ];
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let (config, _) = TelemetryConfig::from_variables(get, "0");
        let collector = Arc::new(Collector::default());
        lock(&collector.answers).extend(answers);
        let reported = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&reported);
        let http = Arc::<Collector>::clone(&collector);
        let telemetry = Telemetry::start(config.unwrap(), "0", http, move |text| {
            lock(&kept).push(text);
        });
        Self {
            collector,
            telemetry,
            reported,
        }
    }

    fn say(&self, number: u64) {
        let now = SystemTime::now();
        let attributes = vec![("number", AttributeValue::from(number))];
        self.telemetry.span(TelemetrySpan {
            trace: TraceId::random(),
            id: SpanId::random(),
            parent: None,
            name: "span".to_owned(),
            kind: SpanKind::Internal,
            start: now,
            end: now,
            attributes: attributes.clone(),
            error: None,
        });
        self.telemetry.event(LoggedEvent {
            name: "event",
            severity: EventSeverity::Info,
            within: None,
            time: now,
            attributes: attributes.clone(),
        });
        self.telemetry.count("count", "{call}", attributes, 1.0);
    }

    /// How many spans arrived in all, messages sent again included.
    fn spans(&self) -> usize {
        let taken = lock(&self.collector.taken);
        let bodies = taken.iter().filter(|one| one.url.contains("/v1/traces"));
        bodies
            .map(|one| {
                let body: Value = serde_json::from_slice(&one.body).unwrap();
                let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
                spans.as_array().unwrap().len()
            })
            .sum()
    }

    fn reported(&self) -> Vec<String> {
        lock(&self.reported).clone()
    }
}

const PATIENT: Duration = Duration::from_secs(100);

#[tokio::test(start_paused = true)]
async fn everything_is_sent_at_the_end_and_nothing_twice() {
    let rig = Rig::new(&[]);
    for number in 0..1_300 {
        rig.say(number);
    }
    rig.telemetry.close(PATIENT).await;
    rig.telemetry.close(PATIENT).await;
    assert_eq!(rig.spans(), 1_300);
    assert_eq!(rig.reported(), Vec::<String>::new());
    // A second word after the end has nowhere to go, and does no harm.
    rig.say(9);
}

#[tokio::test(start_paused = true)]
async fn it_is_sent_while_the_session_goes_on() {
    let rig = Rig::new(&[]);
    rig.say(1);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(rig.spans(), 1);
    // Nothing new: nothing is sent.
    let count = lock(&rig.collector.taken).len();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(lock(&rig.collector.taken).len(), count);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(lock(&rig.collector.taken).len(), count + 1, "the numbers");
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_a_dead_collector_no_longer_than_it_may() {
    for dead in [Behaviour::NeverAnswers, Behaviour::AnswersWithoutEnd] {
        let rig = Rig::new(&[dead]);
        rig.say(1);
        let began = Instant::now();
        rig.telemetry.close(PATIENT).await;
        assert!(began.elapsed() <= Duration::from_millis(2_001));
        let reported = rig.reported();
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].contains("within 2000 ms"), "{reported:?}");
    }
    let rig = Rig::new(&[Behaviour::NeverAnswers]);
    rig.say(1);
    let began = Instant::now();
    rig.telemetry.close(Duration::from_millis(300)).await;
    assert!(began.elapsed() <= Duration::from_millis(301));
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_said_once_and_shows_no_secret() {
    let cases = [
        (Behaviour::Refuses, "connection refused"),
        (Behaviour::Status(307), "redirects are not followed"),
        (Behaviour::Status(401), "answers 401"),
        (Behaviour::Status(503), "answers 503"),
    ];
    for (behaviour, expected) in cases {
        let rig = Rig::new(&[behaviour]);
        for number in 0..5 {
            rig.say(number);
            tokio::time::sleep(Duration::from_secs(7)).await;
        }
        rig.telemetry.close(PATIENT).await;
        let reported = rig.reported();
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].contains(expected), "{reported:?}");
        assert!(reported[0].contains("collector:4318"), "{reported:?}");
        for secret in ["hunter2", "pass", "user"] {
            assert!(!reported[0].contains(secret), "{reported:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_taken_is_sent_again_unless_it_never_will_be() {
    let rig = Rig::new(&[
        Behaviour::Status(503),
        Behaviour::Refuses,
        Behaviour::Status(200),
    ]);
    rig.say(1);
    tokio::time::sleep(Duration::from_secs(12)).await;
    rig.telemetry.close(PATIENT).await;
    assert!(rig.spans() >= 2, "{}", rig.spans());

    let rig = Rig::new(&[Behaviour::Status(400)]);
    rig.say(1);
    tokio::time::sleep(Duration::from_secs(12)).await;
    rig.telemetry.close(PATIENT).await;
    assert_eq!(rig.spans(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_waits_has_a_bound_and_the_oldest_goes() {
    let rig = Rig::new(&[Behaviour::Refuses]);
    for number in 0..20_000 {
        rig.say(number);
        if number % 1_000 == 0 {
            tokio::time::sleep(Duration::from_secs(6)).await;
        }
    }
    let waiting = rig.telemetry.waiting();
    assert!(waiting.spans.len() <= MAX_WAITING);
    assert!(waiting.events.len() <= MAX_WAITING);
    let last = waiting.spans.back().unwrap();
    assert_eq!(last.attributes[0].1, AttributeValue::Int(19_999));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_ends_and_sends_what_is_left() {
    let rig = Rig::new(&[]);
    rig.say(1);
    let Rig {
        collector,
        telemetry,
        ..
    } = rig;
    drop(telemetry);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(lock(&collector.taken).len(), 3);
    assert_eq!(Arc::strong_count(&collector), 1, "the task is over");
}
