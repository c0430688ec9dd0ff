//! Output for users. Only `screen` writes to the terminal.

mod card;
mod clean;
mod run_watcher;
mod screen;
mod style;
mod table;

pub(crate) use card::{card, from_here, question};
pub(crate) use clean::clean;
pub(crate) use haft_terminal::names::{distinct, distinct_line};
pub(crate) use run_watcher::RunWatcher;
pub(crate) use screen::{
    LogLines, ManyLines, control, drawn, drawn_part, json, line, log_to, part, print, prompt,
    stderr_is_terminal, stdout_is_terminal, warn, warn_drawn,
};
pub(crate) use style::ConsoleStyle;
pub(crate) use table::table;
