//! Many calls: side by side where the outcome cannot differ from one after the other.
//!
//! Calls are pushed as they complete in the model's reply and prepared at once. A call starts when
//! it conflicts with no earlier unfinished call ([`claims`]), so its checks see the files a serial
//! run would see. Results come back in the order of the calls, whatever order they end in.
//!
//! The scheduler is the only owner of the session's context. [`ContextPatch`]es apply in the order
//! of the calls; a call behind one that may patch waits for it, and is prepared anew if the context
//! changed, so it never acts on a stale directory or mode.

mod call;
mod call_boxes;
pub mod claims;
mod listener;
mod notifying_approver;
mod observer;
mod person;
mod slots;
mod turn;

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use haft_contract::{CancellationToken, ContextPatch, NestedCalls};
use serde_json::Map;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

pub use listener::{CallListener, EndedCall};
pub use observer::CallObserver;
pub(crate) use slots::Slot;
pub use turn::CallBatch;

use self::{call_boxes::CallBoxes, turn::SpawnedCall};

use crate::{
    Engine, SessionContext,
    hooks::HookMoment,
    pool::{PoolView, ToolOffer},
    settings::watch::POLICY,
    tighten,
};

/// Runs the calls of one session.
pub struct Scheduler {
    shared: Arc<Shared>,
}

/// What the tasks of all turns share.
struct Shared {
    engine: Arc<Engine>,
    context: Mutex<Versioned>,
    /// The model whose calls these are, where known.
    model: Mutex<Option<Arc<str>>>,
    /// What the model has been sent so far.
    offer: Mutex<ToolOffer>,
    slots: Arc<Semaphore>,
    cancel: CancellationToken,
    tasks: TaskTracker,
    boxes: Arc<CallBoxes<SpawnedCall>>,
}

/// The context, and how often it was patched.
struct Versioned {
    context: SessionContext,
    version: u64,
}

impl Scheduler {
    pub(crate) fn new(engine: Arc<Engine>, context: SessionContext) -> Self {
        let slots = Arc::new(Semaphore::new(engine.concurrency));
        let model = engine.model.clone();
        Self {
            shared: Arc::new(Shared {
                engine,
                context: Mutex::new(Versioned {
                    context,
                    version: 0,
                }),
                model: Mutex::new(model),
                offer: Mutex::default(),
                slots,
                cancel: CancellationToken::new(),
                tasks: TaskTracker::new(),
                boxes: Arc::default(),
            }),
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// The session's context as it is now.
    pub fn context(&self) -> SessionContext {
        self.shared.context().context.clone()
    }

    /// A look at the context that keeps nothing alive.
    pub fn view(&self) -> ContextView {
        ContextView(Arc::downgrade(&self.shared))
    }

    /// Changes the context between two turns, as a person asked.
    pub fn apply(&mut self, patch: &ContextPatch) {
        let mut context = self.shared.context();
        context.context.apply(patch);
        context.version += 1;
        drop(context);
        self.shared.engine.hooks.moved();
    }

    /// From now on, calls are this model's.
    pub fn set_model(&mut self, model: impl Into<Arc<str>>) {
        *self.shared.model() = Some(model.into());
    }

    /// From now on the agent is of this kind, and has what the view leaves of the tools. What the model is
    /// sent begins anew: a tool that it no longer has is not offered to it.
    pub fn set_kind(&mut self, kind: Option<String>, view: Option<PoolView>) {
        self.shared.engine.set_kind(kind, view);
        let offer = self.shared.offer.lock();
        *offer.unwrap_or_else(PoisonError::into_inner) = ToolOffer::default();
    }

    /// The tools whose definitions the model is sent now: what it was sent before comes first, unchanged, so
    /// that the provider's cache of it holds.
    pub fn offer(&self) -> ToolOffer {
        let mut offer = self
            .shared
            .offer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        offer.update(&self.shared.engine.pool(), &self.context().activated);
        offer.clone()
    }

    /// Calls beside the model's own.
    pub fn aside(&self) -> NestedCalls {
        call::beside(&self.shared)
    }

    /// Fires to end the whole session: every turn and every call in it.
    pub fn cancel_token(&self) -> CancellationToken {
        self.shared.cancel.clone()
    }

    /// Begins a turn: the calls of one reply. Waits for calls of an abandoned turn to wind down, so
    /// that no two turns ever touch the same files.
    pub async fn turn(&mut self) -> CallBatch<'_> {
        let cancel = self.shared.cancel.child_token();
        self.turn_until(cancel).await
    }

    /// The same, which this token interrupts too; it should be a child of the session's.
    pub async fn turn_until(&mut self, cancel: CancellationToken) -> CallBatch<'_> {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.tasks.reopen();
        self.tighten().await;
        CallBatch::new(self, cancel)
    }
}

impl Scheduler {
    /// Takes over what has become stricter in settings files that have changed, unless hooks object to
    /// all of it. To what the administrator wants no one objects.
    async fn tighten(&self) {
        let engine = &self.shared.engine;
        let Some(watch) = &engine.watch else { return };
        let mut counts = false;
        for (source, file) in watch.changed() {
            let objected = self.is_objected_to(source, &file).await;
            counts |= source == POLICY || !objected;
        }
        if counts {
            let mut context = self.shared.context();
            tighten::tighten(&mut context.context, watch.load());
            context.version += 1;
        }
    }

    async fn is_objected_to(&self, source: &str, file: &Path) -> bool {
        let engine = &self.shared.engine;
        if engine.hooks.is_silent(HookMoment::CONFIG_CHANGE) {
            return false;
        }
        let mut fields = Map::new();
        fields.insert("source".to_owned(), source.into());
        fields.insert("file_path".to_owned(), file.to_string_lossy().into());
        let context = self.context();
        let heard = engine
            .fire(HookMoment::CONFIG_CHANGE, source, fields, &context)
            .await;
        heard.iter().any(|one| one.said.block.is_some())
    }
}

/// A look at a session's context, from outside its scheduler.
#[derive(Clone)]
pub struct ContextView(Weak<Shared>);

impl ContextView {
    /// The context as it is now; `None` once the session is gone.
    pub fn get(&self) -> Option<SessionContext> {
        let shared = self.0.upgrade()?;
        let context = shared.context().context.clone();
        Some(context)
    }
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> MutexGuard<'_, Versioned> {
        self.context.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
