//! Shows the progress of an agent run.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use haft_agent::{AgentEvent, AgentEventSink, NoticeLevel};
use haft_models::ModelEvent;

use super::{ConsoleStyle, card, clean, drawn, line, part, warn_drawn};

/// The number of lines to which a longer card is cut. A card with one line more is not cut.
const MAX_CARD: usize = 10;

/// Prints the model's reply as it arrives, and each call once it is finished.
pub(crate) struct RunWatcher {
    target: WatchTarget,
    style: ConsoleStyle,
    cwd: PathBuf,
    reply_line: Mutex<Option<ReplyLine>>,
}

/// The stream to write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchTarget {
    Stdout,
    Stderr,
}

/// The line of the reply that is being printed.
#[derive(Debug, Default)]
struct ReplyLine {
    column: usize,
    /// Spaces that are not printed yet.
    pending_spaces: usize,
}

impl RunWatcher {
    /// Creates a watcher that writes to stdout. Paths below `cwd` are shown relative to it.
    pub(crate) fn on_stdout(style: ConsoleStyle, cwd: &Path) -> Self {
        Self::new(WatchTarget::Stdout, style, cwd)
    }

    /// Like [`Self::on_stdout`], but on stderr and without the model's text, which goes to stdout.
    pub(crate) fn on_stderr(style: ConsoleStyle, cwd: &Path) -> Self {
        Self::new(WatchTarget::Stderr, style, cwd)
    }

    fn new(target: WatchTarget, style: ConsoleStyle, cwd: &Path) -> Self {
        Self {
            target,
            style,
            cwd: cwd.to_path_buf(),
            reply_line: Mutex::default(),
        }
    }

    /// Prints a part of the model's text, wrapped at spaces. A space is printed only with the word
    /// after it.
    fn print_text(&self, text: &str) -> std::io::Result<()> {
        let mut said = self
            .reply_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let ReplyLine {
            column,
            pending_spaces: blanks,
        } = said.get_or_insert_default();
        let mut shown = String::new();
        for word in clean(text).split_inclusive([' ', '\n']) {
            let letters = word.trim_end_matches([' ', '\n']);
            let width = letters.chars().count();
            if *column > 0 && *column + *blanks + width > self.style.width() {
                shown.push('\n');
                (*column, *blanks) = (0, 0);
            }
            if width > 0 {
                shown += &" ".repeat(*blanks);
                shown += letters;
                *column += *blanks + width;
                *blanks = 0;
            }
            match word[letters.len()..].contains('\n') {
                true => {
                    shown.push('\n');
                    (*column, *blanks) = (0, 0);
                }
                false => *blanks += word.len() - letters.len(),
            }
        }
        part(&shown)
    }

    /// Ends the line of the current reply.
    fn end(&self) -> std::io::Result<()> {
        let said = self
            .reply_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match said {
            None => Ok(()),
            Some(ReplyLine { column: 0, .. }) => line(""),
            Some(_) => line("\n"),
        }
    }

    fn show(&self, event: &AgentEvent) -> std::io::Result<()> {
        match event {
            AgentEvent::Model(event) => self.show_model(event),
            AgentEvent::CallFinished { finished, .. } => {
                let card = card(&finished.card, finished.is_error, &self.cwd, self.style);
                self.draw(&shortened(&card, self.style))
            }
            // A subagent's text arrives later, as the result of the call that started it.
            AgentEvent::Subagent { event, .. } => match &**event {
                AgentEvent::CallFinished { finished, .. } => {
                    let card = card(&finished.card, finished.is_error, &self.cwd, self.style);
                    let heading = card.lines().next().unwrap_or_default();
                    self.draw(&format!("  {heading}"))
                }
                _ => Ok(()),
            },
            // On stderr, warnings are printed elsewhere.
            AgentEvent::Notice { level, text }
                if *level >= NoticeLevel::Warning && self.target == WatchTarget::Stdout =>
            {
                self.draw(&self.style.dim(&self.style.wrap(&clean(text))))
            }
            _ => Ok(()),
        }
    }
}

impl RunWatcher {
    fn show_model(&self, event: &ModelEvent) -> std::io::Result<()> {
        let waiting = match event {
            ModelEvent::Text { text, .. } if self.target == WatchTarget::Stdout => {
                return self.print_text(text);
            }
            ModelEvent::BlockStop { .. } if self.target == WatchTarget::Stdout => {
                return self.end();
            }
            ModelEvent::Retry {
                attempt,
                max_retries,
                delay,
                error,
            } => {
                let seconds = delay.as_secs_f64().ceil();
                format!("! {error}; try {attempt} of {max_retries} in {seconds} s")
            }
            ModelEvent::Fallback { from, to, error } => {
                format!("! {error}; {to} replaces {from}")
            }
            _ => return Ok(()),
        };
        self.draw(&self.style.dim(&self.style.wrap(&clean(&waiting))))
    }

    fn draw(&self, text: &str) -> std::io::Result<()> {
        match self.target {
            WatchTarget::Stdout => drawn(text),
            WatchTarget::Stderr => {
                warn_drawn(text.trim_end());
                Ok(())
            }
        }
    }
}

impl AgentEventSink for RunWatcher {
    fn on_event(&self, event: &AgentEvent) {
        // If the reader has exited, the next write elsewhere reports the error.
        let _ = self.show(event);
    }
}

/// Returns the first lines of a card and the number of omitted ones.
fn shortened(drawn: &str, style: ConsoleStyle) -> String {
    let lines: Vec<&str> = drawn.lines().collect();
    match lines.len().checked_sub(MAX_CARD) {
        None | Some(0 | 1) => drawn.to_owned(),
        Some(more) => format!(
            "{}\n{}\n",
            lines[..MAX_CARD].join("\n"),
            style.dim(&format!("  … {more} more lines"))
        ),
    }
}
