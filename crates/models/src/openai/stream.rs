//! Converts chunks of the response into [`ModelEvent`]s.
//!
//! Text and thinking are forwarded immediately. Tool calls are forwarded when they are
//! certainly complete; the last call always waits for the end of the reply (see [`super::calls`]).

use bytes::Bytes;
use futures_util::Stream;
use serde_json::{Value, json};

use super::{
    calls::{AssembledCall, CallAssembler},
    quirks::Quirks,
    text_tool_calls,
    think_splitter::{ThinkPiece, ThinkSplitter},
};
use crate::{
    BlockStart, ErrorKind, ModelError, ModelEvent, StopReason, Usage,
    http::{
        body::{ResponseBody, ResponseEvents},
        error_response::{describe_body, from_body, quoted},
    },
    sse::SseError,
    stream_block::StreamSender,
};

/// The outcome of reading a response.
pub(super) enum StreamOutcome {
    /// A complete reply.
    Whole,
    /// No usable content, although no error occurred.
    Empty,
}

/// Decodes the chunks of one response.
pub(super) struct ChunkDecoder {
    splitter: Option<ThinkSplitter>,
    /// Text that is held back until it is complete, to find tool calls in it.
    held: Option<String>,
    calls: CallAssembler,
    /// The index and kind of the block that receives further text.
    open: Option<(usize, StreamedKind)>,
    blocks: usize,
    started: bool,
    has_calls: bool,
    finish: Option<String>,
    refused: bool,
    usage: Option<Usage>,
    /// The number of bytes in the reply, for an estimate of the tokens.
    reply_bytes: usize,
    events: Vec<ModelEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamedKind {
    Text,
    Thinking,
}

/// Sends the events of a streamed response. `asked` is the length of the request, for an estimate
/// of the tokens.
pub(super) async fn read<S, E>(
    body: ResponseBody<S>,
    quirks: &Quirks,
    asked: usize,
    out: &StreamSender,
) -> Result<StreamOutcome, ModelError>
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    E: std::error::Error + Send,
{
    let mut events = ResponseEvents::new(body);
    let mut decoder = ChunkDecoder::new(quirks);
    let mut is_over = false;
    while !is_over {
        let read = match events.next().await {
            Ok(Some(read)) => read,
            Ok(None) => break,
            // The reply is complete; only its end marker is missing.
            Err(error) if decoder.finish.is_some() && error.kind != ErrorKind::Cancelled => break,
            Err(error) => return Err(error),
        };
        let data = read.event.data.trim();
        if data == "[DONE]" {
            is_over = true;
            continue;
        }
        if read.event.name == "error" {
            return Err(from_body(None, data));
        }
        match serde_json::from_str(data) {
            Ok(chunk) => decoder.chunk(&chunk)?,
            Err(_) if read.open => break,
            Err(_) => {
                let message = format!("an event is not JSON: {}", quoted(data));
                return Err(ModelError::protocol(message));
            }
        }
        for event in decoder.events.drain(..) {
            out.send(event).await;
        }
    }
    if !is_over && decoder.finish.is_none() {
        if decoder.started {
            return Err(ModelError::connection(
                "the answer ended before it was complete",
            ));
        }
        let head = String::from_utf8_lossy(&events.body.head).into_owned();
        return Err(ModelError::protocol(describe_body(None, &head)));
    }
    if is_over {
        events.body.drain_end().await;
    }
    finish(decoder, asked, out).await
}

/// Sends the events of a response that arrived as one piece of JSON.
pub(super) async fn read_whole<S, E>(
    mut body: ResponseBody<S>,
    longest: usize,
    quirks: &Quirks,
    asked: usize,
    out: &StreamSender,
) -> Result<StreamOutcome, ModelError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::error::Error,
{
    let bytes = body.all(longest).await?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| ModelError::protocol(SseError::NotUtf8.to_string()))?;
    let unreadable = || ModelError::protocol(describe_body(None, text));
    let mut answer: Value = serde_json::from_str(text).map_err(|_| unreadable())?;
    if let Some(choice) = answer["choices"].get_mut(0) {
        choice["delta"] = choice["message"].take();
    } else if answer["error"].is_null() {
        return Err(unreadable());
    }
    let mut decoder = ChunkDecoder::new(quirks);
    decoder.chunk(&answer)?;
    finish(decoder, asked, out).await
}

async fn finish(
    decoder: ChunkDecoder,
    asked: usize,
    out: &StreamSender,
) -> Result<StreamOutcome, ModelError> {
    let (events, ended) = decoder.finish(asked);
    for event in events {
        out.send(event).await;
    }
    Ok(ended)
}

impl ChunkDecoder {
    pub(super) fn new(quirks: &Quirks) -> Self {
        Self {
            splitter: quirks.think_tags.then(ThinkSplitter::default),
            held: quirks.printed_calls.then(String::new),
            calls: CallAssembler::default(),
            open: None,
            blocks: 0,
            started: false,
            has_calls: false,
            finish: None,
            refused: false,
            usage: None,
            reply_bytes: 0,
            events: Vec::new(),
        }
    }

    /// Decodes a chunk and appends its events to `events`.
    pub(super) fn chunk(&mut self, chunk: &Value) -> Result<(), ModelError> {
        if !chunk["error"].is_null() {
            return Err(from_body(None, &chunk.to_string()));
        }
        if !self.started {
            self.started = true;
            let text = |key: &str| {
                let text = chunk[key].as_str().filter(|text| !text.is_empty());
                text.map(str::to_owned)
            };
            let (id, model) = (text("id"), text("model"));
            self.events.push(ModelEvent::Start { id, model });
        }
        if let Some(usage) = usage(&chunk["usage"]) {
            self.usage = Some(usage);
        }
        let Some(choice) = chunk["choices"].get(0) else {
            return Ok(());
        };
        let delta = &choice["delta"];
        self.reasoning(delta);
        if let Some(text) = delta["content"].as_str() {
            self.content(text);
        }
        if let Some(text) = delta["refusal"].as_str().filter(|text| !text.is_empty()) {
            self.refused = true;
            self.push_text(StreamedKind::Text, text);
        }
        if let Some(entries) = delta["tool_calls"].as_array() {
            self.reply_bytes += delta["tool_calls"].to_string().len();
            self.calls.push(entries);
            while let Some(call) = self.calls.ready() {
                self.hand_out(call);
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        Ok(())
    }

    fn reasoning(&mut self, delta: &Value) {
        let names = [
            "reasoning_content",
            "reasoning",
            "reasoning_text",
            "thinking",
        ];
        let mut texts = names.iter().filter_map(|name| delta[*name].as_str());
        let text = texts.find(|text| !text.is_empty());
        if let Some(text) = text {
            self.push_text(StreamedKind::Thinking, text);
        }
        let details = delta["reasoning_details"].as_array();
        for detail in details.into_iter().flatten() {
            let own = || detail["text"].as_str().or(detail["summary"].as_str());
            let index = self.block(StreamedKind::Thinking);
            if text.is_none()
                && let Some(text) = own().filter(|text| !text.is_empty())
            {
                self.push_text(StreamedKind::Thinking, text);
            }
            let detail = detail.clone();
            self.events
                .push(ModelEvent::ThinkingDetail { index, detail });
        }
    }

    fn content(&mut self, text: &str) {
        let Some(splitter) = &mut self.splitter else {
            return self.text(text);
        };
        for piece in splitter.push(text) {
            self.piece(&piece);
        }
    }

    fn piece(&mut self, piece: &ThinkPiece) {
        match piece {
            ThinkPiece::Thinking(text) => self.push_text(StreamedKind::Thinking, text),
            ThinkPiece::Text(text) => self.text(text),
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.held {
            Some(held) => held.push_str(text),
            None => self.push_text(StreamedKind::Text, text),
        }
    }

    fn push_text(&mut self, kind: StreamedKind, text: &str) {
        if text.is_empty() {
            return;
        }
        self.reply_bytes += text.len();
        let index = self.block(kind);
        let text = text.to_owned();
        self.events.push(match kind {
            StreamedKind::Text => ModelEvent::Text { index, text },
            StreamedKind::Thinking => ModelEvent::Thinking { index, text },
        });
    }

    /// Returns the open block if it is of this kind, otherwise starts a new one.
    fn block(&mut self, kind: StreamedKind) -> usize {
        if let Some((index, open)) = self.open
            && open == kind
        {
            return index;
        }
        self.close();
        let index = self.blocks;
        self.blocks += 1;
        self.open = Some((index, kind));
        let block = match kind {
            StreamedKind::Text => BlockStart::Text,
            StreamedKind::Thinking => BlockStart::Thinking,
        };
        self.events.push(ModelEvent::BlockStart { index, block });
        index
    }

    fn close(&mut self) {
        if let Some((index, _)) = self.open.take() {
            self.events.push(ModelEvent::BlockStop { index });
        }
    }

    fn extract_calls(&mut self, text: &str) {
        let (said, calls) = text_tool_calls::find(text);
        self.push_text(StreamedKind::Text, &said);
        for call in calls {
            let function = json!({"name": call.name, "arguments": call.arguments});
            self.calls.push(&[json!({"function": function})]);
        }
    }

    fn hand_out(&mut self, call: AssembledCall) {
        self.close();
        self.has_calls = true;
        let index = self.blocks;
        self.blocks += 1;
        let (id, name, extra) = (call.id, call.name, call.extra);
        let block = BlockStart::ToolUse { id, name, extra };
        let json = call.arguments;
        self.events.push(ModelEvent::BlockStart { index, block });
        self.events.push(ModelEvent::Input { index, json });
        self.events.push(ModelEvent::BlockStop { index });
    }

    /// Ends the stream. Returns the last events and the outcome.
    pub(super) fn finish(mut self, asked: usize) -> (Vec<ModelEvent>, StreamOutcome) {
        for piece in self
            .splitter
            .take()
            .map(|mut splitter| splitter.finish())
            .into_iter()
            .flatten()
        {
            self.piece(&piece);
        }
        if let Some(held) = self.held.take() {
            self.extract_calls(&held);
        }
        self.close();
        let cut_off = self.finish.as_deref() == Some("length");
        let only_nameless = self.blocks == 0 && !self.calls.is_empty();
        let calls = std::mem::take(&mut self.calls).finish(cut_off);
        if only_nameless && calls.is_empty() {
            return (self.events, StreamOutcome::Empty);
        }
        calls.into_iter().for_each(|call| self.hand_out(call));
        let usage = self
            .usage
            .unwrap_or_else(|| estimate(asked, self.reply_bytes));
        self.events.push(ModelEvent::Usage { usage });
        let reason = match self.finish.as_deref() {
            Some("length") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            _ if self.has_calls => StopReason::ToolUse,
            _ if self.refused => StopReason::Refusal,
            _ => StopReason::EndTurn,
        };
        self.events.push(ModelEvent::Stop { reason });
        (self.events, StreamOutcome::Whole)
    }
}

fn usage(wire: &Value) -> Option<Usage> {
    let prompt = wire["prompt_tokens"].as_u64()?;
    let details = &wire["prompt_tokens_details"];
    let cached = details["cached_tokens"].as_u64().unwrap_or(0);
    let written = details["cache_write_tokens"].as_u64().unwrap_or(0);
    Some(Usage {
        input: prompt.saturating_sub(cached).saturating_sub(written),
        output: wire["completion_tokens"].as_u64().unwrap_or(0),
        cache_read: cached,
        cache_write: written,
        ..Usage::default()
    })
}

fn estimate(asked: usize, said: usize) -> Usage {
    let tokens = |length: usize| u64::try_from(length.div_ceil(4)).unwrap_or(u64::MAX);
    Usage {
        input: tokens(asked),
        output: tokens(said),
        estimated: true,
        ..Usage::default()
    }
}
