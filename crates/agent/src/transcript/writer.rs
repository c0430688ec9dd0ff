//! Writing a session down while it happens.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use haft_contract::{Content, SessionId, SessionState};
use haft_engine::{CallObserver, CallResult, pipeline::Admitted};
use haft_models::{StopReason, ToolResult, Usage};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    Files, HookRun, Kind, Store, Terms,
    line::{self, Facts},
};
use crate::{ReplyBlock, Trigger, clock};

/// Writes the lines of one session. Calls of a reply end in any order, so their tasks write too.
#[derive(Debug)]
pub struct Transcript {
    store: Arc<dyn Store>,
    /// What the session keeps beside its conversation.
    remembered: Option<Arc<SessionState>>,
    state: Mutex<WriterState>,
}

#[derive(Debug)]
struct WriterState {
    facts: Facts,
    next: u64,
    /// The last message in the chain.
    last: Option<Uuid>,
    files: Files,
    /// As last written.
    terms: Terms,
    /// The same since it was last asked for.
    touched: Files,
    /// The lines of answers that are written and not handed out yet, by the provider's id of the call.
    answers: HashMap<String, Uuid>,
    /// Why a line could not be written; reported once.
    trouble: Option<String>,
    told: bool,
}

/// What a session's lines came to so far.
#[derive(Debug, Default)]
pub(crate) struct SoFar {
    pub(crate) lines: u64,
    pub(crate) last: Option<Uuid>,
    pub(crate) files: Files,
    pub(crate) terms: Terms,
}

impl Transcript {
    /// Goes on from there.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session: SessionId,
        version: String,
        agent: Option<String>,
        so_far: SoFar,
        remembered: Option<Arc<SessionState>>,
    ) -> Self {
        let facts = Facts {
            session,
            cwd: String::new(),
            branch: None,
            version,
            agent,
        };
        Self {
            store,
            remembered,
            state: Mutex::new(WriterState {
                facts,
                next: so_far.lines,
                last: so_far.last,
                files: so_far.files,
                terms: so_far.terms,
                touched: Files::default(),
                answers: HashMap::new(),
                trouble: None,
                told: false,
            }),
        }
    }

    /// The transcript of a conversation that begins where this one ends.
    pub(crate) fn successor(&self, store: Arc<dyn Store>, session: SessionId) -> Self {
        let facts = self.state().facts.clone();
        Self::new(
            store,
            session,
            facts.version,
            facts.agent,
            SoFar::default(),
            self.remembered.clone(),
        )
    }

    /// The transcript of another conversation, which is gone on with.
    pub(crate) fn of_another(
        &self,
        store: Arc<dyn Store>,
        session: SessionId,
        so_far: SoFar,
    ) -> Self {
        let facts = self.state().facts.clone();
        let remembered = self.remembered.clone();
        Self::new(
            store,
            session,
            facts.version,
            facts.agent,
            so_far,
            remembered,
        )
    }

    /// The file it is in, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.store.path()
    }

    /// Which files the session has read and changed.
    pub fn files(&self) -> Files {
        self.state().files.clone()
    }

    /// Which files calls have touched since this was last asked for.
    pub(crate) fn take_touched(&self) -> Files {
        std::mem::take(&mut self.state().touched)
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Where the session is from now on.
    pub(crate) fn set_place(&self, cwd: &Path, branch: Option<String>) {
        let mut state = self.state();
        state.facts.cwd = line::written(cwd);
        state.facts.branch = branch;
    }

    /// The last message in the chain.
    pub fn last(&self) -> Option<Uuid> {
        self.state().last
    }

    /// A new end of the chain, after the lines were read anew.
    pub(crate) fn set_last(&self, last: Option<Uuid>) {
        let mut state = self.state();
        state.last = last;
        state.answers.clear();
    }

    /// Something in the user's name.
    pub(crate) fn user(&self, uuid: Uuid, content: &[Content], kind: Kind) {
        self.message("user", uuid, line::user(content, kind));
    }

    /// A block of a reply.
    pub(crate) fn said(
        &self,
        said: &ReplyBlock,
        asked: &str,
        stop: Option<&StopReason>,
        usage: &Usage,
    ) {
        self.message(
            "assistant",
            said.uuid,
            line::assistant(said, asked, stop, usage),
        );
    }

    /// A reply is over whose blocks were written while it still came: what it cost was not known then.
    pub(crate) fn reply_ended(&self, request: &str, model: &str, usage: &Usage) {
        let mut state = self.state();
        let line = state.facts.reply(request, model, usage);
        state.write(&*self.store, &line);
    }

    /// The answer to a call, unless it stands there already. Gives its line's id.
    pub(crate) fn answer(&self, result: &ToolResult, structured: Option<&Value>) -> Uuid {
        let written = self.state().answers.remove(&result.tool_use_id);
        written.unwrap_or_else(|| {
            let uuid = clock::random_id();
            self.message(
                "user",
                uuid,
                line::answer(result, structured, Duration::ZERO, None),
            );
            uuid
        })
    }

    /// A summary takes the place of what came before.
    pub(crate) fn boundary(&self, uuid: Uuid, trigger: Trigger, pre_tokens: u64) {
        let mut state = self.state();
        let before = state.last.take();
        let more = line::boundary(trigger, pre_tokens, before);
        state.message(&*self.store, "system", uuid, more);
    }

    /// What the session came to be permitted, if that is not written already.
    pub(crate) fn set_terms(&self, terms: &Terms) {
        let mut state = self.state();
        if state.terms == *terms || (state.terms.is_empty() && terms.is_empty()) {
            return;
        }
        let line = serde_json::json!({
            "type": line::TERMS,
            "sessionId": state.facts.session,
            "timestamp": clock::timestamp(),
            "terms": terms,
        });
        state.terms = terms.clone();
        state.write(&*self.store, &line);
    }

    /// What a person calls the session from now on.
    pub fn set_title(&self, title: &str) {
        let mut state = self.state();
        let session = state.facts.session;
        let line = serde_json::json!({
            "type": "custom-title",
            "customTitle": title,
            "sessionId": session,
        });
        state.write(&*self.store, &line);
    }

    /// A hook has run.
    pub fn hook_ran(&self, run: &HookRun) {
        let mut state = self.state();
        let line = state.facts.hook(run);
        state.write(&*self.store, &line);
    }

    /// Records what has changed of what the session keeps beside its conversation.
    pub(crate) fn keep(&self) {
        self.write_kept(&mut self.state());
    }

    fn write_kept(&self, state: &mut WriterState) {
        for (name, kept) in self.remembered.iter().flat_map(|kept| kept.take_changed()) {
            let line = state.facts.kept(&name, &kept);
            state.write(&*self.store, &line);
        }
    }

    /// A line that is no message.
    pub(crate) fn note(&self, line: &Value) {
        self.state().write(&*self.store, line);
    }

    /// What went wrong with writing, the first time it is asked for.
    pub(crate) fn trouble(&self) -> Option<String> {
        let mut state = self.state();
        let trouble = state.trouble.clone().filter(|_| !state.told);
        state.told |= trouble.is_some();
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
    fn message(&mut self, store: &dyn Store, kind: &str, uuid: Uuid, more: Map<String, Value>) {
        let line = self.facts.message(kind, uuid, self.last, more);
        self.last = Some(uuid);
        self.write(store, &line);
    }

    fn write(&mut self, store: &dyn Store, line: &Value) {
        match store.append(self.next, &line.to_string()) {
            Ok(()) => self.next += 1,
            Err(error) => {
                tracing::warn!(%error, "a line of the transcript is lost");
                self.trouble.get_or_insert_with(|| error.to_string());
            }
        }
    }
}

impl CallObserver for Transcript {
    fn started(&self, call: &Admitted) {
        let because = call.because();
        let call = call.call();
        let (own, id) = call.ids();
        let effects = call.effects();
        let files = Files::of(&effects);
        let mut state = self.state();
        let line = state
            .facts
            .started(own, &id, call.name(), because, effects.repeat, &files);
        state.touched.add(files.clone());
        state.files.add(files);
        state.write(&*self.store, &line);
    }

    fn ended(&self, finished: &CallResult) {
        let uuid = clock::random_id();
        let result = result_of(finished);
        let structured = finished.structured.as_ref();
        let metadata = &finished.metadata;
        let denied = metadata.denied.as_ref();
        let mut more = line::answer(&result, structured, metadata.waited, denied);
        if !metadata.notices.is_empty() {
            more.insert(line::NOTICES.to_owned(), metadata.notices.clone().into());
        }
        let mut state = self.state();
        // Before the answer: the one who reads that it was done finds what was done.
        self.write_kept(&mut state);
        state.message(&*self.store, "user", uuid, more);
        state.answers.insert(result.tool_use_id, uuid);
    }
}

/// What the conversation takes of a finished call.
pub(crate) fn result_of(finished: &CallResult) -> ToolResult {
    ToolResult {
        tool_use_id: finished.id.clone(),
        content: finished.content.clone(),
        is_error: finished.is_error,
    }
}
