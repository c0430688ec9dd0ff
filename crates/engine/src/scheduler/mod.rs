//! Batches of calls, which run concurrently where the results cannot differ from running them one
//! after the other.
//!
//! Calls are pushed as they complete in the model's reply, and prepared immediately. A call starts
//! when it conflicts with no earlier unfinished call ([`claims`]), so its checks see the files that
//! a serial run would see. Results are returned in the order of the calls, regardless of the order
//! in which they end.
//!
//! The scheduler is the only owner of the session's context. [`ContextPatch`]es are applied in the
//! order of the calls. A call that follows one that may patch waits for it, and is prepared again
//! if the context has changed. So it never uses an outdated directory or mode.

mod call;
mod call_batch;
mod call_task_pool;
pub mod claims;
mod listener;
mod notifying_approver;
mod observer;
mod slots;
mod user_call;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_contract::{CancellationToken, ContextPatch, NestedCalls};
use serde_json::Map;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

pub use call_batch::CallBatch;
pub use listener::{CallListener, EndedCall};
pub use observer::CallObserver;
pub(crate) use slots::CallSlot;

use self::{call_batch::SpawnedCall, call_task_pool::CallTaskPool};

use crate::{
    Engine, SessionContext,
    hooks::HookEventKind,
    pipeline,
    pool::{PoolView, ToolOffer},
    settings::watch::POLICY,
    settings_tightening,
};

/// Runs the calls of one session.
pub struct Scheduler {
    shared: Arc<SchedulerShared>,
}

/// The state that the tasks of all turns share.
struct SchedulerShared {
    engine: Arc<Engine>,
    context: Mutex<VersionedContext>,
    /// The model that makes the calls, if known.
    model: Mutex<Option<Arc<str>>>,
    /// The tools that the model has been offered so far.
    offer: Mutex<ToolOffer>,
    slots: Arc<Semaphore>,
    cancel: CancellationToken,
    tasks: TaskTracker,
    boxes: Arc<CallTaskPool<SpawnedCall>>,
    /// Whether the sandboxes for the first commands are set up, or are being set up.
    sandboxes_prepared: AtomicBool,
}

/// The context and its number of changes.
struct VersionedContext {
    context: SessionContext,
    version: u64,
}

impl Scheduler {
    pub(crate) fn new(engine: Arc<Engine>, context: SessionContext) -> Self {
        let slots = Arc::new(Semaphore::new(engine.concurrency));
        let model = engine.model.clone();
        Self {
            shared: Arc::new(SchedulerShared {
                engine,
                context: Mutex::new(VersionedContext {
                    context,
                    version: 0,
                }),
                model: Mutex::new(model),
                offer: Mutex::default(),
                slots,
                cancel: CancellationToken::new(),
                tasks: TaskTracker::new(),
                boxes: Arc::default(),
                sandboxes_prepared: AtomicBool::new(false),
            }),
        }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// Returns the current context of the session.
    pub fn context(&self) -> SessionContext {
        self.shared.context().context.clone()
    }

    /// Returns a view of the context that does not keep the session alive.
    pub fn view(&self) -> ContextView {
        ContextView(Arc::downgrade(&self.shared))
    }

    /// Changes the context between two turns, at the user's request.
    pub fn apply(&mut self, patch: &ContextPatch) {
        let mut context = self.shared.context();
        context.context.apply(patch);
        context.version += 1;
        drop(context);
        self.shared.engine.hooks.on_cwd_changed();
    }

    /// Sets the model that makes the calls.
    pub fn set_model(&mut self, model: impl Into<Arc<str>>) {
        *self.shared.model() = Some(model.into());
    }

    /// Sets the agent kind, and restricts the tools to those of the view. The list of offered tools
    /// starts again, so that the model is not offered tools that it no longer has.
    pub fn set_kind(&mut self, kind: Option<String>, view: Option<PoolView>) {
        self.shared.engine.set_kind(kind, view);
        let offer = self.shared.offer.lock();
        *offer.unwrap_or_else(PoisonError::into_inner) = ToolOffer::default();
    }

    /// Returns the tools whose definitions the model receives now. Those it has already received
    /// come first, unchanged, so that the provider's cache stays valid.
    pub fn offer(&self) -> ToolOffer {
        let mut offer = self
            .shared
            .offer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        offer.update(&self.shared.engine.pool(), &self.context().activated);
        offer.clone()
    }

    /// Returns a runner for nested calls outside any call.
    pub fn nested_calls(&self) -> NestedCalls {
        call::nested_calls(&self.shared)
    }

    /// Returns the token that ends the whole session: every turn and every call in it.
    pub fn cancel_token(&self) -> CancellationToken {
        self.shared.cancel.clone()
    }

    /// Starts a batch for the calls of one reply. Waits until all calls of an abandoned batch have
    /// stopped, so that two batches never touch the same files.
    pub async fn start_batch(&mut self) -> CallBatch<'_> {
        let cancel = self.shared.cancel.child_token();
        self.start_batch_until(cancel).await
    }

    /// Like [`start_batch`](Self::start_batch), but `cancel` interrupts the batch. It should be a
    /// child of the session's token.
    pub async fn start_batch_until(&mut self, cancel: CancellationToken) -> CallBatch<'_> {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.tasks.reopen();
        self.apply_tightened_settings().await;
        CallBatch::new(self, cancel)
    }
}

impl Scheduler {
    /// Applies the stricter parts of settings files that have changed, unless hooks block all of
    /// the changes. Hooks cannot block changes of the administrator's settings.
    async fn apply_tightened_settings(&self) {
        let engine = &self.shared.engine;
        let Some(watch) = &engine.watch else { return };
        let mut counts = false;
        for (source, file) in watch.changed() {
            let objected = self.is_vetoed_by_hook(source, &file).await;
            counts |= source == POLICY || !objected;
        }
        if counts {
            let mut context = self.shared.context();
            settings_tightening::tighten(&mut context.context, watch.load());
            context.version += 1;
        }
    }

    async fn is_vetoed_by_hook(&self, source: &str, file: &Path) -> bool {
        let engine = &self.shared.engine;
        if engine.hooks.has_no_handlers(HookEventKind::CONFIG_CHANGE) {
            return false;
        }
        let mut fields = Map::new();
        fields.insert("source".to_owned(), source.into());
        fields.insert("file_path".to_owned(), file.to_string_lossy().into());
        let context = self.context();
        let heard = engine
            .fire(HookEventKind::CONFIG_CHANGE, source, fields, &context)
            .await;
        heard.iter().any(|one| one.output.block.is_some())
    }
}

/// A view of a session's context from outside its scheduler.
#[derive(Clone)]
pub struct ContextView(Weak<SchedulerShared>);

impl ContextView {
    /// Returns the current context; `None` once the session has been dropped.
    pub fn get(&self) -> Option<SessionContext> {
        let shared = self.0.upgrade()?;
        let context = shared.context().context.clone();
        Some(context)
    }
}

impl SchedulerShared {
    /// Sets up the sandboxes for the first commands in the background. Only the first call has an
    /// effect.
    fn prepare_sandboxes(&self) {
        if self.sandboxes_prepared.swap(true, Ordering::Relaxed) {
            return;
        }
        let (engine, context) = (Arc::clone(&self.engine), self.context().context.clone());
        let cancel = self.cancel.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = pipeline::prepare_sandboxes(&engine, &context) => {}
                () = cancel.cancelled() => {}
            }
        });
    }

    fn model(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> MutexGuard<'_, VersionedContext> {
        self.context.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
