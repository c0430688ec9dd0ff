//! The calls of one reply.
//!
//! Each call has claims: the files and state that it may touch. A call starts as soon as no earlier
//! unfinished call has a conflicting claim or may still change the session's context. Calls report
//! such changes as patches, which are applied in the order of the calls.

use std::{
    any::Any,
    collections::VecDeque,
    mem,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use futures_util::FutureExt;
use haft_contract::{CallContext, CallId, CancellationToken, Effects, ToolUse};
use tokio::sync::Notify;

use super::{
    CallObserver, Scheduler, SchedulerShared,
    call::{CallRun, NestedNotes, nested_calls_within, panicked},
    call_task_pool::PoolableTask,
    claims::CallClaims,
    slots::CallSlot,
};
use crate::{
    Pool,
    pipeline::{
        CallResult, EarlyResult, INTERRUPTED, InputAuthor, PreparedCall, prepare, without_outcome,
    },
};

/// The calls of one reply, from the first push to the last result. Dropping the batch interrupts the
/// calls that are still running.
pub struct CallBatch<'a> {
    inner: Arc<BatchInner>,
    /// The number of leading calls whose results were returned.
    delivered: usize,
    // The borrow ensures that only one batch exists at a time.
    _scheduler: &'a mut Scheduler,
}

/// The part of a batch that is shared with its running calls.
struct BatchInner {
    shared: Arc<SchedulerShared>,
    /// The tools at the start of the batch.
    pool: Arc<Pool>,
    cancel: CancellationToken,
    state: Mutex<BatchState>,
    /// Wakes the reader of results when a call has ended.
    call_ended: Notify,
    observer: Mutex<Option<Arc<dyn CallObserver>>>,
}

#[derive(Default)]
struct BatchState {
    calls: Vec<BatchCall>,
    /// The number of leading calls that have ended and whose patches are applied.
    applied: usize,
    /// The number of exclusive calls that have ended. Each of them may have changed files and links,
    /// so waiting calls compute older claims again.
    exclusive_ended: u64,
    /// Whether the batch was dropped. Patches of calls that end later are ignored.
    abandoned: bool,
}

/// A call of a batch.
struct BatchCall {
    id: CallId,
    /// Cancels only this call. The token of the batch cancels it, too.
    cancel: CancellationToken,
    /// The provider's id of the call and the tool name that the model used.
    tool_use: (String, String),
    stage: CallStage,
    claims: CallClaims,
    /// The value of `exclusive_ended` when the claims were computed.
    claims_version: u64,
    /// The version of the context with which the call was prepared.
    context_version: u64,
    /// The original request, to prepare the call again. Stored only if an earlier call may still
    /// patch the context.
    original: Option<ToolUse>,
    /// Whether the call had to wait, so that its claims and context may be outdated.
    waited: bool,
    /// The number of earlier calls that must end first.
    waits_for: usize,
    /// The indices of the later calls that wait for this one.
    waiting_calls: Vec<usize>,
}

/// The stage of a call.
enum CallStage {
    /// Prepared, but not started.
    Waiting(Result<PreparedCall, EarlyResult>),
    Running,
    /// Ended. The result was not returned yet.
    Ended(Box<CallResult>),
    /// Ended. The result was returned.
    Delivered,
}

impl BatchCall {
    fn has_ended(&self) -> bool {
        matches!(self.stage, CallStage::Ended(_) | CallStage::Delivered)
    }

    fn is_delivered(&self) -> bool {
        matches!(self.stage, CallStage::Delivered)
    }

    /// Returns whether the call may change the session's context.
    fn may_patch(&self) -> bool {
        self.claims.effects().patches
    }
}

impl<'a> CallBatch<'a> {
    pub(super) fn new(scheduler: &'a mut Scheduler, cancel: CancellationToken) -> Self {
        let shared = Arc::clone(&scheduler.shared);
        let inner = BatchInner {
            pool: shared.engine.pool(),
            shared,
            cancel,
            state: Mutex::default(),
            call_ended: Notify::new(),
            observer: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
            delivered: 0,
            _scheduler: scheduler,
        }
    }

    /// Sets up the sandboxes for the first commands of the session in the background, so that they
    /// need not wait for that. Call this when the model begins to reply.
    pub fn prepare_sandboxes(&self) {
        self.inner.shared.prepare_sandboxes();
    }

    /// Sets the observer of the calls. It is notified of calls that start or end after this.
    pub fn set_observer(&mut self, observer: Arc<dyn CallObserver>) {
        let mut current = self
            .inner
            .observer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Some(observer);
    }

    /// Adds a call. It is prepared immediately and starts as soon as it conflicts with no earlier
    /// call. Must be called inside a tokio runtime. Returns a token that cancels only this call.
    pub fn push(&mut self, tool_use: ToolUse) -> CancellationToken {
        self.inner.push(tool_use)
    }

    /// Waits for the next result in the order of the calls. Returns `None` once every call pushed so
    /// far has been returned.
    pub async fn next(&mut self) -> Option<CallResult> {
        loop {
            {
                let mut state = self.inner.state();
                let call = state.calls.get_mut(self.delivered)?;
                if call.has_ended() {
                    let stage = mem::replace(&mut call.stage, CallStage::Delivered);
                    self.delivered += 1;
                    let CallStage::Ended(finished) = stage else {
                        unreachable!("`delivered` passes each call once")
                    };
                    return Some(*finished);
                }
            }
            // `Notify` stores a permit, so a call that ends between the check and here is not missed.
            self.inner.call_ended.notified().await;
        }
    }

    /// Waits for the next result in the order in which calls end. Returns `None` once every call
    /// pushed so far has been returned. For callers whose calls are independent. A batch must use
    /// either this method or [`next`](Self::next), not both. Cancel-safe.
    pub async fn next_ended(&mut self) -> Option<CallResult> {
        loop {
            {
                let mut state = self.inner.state();
                let applied = state.applied;
                let open = state.calls[self.delivered..].iter();
                self.delivered += open.take_while(|call| call.is_delivered()).count();
                let open = &mut state.calls[self.delivered..];
                if open.is_empty() {
                    return None;
                }
                // A result with patches is returned only after they were applied, which happens in
                // the order of the calls.
                let is_ready = |offset: usize, call: &BatchCall| match &call.stage {
                    CallStage::Ended(finished) => {
                        finished.patches.is_empty() || self.delivered + offset < applied
                    }
                    _ => false,
                };
                let offset = open
                    .iter()
                    .enumerate()
                    .position(|(offset, call)| is_ready(offset, call));
                if let Some(offset) = offset
                    && let CallStage::Ended(finished) =
                        mem::replace(&mut open[offset].stage, CallStage::Delivered)
                {
                    return Some(*finished);
                }
            }
            self.inner.call_ended.notified().await;
        }
    }

    /// Sets the client's working directories for calls that are pushed after this. The current
    /// directory becomes the first one, unless it is already inside one of them.
    pub fn set_directories(&mut self, directories: Vec<PathBuf>) {
        let mut context = self.inner.shared.context();
        context.context.set_directories(directories);
        context.version += 1;
    }

    /// Returns the token that interrupts the batch: running calls are asked to stop, waiting calls
    /// never start, and every call still gets its result.
    pub fn cancel_token(&self) -> CancellationToken {
        self.inner.cancel.clone()
    }
}

impl Drop for CallBatch<'_> {
    fn drop(&mut self) {
        self.inner.state().abandoned = true;
        self.inner.cancel.cancel();
    }
}

impl BatchInner {
    fn observer(&self) -> Option<Arc<dyn CallObserver>> {
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        observer.clone()
    }

    fn state(&self) -> MutexGuard<'_, BatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, tool_use: ToolUse) -> CancellationToken {
        let mut state = self.state();
        let index = state.calls.len();
        let follows_patch = state.calls[state.applied..]
            .iter()
            .any(BatchCall::may_patch);
        let id = CallId::new();
        let tool_use_names = (tool_use.id.clone(), tool_use.name.clone());
        let original = follows_patch.then(|| tool_use.clone());
        let (prepared, prepared_at) = self.prepare(id, tool_use);
        if let (Ok(prepared), Some(observer)) = (&prepared, self.observer()) {
            // The observer asks the tool for a card. If the tool panics there, the call still runs.
            let _ = catch_panic(|| observer.on_bound(prepared));
        }
        let claims = CallClaims::new(effects_of(&prepared));
        let claimed_at = state.exclusive_ended;
        let cancel = self.cancel.child_token();
        if index == 0 {
            // Most batches have only one call, and the default capacity would be large.
            state.calls.reserve_exact(1);
        }
        state.calls.push(BatchCall {
            id,
            cancel: cancel.clone(),
            tool_use: tool_use_names,
            stage: CallStage::Waiting(prepared),
            claims,
            claims_version: claimed_at,
            context_version: prepared_at,
            original,
            waited: false,
            waits_for: 0,
            waiting_calls: Vec::new(),
        });
        self.start(&mut state, index);
        cancel
    }

    /// Prepares a call. Also returns the version of the context that was used.
    fn prepare(&self, id: CallId, tool_use: ToolUse) -> (Result<PreparedCall, EarlyResult>, u64) {
        let (path_context, version) = {
            let context = self.shared.context();
            (context.context.path_context(), context.version)
        };
        let name = tool_use.name.clone();
        let prepare = || prepare(&self.pool, tool_use, InputAuthor::Model, id, &path_context);
        let result = catch_panic(prepare)
            .unwrap_or_else(|panic| Err(EarlyResult::broken(&name, &panicked(&name, &*panic))));
        (result, version)
    }

    /// Starts a call unless it must wait, and then all calls that become ready because it ended.
    fn start(self: &Arc<Self>, state: &mut BatchState, index: usize) {
        let mut ready = VecDeque::from([index]);
        while let Some(index) = ready.pop_front() {
            if let Some(finished) = self.start_one(state, index) {
                self.finish_call(state, index, Some(finished), &mut ready);
            }
        }
    }

    /// Starts one call, or lets it wait for earlier calls. Returns the result if the call ends
    /// without running.
    fn start_one(self: &Arc<Self>, state: &mut BatchState, index: usize) -> Option<CallResult> {
        if state.calls[index].cancel.is_cancelled() {
            return Some(state.calls[index].without_outcome(INTERRUPTED));
        }
        if state.calls[index].waited {
            self.prepare_again(state, index);
        }
        let blockers: Vec<usize> = (state.applied..index)
            .filter(|earlier| {
                let stale = state.calls[*earlier].claims_version != state.exclusive_ended;
                if stale && matches!(state.calls[*earlier].stage, CallStage::Waiting(_)) {
                    self.prepare_again(state, *earlier);
                }
                let earlier = &state.calls[*earlier];
                earlier.may_patch()
                    || (!earlier.has_ended()
                        && earlier.claims.conflicts_with(&state.calls[index].claims))
            })
            .collect();
        if !blockers.is_empty() {
            state.calls[index].waited = true;
            state.calls[index].waits_for = blockers.len();
            for blocker in blockers {
                state.calls[blocker].waiting_calls.push(index);
            }
            return None;
        }
        let call = &mut state.calls[index];
        let CallStage::Waiting(prepared) = mem::replace(&mut call.stage, CallStage::Running) else {
            unreachable!("a call is started once")
        };
        match prepared {
            Err(early_result) => {
                let finished = early_result.finish(call.id, call.tool_use.0.clone());
                if let Some(listener) = &self.shared.engine.listener {
                    listener.on_call_not_evaluated(&finished);
                }
                Some(finished)
            }
            Ok(prepared) => {
                self.spawn(index, call.id, call.cancel.clone(), prepared);
                None
            }
        }
    }

    /// Prepares a waiting call again if the context has changed, and computes its claims again.
    fn prepare_again(&self, state: &mut BatchState, index: usize) {
        let fences = state.exclusive_ended;
        let call = &mut state.calls[index];
        let version = self.shared.context().version;
        if call.context_version != version
            && let Some(original) = call.original.clone()
        {
            let (prepared, prepared_at) = self.prepare(call.id, original);
            call.stage = CallStage::Waiting(prepared);
            call.context_version = prepared_at;
        }
        if let CallStage::Waiting(prepared) = &call.stage {
            call.claims = CallClaims::new(effects_of(prepared));
            call.claims_version = fences;
        }
    }

    /// Spawns the task that runs a call.
    fn spawn(
        self: &Arc<Self>,
        index: usize,
        id: CallId,
        cancel: CancellationToken,
        prepared: PreparedCall,
    ) {
        let notes = NestedNotes::default();
        let nested = nested_calls_within(&self.shared, &notes);
        let tool_use_id = prepared.ids().1.into();
        let cx = {
            let context = &self.shared.context().context;
            self.shared
                .call_context(id, tool_use_id, context, cancel, nested)
        };
        // Boxed, because the future of a call is large, and moving it into a task copies it more than
        // once.
        let call = self.shared.boxes.boxed(SpawnedCall {
            inner: Arc::clone(self),
            index,
            prepared,
            cx,
            notes,
        });
        self.shared.tasks.spawn(call);
    }

    /// Runs a call when a slot is free.
    async fn run(
        &self,
        prepared: PreparedCall,
        cx: &CallContext,
        inner: &NestedNotes,
    ) -> CallResult {
        let started = Instant::now();
        let mut slot = CallSlot::acquire(&self.shared.slots).await;
        let context = self.shared.context().context.clone();
        let observer = self.observer();
        let run = CallRun {
            shared: &self.shared,
            cx,
            context: &context,
            slot: &mut slot,
            started,
            observer: observer.as_deref(),
            inner: Some(inner),
            patches: true,
        };
        let (finished, notes) = run.run(prepared).await;
        match notes.is_empty() {
            true => finished,
            false => finished.with_notes(notes),
        }
    }

    /// Stores the result of a call that has ended. Applies the patches whose turn has come in the
    /// order of the calls. Adds the calls that can start now to `ready`. `finished` is `None` if the
    /// observer has taken the result.
    fn finish_call(
        &self,
        state: &mut BatchState,
        index: usize,
        finished: Option<CallResult>,
        ready: &mut VecDeque<usize>,
    ) {
        let call = &mut state.calls[index];
        call.stage = match finished {
            Some(finished) => CallStage::Ended(Box::new(finished)),
            None => CallStage::Delivered,
        };
        if call.claims.effects().exclusive {
            state.exclusive_ended += 1;
        }
        if !state.calls[index].may_patch() {
            release_waiting_calls(&mut state.calls, index, ready);
        }
        while state
            .calls
            .get(state.applied)
            .is_some_and(BatchCall::has_ended)
        {
            let due = state.applied;
            state.applied += 1;
            if let CallStage::Ended(finished) = &state.calls[due].stage
                && !finished.patches.is_empty()
                && !state.abandoned
            {
                let mut context = self.shared.context();
                finished
                    .patches
                    .iter()
                    .for_each(|patch| context.context.apply(patch));
                context.version += 1;
                drop(context);
                self.shared.engine.hooks.on_cwd_changed();
            }
            if state.calls[due].may_patch() {
                release_waiting_calls(&mut state.calls, due, ready);
            }
        }
        self.call_ended.notify_one();
    }
}

/// The task of a started call.
pub(super) struct SpawnedCall {
    inner: Arc<BatchInner>,
    index: usize,
    prepared: PreparedCall,
    cx: CallContext,
    notes: NestedNotes,
}

impl PoolableTask for SpawnedCall {
    async fn run(self) {
        let Self {
            inner,
            index,
            prepared,
            cx,
            notes,
        } = self;
        let name = prepared.name().to_owned();
        let result = AssertUnwindSafe(inner.run(prepared, &cx, &notes))
            .catch_unwind()
            .await;
        let finished = result.unwrap_or_else(|panic| {
            inner.state().calls[index].without_outcome(&panicked(&name, &*panic))
        });
        let finished = match inner.observer() {
            None => Some(finished),
            Some(observer) => {
                observer.on_ended(&finished);
                match finished.patches.is_empty() {
                    true => observer.take_result(finished),
                    false => Some(finished),
                }
            }
        };
        let mut state = inner.state();
        let mut ready = VecDeque::new();
        inner.finish_call(&mut state, index, finished, &mut ready);
        while let Some(next) = ready.pop_front() {
            inner.start(&mut state, next);
        }
    }
}

/// Releases the calls that wait for this call, and adds those that wait for no other call to
/// `ready`.
fn release_waiting_calls(calls: &mut [BatchCall], index: usize, ready: &mut VecDeque<usize>) {
    for waiting in mem::take(&mut calls[index].waiting_calls) {
        calls[waiting].waits_for -= 1;
        if calls[waiting].waits_for == 0 {
            ready.push_back(waiting);
        }
    }
}

impl BatchCall {
    fn without_outcome(&self, message: &str) -> CallResult {
        let (id, name) = &self.tool_use;
        without_outcome(self.id, id, name, message)
    }
}

/// Returns the effects of a call. A call that failed to prepare touches nothing. A tool that panics
/// here runs alone.
fn effects_of(prepared: &Result<PreparedCall, EarlyResult>) -> Effects {
    match prepared {
        Ok(prepared) => catch_panic(|| prepared.effects()).unwrap_or(Effects::EXCLUSIVE),
        Err(_) => Effects::NONE,
    }
}

/// Runs a function of a tool and catches its panic.
fn catch_panic<T>(f: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    panic::catch_unwind(AssertUnwindSafe(f))
}
