//! The interface of full-screen views.

use std::any::Any;

use haft_host::SessionEvent;
use haft_terminal::{Key, TextLine};

use super::ui_style::UiStyle;

/// A full-screen view. It never blocks: slow work is a [`ViewEffect::Job`].
pub(crate) trait FullScreenView: Send {
    /// Returns all rows of the screen from the top. The last one describes the keys.
    fn rows(&mut self, look: &UiStyle) -> Vec<TextLine>;

    /// Handles a key.
    fn key(&mut self, key: Key) -> ViewOutcome;

    /// Handles the result of a job of this view.
    fn loaded(&mut self, _data: Box<dyn Any + Send>) -> ViewOutcome {
        ViewOutcome::Stay(Vec::new())
    }

    /// Returns whether this is the transcript, which has its own key bindings context.
    fn is_transcript(&self) -> bool {
        false
    }

    /// Handles a session event.
    fn on_event(&mut self, _event: &SessionEvent) {}
}

/// The outcome of a key.
pub(crate) enum ViewOutcome {
    Stay(Vec<ViewEffect>),
    Close(Vec<ViewEffect>),
}

/// Work of a view, which runs on a thread that may block.
pub(crate) type ViewJob = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// An action that a view requests.
pub(crate) enum ViewEffect {
    /// Runs the job and passes its result to [`FullScreenView::loaded`] of the same view.
    Job(ViewJob),
    /// Copies the text to the clipboard.
    Copy(String),
    /// Opens the text in the user's external editor.
    Edit(String),
    /// Inserts the text into the draft.
    SetDraft(String),
    /// Resumes this session.
    Resume(String),
}
