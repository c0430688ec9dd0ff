//! The conversation, its transcript, and how full the model's window is: always changed together.

use std::{path::Path, sync::Arc};

use haft_contract::Content;
use haft_models::Conversation;
use uuid::Uuid;

use crate::{
    Added, AgentEvent, Prompt, Session, clock,
    compaction::WindowUse,
    hooks::RunContext,
    prompt::{branch, reminder},
    transcript::{Kind, SoFar, Transcript, load::load},
};

/// What was said in a session. Everything goes into the transcript first.
pub(crate) struct Dialogue {
    pub(crate) conversation: Conversation,
    pub(crate) transcript: Arc<Transcript>,
    pub(crate) window: WindowUse,
}

impl Dialogue {
    /// One that was loaded, or an empty one.
    pub(crate) fn new(conversation: Conversation, transcript: Arc<Transcript>) -> Self {
        Self {
            window: WindowUse::of(&conversation),
            conversation,
            transcript,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conversation.messages().len() == 0
    }

    /// Adds something in the user's name.
    pub(crate) fn add(&mut self, content: Vec<Content>, kind: Kind, uuid: Option<Uuid>) -> Uuid {
        let uuid = uuid.unwrap_or_else(clock::random_id);
        self.transcript.user(uuid, &content, kind);
        self.window.added(&content);
        self.conversation.user(content);
        uuid
    }

    /// The same, and reports it.
    pub(crate) fn add_reported(
        &mut self,
        content: Vec<Content>,
        kind: Kind,
        by: Added,
        to: RunContext<'_>,
    ) {
        let uuid = self.add(content.clone(), kind, None);
        to.sink.on_event(&AgentEvent::Added { uuid, content, by });
    }

    /// Adds what the person said while the model was at work, and reports it.
    pub(crate) fn add_steering(&mut self, prompt: Prompt, to: RunContext<'_>) {
        let content = prompt.content;
        let uuid = self.add(content.clone(), Kind::Prompt, prompt.uuid);
        let by = Added::Steering;
        to.sink.on_event(&AgentEvent::Added { uuid, content, by });
    }

    /// Adds a reminder of ours.
    pub(crate) fn remind(&mut self, text: &str, by: Added, to: RunContext<'_>) {
        let content = vec![Content::text(reminder(text))];
        self.add_reported(content, Kind::Meta, by, to);
    }

    /// Adds what hooks want the model to know.
    pub(crate) fn add_context(&mut self, texts: &[String], to: RunContext<'_>) {
        if texts.is_empty() {
            return;
        }
        let content = texts
            .iter()
            .map(|text| Content::text(reminder(text)))
            .collect();
        self.add_reported(content, Kind::Meta, Added::Hook, to);
    }

    /// Starts over with nothing said. The transcript stays.
    pub(crate) fn forget(&mut self) {
        self.conversation = Conversation::new();
        self.window = WindowUse::default();
    }

    /// Starts over in a transcript of its own.
    pub(crate) fn begin(&mut self, session: Session) {
        self.forget();
        self.transcript = Arc::new(self.transcript.successor(session.store, session.id));
    }

    /// Goes on with another conversation, as it was left.
    pub(crate) fn take_up(&mut self, session: Session) {
        let loaded = session.loaded;
        let so_far = SoFar {
            lines: loaded.lines,
            last: loaded.last,
            files: loaded.files,
            terms: loaded.terms,
        };
        let transcript = self
            .transcript
            .of_another(session.store, session.id, so_far);
        for result in &loaded.made_up {
            transcript.answer(result, None);
        }
        self.transcript = Arc::new(transcript);
        self.window = WindowUse::of(&loaded.conversation);
        self.conversation = loaded.conversation;
    }

    /// Takes from the transcript what a run that was dropped in the middle has done.
    pub(crate) fn catch_up(&mut self) -> Result<(), String> {
        let lines = self.transcript.store().read(0);
        let lines = lines.map_err(|error| format!("the transcript cannot be read: {error}"))?;
        if let Some(loaded) = load(&lines, None) {
            self.transcript.set_last(loaded.last);
            for result in &loaded.made_up {
                self.transcript.answer(result, None);
            }
            self.window = WindowUse::of(&loaded.conversation);
            self.conversation = loaded.conversation;
        }
        Ok(())
    }

    /// Goes back to where this message was the last, or to the beginning: what came after it stays in the
    /// transcript, beside what comes now. Gives the message that was the last before.
    pub(crate) fn go_back(&mut self, until: Option<&str>) -> Result<Option<Uuid>, String> {
        let before = self.transcript.last();
        let Some(until) = until else {
            self.forget();
            self.transcript.set_last(None);
            return Ok(before);
        };
        let lines = self.transcript.store().read(0);
        let lines = lines.map_err(|error| format!("the transcript cannot be read: {error}"))?;
        let loaded = load(&lines, Some(until));
        let loaded = loaded.ok_or_else(|| format!("the session has no message {until}"))?;
        self.transcript.set_last(loaded.last);
        for result in &loaded.made_up {
            self.transcript.answer(result, None);
        }
        self.window = WindowUse::of(&loaded.conversation);
        self.conversation = loaded.conversation;
        Ok(before)
    }

    /// Lines of the transcript say where they were written.
    pub(crate) fn note_place(&self, cwd: &Path) {
        self.transcript.set_place(cwd, branch(cwd));
    }
}
