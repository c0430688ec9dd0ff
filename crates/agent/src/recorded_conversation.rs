//! The conversation, its transcript and the usage of the context window, which always change
//! together.

use std::{path::Path, sync::Arc};

use haft_contract::Content;
use haft_models::Conversation;
use uuid::Uuid;

use crate::{
    AgentEvent, InjectionSource, OpenTranscript, Prompt, clock,
    compaction::WindowUsage,
    hooks::RunContext,
    prompt::{branch, reminder},
    transcript::{Transcript, TranscriptPosition, UserLineKind, load::load},
};

/// The conversation of a session. Every message is written to the transcript first.
pub(crate) struct RecordedConversation {
    pub(crate) conversation: Conversation,
    pub(crate) transcript: Arc<Transcript>,
    pub(crate) window: WindowUsage,
}

impl RecordedConversation {
    /// Creates a recorded conversation from a loaded or empty conversation.
    pub(crate) fn new(conversation: Conversation, transcript: Arc<Transcript>) -> Self {
        Self {
            window: WindowUsage::from_conversation(&conversation),
            conversation,
            transcript,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conversation.messages().len() == 0
    }

    /// Adds a message in the user's name.
    pub(crate) fn add(
        &mut self,
        content: Vec<Content>,
        kind: UserLineKind,
        uuid: Option<Uuid>,
    ) -> Uuid {
        let uuid = uuid.unwrap_or_else(clock::random_id);
        self.transcript.write_user(uuid, &content, kind);
        self.window.add_content(&content);
        self.conversation.user(content);
        uuid
    }

    /// Like [`add`](Self::add), but also reports the message.
    pub(crate) fn add_and_report(
        &mut self,
        content: Vec<Content>,
        kind: UserLineKind,
        by: InjectionSource,
        cx: RunContext<'_>,
    ) {
        let uuid = self.add(content.clone(), kind, None);
        cx.sink
            .on_event(&AgentEvent::MessageInjected { uuid, content, by });
    }

    /// Adds and reports a prompt that the user sent during a run.
    pub(crate) fn add_steering(&mut self, prompt: Prompt, cx: RunContext<'_>) {
        let content = prompt.content;
        let uuid = self.add(content.clone(), UserLineKind::Prompt, prompt.uuid);
        let by = InjectionSource::Steering;
        cx.sink
            .on_event(&AgentEvent::MessageInjected { uuid, content, by });
    }

    /// Adds a reminder.
    pub(crate) fn add_reminder(&mut self, text: &str, by: InjectionSource, cx: RunContext<'_>) {
        let content = vec![Content::text(reminder(text))];
        self.add_and_report(content, UserLineKind::Meta, by, cx);
    }

    /// Adds context from hooks.
    pub(crate) fn add_context(&mut self, texts: &[String], cx: RunContext<'_>) {
        if texts.is_empty() {
            return;
        }
        let content = texts
            .iter()
            .map(|text| Content::text(reminder(text)))
            .collect();
        self.add_and_report(content, UserLineKind::Meta, InjectionSource::Hook, cx);
    }

    /// Clears the conversation. The transcript remains.
    pub(crate) fn clear(&mut self) {
        self.conversation = Conversation::new();
        self.window = WindowUsage::default();
    }

    /// Starts an empty conversation with a new transcript.
    pub(crate) fn start_transcript(&mut self, session: OpenTranscript) {
        self.clear();
        self.transcript = Arc::new(self.transcript.start_next(session.store, session.id));
    }

    /// Resumes another conversation.
    pub(crate) fn resume(&mut self, session: OpenTranscript) {
        let loaded = session.loaded;
        let position = TranscriptPosition {
            lines: loaded.lines,
            last: loaded.last,
            files: loaded.files,
            terms: loaded.terms,
        };
        let transcript = self
            .transcript
            .continue_other(session.store, session.id, position);
        for result in &loaded.synthesized_results {
            transcript.write_result(result, None);
        }
        self.transcript = Arc::new(transcript);
        self.window = WindowUsage::from_conversation(&loaded.conversation);
        self.conversation = loaded.conversation;
    }

    /// Reloads the conversation from the transcript after a run was dropped in the middle.
    pub(crate) fn reload_from_transcript(&mut self) -> Result<(), String> {
        let lines = self.transcript.store().read(0);
        let lines = lines.map_err(|error| format!("the transcript cannot be read: {error}"))?;
        if let Some(loaded) = load(&lines, None) {
            self.transcript.set_last(loaded.last);
            for result in &loaded.synthesized_results {
                self.transcript.write_result(result, None);
            }
            self.window = WindowUsage::from_conversation(&loaded.conversation);
            self.conversation = loaded.conversation;
        }
        Ok(())
    }

    /// Rewinds to this message, or to the beginning. Later messages remain in the transcript on a
    /// separate branch. Returns the id of the message that was the last one before the rewind.
    pub(crate) fn rewind_to(&mut self, until: Option<&str>) -> Result<Option<Uuid>, String> {
        let before = self.transcript.last();
        let Some(until) = until else {
            self.clear();
            self.transcript.set_last(None);
            return Ok(before);
        };
        let lines = self.transcript.store().read(0);
        let lines = lines.map_err(|error| format!("the transcript cannot be read: {error}"))?;
        let loaded = load(&lines, Some(until));
        let loaded = loaded.ok_or_else(|| format!("the session has no message {until}"))?;
        self.transcript.set_last(loaded.last);
        for result in &loaded.synthesized_results {
            self.transcript.write_result(result, None);
        }
        self.window = WindowUsage::from_conversation(&loaded.conversation);
        self.conversation = loaded.conversation;
        Ok(before)
    }

    /// Sets the directory and the branch that lines of the transcript contain.
    pub(crate) fn set_cwd(&self, cwd: &Path) {
        self.transcript.set_cwd(cwd, branch(cwd));
    }
}
