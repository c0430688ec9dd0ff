//! The lifecycle of a session between runs: it starts, gets directories and permissions, is
//! compacted, cleared, resumed, and ends.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{BackgroundTasks, CancellationToken, Content, ContextPatch, NestedCalls};
use haft_models::{ErrorKind, ModelError};
use uuid::Uuid;

use crate::{
    Agent, AgentEventSink, CompactionTrigger, LoadedInstructions, NoticeLevel, OpenTranscript,
    PromptExpansion, RunStart,
    background_notices::background,
    hooks::RunContext,
    prompt::reminder,
    run::RunTotals,
    transcript::{SessionGrants, UserLineKind},
};

impl Agent {
    /// Starts the session before the first run. Returns the initial prompt that hooks provide, if
    /// any.
    pub async fn start_session(&mut self, sink: &dyn AgentEventSink) -> Option<String> {
        let never_cancelled = CancellationToken::new();
        self.start_session_once(RunContext::new(sink, &never_cancelled))
            .await
    }

    /// Starts the session if it has not started yet.
    pub(crate) async fn start_session_once(&mut self, cx: RunContext<'_>) -> Option<String> {
        if std::mem::replace(&mut self.session.has_begun, true) {
            return None;
        }
        let origin = self.session.origin.name();
        let model = &self.client.settings.name;
        let verdict = self.hooks.session_start(origin, model, cx).await;
        self.instructions.queue_opening(verdict.context);
        self.session.start_blocked = self.session.start_blocked.take().or(verdict.stop);
        if self.hooks.take_skill_reload() {
            self.instructions.reload_skills(cx);
        }
        verdict.initial_prompt
    }

    /// Fires the Setup hooks, which prepare (`init`) or maintain (`maintenance`) the project.
    pub async fn setup(&mut self, trigger: &str, sink: &dyn AgentEventSink) {
        let never_cancelled = CancellationToken::new();
        let cx = RunContext::new(sink, &never_cancelled);
        let verdict = self.hooks.setup(trigger, cx).await;
        self.instructions.queue_opening(verdict.context);
        self.session.start_blocked = self.session.start_blocked.take().or(verdict.stop);
    }

    /// Adds a working directory and notifies hooks with the source: `slash_command` or
    /// `register_repo_root`.
    pub async fn add_directory(&mut self, path: PathBuf, source: &str, sink: &dyn AgentEventSink) {
        let never_cancelled = CancellationToken::new();
        let cx = RunContext::new(sink, &never_cancelled);
        let added = path.clone();
        self.scheduler.apply(&ContextPatch::AddDirectory { path });
        self.hooks.directory_added(&added, source, cx).await;
    }

    /// Notifies hooks of an instruction file that was loaded.
    pub async fn instructions_loaded(
        &self,
        loaded: &LoadedInstructions,
        sink: &dyn AgentEventSink,
    ) {
        let never_cancelled = CancellationToken::new();
        let cx = RunContext::new(sink, &never_cancelled);
        self.hooks.instructions(loaded, cx).await;
    }

    /// Notifies hooks that a command expands to a prompt. Returns their context for the model, or
    /// the reason why they block it.
    pub async fn fire_prompt_expansion(
        &self,
        expansion: &PromptExpansion<'_>,
        sink: &dyn AgentEventSink,
    ) -> Result<Vec<String>, String> {
        let never_cancelled = CancellationToken::new();
        let cx = RunContext::new(sink, &never_cancelled);
        let verdict = self.hooks.expansion(expansion, cx).await;
        match verdict.block.or(verdict.stop) {
            Some(reason) => Err(reason),
            None => Ok(verdict.context),
        }
    }

    /// Waits until an asynchronous hook wakes the model. Its context is sent with the next run, or
    /// by [`run_background_notices`](Self::run_background_notices).
    pub async fn wait_for_hook_wake(&self) {
        self.hooks.wait_for_wake().await;
    }

    /// Returns the background tasks of the session, or `None` if it has no such service.
    pub fn background_tasks(&self) -> Option<Arc<BackgroundTasks>> {
        background(self.scheduler.engine())
    }

    /// Returns a runner for calls outside of turns, under the rules of this session.
    pub fn nested_calls(&self) -> NestedCalls {
        self.scheduler.nested_calls()
    }

    /// Sets the changes that apply to the next run, such as the permissions of a skill that the
    /// user called. They end with the user's next prompt.
    pub fn set_next_run_patches(&mut self, patches: Vec<ContextPatch>) {
        self.session.next_run_patches = patches;
    }

    /// Handles a new prompt: ends the permissions of the previous turn and applies those for this
    /// one.
    pub(crate) fn start_user_turn(&mut self) {
        self.scheduler.apply(&ContextPatch::EndRulesOfTurn);
        for patch in std::mem::take(&mut self.session.next_run_patches) {
            self.scheduler.apply(&patch);
        }
    }

    /// Compacts the conversation because the user requested it. Returns `false` if the conversation
    /// was empty, a hook blocked the compaction, or it was interrupted.
    pub async fn compact(
        &mut self,
        instructions: &str,
        sink: &dyn AgentEventSink,
    ) -> Result<bool, ModelError> {
        if self.conversation.is_empty() {
            return Ok(false);
        }
        let run_guard = self.control.start_run();
        let cx = RunContext::new(sink, &run_guard.cancel);
        self.record_cwd();
        let mut totals = RunTotals::default();
        let mut compaction = self.compaction(cx);
        compaction
            .compact(CompactionTrigger::Manual, instructions, &[], &mut totals)
            .await
    }

    /// Ends the conversation and begins a new one. The usage, the files, the permissions and the
    /// background tasks remain.
    pub async fn clear(&mut self, session: OpenTranscript, sink: &dyn AgentEventSink) {
        let never_cancelled = CancellationToken::new();
        let cx = RunContext::new(sink, &never_cancelled);
        self.hooks.conversation_end("clear", cx).await;
        self.scheduler.engine().start_conversation(session.id);
        self.session.id = session.id;
        self.conversation.start_transcript(session);
        self.hooks.set_transcript(&self.conversation.transcript);
        self.instructions.reset();
        self.record_cwd();
        let model = &self.client.settings.name;
        let verdict = self.hooks.session_start("clear", model, cx).await;
        self.instructions.queue_opening(verdict.context);
        self.session.start_blocked = self.session.start_blocked.take().or(verdict.stop);
    }

    /// Resumes another conversation instead of this one. The usage, the files, the permissions and
    /// the background tasks remain.
    pub async fn resume_conversation(
        &mut self,
        session: OpenTranscript,
        sink: &dyn AgentEventSink,
    ) {
        let never_cancelled = CancellationToken::new();
        let cx = RunContext::new(sink, &never_cancelled);
        self.hooks.conversation_end("resume", cx).await;
        self.scheduler.engine().start_conversation(session.id);
        self.session.id = session.id;
        self.conversation.resume(session);
        self.hooks.set_transcript(&self.conversation.transcript);
        self.record_cwd();
        let model = &self.client.settings.name;
        let verdict = self.hooks.session_start("resume", model, cx).await;
        self.instructions.queue_opening(verdict.context);
        self.session.start_blocked = self.session.start_blocked.take().or(verdict.stop);
    }

    /// Rewinds the conversation to this message, or to the beginning for `None`. Later messages
    /// remain in the transcript on a separate branch. Returns the id of the message that was the
    /// last one before; rewinding to that message undoes the rewind.
    pub fn rewind_to(&mut self, until: Option<&str>) -> Result<Option<Uuid>, String> {
        let before = self.conversation.rewind_to(until)?;
        if until.is_none() {
            self.instructions.reset();
        }
        Ok(before)
    }

    /// Replaces the conversation from a message on by a summary. `prompt` is the text of that
    /// message, and `before` is the id of the message before it. Returns the id of the message that
    /// was the last one before; rewinding to that message undoes the replacement. Returns `None` if
    /// the request was interrupted; then nothing has changed.
    pub async fn summarize_from(
        &mut self,
        prompt: &str,
        before: Option<&str>,
        sink: &dyn AgentEventSink,
    ) -> Result<Option<Uuid>, String> {
        let run_guard = self.control.start_run();
        let cx = RunContext::new(sink, &run_guard.cancel);
        let about = format!(
            "Summarize only the part of the conversation that starts with this message: {prompt}"
        );
        let mut totals = RunTotals::default();
        let summary = self.compaction(cx).summary(&about, &mut totals).await;
        let summary = match summary {
            Err(error) if error.kind == ErrorKind::Cancelled => return Ok(None),
            Err(error) => return Err(error.to_string()),
            Ok(summary) => summary,
        };
        let last = self.rewind_to(before)?;
        let text = format!("A summary of the conversation from here on:\n\n{summary}");
        let content = vec![Content::text(reminder(&text))];
        self.conversation.add(content, UserLineKind::Meta, None);
        Ok(last)
    }

    /// Adds a message in the user's name that is sent with the next request, without starting a
    /// run.
    pub fn add_user_note(&mut self, content: Vec<Content>) -> Uuid {
        self.conversation.add(content, UserLineKind::Prompt, None)
    }

    /// Notifies hooks that the session ends, with the reason: `clear`, `logout`,
    /// `prompt_input_exit`, `other`.
    pub async fn end_session(&mut self, reason: &str, sink: &dyn AgentEventSink) {
        let never_cancelled = CancellationToken::new();
        let cx = RunContext::new(sink, &never_cancelled);
        self.hooks.session_end(reason, cx).await;
    }

    pub(crate) fn run_start(&self) -> RunStart {
        let context = self.scheduler.context();
        let pool = self.scheduler.engine().pool();
        RunStart {
            session: self.session.id,
            cwd: context.cwd.to_path_buf(),
            model: self.client.settings.name.clone(),
            mode: context.mode,
            tools: pool.iter().map(|tool| tool.spec().name.clone()).collect(),
        }
    }

    pub(crate) fn record_cwd(&self) {
        self.conversation.set_cwd(&self.scheduler.context().cwd);
    }

    /// Records the permissions and tools that the session was granted, if the conversation is not
    /// empty.
    pub(crate) fn record_grants(&self) {
        if !self.conversation.is_empty() {
            let grants = SessionGrants::since_start(&self.session.start, &self.scheduler.context());
            let grants = grants.with_tools(&self.scheduler);
            self.conversation.transcript.set_grants(&grants);
        }
    }

    /// Warns the user, once, if the transcript cannot be written. The session continues.
    pub(crate) fn warn_if_unrecorded(&self, cx: RunContext<'_>) {
        if let Some(error) = self.conversation.transcript.take_error() {
            cx.notice(
                NoticeLevel::Warning,
                format!("this session is not being saved: {error}"),
            );
        }
    }
}
