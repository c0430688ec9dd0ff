//! Full-screen views for reading and choosing. They never block: slow work is a job.
//!
//! - `pager`: shows a text; `list`: shows entries that unfold; both handle the keys that all views
//!   share
//! - `transcript`: the complete conversation, read from disk as needed
//! - `undo`, `rewind`, `resume`, `tasks`, `permissions`: lists with actions
//! - `keys`: the list of key bindings

mod detail;
mod keys;
mod list;
mod pager;
mod permissions;
mod resume;
mod rewind;
mod session;
mod tasks;
#[cfg(test)]
mod test_screen;
mod transcript;
mod undo;
#[cfg(test)]
mod view_tests;

pub(crate) use keys::keys_view;
pub(crate) use pager::TextView;
pub(crate) use permissions::PermissionsView;
pub(crate) use resume::ResumeView;
pub(crate) use rewind::RewindView;
pub(crate) use tasks::TasksView;
pub(crate) use transcript::TranscriptView;
pub(crate) use undo::UndoView;

use haft_terminal::{TextLine, TextStyle};

use super::{
    overlay::{ViewEffect, ViewJob, ViewOutcome},
    ui_style::UiStyle,
};

/// Returns an outcome that only redraws the view.
fn stay() -> ViewOutcome {
    ViewOutcome::Stay(Vec::new())
}

fn close() -> ViewOutcome {
    ViewOutcome::Close(Vec::new())
}

/// Returns a job whose result is passed back to the view.
fn job<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> ViewEffect {
    let job: ViewJob = Box::new(move || Box::new(work()));
    ViewEffect::Job(job)
}

/// Returns the last row: the available keys, or the text that is being typed.
fn footer(text: &str, look: &UiStyle) -> TextLine {
    let width = look.size.row_width();
    let mut line = TextLine::styled(text, TextStyle::new().reverse()).truncated(width);
    let blanks = " ".repeat(width.saturating_sub(line.width()));
    line.push(&blanks, TextStyle::new().reverse());
    line
}

/// Returns the number of rows above the footer.
fn body_rows(look: &UiStyle) -> usize {
    usize::from(look.size.rows).saturating_sub(1).max(1)
}
