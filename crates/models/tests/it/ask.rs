//! Asking a model, and keeping everything it says.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::StreamExt;
use haft_contract::{BoxFuture, CancellationToken, Content};
use haft_models::{
    Anthropic, Conversation, Http, HttpOptions, Model, ModelError, ModelEvent, ModelRequest,
    OpenAi, Reply, ReplyAssembler, RequestPrefix, Retry, RetryClock, RetryPolicy, ToolCall,
    anthropic::AnthropicOptions,
    openai::{OpenAiOptions, Quirks},
};

/// What came of one request.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) events: Vec<ModelEvent>,
    /// Calls in the order in which they were handed out.
    pub(crate) handed_out: Vec<ToolCall>,
    pub(crate) reply: Reply,
    pub(crate) error: Option<ModelError>,
}

impl Heard {
    /// Events about the reply, not of it, as short words.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |event: &ModelEvent| match event {
            ModelEvent::Discard => Some("discard".to_owned()),
            ModelEvent::Retry {
                attempt,
                delay,
                error,
                ..
            } => Some(format!(
                "retry {attempt} after {delay:?}: {}",
                error.message
            )),
            ModelEvent::Fallback { from, to, .. } => Some(format!("fallback {from} to {to}")),
            ModelEvent::ImagesDropped { messages, .. } => {
                Some(format!("images dropped {messages:?}"))
            }
            ModelEvent::CutOff { error } => Some(format!("cut off: {}", error.message)),
            _ => None,
        };
        self.events.iter().filter_map(note).collect()
    }

    pub(crate) fn text(&self) -> String {
        let text = |block: &haft_models::Block| match block {
            haft_models::Block::Text { text } => Some(text.clone()),
            _ => None,
        };
        self.reply.message.content.iter().filter_map(text).collect()
    }

    /// `id name input` of each call.
    pub(crate) fn calls(&self) -> Vec<String> {
        assert_eq!(self.handed_out, self.reply.calls);
        let line = |call: &ToolCall| match &call.input {
            Ok(input) => format!("{} {} {input}", call.id, call.name),
            Err(bad) => format!("{} {} bad: {}", call.id, call.name, bad.problem),
        };
        self.handed_out.iter().map(line).collect()
    }

    pub(crate) fn kind(&self) -> Option<haft_models::ErrorKind> {
        self.error.as_ref().map(|error| error.kind)
    }
}

pub(crate) fn request() -> ModelRequest {
    let mut conversation = Conversation::new();
    conversation.user([Content::text("hello")]);
    ModelRequest::new(
        "m",
        Arc::new(RequestPrefix::default()),
        conversation.history(),
    )
}

pub(crate) async fn ask(model: &dyn Model, request: ModelRequest) -> Heard {
    let mut assembler = ReplyAssembler::new(request.model.clone());
    let mut stream = model.stream(request, CancellationToken::new());
    let (mut events, mut handed_out, mut error) = (Vec::new(), Vec::new(), None);
    while let Some(item) = stream.next().await {
        assert!(error.is_none(), "something came after an error");
        match item {
            Ok(event) => {
                handed_out.extend(assembler.push(&event));
                events.push(event);
            }
            Err(failed) => error = Some(failed),
        }
    }
    Heard {
        events,
        handed_out,
        reply: assembler.finish(),
        error,
    }
}

/// A clock that does not wait, and remembers how long it should have.
#[derive(Debug, Default)]
pub(crate) struct Instant {
    pub(crate) waits: Mutex<Vec<Duration>>,
}

impl RetryClock for Instant {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.waits.lock().unwrap().push(duration);
        Box::pin(std::future::ready(()))
    }

    fn chance(&self) -> f64 {
        0.0
    }
}

pub(crate) fn retrying(model: impl Model + 'static) -> (Retry, Arc<Instant>) {
    let clock = Arc::new(Instant::default());
    let retry = Retry::with_clock(Arc::new(model), RetryPolicy::default(), clock.clone());
    (retry, clock)
}

/// No proxies: these tests stay on the loopback whatever the environment says.
pub(crate) fn http() -> Http {
    Http::new(HttpOptions {
        proxies: false,
        ..HttpOptions::default()
    })
}

pub(crate) fn anthropic(url: &str) -> Anthropic {
    let mut options = AnthropicOptions::default();
    options.base_url = url.to_owned();
    options.api_key = Some("key-1".to_owned());
    Anthropic::new(http(), options)
}

pub(crate) fn openai(url: &str) -> OpenAi {
    let mut options = OpenAiOptions::default();
    options.base_url = url.to_owned();
    options.quirks = Some(Quirks::default());
    OpenAi::new(http(), options)
}
