//! What happens to a session between runs: it begins, gets directories and permissions, is summarized,
//! forgotten, and ends.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{BackgroundTasks, CancellationToken, Content, ContextPatch, NestedCalls};
use haft_models::{ErrorKind, ModelError};
use uuid::Uuid;

use crate::{
    Agent, Began, LoadedInstructions, NoticeLevel, PromptExpansion, Session, Sink, Trigger,
    background::background,
    hooks::RunContext,
    prompt::reminder,
    run::Tally,
    transcript::{Kind, Terms},
};

impl Agent {
    /// Begins the session, where that is to be done before the first run. Gives what hooks want said
    /// first, as if a person had said it.
    pub async fn begin(&mut self, sink: &dyn Sink) -> Option<String> {
        let never = CancellationToken::new();
        self.start(RunContext::new(sink, &never)).await
    }

    /// Begins the session, once.
    pub(crate) async fn start(&mut self, to: RunContext<'_>) -> Option<String> {
        if std::mem::replace(&mut self.session.has_begun, true) {
            return None;
        }
        let origin = self.session.origin.name();
        let model = &self.client.settings.name;
        let word = self.hooks.session_start(origin, model, to).await;
        self.instructions.open_with(word.context);
        self.session.held_up = self.session.held_up.take().or(word.stop);
        if self.hooks.wants_skills_again() {
            self.instructions.reload_skills(to);
        }
        word.first_words
    }

    /// Lets hooks make the project ready (`init`) or put it in order (`maintenance`).
    pub async fn setup(&mut self, trigger: &str, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext::new(sink, &never);
        let word = self.hooks.setup(trigger, to).await;
        self.instructions.open_with(word.context);
        self.session.held_up = self.session.held_up.take().or(word.stop);
    }

    /// Adds a working directory, and tells hooks who asked for it: `slash_command` or
    /// `register_repo_root`.
    pub async fn add_directory(&mut self, path: PathBuf, source: &str, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext::new(sink, &never);
        let added = path.clone();
        self.scheduler.apply(&ContextPatch::AddDirectory { path });
        self.hooks.directory_added(&added, source, to).await;
    }

    /// Tells hooks of a file that was read for the model to follow.
    pub async fn instructions_loaded(&self, loaded: &LoadedInstructions, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext::new(sink, &never);
        self.hooks.instructions(loaded, to).await;
    }

    /// Tells hooks that a command becomes a prompt: what they want the model to know, or why it must not.
    pub async fn prompt_expands(
        &self,
        what: &PromptExpansion<'_>,
        sink: &dyn Sink,
    ) -> Result<Vec<String>, String> {
        let never = CancellationToken::new();
        let to = RunContext::new(sink, &never);
        let word = self.hooks.expansion(what, to).await;
        match word.block.or(word.stop) {
            Some(why) => Err(why),
            None => Ok(word.context),
        }
    }

    /// Returns when a hook that runs beside the session wants the model to read something: it is sent
    /// with the next run, or by [`run_notices`](Self::run_notices).
    pub async fn woken(&self) {
        self.hooks.woken().await;
    }

    /// What goes on in the background; `None` where nothing ever does.
    pub fn notices(&self) -> Option<Arc<BackgroundTasks>> {
        background(self.scheduler.engine())
    }

    /// Calls beside the model's own, by the rules of this session.
    pub fn aside(&self) -> NestedCalls {
        self.scheduler.aside()
    }

    /// Changes the session for the next run, until the person speaks again: what a skill permits that
    /// they called.
    pub fn permit(&mut self, patches: Vec<ContextPatch>) {
        self.session.permitted = patches;
    }

    /// A person speaks: what a skill permitted is over, and what they just called counts.
    pub(crate) fn speaks_again(&mut self) {
        self.scheduler.apply(&ContextPatch::EndRulesOfTurn);
        for patch in std::mem::take(&mut self.session.permitted) {
            self.scheduler.apply(&patch);
        }
    }

    /// Compacts the conversation, because a person asked for it. `false`: there was nothing to compact, a
    /// hook blocked it, or it was interrupted.
    pub async fn compact(
        &mut self,
        instructions: &str,
        sink: &dyn Sink,
    ) -> Result<bool, ModelError> {
        if self.dialogue.is_empty() {
            return Ok(false);
        }
        let running = self.control.begin();
        let to = RunContext::new(sink, &running.cancel);
        self.note_place();
        let mut tally = Tally::default();
        let mut compaction = self.compaction(to);
        compaction
            .sum_up(Trigger::Manual, instructions, &[], &mut tally)
            .await
    }

    /// Ends the conversation and begins another in its place: the next words are the first. What was spent
    /// stays, and so do files, permissions and what runs in the background.
    pub async fn clear(&mut self, session: Session, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext::new(sink, &never);
        self.hooks.conversation_end("clear", to).await;
        self.scheduler.engine().begin_conversation(session.id);
        self.session.id = session.id;
        self.dialogue.begin(session);
        self.hooks.writes_to(&self.dialogue.transcript);
        self.instructions.forget();
        self.note_place();
        let model = &self.client.settings.name;
        let word = self.hooks.session_start("clear", model, to).await;
        self.instructions.open_with(word.context);
        self.session.held_up = self.session.held_up.take().or(word.stop);
    }

    /// Goes on with another conversation in the place of this one, as it was left. What was spent stays, and
    /// so do files, permissions and what runs in the background.
    pub async fn take_up(&mut self, session: Session, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext::new(sink, &never);
        self.hooks.conversation_end("resume", to).await;
        self.scheduler.engine().begin_conversation(session.id);
        self.session.id = session.id;
        self.dialogue.take_up(session);
        self.hooks.writes_to(&self.dialogue.transcript);
        self.note_place();
        let model = &self.client.settings.name;
        let word = self.hooks.session_start("resume", model, to).await;
        self.instructions.open_with(word.context);
        self.session.held_up = self.session.held_up.take().or(word.stop);
    }

    /// Goes back to where this message was the last; `None`: to the beginning. What came after it stays in
    /// the transcript, beside what comes now. Gives the message that was the last before: going back to it
    /// undoes this.
    pub fn go_back(&mut self, until: Option<&str>) -> Result<Option<Uuid>, String> {
        let before = self.dialogue.go_back(until)?;
        if until.is_none() {
            self.instructions.forget();
        }
        Ok(before)
    }

    /// Puts a summary in place of what was said since a message: `prompt` is what it says, `before` the one
    /// that it follows. Gives the message that was the last before: going back to it undoes this. `None`:
    /// it was interrupted, and nothing has changed.
    pub async fn sum_up_from(
        &mut self,
        prompt: &str,
        before: Option<&str>,
        sink: &dyn Sink,
    ) -> Result<Option<Uuid>, String> {
        let running = self.control.begin();
        let to = RunContext::new(sink, &running.cancel);
        let about = format!("Sum up only what was said from this message of mine on: {prompt}");
        let mut tally = Tally::default();
        let summary = self.compaction(to).summary(&about, &mut tally).await;
        let summary = match summary {
            Err(error) if error.kind == ErrorKind::Cancelled => return Ok(None),
            Err(error) => return Err(error.to_string()),
            Ok(summary) => summary,
        };
        let last = self.go_back(before)?;
        let text = format!("What was said from here on, in a summary:\n\n{summary}");
        let content = vec![Content::text(reminder(&text))];
        self.dialogue.add(content, Kind::Meta, None);
        Ok(last)
    }

    /// Adds something in the user's name that the model reads with the next request, without asking it.
    pub fn note_for_model(&mut self, content: Vec<Content>) -> Uuid {
        self.dialogue.add(content, Kind::Prompt, None)
    }

    /// Tells the hooks that the session ends, and why: `clear`, `logout`, `prompt_input_exit`, `other`.
    pub async fn end(&mut self, reason: &str, sink: &dyn Sink) {
        let never = CancellationToken::new();
        let to = RunContext::new(sink, &never);
        self.hooks.session_end(reason, to).await;
    }

    pub(crate) fn began(&self) -> Began {
        let context = self.scheduler.context();
        let pool = self.scheduler.engine().pool();
        Began {
            session: self.session.id,
            cwd: context.cwd.to_path_buf(),
            model: self.client.settings.name.clone(),
            mode: context.mode,
            tools: pool.iter().map(|tool| tool.spec().name.clone()).collect(),
        }
    }

    pub(crate) fn note_place(&self) {
        self.dialogue.note_place(&self.scheduler.context().cwd);
    }

    /// Records what the session came to be permitted and offered, once it has said anything at all.
    pub(crate) fn note_terms(&self) {
        if !self.dialogue.is_empty() {
            let terms = Terms::between(&self.session.start, &self.scheduler.context());
            let terms = terms.with_tools(&self.scheduler);
            self.dialogue.transcript.set_terms(&terms);
        }
    }

    /// A transcript that cannot be written ends nothing, but the person must know.
    pub(crate) fn tell_trouble(&self, to: RunContext<'_>) {
        if let Some(trouble) = self.dialogue.transcript.trouble() {
            to.notice(
                NoticeLevel::Warning,
                format!("this session is not recorded: {trouble}"),
            );
        }
    }
}
