//! Helpers for testing views: a style, keys, the screen as text, and jobs that run immediately.

use haft_terminal::{Key, ScreenSize, Theme};

use crate::tui::{
    overlay::{FullScreenView, ViewEffect, ViewOutcome},
    ui_style::UiStyle,
};

pub(super) fn test_style(columns: u16, rows: u16) -> UiStyle {
    UiStyle {
        theme: Theme::default(),
        unicode: false,
        hyperlinks: false,
        is_still: true,
        has_reduced_motion: false,
        verbose: false,
        size: ScreenSize::new(columns, rows),
    }
}

/// Returns the rows as text and checks that each fits.
pub(super) fn shown(view: &mut dyn FullScreenView, look: &UiStyle) -> String {
    let rows = view.rows(look);
    assert!(
        rows.len() <= usize::from(look.size.rows),
        "{} rows",
        rows.len()
    );
    for row in &rows {
        assert!(row.width() <= look.size.row_width(), "{:?}", row.text());
    }
    let rows: Vec<&str> = rows.iter().map(|row| row.text().trim_end()).collect();
    rows.join("\n")
}

/// Types letters and runs the resulting jobs.
pub(super) fn keys(view: &mut dyn FullScreenView, text: &str) -> Vec<ViewEffect> {
    let mut effects = Vec::new();
    for letter in text.chars() {
        effects.extend(key(view, Key::char(letter)));
    }
    effects
}

/// Handles a key and runs the jobs. Returns the remaining effects.
pub(super) fn key(view: &mut dyn FullScreenView, key: Key) -> Vec<ViewEffect> {
    let (ViewOutcome::Stay(effects) | ViewOutcome::Close(effects)) = view.key(key);
    run_jobs(view, effects)
}

/// Runs jobs, including those that result from them.
pub(super) fn run_jobs(view: &mut dyn FullScreenView, effects: Vec<ViewEffect>) -> Vec<ViewEffect> {
    let mut others = Vec::new();
    let mut waiting: std::collections::VecDeque<ViewEffect> = effects.into();
    while let Some(effect) = waiting.pop_front() {
        match effect {
            ViewEffect::Job(job) => {
                let (ViewOutcome::Stay(more) | ViewOutcome::Close(more)) = view.loaded(job());
                waiting.extend(more);
            }
            other => others.push(other),
        }
    }
    others
}
