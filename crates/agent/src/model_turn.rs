//! One turn: a request to the model, its reply, and the tool calls in the reply.
//!
//! As soon as the block of a call is complete, it is written to the transcript and the call is
//! pushed to the scheduler. So calls run while the model is still writing. After the reply has
//! ended, the results are collected in the order of the calls.
//!
//! If the request fails before the first call is complete, the reply is void: it is dropped. An
//! interrupted reply is void only if it contains only thinking.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use haft_contract::{CallId, CancellationToken, Card, CardSection, Content, ToolUse};
use haft_engine::{CallBatch, CallResult, Metadata, Scheduler, pipeline::INTERRUPTED};
use haft_models::{
    Block, BlockStart, ErrorKind, Model, ModelError, ModelEvent, ModelRequest, Reply,
    ReplyAssembler,
};
use serde_json::Value;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::{
    AgentEvent, AgentEventSink, ReplyBlock, clock,
    hooks::{DisplayedText, HookRunner, RunContext},
    running_calls::{EVERY, RunningCallTracker},
    transcript::{Transcript, result_of},
};

/// The parts of an agent that one turn needs.
pub(crate) struct ModelTurn<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) transcript: &'a Arc<Transcript>,
    /// The hooks that filter displayed text, if any.
    pub(crate) display: Option<&'a HookRunner>,
    pub(crate) sink: &'a dyn AgentEventSink,
    pub(crate) cancel: &'a CancellationToken,
}

/// The outcome of a turn: a reply with a result for each call.
pub(crate) struct TurnOutcome {
    /// The reply; without content if it is void.
    pub(crate) reply: Reply,
    /// The calls of the reply with their results, in order.
    pub(crate) calls: Vec<CompletedCall>,
    pub(crate) end: TurnEnd,
    /// The time spent waiting for the model.
    pub(crate) model_time: Duration,
    /// The time to the first block of the reply.
    pub(crate) first_token: Option<Duration>,
    /// The positions of messages whose images the provider rejects, each with the note that
    /// replaces the images.
    pub(crate) refused_images: Vec<(Vec<usize>, String)>,
    /// The text that the user saw instead of the reply's text, if hooks replaced it.
    pub(crate) displayed_text: Option<String>,
}

/// The way a turn ended.
pub(crate) enum TurnEnd {
    /// The reply is complete.
    Complete,
    /// The run was interrupted.
    Interrupted,
    /// The engine has a defect; contains its description.
    Fault(String),
    /// The request failed. If the reply is not void, its complete calls have run.
    Failed(ModelError),
}

/// A call with its result.
pub(crate) struct CompletedCall {
    /// The input as the model wrote it.
    pub(crate) input: Value,
    /// The result.
    pub(crate) result: CallResult,
}

/// Handles the streaming events of one reply: reports them, writes the transcript, and pushes the
/// calls.
struct ReplyStreamHandler<'a> {
    turn: &'a ModelTurn<'a>,
    tracker: &'a RunningCallTracker,
    /// The requested model, as the transcript records it.
    requested_model: String,
    assembler: ReplyAssembler,
    /// The provider's id of the message, or a random one.
    message_id: String,
    /// Our id of the request.
    request_id: String,
    /// The model, under the name that the provider reports.
    model: String,
    usage: haft_models::Usage,
    /// The blocks that were not reported yet: positions in the message, by the provider's index.
    unreported: HashMap<usize, usize>,
    /// The number of blocks that have begun.
    started_blocks: usize,
    /// Complete blocks that are not in the transcript yet. They are written with the first complete
    /// call, because until then the reply may become void.
    unwritten: Vec<ReplyBlock>,
    /// Whether a call was complete, so that the reply can no longer become void.
    has_complete_call: bool,
    /// The ids of the calls that were pushed to the scheduler.
    pushed: HashSet<String>,
    /// See [`TurnOutcome::refused_images`].
    refused_images: Vec<(Vec<usize>, String)>,
    withheld: WithheldText,
}

/// The texts of a reply that hooks filter before the user sees them.
#[derive(Default)]
struct WithheldText {
    /// The indices of the text blocks that are not complete.
    open: HashSet<usize>,
    /// The texts that the user saw.
    displayed: Vec<String>,
    /// Whether hooks changed one of the texts.
    is_changed: bool,
}

impl ModelTurn<'_> {
    /// Sends the request, runs the calls and collects their results.
    pub(crate) async fn run(
        &self,
        scheduler: &mut Scheduler,
        request: ModelRequest,
    ) -> TurnOutcome {
        let mut batch = scheduler.start_batch().await;
        let tracker = Arc::new(RunningCallTracker::new(self.transcript));
        batch.set_observer(Arc::clone(&tracker) as _);
        let started = Instant::now();
        let mut ticks = interval_at((started + EVERY).into(), EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut first_token = None;
        let mut handler = ReplyStreamHandler {
            turn: self,
            tracker: &tracker,
            assembler: ReplyAssembler::new(&*request.model),
            message_id: format!("msg_{}", clock::random_id().simple()),
            request_id: format!("req_{}", clock::random_id().simple()),
            model: request.model.clone(),
            requested_model: request.model.clone(),
            usage: haft_models::Usage::default(),
            unreported: HashMap::new(),
            started_blocks: 0,
            unwritten: Vec::new(),
            has_complete_call: false,
            pushed: HashSet::new(),
            refused_images: Vec::new(),
            withheld: WithheldText::default(),
        };
        let mut stream = self.model.stream(request, self.cancel.child_token());
        let end = loop {
            let next = tokio::select! {
                biased;
                () = self.cancel.cancelled() => break TurnEnd::Interrupted,
                next = stream.next() => next,
                () = tracker.wait_for_start() => {
                    tracker.report_started(self.sink);
                    continue;
                }
                _ = ticks.tick() => {
                    tracker.report_running(self.sink);
                    continue;
                }
            };
            match next {
                None => break TurnEnd::Complete,
                Some(Err(error)) if error.kind == ErrorKind::Cancelled => {
                    break TurnEnd::Interrupted;
                }
                Some(Err(error)) => break TurnEnd::Failed(error),
                Some(Ok(event)) => {
                    batch.prepare_sandboxes();
                    if matches!(event, ModelEvent::BlockStart { .. }) {
                        first_token.get_or_insert_with(|| started.elapsed());
                    }
                    handler.on_event(event, &mut batch).await;
                }
            }
        };
        // Aborts the request if it is still in progress.
        drop(stream);
        let api = started.elapsed();
        let refused_images = std::mem::take(&mut handler.refused_images);
        let withheld = std::mem::take(&mut handler.withheld);
        let shown = withheld.is_changed.then(|| withheld.displayed.join("\n"));
        let (reply, answers, end) = handler.collect_results(batch, end, ticks).await;
        TurnOutcome {
            reply,
            calls: answers,
            end,
            model_time: api,
            first_token,
            refused_images,
            displayed_text: shown,
        }
    }
}

impl ReplyStreamHandler<'_> {
    /// Handles one event of the reply.
    async fn on_event(&mut self, event: ModelEvent, batch: &mut CallBatch<'_>) {
        if !self.is_withheld(&event) {
            self.turn.sink.on_event(&AgentEvent::Model(event.clone()));
        }
        match &event {
            ModelEvent::Start { id, model } => {
                if let Some(id) = id {
                    self.message_id.clone_from(id);
                }
                if let Some(model) = model {
                    self.model.clone_from(model);
                }
            }
            ModelEvent::BlockStart { index, .. } => {
                self.unreported.insert(*index, self.started_blocks);
                self.started_blocks += 1;
            }
            ModelEvent::Usage { usage } => self.usage = *usage,
            ModelEvent::Discard => {
                self.unreported.clear();
                self.withheld = WithheldText::default();
                self.started_blocks = 0;
                self.usage = haft_models::Usage::default();
                self.unwritten.clear();
            }
            ModelEvent::Fallback { to, .. } => {
                self.requested_model.clone_from(to);
                self.model.clone_from(to);
            }
            ModelEvent::ImagesDropped { messages, error } => {
                let note = format!("[image left out: {}]", error.message);
                self.refused_images.push((messages.clone(), note));
            }
            _ => {}
        }
        let call = self.assembler.push(&event);
        if let ModelEvent::BlockStop { index } = event
            && let Some(block) = self.assembler.block(index)
            && let Some(position) = self.unreported.remove(&index)
        {
            let shown = self.show_withheld(index, &block).await;
            self.emit_block(block, position, shown);
        }
        if let Some(call) = call {
            self.has_complete_call = true;
            self.write_blocks(None);
            if let Ok(input) = call.input {
                self.push(call.id, call.name, input, batch);
            }
        }
    }

    /// Returns whether the event belongs to a text that hooks filter before it is shown.
    fn is_withheld(&mut self, event: &ModelEvent) -> bool {
        if self.turn.display.is_none() {
            return false;
        }
        match event {
            ModelEvent::BlockStart {
                index,
                block: BlockStart::Text,
            } => self.withheld.open.insert(*index),
            ModelEvent::Text { index, .. } | ModelEvent::BlockStop { index } => {
                self.withheld.open.contains(index)
            }
            _ => false,
        }
    }

    /// Runs the display hooks on a withheld text and shows it. Returns the shown block.
    async fn show_withheld(&mut self, index: usize, block: &Block) -> Option<Block> {
        let ModelTurn { sink, cancel, .. } = *self.turn;
        let (Some(hooks), Block::Text { text }) = (self.turn.display, block) else {
            return None;
        };
        if !self.withheld.open.remove(&index) {
            return None;
        }
        let displayed_text = DisplayedText {
            message: &self.message_id,
            index: self.withheld.displayed.len(),
            text,
        };
        let replacement = hooks
            .filter_display(&displayed_text, RunContext::new(sink, cancel))
            .await;
        self.withheld.is_changed |= replacement.is_some();
        let text = replacement.unwrap_or_else(|| text.clone());
        self.withheld.displayed.push(text.clone());
        let block = BlockStart::Text;
        for event in [
            ModelEvent::BlockStart { index, block },
            ModelEvent::Text {
                index,
                text: text.clone(),
            },
            ModelEvent::BlockStop { index },
        ] {
            sink.on_event(&AgentEvent::Model(event));
        }
        Some(Block::Text { text })
    }

    /// Reports a complete block. `shown` is the block that the user sees, if it differs from the one
    /// in the transcript.
    fn emit_block(&mut self, block: Block, position: usize, shown: Option<Block>) {
        let reply_block = ReplyBlock {
            uuid: clock::random_id(),
            message_id: self.message_id.clone(),
            request_id: self.request_id.clone(),
            position,
            model: self.model.clone(),
            block,
            usage: self.usage,
        };
        let mut reported_block = reply_block.clone();
        if let Some(shown) = shown {
            reported_block.block = shown;
        }
        self.turn
            .sink
            .on_event(&AgentEvent::BlockCompleted(Box::new(reported_block)));
        self.unwritten.push(reply_block);
    }

    /// Writes the blocks that are not in the transcript yet.
    fn write_blocks(&mut self, stop: Option<&haft_models::StopReason>) {
        for reply_block in self.unwritten.drain(..) {
            self.turn.transcript.write_block(
                &reply_block,
                &self.requested_model,
                stop,
                &self.usage,
            );
        }
    }

    /// Pushes a call to the scheduler, unless it was already pushed.
    fn push(&mut self, id: String, name: String, input: Value, batch: &mut CallBatch<'_>) {
        if self.pushed.insert(id.clone()) {
            batch.push(ToolUse { id, name, input });
            self.tracker.report_bound(self.turn.sink);
        }
    }

    /// Finishes the reply and waits until each of its calls has a result. `end` may change, for
    /// example if the run is interrupted in the meantime.
    async fn collect_results(
        mut self,
        mut batch: CallBatch<'_>,
        mut end: TurnEnd,
        mut ticks: Interval,
    ) -> (Reply, Vec<CompletedCall>, TurnEnd) {
        let assembler = std::mem::replace(&mut self.assembler, ReplyAssembler::new(""));
        let mut reply = assembler.finish();
        reply.id = Some(self.message_id.clone());
        reply.model = Some(self.model.clone());
        let is_void = match end {
            TurnEnd::Complete | TurnEnd::Fault(_) => false,
            // Providers reject a message that contains only thinking.
            TurnEnd::Interrupted => reply.message.content.iter().all(Block::is_thinking),
            TurnEnd::Failed(_) => !self.has_complete_call,
        };
        if is_void {
            reply.message.content.clear();
            reply.calls.clear();
            return (reply, Vec::new(), end);
        }
        let stop = reply.stop.clone();
        self.write_blocks(stop.as_ref());
        if self.has_complete_call {
            let (transcript, request) = (self.turn.transcript, &self.request_id);
            transcript.reply_ended(request, &self.requested_model, &self.usage);
        }
        let batch_cancel = batch.cancel_token();
        match end {
            TurnEnd::Interrupted => batch_cancel.cancel(),
            // The assembler may complete the last call only at the end of the reply.
            _ => {
                for call in &reply.calls {
                    if let Ok(input) = &call.input {
                        self.push(
                            call.id.clone(),
                            call.name.clone(),
                            input.clone(),
                            &mut batch,
                        );
                    }
                }
            }
        }
        let mut answers = Vec::new();
        // Results that arrived before their turn in the order of the reply, by the provider's id.
        let mut finished: HashMap<String, CallResult> = HashMap::new();
        for call in &reply.calls {
            let input = call.input.clone();
            if !self.pushed.contains(&call.id) {
                let text = match &input {
                    Err(error) => error.to_string(),
                    Ok(_) => INTERRUPTED.to_owned(),
                };
                let finished = not_run_result(&call.id, &call.name, text);
                answers.push(self.record_result(input.unwrap_or_default(), finished));
                continue;
            }
            // The batch returns results in the order in which calls were pushed: when their blocks
            // ended. The reply has them in the order in which the blocks began.
            while !finished.contains_key(&call.id) {
                let next = tokio::select! {
                    biased;
                    next = batch.next() => next,
                    () = self.turn.cancel.cancelled(), if !matches!(end, TurnEnd::Interrupted) => {
                        end = TurnEnd::Interrupted;
                        batch_cancel.cancel();
                        continue;
                    }
                    () = self.tracker.wait_for_start() => {
                        self.tracker.report_started(self.turn.sink);
                        continue;
                    }
                    _ = ticks.tick() => {
                        self.tracker.report_running(self.turn.sink);
                        continue;
                    }
                };
                let Some(next) = next else { break };
                finished.insert(next.id.clone(), next);
            }
            let finished = finished.remove(&call.id).unwrap_or_else(|| {
                let name = &call.name;
                end = TurnEnd::Fault(format!("the engine lost call {} of {name}", call.id));
                let text = "The engine lost this call. It is unknown whether it ran.";
                not_run_result(&call.id, name, text.to_owned())
            });
            answers.push(self.record_result(input.unwrap_or_default(), finished));
        }
        (reply, answers, end)
    }

    /// Records and reports the result of a call.
    fn record_result(&self, input: Value, finished: CallResult) -> CompletedCall {
        self.tracker.report_started(self.turn.sink);
        let result = result_of(&finished);
        let structured = finished.structured.as_ref();
        let uuid = self.turn.transcript.write_result(&result, structured);
        self.turn.sink.on_event(&AgentEvent::CallFinished {
            uuid,
            finished: Box::new(finished.clone()),
        });
        CompletedCall {
            input,
            result: finished,
        }
    }
}

/// Returns the result of a call that never reached its tool.
fn not_run_result(id: &str, name: &str, text: String) -> CallResult {
    CallResult {
        call: CallId::new(),
        id: id.to_owned(),
        name: name.to_owned(),
        is_error: true,
        content: vec![Content::text(&*text)],
        structured: None,
        messages: Vec::new(),
        patches: Vec::new(),
        metadata: Metadata::default(),
        card: Card::new(name, String::new()).with(CardSection::Alarm(text)),
    }
}
