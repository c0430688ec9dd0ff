//! Screens of their own over the history: what a view is.

use std::any::Any;

use haft_host::SessionEvent;
use haft_terminal::{Key, TextLine};

use super::look::Look;

/// A screen of its own. It never waits: what takes time is a [`ViewEffect::Job`].
pub(crate) trait View: Send {
    /// All rows of the screen from the top; the last one says which keys there are.
    fn rows(&mut self, look: &Look) -> Vec<TextLine>;

    /// What a key does.
    fn key(&mut self, key: Key) -> ViewOutcome;

    /// What a job of this view found.
    fn loaded(&mut self, _data: Box<dyn Any + Send>) -> ViewOutcome {
        ViewOutcome::Stay(Vec::new())
    }

    /// Is it the transcript, which has keys of its own in a person's file?
    fn is_transcript(&self) -> bool {
        false
    }

    /// Something happened in the session.
    fn on_event(&mut self, _event: &SessionEvent) {}
}

/// What came of a key.
pub(crate) enum ViewOutcome {
    Stay(Vec<ViewEffect>),
    Close(Vec<ViewEffect>),
}

/// Work of a view, done on a thread where waiting harms no one.
pub(crate) type ViewJob = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// What a view wants done.
pub(crate) enum ViewEffect {
    /// The result goes to [`View::loaded`] of the same view.
    Job(ViewJob),
    /// To the clipboard.
    Copy(String),
    /// Shows this text in the person's editor.
    Edit(String),
    /// Into the editor.
    SetDraft(String),
    /// Takes up this session.
    Resume(String),
}
