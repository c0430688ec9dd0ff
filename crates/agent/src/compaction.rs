//! Making room in the model's window.
//!
//! First old results give way to a note: the calls stay, and can be made again. If that is not enough, the
//! model sums the conversation up, and the summary takes its place, together with what must not be lost:
//! which files were read and changed, what the project wants known, and the person's last words.
//!
//! Both change what the provider has cached, so they are done rarely and then thoroughly.

use std::{fmt::Write, path::PathBuf, time::Instant};

use futures_util::StreamExt;
use haft_contract::Content;
use haft_models::{
    Assembler, Block, Conversation, ErrorKind, ModelError, ModelRequest, Reply, ToolChoice,
    ToolResult,
};

use crate::{
    Agent, AgentEvent, NoticeLevel, Sink, Trigger, clock,
    hooks::RunContext,
    prompt::reminder,
    run::Tally,
    transcript::{Files, Kind},
};

/// Old results give way from this part of the window on, in percent…
const PRUNE_AT: u64 = 70;
/// …and not again before it has filled by so much more.
const PRUNE_AGAIN: u64 = 10;
/// The conversation is summed up from this part on.
const COMPACT_AT: u64 = 85;
/// The newest messages keep their results.
const KEEP: usize = 8;
/// What an image costs, about.
const IMAGE_TOKENS: u64 = 1600;
/// At most so many files are named after a summary.
const MOST_FILES: usize = 200;

const PRUNED: &str =
    "[This old result was removed to make room. Call the tool again if you need it.]";

const SUMMARIZE: &str = include_str!("summarize.md");

/// How full the window is, as far as is known.
#[derive(Debug, Default)]
pub(crate) struct Room {
    tokens: u64,
    pruned_at: u64,
}

impl Room {
    /// Counts a conversation that was loaded.
    pub(crate) fn of(conversation: &Conversation) -> Self {
        let blocks = conversation.messages().flat_map(|message| &message.content);
        Self {
            tokens: blocks.map(block_tokens).sum(),
            pruned_at: 0,
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    pub(crate) fn added(&mut self, content: &[Content]) {
        self.tokens += content_tokens(content);
    }

    /// The provider counts best; where it says nothing, we do.
    pub(crate) fn replied(&mut self, reply: &Reply, results: &[ToolResult]) {
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

    fn is_over(&self, percent: u64, window: u64) -> bool {
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

impl Agent {
    /// Sums the conversation up, because a person asked for it. `false`: there was nothing to sum up, a
    /// hook held it up, or it was interrupted.
    pub async fn compact(
        &mut self,
        instructions: &str,
        sink: &dyn Sink,
    ) -> Result<bool, ModelError> {
        if self.conversation.messages().len() == 0 {
            return Ok(false);
        }
        let running = self.control.begin();
        let to = RunContext {
            sink,
            cancel: &running.cancel,
        };
        self.note_place();
        let mut tally = Tally::default();
        self.sum_up(Trigger::Manual, instructions, &[], to, &mut tally)
            .await
    }

    /// Makes room before a request, if there is little.
    pub(crate) async fn make_room(
        &mut self,
        last: &[Content],
        to: RunContext<'_>,
        tally: &mut Tally,
    ) {
        let window = self.settings.window;
        let due = self.room.pruned_at + window / 100 * PRUNE_AGAIN;
        if self.room.is_over(PRUNE_AT, window)
            && (self.room.pruned_at == 0 || self.room.tokens > due)
        {
            self.prune(KEEP);
        }
        if !self.room.is_over(COMPACT_AT, window) || tally.compaction_refused {
            return;
        }
        match self.sum_up(Trigger::Auto, "", last, to, tally).await {
            // A prompt that fills the window by itself is not summed up again and again.
            Ok(done) => tally.compaction_refused = !done || self.room.is_over(COMPACT_AT, window),
            Err(error) => {
                // Not asked again in this run: the provider may still take the conversation.
                tally.compaction_refused = true;
                to.notice(
                    NoticeLevel::Warning,
                    format!("the conversation could not be summed up: {error}"),
                );
            }
        }
    }

    fn prune(&mut self, keep: usize) {
        let freed = self.conversation.prune_results(keep, PRUNED);
        self.room.tokens = self.room.tokens.saturating_sub(text_tokens(freed));
        self.room.pruned_at = self.room.tokens.max(1);
        tracing::debug!(freed, "old results were removed");
    }

    /// Puts a summary in place of the conversation. `last`: the person's last words, to be kept.
    pub(crate) async fn sum_up(
        &mut self,
        trigger: Trigger,
        instructions: &str,
        last: &[Content],
        to: RunContext<'_>,
        tally: &mut Tally,
    ) -> Result<bool, ModelError> {
        let started = Instant::now();
        let word = self.hook_compact(trigger.name(), instructions, to).await;
        if let Some(why) = word.block {
            to.notice(
                NoticeLevel::Info,
                format!("the conversation is not summed up: {why}"),
            );
            return Ok(false);
        }
        to.sink.on_event(&AgentEvent::Compacting { trigger });
        let pre_tokens = self.room.tokens;
        let summary = match self.summary(instructions, to, tally).await {
            Err(error) if error.kind == ErrorKind::ContextTooLong => {
                self.prune(0);
                self.summary(instructions, to, tally).await
            }
            other => other,
        };
        let summary = match summary {
            Err(error) if error.kind == ErrorKind::Cancelled => return Ok(false),
            other => other?,
        };
        let known = self.recall_all(to).await;
        let known = known.iter().map(|text| Content::text(reminder(text)));
        let mut content: Vec<Content> = known.collect();
        let told = self.hook_start("compact", to).await.context;
        content.extend(told.iter().map(|text| Content::text(reminder(text))));
        let still = self.still_holds();
        content.extend(still.iter().map(|text| Content::text(reminder(text))));
        content.push(Content::text(written(&summary, &self.transcript.files())));
        if !last.is_empty() {
            content.push(Content::text("The person's last message, word for word:"));
            content.extend(last.iter().cloned());
        }
        let uuid = clock::random_id();
        self.transcript.boundary(uuid, trigger, pre_tokens);
        self.conversation = Conversation::new();
        self.room = Room::default();
        self.add(content, Kind::Summary, None);
        to.sink.on_event(&AgentEvent::Compacted {
            trigger,
            pre_tokens,
            post_tokens: self.room.tokens,
            duration: started.elapsed(),
            uuid,
        });
        self.hook_compacted(trigger.name(), &summary, to).await;
        Ok(true)
    }

    /// What the model makes of the conversation.
    async fn summary(
        &mut self,
        instructions: &str,
        to: RunContext<'_>,
        tally: &mut Tally,
    ) -> Result<String, ModelError> {
        let mut asked = self.conversation.clone();
        let mut text = SUMMARIZE.to_owned();
        if !instructions.trim().is_empty() {
            let _ = write!(text, "\nThe person adds: {}", instructions.trim());
        }
        asked.user([Content::text(text)]);
        let mut request: ModelRequest = self.request();
        request.history = asked.history();
        request.tool_choice = ToolChoice::None;
        let name = request.model.clone();
        let mut assembler = Assembler::new(&*name);
        let started = Instant::now();
        let mut stream = self.model.stream(request, to.cancel.child_token());
        let ended = loop {
            let next = tokio::select! {
                biased;
                () = to.cancel.cancelled() => break Err(ModelError::cancelled()),
                next = stream.next() => next,
            };
            match next {
                None => break Ok(()),
                Some(Err(error)) => break Err(error),
                // A call is not run here, whatever the model wants.
                Some(Ok(event)) => drop(assembler.push(&event)),
            }
        };
        drop(stream);
        let reply = assembler.finish();
        tally.api += started.elapsed();
        self.purse.add(&name, &reply.usage, &self.prices);
        ended?;
        let text = text_of(&reply.message.content);
        if text.trim().is_empty() {
            let what = "the model summed the conversation up in no words";
            return Err(ModelError::new(ErrorKind::Protocol, what));
        }
        Ok(text)
    }
}

/// The text of a reply.
pub(crate) fn text_of(content: &[Block]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// The message that takes the place of a conversation.
fn written(summary: &str, files: &Files) -> String {
    let mut text = format!(
        "This conversation was longer than the model can read. What came before, summed up:\n\n{}",
        summary.trim()
    );
    // Folders that were searched, and files that are gone, tell the model nothing.
    let still = |path: &&PathBuf| path.is_file();
    let changed: Vec<&PathBuf> = files.writes.iter().filter(still).collect();
    let read = files
        .reads
        .iter()
        .filter(|path| !files.writes.contains(*path));
    let read: Vec<&PathBuf> = read.filter(still).collect();
    for (what, paths) in [
        ("Files changed so far", changed),
        ("Other files read so far", read),
    ] {
        if paths.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n\n{what} (read them again before you rely on their content):"
        );
        for path in paths.iter().take(MOST_FILES) {
            let _ = write!(text, "\n- {}", path.display());
        }
        if let Some(more) = paths.len().checked_sub(MOST_FILES).filter(|more| *more > 0) {
            let _ = write!(text, "\n- and {more} more");
        }
    }
    text += "\n\nGo on from here. Do not mention the summary.";
    text
}
