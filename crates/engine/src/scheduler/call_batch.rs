//! The calls of one reply.

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
    claims::Claims,
    slots::CallSlot,
};
use crate::{
    Pool,
    pipeline::{
        CallResult, EarlyResult, INTERRUPTED, InputAuthor, Prepared, prepare, without_outcome,
    },
};

/// The calls of one reply, from the first push to the last result. Dropping it interrupts the calls
/// that are still running.
pub struct CallBatch<'a> {
    inner: Arc<BatchInner>,
    delivered: usize,
    // The borrow ensures that only one batch exists at a time.
    _scheduler: &'a mut Scheduler,
}

struct BatchInner {
    shared: Arc<SchedulerShared>,
    /// The tools at the start of the batch.
    pool: Arc<Pool>,
    cancel: CancellationToken,
    state: Mutex<BatchState>,
    settled: Notify,
    observer: Mutex<Option<Arc<dyn CallObserver>>>,
}

#[derive(Default)]
struct BatchState {
    calls: Vec<BatchCall>,
    /// The number of leading calls that have ended and whose patches are applied.
    applied: usize,
    /// The number of exclusive calls that have ended. Links and files may have changed after each
    /// of them, so older claims of waiting calls are computed again.
    fences: u64,
    /// The batch was dropped: calls that still end change nothing.
    abandoned: bool,
}

struct BatchCall {
    id: CallId,
    /// Cancels it, alone or with the batch.
    cancel: CancellationToken,
    /// The provider's id and the name as called, for a result without an outcome.
    tool_use: (String, String),
    stage: CallStage,
    claims: Claims,
    /// The value of `fences` when the claims were made.
    claimed_at: u64,
    /// The version of the context when it was prepared.
    prepared_at: u64,
    /// The original request, stored only if an earlier call may still patch the context.
    original: Option<ToolUse>,
    /// It had to wait, so what was determined when it was pushed may be outdated.
    waited: bool,
    /// The number of earlier calls that must end first, and the later calls that wait for this one.
    waits_for: usize,
    waited_for_by: Vec<usize>,
}

enum CallStage {
    Waiting(Result<Prepared, EarlyResult>),
    Running,
    Over(Box<CallResult>),
    Delivered,
}

impl BatchCall {
    fn is_over(&self) -> bool {
        matches!(self.stage, CallStage::Over(_) | CallStage::Delivered)
    }

    fn is_delivered(&self) -> bool {
        matches!(self.stage, CallStage::Delivered)
    }

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
            settled: Notify::new(),
            observer: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
            delivered: 0,
            _scheduler: scheduler,
        }
    }

    /// Sets the observer of calls that start and end from now on, replacing any other.
    pub fn set_observer(&mut self, witness: Arc<dyn CallObserver>) {
        let mut current = self
            .inner
            .observer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Some(witness);
    }

    /// Adds a call. It is prepared immediately and starts as soon as it conflicts with no earlier
    /// call. Must be called inside a tokio runtime. Returns a token that cancels only this call.
    pub fn push(&mut self, tool_use: ToolUse) -> CancellationToken {
        self.inner.push(tool_use)
    }

    /// Waits for the next result, in the order of the calls; `None` once every call pushed so far
    /// has been returned.
    pub async fn next(&mut self) -> Option<CallResult> {
        loop {
            {
                let mut state = self.inner.state();
                let call = state.calls.get_mut(self.delivered)?;
                if call.is_over() {
                    let stage = mem::replace(&mut call.stage, CallStage::Delivered);
                    self.delivered += 1;
                    let CallStage::Over(finished) = stage else {
                        unreachable!("`delivered` passes each call once")
                    };
                    return Some(*finished);
                }
            }
            // A permit is stored if no task is waiting, so an end between the two is not missed.
            self.inner.settled.notified().await;
        }
    }

    /// Waits for the next result, in the order in which calls end; `None` once every call pushed so
    /// far has been returned. For callers whose calls are independent: a batch must use either this
    /// or [`next`](Self::next), not both. Cancel-safe.
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
                // A result with patches stays until they have been applied, in the order of the
                // calls.
                let ripe = |at: usize, call: &BatchCall| match &call.stage {
                    CallStage::Over(finished) => {
                        finished.patches.is_empty() || self.delivered + at < applied
                    }
                    _ => false,
                };
                let found = open
                    .iter()
                    .enumerate()
                    .position(|(at, call)| ripe(at, call));
                if let Some(at) = found
                    && let CallStage::Over(finished) =
                        mem::replace(&mut open[at].stage, CallStage::Delivered)
                {
                    return Some(*finished);
                }
            }
            self.inner.settled.notified().await;
        }
    }

    /// Sets the working directories of calls that are pushed from now on, as decided by the client.
    /// Relative paths start in the first one, unless the current directory is already inside one of
    /// them.
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
    fn witness(&self) -> Option<Arc<dyn CallObserver>> {
        let witness = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        witness.clone()
    }

    fn state(&self) -> MutexGuard<'_, BatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, tool_use: ToolUse) -> CancellationToken {
        let mut state = self.state();
        let index = state.calls.len();
        let behind_a_patch = state.calls[state.applied..]
            .iter()
            .any(BatchCall::may_patch);
        let id = CallId::new();
        let names = (tool_use.id.clone(), tool_use.name.clone());
        let original = behind_a_patch.then(|| tool_use.clone());
        let (prepared, prepared_at) = self.prepare(id, tool_use);
        if let (Ok(prepared), Some(witness)) = (&prepared, self.witness()) {
            // A tool that panics while it draws the call does not prevent the call.
            let _ = caught(|| witness.on_bound(prepared));
        }
        let claims = Claims::new(effects_of(&prepared));
        let claimed_at = state.fences;
        let cancel = self.cancel.child_token();
        if index == 0 {
            // Many batches have only one call, and room for more is large.
            state.calls.reserve_exact(1);
        }
        state.calls.push(BatchCall {
            id,
            cancel: cancel.clone(),
            tool_use: names,
            stage: CallStage::Waiting(prepared),
            claims,
            claimed_at,
            prepared_at,
            original,
            waited: false,
            waits_for: 0,
            waited_for_by: Vec::new(),
        });
        self.start(&mut state, index);
        cancel
    }

    fn prepare(&self, id: CallId, tool_use: ToolUse) -> (Result<Prepared, EarlyResult>, u64) {
        let (place, version) = {
            let context = self.shared.context();
            (context.context.path_context(), context.version)
        };
        let name = tool_use.name.clone();
        let prepare = || prepare(&self.pool, tool_use, InputAuthor::Model, id, &place);
        let prepared = caught(prepare)
            .unwrap_or_else(|panic| Err(EarlyResult::broken(&name, &panicked(&name, &*panic))));
        (prepared, version)
    }

    /// Starts a call if it need not wait, and all calls that become ready because of it.
    fn start(self: &Arc<Self>, state: &mut BatchState, index: usize) {
        let mut ready = VecDeque::from([index]);
        while let Some(index) = ready.pop_front() {
            if let Some(finished) = self.start_one(state, index) {
                self.settle(state, index, Some(finished), &mut ready);
            }
        }
    }

    /// Starts one call, or lets it wait. Returns its result if it has ended without running.
    fn start_one(self: &Arc<Self>, state: &mut BatchState, index: usize) -> Option<CallResult> {
        if state.calls[index].cancel.is_cancelled() {
            return Some(state.calls[index].without_outcome(INTERRUPTED));
        }
        if state.calls[index].waited {
            self.refresh(state, index);
        }
        let blockers: Vec<usize> = (state.applied..index)
            .filter(|earlier| {
                let stale = state.calls[*earlier].claimed_at != state.fences;
                if stale && matches!(state.calls[*earlier].stage, CallStage::Waiting(_)) {
                    self.refresh(state, *earlier);
                }
                let earlier = &state.calls[*earlier];
                earlier.may_patch()
                    || (!earlier.is_over()
                        && earlier.claims.conflicts_with(&state.calls[index].claims))
            })
            .collect();
        if !blockers.is_empty() {
            state.calls[index].waited = true;
            state.calls[index].waits_for = blockers.len();
            for blocker in blockers {
                state.calls[blocker].waited_for_by.push(index);
            }
            return None;
        }
        let call = &mut state.calls[index];
        let CallStage::Waiting(prepared) = mem::replace(&mut call.stage, CallStage::Running) else {
            unreachable!("a call is started once")
        };
        match prepared {
            Err(settled) => {
                let finished = settled.finish(call.id, call.tool_use.0.clone());
                if let Some(listener) = &self.shared.engine.listener {
                    listener.on_call_unjudged(&finished);
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
    fn refresh(&self, state: &mut BatchState, index: usize) {
        let fences = state.fences;
        let call = &mut state.calls[index];
        let version = self.shared.context().version;
        if call.prepared_at != version
            && let Some(original) = call.original.clone()
        {
            let (prepared, prepared_at) = self.prepare(call.id, original);
            call.stage = CallStage::Waiting(prepared);
            call.prepared_at = prepared_at;
        }
        if let CallStage::Waiting(prepared) = &call.stage {
            call.claims = Claims::new(effects_of(prepared));
            call.claimed_at = fences;
        }
    }

    fn spawn(
        self: &Arc<Self>,
        index: usize,
        id: CallId,
        cancel: CancellationToken,
        prepared: Prepared,
    ) {
        let notes = NestedNotes::default();
        let nested = nested_calls_within(&self.shared, &notes);
        let tool_use_id = prepared.ids().1.into();
        let cx = {
            let context = &self.shared.context().context;
            self.shared
                .call_context(id, tool_use_id, context, cancel, nested)
        };
        // Boxed: a future that is moved into a task is copied more than once, and the one that runs
        // a call is large.
        let call = self.shared.boxes.boxed(SpawnedCall {
            inner: Arc::clone(self),
            index,
            prepared,
            cx,
            notes,
        });
        self.shared.tasks.spawn(call);
    }

    async fn run(&self, prepared: Prepared, cx: &CallContext, inner: &NestedNotes) -> CallResult {
        let started = Instant::now();
        let mut slot = CallSlot::acquire(&self.shared.slots).await;
        let context = self.shared.context().context.clone();
        let witness = self.witness();
        let run = CallRun {
            shared: &self.shared,
            cx,
            context: &context,
            slot: &mut slot,
            started,
            observer: witness.as_deref(),
            inner: Some(inner),
            patches: true,
        };
        let (finished, notes) = run.run(prepared).await;
        match notes.is_empty() {
            true => finished,
            false => finished.with_notes(notes),
        }
    }

    /// Stores a result, applies the patches that are due in call order, and collects the calls that
    /// are ready to start.
    fn settle(
        &self,
        state: &mut BatchState,
        index: usize,
        finished: Option<CallResult>,
        ready: &mut VecDeque<usize>,
    ) {
        let call = &mut state.calls[index];
        call.stage = match finished {
            Some(finished) => CallStage::Over(Box::new(finished)),
            None => CallStage::Delivered,
        };
        if call.claims.effects().exclusive {
            state.fences += 1;
        }
        if !state.calls[index].may_patch() {
            release(&mut state.calls, index, ready);
        }
        while state
            .calls
            .get(state.applied)
            .is_some_and(BatchCall::is_over)
        {
            let due = state.applied;
            state.applied += 1;
            if let CallStage::Over(finished) = &state.calls[due].stage
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
                release(&mut state.calls, due, ready);
            }
        }
        self.settled.notify_one();
    }
}

/// A started call, until it has ended.
pub(super) struct SpawnedCall {
    inner: Arc<BatchInner>,
    index: usize,
    prepared: Prepared,
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
        let ran = AssertUnwindSafe(inner.run(prepared, &cx, &notes))
            .catch_unwind()
            .await;
        let finished = ran.unwrap_or_else(|panic| {
            inner.state().calls[index].without_outcome(&panicked(&name, &*panic))
        });
        let finished = match inner.witness() {
            None => Some(finished),
            Some(witness) => {
                witness.on_ended(&finished);
                match finished.patches.is_empty() {
                    true => witness.take_result(finished),
                    false => Some(finished),
                }
            }
        };
        let mut state = inner.state();
        let mut ready = VecDeque::new();
        inner.settle(&mut state, index, finished, &mut ready);
        while let Some(next) = ready.pop_front() {
            inner.start(&mut state, next);
        }
    }
}

fn release(calls: &mut [BatchCall], index: usize, ready: &mut VecDeque<usize>) {
    for waiting in mem::take(&mut calls[index].waited_for_by) {
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
fn effects_of(prepared: &Result<Prepared, EarlyResult>) -> Effects {
    match prepared {
        Ok(prepared) => caught(|| prepared.effects()).unwrap_or(Effects::EXCLUSIVE),
        Err(_) => Effects::NONE,
    }
}

fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    panic::catch_unwind(AssertUnwindSafe(run))
}
