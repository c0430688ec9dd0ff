//! Writes the transcript of a session while it runs.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use haft_contract::{Content, SessionId, SessionState};
use haft_engine::{CallObserver, CallResult, pipeline::AdmittedCall};
use haft_models::{StopReason, ToolResult, Usage};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    HookRun, SessionGrants, TouchedFiles, TranscriptStore, UserLineKind,
    line_format::{self, LineMetadata},
};
use crate::{CompactionTrigger, ReplyBlock, clock};

/// Writes the lines of one session. It is shared by tasks, because the calls of a reply end in any
/// order.
#[derive(Debug)]
pub struct Transcript {
    store: Arc<dyn TranscriptStore>,
    /// The session state, whose changes are recorded.
    session_state: Option<Arc<SessionState>>,
    state: Mutex<WriterState>,
}

#[derive(Debug)]
struct WriterState {
    metadata: LineMetadata,
    next: u64,
    /// The last message in the chain.
    last: Option<Uuid>,
    files: TouchedFiles,
    /// The grants that were last written.
    terms: SessionGrants,
    /// The files since the last call of [`Transcript::take_touched`].
    touched: TouchedFiles,
    /// The written results that were not returned yet: line ids by the provider's id of the call.
    results: HashMap<String, Uuid>,
    /// The first write error; reported once.
    write_error: Option<String>,
    error_reported: bool,
}

/// The position at the end of a session's lines.
#[derive(Debug, Default)]
pub(crate) struct TranscriptPosition {
    pub(crate) lines: u64,
    pub(crate) last: Option<Uuid>,
    pub(crate) files: TouchedFiles,
    pub(crate) terms: SessionGrants,
}

impl Transcript {
    /// Creates a writer that continues at this position.
    pub(crate) fn new(
        store: Arc<dyn TranscriptStore>,
        session: SessionId,
        version: String,
        agent: Option<String>,
        so_far: TranscriptPosition,
        session_state: Option<Arc<SessionState>>,
    ) -> Self {
        let facts = LineMetadata {
            session,
            cwd: String::new(),
            branch: None,
            version,
            agent,
        };
        Self {
            store,
            session_state,
            state: Mutex::new(WriterState {
                metadata: facts,
                next: so_far.lines,
                last: so_far.last,
                files: so_far.files,
                terms: so_far.terms,
                touched: TouchedFiles::default(),
                results: HashMap::new(),
                write_error: None,
                error_reported: false,
            }),
        }
    }

    /// Creates the writer of a new conversation in the same process.
    pub(crate) fn start_next(&self, store: Arc<dyn TranscriptStore>, session: SessionId) -> Self {
        let facts = self.state().metadata.clone();
        Self::new(
            store,
            session,
            facts.version,
            facts.agent,
            TranscriptPosition::default(),
            self.session_state.clone(),
        )
    }

    /// Creates the writer of another conversation that is resumed.
    pub(crate) fn continue_other(
        &self,
        store: Arc<dyn TranscriptStore>,
        session: SessionId,
        so_far: TranscriptPosition,
    ) -> Self {
        let facts = self.state().metadata.clone();
        let remembered = self.session_state.clone();
        Self::new(
            store,
            session,
            facts.version,
            facts.agent,
            so_far,
            remembered,
        )
    }

    /// Returns the file, if any.
    pub fn path(&self) -> Option<&Path> {
        self.store.path()
    }

    /// Returns the files that the session has read and changed.
    pub fn files(&self) -> TouchedFiles {
        self.state().files.clone()
    }

    /// Returns the files that calls have touched since the last call of this function.
    pub(crate) fn take_touched(&self) -> TouchedFiles {
        std::mem::take(&mut self.state().touched)
    }

    pub(crate) fn store(&self) -> &Arc<dyn TranscriptStore> {
        &self.store
    }

    /// Sets the directory and the branch for the following lines.
    pub(crate) fn set_cwd(&self, cwd: &Path, branch: Option<String>) {
        let mut state = self.state();
        state.metadata.cwd = line_format::path_text(cwd);
        state.metadata.branch = branch;
    }

    /// Returns the last message in the chain.
    pub fn last(&self) -> Option<Uuid> {
        self.state().last
    }

    /// Sets the last message in the chain, after the lines were reloaded.
    pub(crate) fn set_last(&self, last: Option<Uuid>) {
        let mut state = self.state();
        state.last = last;
        state.results.clear();
    }

    /// Writes a message in the user's name.
    pub(crate) fn write_user(&self, uuid: Uuid, content: &[Content], kind: UserLineKind) {
        self.message("user", uuid, line_format::user(content, kind));
    }

    /// Writes a block of a reply.
    pub(crate) fn write_block(
        &self,
        said: &ReplyBlock,
        asked: &str,
        stop: Option<&StopReason>,
        usage: &Usage,
    ) {
        self.message(
            "assistant",
            said.uuid,
            line_format::assistant(said, asked, stop, usage),
        );
    }

    /// Writes the total usage of a reply whose blocks were written before it was known.
    pub(crate) fn reply_ended(&self, request: &str, model: &str, usage: &Usage) {
        let mut state = self.state();
        let line = state.metadata.reply(request, model, usage);
        state.write(&*self.store, &line);
    }

    /// Writes the result of a call, unless it is already written. Returns the id of its line.
    pub(crate) fn write_result(&self, result: &ToolResult, structured: Option<&Value>) -> Uuid {
        let written = self.state().results.remove(&result.tool_use_id);
        written.unwrap_or_else(|| {
            let uuid = clock::random_id();
            self.message(
                "user",
                uuid,
                line_format::answer(result, structured, Duration::ZERO, None),
            );
            uuid
        })
    }

    /// Writes a compaction boundary.
    pub(crate) fn write_compaction(&self, uuid: Uuid, trigger: CompactionTrigger, pre_tokens: u64) {
        let mut state = self.state();
        let before = state.last.take();
        let more = line_format::boundary(trigger, pre_tokens, before);
        state.message(&*self.store, "system", uuid, more);
    }

    /// Writes the grants of the session, if they have changed.
    pub(crate) fn set_grants(&self, terms: &SessionGrants) {
        let mut state = self.state();
        if state.terms == *terms || (state.terms.is_empty() && terms.is_empty()) {
            return;
        }
        let line = serde_json::json!({
            "type": line_format::TERMS,
            "sessionId": state.metadata.session,
            "timestamp": clock::timestamp(),
            "terms": terms,
        });
        state.terms = terms.clone();
        state.write(&*self.store, &line);
    }

    /// Writes the title of the session.
    pub fn set_title(&self, title: &str) {
        let mut state = self.state();
        let session = state.metadata.session;
        let line = serde_json::json!({
            "type": "custom-title",
            "customTitle": title,
            "sessionId": session,
        });
        state.write(&*self.store, &line);
    }

    /// Writes a hook run.
    pub fn write_hook_run(&self, run: &HookRun) {
        let mut state = self.state();
        let line = state.metadata.hook(run);
        state.write(&*self.store, &line);
    }

    /// Writes the changed entries of the session state.
    pub(crate) fn write_state(&self) {
        self.write_state_entry(&mut self.state());
    }

    fn write_state_entry(&self, state: &mut WriterState) {
        for (name, kept) in self
            .session_state
            .iter()
            .flat_map(|kept| kept.take_changed())
        {
            let line = state.metadata.state_entry(&name, &kept);
            state.write(&*self.store, &line);
        }
    }

    /// Writes a line that is not a message.
    pub(crate) fn write_line(&self, line: &Value) {
        self.state().write(&*self.store, line);
    }

    /// Returns the first write error, once: later calls return `None`.
    pub(crate) fn take_error(&self) -> Option<String> {
        let mut state = self.state();
        let trouble = state.write_error.clone().filter(|_| !state.error_reported);
        state.error_reported |= trouble.is_some();
        trouble
    }

    fn message(&self, kind: &str, uuid: Uuid, more: Map<String, Value>) {
        self.state().message(&*self.store, kind, uuid, more);
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriterState {
    fn message(
        &mut self,
        store: &dyn TranscriptStore,
        kind: &str,
        uuid: Uuid,
        more: Map<String, Value>,
    ) {
        let line = self.metadata.message(kind, uuid, self.last, more);
        self.last = Some(uuid);
        self.write(store, &line);
    }

    fn write(&mut self, store: &dyn TranscriptStore, line: &Value) {
        match store.append(self.next, &line.to_string()) {
            Ok(()) => self.next += 1,
            Err(error) => {
                tracing::warn!(%error, "a line of the transcript is lost");
                self.write_error.get_or_insert_with(|| error.to_string());
            }
        }
    }
}

impl CallObserver for Transcript {
    fn on_started(&self, call: &AdmittedCall) {
        let because = call.reason();
        let call = call.call();
        let (own, id) = call.ids();
        let effects = call.effects();
        let files = TouchedFiles::from_effects(&effects);
        let mut state = self.state();
        let line = state
            .metadata
            .started(own, &id, call.name(), because, effects.repeat, &files);
        state.touched.add(files.clone());
        state.files.add(files);
        state.write(&*self.store, &line);
    }

    fn on_ended(&self, finished: &CallResult) {
        let uuid = clock::random_id();
        let result = result_of(finished);
        let structured = finished.structured.as_ref();
        let metadata = &finished.metadata;
        let denied = metadata.denied.as_ref();
        let mut more = line_format::answer(&result, structured, metadata.waited, denied);
        if !metadata.notices.is_empty() {
            more.insert(
                line_format::NOTICES.to_owned(),
                metadata.notices.clone().into(),
            );
        }
        let mut state = self.state();
        // State is written before the result, so that a reader that sees the result also sees its
        // effects.
        self.write_state_entry(&mut state);
        state.message(&*self.store, "user", uuid, more);
        state.results.insert(result.tool_use_id, uuid);
    }
}

/// Returns the result of a finished call for the conversation.
pub(crate) fn result_of(finished: &CallResult) -> ToolResult {
    ToolResult {
        tool_use_id: finished.id.clone(),
        content: finished.content.clone(),
        is_error: finished.is_error,
    }
}
