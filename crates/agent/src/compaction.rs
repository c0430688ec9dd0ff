//! Frees space in the model's context window.
//!
//! First, old tool results are replaced by a note. The calls remain and can be repeated. If that is
//! not enough, the model summarizes the conversation, and the summary replaces it, together with
//! what must not be lost: the files that were read and changed, the project's instructions, and the
//! user's last message.
//!
//! Both steps change the prefix that the provider has cached. So they run rarely and free much space
//! at a time.

use std::{fmt::Write, path::PathBuf, time::Instant};

use futures_util::StreamExt;
use haft_contract::Content;
use haft_engine::Scheduler;
use haft_models::{
    Block, Conversation, ErrorKind, Message, ModelError, ModelRequest, Reply, ReplyAssembler,
    ToolChoice, ToolResult,
};

use crate::{
    AgentEvent, CompactionTrigger, NoticeLevel,
    client::ModelClient,
    clock,
    hooks::{HookRunner, RunContext},
    instructions::InstructionSender,
    plan_mode::PlanReminder,
    prompt::reminder,
    recorded_conversation::RecordedConversation,
    run::RunTotals,
    transcript::{TouchedFiles, UserLineKind},
};

/// The window usage, in percent, at which old results are pruned.
const PRUNE_AT: u64 = 70;
/// The increase in window usage, in percent, after which results are pruned again.
const PRUNE_AGAIN: u64 = 10;
/// The window usage, in percent, at which the conversation is summarized.
const COMPACT_AT: u64 = 85;
/// The number of newest messages whose results are not pruned.
const KEEP: usize = 8;
/// The approximate number of tokens of an image.
const IMAGE_TOKENS: u64 = 1600;
/// The maximum number of files that are listed after a summary.
const MAX_FILES: usize = 200;

/// The maximum number of times that the older half of a conversation is dropped so that the rest
/// can be summarized.
const MAX_HALVINGS: u32 = 5;
const PRUNED: &str =
    "[This old result was removed to free space. Call the tool again if you need it.]";

const SUMMARIZE: &str = include_str!("summarize.md");

/// The known usage of the context window.
#[derive(Debug, Default)]
pub(crate) struct WindowUsage {
    tokens: u64,
    pruned_at: u64,
}

impl WindowUsage {
    /// Estimates the tokens of a loaded conversation.
    pub(crate) fn from_conversation(conversation: &Conversation) -> Self {
        let blocks = conversation.messages().flat_map(|message| &message.content);
        Self {
            tokens: blocks.map(block_tokens).sum(),
            pruned_at: 0,
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    pub(crate) fn add_content(&mut self, content: &[Content]) {
        self.tokens += content_tokens(content);
    }

    /// Updates the usage after a reply. The provider's count is preferred; without it the tokens
    /// are estimated.
    pub(crate) fn record_reply(&mut self, reply: &Reply, results: &[ToolResult]) {
        let usage = &reply.usage;
        if usage.total_input() > 0 {
            self.tokens = usage.total_input() + usage.output;
        } else {
            self.tokens += reply.message.content.iter().map(block_tokens).sum::<u64>();
        }
        self.tokens += results
            .iter()
            .map(|one| content_tokens(&one.content))
            .sum::<u64>();
    }

    fn exceeds(&self, percent: u64, window: u64) -> bool {
        self.tokens > window / 100 * percent
    }
}

pub(crate) fn text_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

fn content_tokens(content: &[Content]) -> u64 {
    let tokens = content.iter().map(|content| match content {
        Content::Text { text } => text_tokens(text.len()),
        Content::Image { .. } | Content::Document { .. } => IMAGE_TOKENS,
    });
    tokens.sum()
}

fn block_tokens(block: &Block) -> u64 {
    match block {
        Block::Text { text } => text_tokens(text.len()),
        Block::Thinking { thinking, .. } => text_tokens(thinking.len()),
        Block::ToolUse { input, .. } => text_tokens(input.to_string().len()),
        Block::ToolResult(result) => content_tokens(&result.content),
        Block::Image { .. } | Block::Document { .. } => IMAGE_TOKENS,
        _ => 0,
    }
}

/// The parts of an agent that compaction needs.
pub(crate) struct CompactionRunner<'a> {
    pub(crate) scheduler: &'a Scheduler,
    pub(crate) client: &'a mut ModelClient,
    pub(crate) conversation: &'a mut RecordedConversation,
    pub(crate) instructions: &'a mut InstructionSender,
    pub(crate) plan: &'a mut PlanReminder,
    pub(crate) hooks: &'a HookRunner,
    pub(crate) cx: RunContext<'a>,
}

impl CompactionRunner<'_> {
    /// Frees space before a request if the window is nearly full.
    pub(crate) async fn compact_if_needed(&mut self, last: &[Content], totals: &mut RunTotals) {
        let auto = self.client.settings.auto_compact;
        let window = auto.window_of(self.client.settings.window);
        let used = &self.conversation.window;
        let due = used.pruned_at + window / 100 * PRUNE_AGAIN;
        if used.exceeds(PRUNE_AT, window) && (used.pruned_at == 0 || used.tokens > due) {
            self.prune(KEEP);
        }
        let is_wanted = !auto.is_off && !totals.skips_compaction;
        if !is_wanted || !self.conversation.window.exceeds(COMPACT_AT, window) {
            return;
        }
        match self
            .compact(CompactionTrigger::Auto, "", last, totals)
            .await
        {
            // If the last prompt alone fills the window, the conversation is not summarized again.
            Ok(was_compacted) => {
                let is_full = self.conversation.window.exceeds(COMPACT_AT, window);
                totals.skips_compaction = !was_compacted || is_full;
            }
            Err(error) => {
                // Not retried in this run: the provider may still accept the conversation.
                totals.skips_compaction = true;
                self.cx.notice(
                    NoticeLevel::Warning,
                    format!("the conversation could not be summarized: {error}"),
                );
            }
        }
    }

    fn prune(&mut self, keep: usize) {
        let freed = self.conversation.conversation.prune_results(keep, PRUNED);
        let used = &mut self.conversation.window;
        used.tokens = used.tokens.saturating_sub(text_tokens(freed));
        used.pruned_at = used.tokens.max(1);
        tracing::debug!(freed, "old results were removed");
    }

    /// Replaces the conversation by a summary. `last` is the user's last message, which is
    /// preserved.
    pub(crate) async fn compact(
        &mut self,
        trigger: CompactionTrigger,
        instructions: &str,
        last: &[Content],
        totals: &mut RunTotals,
    ) -> Result<bool, ModelError> {
        let (started, cx, hooks) = (Instant::now(), self.cx, self.hooks);
        let verdict = hooks
            .before_compaction(trigger.name(), instructions, cx)
            .await;
        if let Some(reason) = verdict.block {
            cx.notice(
                NoticeLevel::Info,
                format!("the conversation is not summarized: {reason}"),
            );
            return Ok(false);
        }
        cx.sink.on_event(&AgentEvent::Compacting { trigger });
        let pre_tokens = self.conversation.window.tokens;
        let summary = match self.summary(instructions, totals).await {
            Err(error) if error.kind == ErrorKind::ContextTooLong => {
                self.prune(0);
                self.summarize_recent(instructions, totals).await
            }
            other => other,
        };
        let summary = match summary {
            Err(error) if error.kind == ErrorKind::Cancelled => return Ok(false),
            other => other?,
        };
        let window = self.client.settings.window;
        let sources = self
            .instructions
            .reload_after_compaction(window, hooks, cx)
            .await;
        let sources = sources.iter().map(|text| Content::text(reminder(text)));
        let mut content: Vec<Content> = sources.collect();
        let model = &self.client.settings.name;
        let hook_context = hooks.session_start("compact", model, cx).await.context;
        content.extend(
            hook_context
                .iter()
                .map(|text| Content::text(reminder(text))),
        );
        let reminders = self.plan.reminders_after_compaction(self.scheduler);
        content.extend(reminders.iter().map(|text| Content::text(reminder(text))));
        content.push(Content::text(summary_message(
            &summary,
            &self.conversation.transcript.files(),
        )));
        if !last.is_empty() {
            content.push(Content::text("The user's last message, word for word:"));
            content.extend(last.iter().cloned());
        }
        let uuid = clock::random_id();
        self.conversation
            .transcript
            .write_compaction(uuid, trigger, pre_tokens);
        self.conversation.clear();
        self.conversation.add(content, UserLineKind::Summary, None);
        cx.sink.on_event(&AgentEvent::Compacted {
            trigger,
            pre_tokens,
            post_tokens: self.conversation.window.tokens,
            duration: started.elapsed(),
            uuid,
        });
        hooks.compacted(trigger.name(), &summary, cx).await;
        Ok(true)
    }

    /// Summarizes as much of the end of the conversation as fits into the model's context window.
    async fn summarize_recent(
        &mut self,
        instructions: &str,
        totals: &mut RunTotals,
    ) -> Result<String, ModelError> {
        let messages = self.conversation.conversation.messages();
        let mut messages: Vec<Message> = messages.cloned().collect();
        let mut summary = self.summary(instructions, totals).await;
        for _ in 0..MAX_HALVINGS {
            let is_too_long =
                matches!(&summary, Err(error) if error.kind == ErrorKind::ContextTooLong);
            if !is_too_long || messages.len() < 2 {
                break;
            }
            messages.drain(..messages.len() / 2);
            let (rest, _) = Conversation::load(messages.clone());
            summary = self.summary_of(rest, instructions, totals).await;
        }
        summary
    }

    /// Returns the model's summary of the conversation.
    pub(crate) async fn summary(
        &mut self,
        instructions: &str,
        totals: &mut RunTotals,
    ) -> Result<String, ModelError> {
        let all = self.conversation.conversation.clone();
        self.summary_of(all, instructions, totals).await
    }

    async fn summary_of(
        &mut self,
        mut history: Conversation,
        instructions: &str,
        totals: &mut RunTotals,
    ) -> Result<String, ModelError> {
        let cx = self.cx;
        let mut text = SUMMARIZE.to_owned();
        if !instructions.trim().is_empty() {
            let _ = write!(text, "\nThe user adds: {}", instructions.trim());
        }
        history.user([Content::text(text)]);
        let conversation = &self.conversation.conversation;
        let mut request: ModelRequest = self.client.request(conversation, self.scheduler);
        request.history = history.history();
        request.tool_choice = ToolChoice::None;
        let name = request.model.clone();
        let mut assembler = ReplyAssembler::new(&*name);
        let started = Instant::now();
        let mut stream = self.client.model.stream(request, cx.cancel.child_token());
        let ended = loop {
            let next = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => break Err(ModelError::cancelled()),
                next = stream.next() => next,
            };
            match next {
                None => break Ok(()),
                Some(Err(error)) => break Err(error),
                // Tool calls in the reply are ignored.
                Some(Ok(event)) => drop(assembler.push(&event)),
            }
        };
        drop(stream);
        let reply = assembler.finish();
        totals.model_time += started.elapsed();
        self.client.record_usage(&name, &reply.usage);
        ended?;
        let text = reply_text(&reply.message.content);
        if text.trim().is_empty() {
            let message = "the model returned an empty summary";
            return Err(ModelError::new(ErrorKind::Protocol, message));
        }
        Ok(text)
    }
}

/// Returns the text of a reply.
pub(crate) fn reply_text(content: &[Block]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// Returns the message that replaces a conversation.
fn summary_message(summary: &str, files: &TouchedFiles) -> String {
    let mut text = format!(
        "This conversation was longer than the model can read. A summary of the earlier messages:\n\n{}",
        summary.trim()
    );
    // Searched folders and deleted files are not listed.
    let exists = |path: &&PathBuf| path.is_file();
    let changed: Vec<&PathBuf> = files.writes.iter().filter(exists).collect();
    let read = files
        .reads
        .iter()
        .filter(|path| !files.writes.contains(*path));
    let read: Vec<&PathBuf> = read.filter(exists).collect();
    for (heading, paths) in [
        ("Files changed so far", changed),
        ("Other files read so far", read),
    ] {
        if paths.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n\n{heading} (read them again before you rely on their content):"
        );
        for path in paths.iter().take(MAX_FILES) {
            let _ = write!(text, "\n- {}", path.display());
        }
        if let Some(omitted) = paths
            .len()
            .checked_sub(MAX_FILES)
            .filter(|omitted| *omitted > 0)
        {
            let _ = write!(text, "\n- and {omitted} more");
        }
    }
    text += "\n\nContinue from here. Do not mention the summary.";
    text
}
