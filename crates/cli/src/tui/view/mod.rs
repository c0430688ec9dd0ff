//! Screens of their own, to read and to choose in. None of them waits: what takes time is a job.
//!
//! - `pager`: a text; `list`: entries that unfold; both know the keys that all views share
//! - `transcript`: everything that was said and done, read from disk as it is shown
//! - `undo`, `rewind`, `resume`, `tasks`, `permissions`: lists to act on
//! - `keys`: what every key does

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
    look::Look,
    overlay::{ViewEffect, ViewJob, ViewOutcome},
};

/// Nothing more than another picture.
fn stay() -> ViewOutcome {
    ViewOutcome::Stay(Vec::new())
}

fn close() -> ViewOutcome {
    ViewOutcome::Close(Vec::new())
}

/// Work whose result comes back to the view.
fn job<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> ViewEffect {
    let job: ViewJob = Box::new(move || Box::new(work()));
    ViewEffect::Job(job)
}

/// The last row: which keys there are, or what is being typed.
fn footer(text: &str, look: &Look) -> TextLine {
    let width = look.size.row_width();
    let mut line = TextLine::styled(text, TextStyle::new().reverse()).truncated(width);
    let blanks = " ".repeat(width.saturating_sub(line.width()));
    line.push(&blanks, TextStyle::new().reverse());
    line
}

/// How many rows of a screen are not the footer.
fn body_rows(look: &Look) -> usize {
    usize::from(look.size.rows).saturating_sub(1).max(1)
}
