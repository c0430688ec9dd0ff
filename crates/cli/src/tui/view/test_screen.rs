//! Views in tests: a look, keys, the screen as text, and jobs that are done at once.

use haft_terminal::{Key, ScreenSize, Theme};

use crate::tui::{
    look::Look,
    overlay::{View, ViewEffect, ViewOutcome},
};

pub(super) fn look(columns: u16, rows: u16) -> Look {
    Look {
        theme: Theme::default(),
        unicode: false,
        hyperlinks: false,
        is_still: true,
        has_reduced_motion: false,
        verbose: false,
        size: ScreenSize::new(columns, rows),
    }
}

/// The rows as text; each must fit.
pub(super) fn shown(view: &mut dyn View, look: &Look) -> String {
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

/// Types letters, and does what the view wants done.
pub(super) fn keys(view: &mut dyn View, text: &str) -> Vec<ViewEffect> {
    let mut effects = Vec::new();
    for letter in text.chars() {
        effects.extend(key(view, Key::char(letter)));
    }
    effects
}

/// A key; what is left of its effects when the jobs are done.
pub(super) fn key(view: &mut dyn View, key: Key) -> Vec<ViewEffect> {
    let (ViewOutcome::Stay(effects) | ViewOutcome::Close(effects)) = view.key(key);
    settle(view, effects)
}

/// Does the jobs, and those that they lead to.
pub(super) fn settle(view: &mut dyn View, effects: Vec<ViewEffect>) -> Vec<ViewEffect> {
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
