//! Watching the files that hooks request, for the lifetime of a session.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};

use haft_agent::NoticeLevel;
use haft_engine::{
    ContextView, Engine,
    hooks::{HookEventKind, WatchedChange},
};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::event::EventEmitter;

/// Watches files until it is dropped.
pub(crate) struct FileWatchGuard(JoinHandle<()>);

impl FileWatchGuard {
    /// Stops watching, and waits until hooks that it started have ended.
    pub(crate) async fn end(mut self) {
        self.0.abort();
        let _ = (&mut self.0).await;
    }
}

impl Drop for FileWatchGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Notifies the hooks of changed files.
pub(crate) fn watch(
    engine: &Arc<Engine>,
    view: ContextView,
    events: &Arc<EventEmitter>,
) -> FileWatchGuard {
    let hooks = engine.hooks().clone();
    let teller = FileChangeReporter {
        engine: Arc::downgrade(engine),
        view: view.clone(),
        events: Arc::clone(events),
    };
    FileWatchGuard(haft_contract::spawn_boxed(async move {
        let cwd = move || {
            let context = view.get();
            context.map_or_else(PathBuf::new, |context| context.cwd.to_path_buf())
        };
        let tell = move |change: WatchedChange| Box::pin(teller.clone().report(change)) as _;
        hooks.watch_files(cwd, tell).await;
    }))
}

/// Reports changed files to the hooks.
#[derive(Clone)]
struct FileChangeReporter {
    engine: Weak<Engine>,
    view: ContextView,
    events: Arc<EventEmitter>,
}

impl FileChangeReporter {
    async fn report(self, change: WatchedChange) {
        let Self {
            engine,
            view,
            events,
        } = self;
        let (Some(engine), Some(context)) = (engine.upgrade(), view.get()) else {
            return;
        };
        let path = change.path.to_string_lossy();
        let name = change.path.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let fields = json!({"file_path": path, "event": change.event});
        let fields = fields.as_object().cloned().unwrap_or_default();
        let heard = engine.fire(HookEventKind::FILE_CHANGED, &name, fields, &context);
        for one in heard.await {
            if let Some(message) = one.output.message {
                events.notice(NoticeLevel::Info, message);
            }
            if let Some(failure) = one.output.failure {
                let text = format!("{} hook error: {failure}", one.label);
                events.notice(NoticeLevel::Warning, text);
            }
        }
    }
}
