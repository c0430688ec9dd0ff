//! What a running call is given.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use crate::{
    Aside, CallId, Confinement, PermissionMode, Progress, Services, SessionId, Updates, progress,
};

/// Everything a call knows of where it runs. A snapshot: it does not change while the call runs.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The session.
    pub session: SessionId,
    /// This call.
    pub call: CallId,
    /// The same, as the provider names it; empty where nobody did.
    pub tool_use_id: Arc<str>,
    /// The directory relative paths start from; absolute.
    pub cwd: Arc<Path>,
    /// Fires when the call should end. Child of the turn's, which is child of the session's.
    pub cancel: CancellationToken,
    /// Where news of the call goes.
    pub progress: Progress,
    /// What is permitted.
    pub permissions: PermissionSnapshot,
    /// The model that asked, where known.
    pub model: Option<Arc<str>>,
    /// What it may reach.
    pub services: Services,
    /// How it makes calls itself.
    pub aside: Aside,
}

/// What was permitted when the call was admitted.
#[derive(Debug, Clone)]
pub struct PermissionSnapshot {
    /// The mode.
    pub mode: PermissionMode,
    /// The working directory and the additional ones; absolute.
    pub directories: Arc<[PathBuf]>,
    /// Real paths outside of them that this very call was permitted to touch.
    pub granted: Arc<[PathBuf]>,
    /// Files that may not be read, so that a search leaves them out.
    pub hidden: Hidden,
    /// Files that may not be changed, so that a change of many leaves them out; the hidden ones too.
    pub locked: Hidden,
    /// How a command that it starts is to be confined.
    pub confinement: Confinement,
    /// Where the plan is written: the one file that may be changed in plan mode.
    pub plan_file: Option<Arc<Path>>,
}

/// Files that a call which finds its files by itself must leave out.
#[derive(Clone, Default)]
pub struct Hidden(Option<Arc<IsHidden>>);

type IsHidden = dyn Fn(&Path) -> bool + Send + Sync;

impl Hidden {
    /// Those for which this says so; it is asked with absolute paths.
    pub fn when(is_hidden: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_hidden)))
    }

    /// There are none, so that nobody need ask.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Is this one?
    pub fn hides(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|is_hidden| is_hidden(path))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hidden").field(&!self.is_empty()).finish()
    }
}

impl CallContext {
    /// A context for the test of a tool: it works in `dir`, everything is permitted, nobody can be
    /// asked, and the second part hears the tool's progress.
    pub fn for_test(dir: &Path) -> (Self, Updates) {
        let call = CallId::new();
        let (progress, updates) = progress::channel(call);
        let context = Self {
            session: SessionId::new(),
            call,
            tool_use_id: Arc::from(""),
            cwd: Arc::from(dir),
            cancel: CancellationToken::new(),
            progress,
            permissions: PermissionSnapshot {
                mode: PermissionMode::BypassPermissions,
                directories: Arc::from([dir.to_path_buf()]),
                granted: Arc::from([]),
                hidden: Hidden::default(),
                locked: Hidden::default(),
                confinement: Confinement::none(),
                plan_file: None,
            },
            model: None,
            services: Services::none(),
            aside: Aside::default(),
        };
        (context, updates)
    }
}
