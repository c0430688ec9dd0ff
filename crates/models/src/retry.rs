//! Retries of failed requests.
//!
//! As long as no complete tool call has been handed out, a failed reply is void
//! ([`ModelEvent::Discard`]) and the request is sent again. After that the call may be running, and
//! a second reply would call it again. So nothing is retried: [`ModelEvent::CutOff`] reports that
//! the complete blocks are valid, and the next request continues from there. A lost connection
//! never runs a tool twice.
//!
//! If a provider rejects images, they are removed and the request is sent again without them, once
//! per reply.

use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use haft_contract::{BoxFuture, CancellationToken};

use crate::{
    ErrorKind, EventStream, Model, ModelError, ModelEvent, ModelRequest,
    http::until_cancelled,
    reply_progress::ReplyProgress,
    stream_block::{StreamSender, generate},
};

/// The number of retries and the waits before them.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// The maximum number of retries.
    pub max_retries: u32,
    /// The first wait; each later one is twice as long.
    pub first_delay: Duration,
    /// The longest wait that the doubling reaches.
    pub max_delay: Duration,
    /// The largest fraction of a wait that is randomly subtracted, so that many clients do not
    /// retry at the same time.
    pub jitter: f64,
    /// The longest wait that a provider may ask for. If it asks for more, the request fails.
    pub max_requested_delay: Duration,
    /// Whether to wait as long as a provider asks, even longer than `max_requested_delay`.
    pub honors_requested_delay: bool,
    /// The maximum number of retries if no server listens and none has ever answered. A server that
    /// is starting up needs seconds; a mistyped address stays wrong.
    pub max_refused: u32,
    /// The number of overload errors after which the request fails. Set it if there is a fallback
    /// model.
    pub max_overloaded: Option<u32>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 10,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(32),
            jitter: 0.25,
            max_requested_delay: Duration::from_secs(60),
            honors_requested_delay: false,
            max_refused: 3,
            max_overloaded: None,
        }
    }
}

/// The source of time and randomness, replaceable in tests.
pub trait RetryClock: Send + Sync + Debug {
    /// Returns after this duration.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
    /// Returns a random number in `0.0..1.0`.
    fn chance(&self) -> f64;
}

/// The system's clock and random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl RetryClock for SystemClock {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn chance(&self) -> f64 {
        let mut random = [0; 4];
        // Without entropy the waits have no jitter.
        let _ = getrandom::getrandom(&mut random);
        f64::from(u32::from_le_bytes(random)) / 4_294_967_296.0
    }
}

impl RetryPolicy {
    /// Returns the default policy with the environment's `CLAUDE_CODE_MAX_RETRIES` and
    /// `CLAUDE_CODE_RETRY_WATCHDOG`.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Like [`from_env`](Self::from_env), but reads the variables with this function.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let usual = Self::default();
        let retries =
            variable("CLAUDE_CODE_MAX_RETRIES").and_then(|value| value.trim().parse().ok());
        Self {
            max_retries: retries.unwrap_or(usual.max_retries),
            honors_requested_delay: variable("CLAUDE_CODE_RETRY_WATCHDOG")
                .is_some_and(|value| value == "1"),
            ..usual
        }
    }

    /// Returns the wait before retry number `retry` (from 1), or `None` if there must be no retry.
    fn delay(
        &self,
        error: &ModelError,
        retry: u32,
        overloaded: u32,
        chance: f64,
    ) -> Option<Duration> {
        let out_of_patience = self.max_overloaded.is_some_and(|most| overloaded >= most);
        if retry > self.max_retries || !error.is_retryable() || out_of_patience {
            return None;
        }
        if let Some(asked) = error.retry_after {
            return (asked <= self.max_requested_delay || self.honors_requested_delay)
                .then_some(asked);
        }
        let doubled = 2_u32.saturating_pow(retry - 1);
        let delay = self.first_delay.saturating_mul(doubled).min(self.max_delay);
        Some(delay.mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * chance))
    }
}

/// A model whose failed requests are retried.
#[derive(Debug, Clone)]
pub struct Retry {
    model: Arc<dyn Model>,
    policy: RetryPolicy,
    clock: Arc<dyn RetryClock>,
    /// Whether the server has ever answered.
    has_answered: Arc<AtomicBool>,
}

impl Retry {
    /// Wraps a model.
    pub fn new(model: Arc<dyn Model>, policy: RetryPolicy) -> Self {
        Self::with_clock(model, policy, Arc::new(SystemClock))
    }

    /// Like [`new`](Self::new), but with another source of time and randomness.
    pub fn with_clock(
        model: Arc<dyn Model>,
        policy: RetryPolicy,
        clock: Arc<dyn RetryClock>,
    ) -> Self {
        Self {
            model,
            policy,
            clock,
            has_answered: Arc::default(),
        }
    }

    /// Returns the maximum number of retries after this error.
    fn max_retries(&self, error: &ModelError) -> u32 {
        let all = self.policy.max_retries;
        match error.kind {
            ErrorKind::Refused if !self.has_answered.load(Ordering::Relaxed) => {
                self.policy.max_refused.min(all)
            }
            _ => all,
        }
    }

    async fn run(
        self,
        mut request: ModelRequest,
        cancel: CancellationToken,
        out: StreamSender,
    ) -> Result<(), ModelError> {
        let mut retries = 0;
        let mut overloaded = 0;
        let mut has_dropped = false;
        loop {
            let mut handed_out = ReplyProgress::default();
            let mut events = self.model.stream(request.clone(), cancel.clone());
            let error = loop {
                match events.next().await {
                    None => return Ok(()),
                    Some(Err(error)) => break error,
                    Some(Ok(event)) => {
                        self.has_answered.store(true, Ordering::Relaxed);
                        handed_out.record(&event);
                        out.send(event).await;
                    }
                }
            };
            // Releases the connection before the wait.
            drop(events);
            if handed_out.has_call && error.kind != ErrorKind::Cancelled {
                out.send(ModelEvent::CutOff { error }).await;
                return Ok(());
            }
            let refused = match has_dropped {
                true => Vec::new(),
                false => refused_images(&request, &error),
            };
            let dropped = !refused.is_empty();
            let delay = if dropped {
                None
            } else {
                overloaded += u32::from(error.kind == ErrorKind::Overloaded);
                let chance = self.clock.chance();
                let delay = self.policy.delay(&error, retries + 1, overloaded, chance);
                if delay.is_none() || retries >= self.max_retries(&error) {
                    return Err(error);
                }
                delay
            };
            if handed_out.has_content {
                out.send(ModelEvent::Discard).await;
            }
            if dropped {
                has_dropped = true;
                let note = format!("[image left out: {}]", error.message);
                request.history.drop_images(&refused, &note);
                let messages = refused;
                out.send(ModelEvent::ImagesDropped { messages, error })
                    .await;
                continue;
            }
            retries += 1;
            let delay = delay.unwrap_or_default();
            out.send(ModelEvent::Retry {
                attempt: retries,
                max_retries: self.max_retries(&error),
                delay,
                error,
            })
            .await;
            until_cancelled(&cancel, self.clock.sleep(delay)).await?;
        }
    }
}

/// Returns the positions of the messages whose images the provider rejects.
fn refused_images(request: &ModelRequest, error: &ModelError) -> Vec<usize> {
    let message = error.message.to_lowercase();
    let says = |word| message.contains(word);
    match error.kind {
        // A model without vision: "does not support images", "only supported by certain models".
        ErrorKind::BadRequest if says("image") && says("support") => request.history.with_images(),
        ErrorKind::BadRequest if says("image") => request.history.refused_images(&error.message),
        ErrorKind::TooLarge => request.history.with_images(),
        _ => Vec::new(),
    }
}

impl Model for Retry {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let retry = self.clone();
        generate(move |out| retry.run(request, cancel, out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_is_waited() {
        let policy = RetryPolicy::default();
        let with = |kind, retry_after: Option<u64>| ModelError {
            retry_after: retry_after.map(Duration::from_secs),
            ..ModelError::new(kind, "")
        };
        let server = with(ErrorKind::Server, None);
        let cases: &[(&str, &ModelError, u32, f64, Option<f64>)] = &[
            ("first", &server, 1, 0.0, Some(0.5)),
            ("doubled", &server, 2, 0.0, Some(1.0)),
            ("chance takes off a quarter", &server, 2, 1.0, Some(0.75)),
            ("capped", &server, 10, 0.0, Some(32.0)),
            ("no more", &server, 11, 0.0, None),
            (
                "as asked",
                &with(ErrorKind::RateLimited, Some(2)),
                1,
                0.5,
                Some(2.0),
            ),
            (
                "asked for a minute",
                &with(ErrorKind::RateLimited, Some(60)),
                1,
                0.5,
                Some(60.0),
            ),
            (
                "asked for more",
                &with(ErrorKind::RateLimited, Some(61)),
                1,
                0.5,
                None,
            ),
            ("no use", &with(ErrorKind::Auth, None), 1, 0.0, None),
        ];
        for (what, error, retry, chance, seconds) in cases {
            let expected = seconds.map(Duration::from_secs_f64);
            assert_eq!(policy.delay(error, *retry, 0, *chance), expected, "{what}");
        }
        let patient = RetryPolicy {
            honors_requested_delay: true,
            ..RetryPolicy::default()
        };
        let long = with(ErrorKind::RateLimited, Some(3600));
        assert_eq!(
            patient.delay(&long, 1, 0, 0.0),
            Some(Duration::from_secs(3600))
        );
    }

    #[test]
    fn what_the_environment_says() {
        let policy = |retries: &'static str, watchdog: &'static str| {
            RetryPolicy::from_variables(move |name| match name {
                "CLAUDE_CODE_MAX_RETRIES" => Some(retries.to_owned()),
                _ => Some(watchdog.to_owned()),
            })
        };
        let (set, unset) = (policy("3", "1"), policy("many", "0"));
        assert_eq!((set.max_retries, set.honors_requested_delay), (3, true));
        assert_eq!(unset, RetryPolicy::default());
    }

    #[test]
    fn the_provider_has_the_last_word_on_trying_again() {
        let policy = RetryPolicy::default();
        let mut error = ModelError::new(ErrorKind::BadRequest, "");
        error.should_retry = Some(true);
        assert!(policy.delay(&error, 1, 0, 0.0).is_some());
        error = ModelError::new(ErrorKind::Server, "");
        error.should_retry = Some(false);
        assert_eq!(policy.delay(&error, 1, 0, 0.0), None);
    }
}
