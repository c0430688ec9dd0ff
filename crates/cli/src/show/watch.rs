//! An agent at work, for someone who watches.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use haft_agent::{AgentEvent, NoticeLevel, Sink};
use haft_models::ModelEvent;

use super::{Style, card, clean, drawn, line, part, warn_drawn};

/// A card has no more lines than this.
const LONGEST_CARD: usize = 10;

/// Shows what the model says as it says it, and each call when it is answered.
pub(crate) struct Watch {
    target: WatchTarget,
    style: Style,
    cwd: PathBuf,
    said: Mutex<Option<ReplyLine>>,
}

/// Where it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchTarget {
    Stdout,
    Stderr,
}

/// The line in which something is being said.
#[derive(Debug, Default)]
struct ReplyLine {
    column: usize,
    /// Not shown yet.
    blanks: usize,
}

impl Watch {
    /// Paths below `cwd` are shown from there.
    pub(crate) fn on_stdout(style: Style, cwd: &Path) -> Self {
        Self::new(WatchTarget::Stdout, style, cwd)
    }

    /// The same on stderr, without what the model says: that goes elsewhere.
    pub(crate) fn on_stderr(style: Style, cwd: &Path) -> Self {
        Self::new(WatchTarget::Stderr, style, cwd)
    }

    fn new(target: WatchTarget, style: Style, cwd: &Path) -> Self {
        Self {
            target,
            style,
            cwd: cwd.to_path_buf(),
            said: Mutex::default(),
        }
    }

    /// More of what the model says, broken at blanks. A blank waits for the word behind it.
    fn say(&self, text: &str) -> std::io::Result<()> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let ReplyLine { column, blanks } = said.get_or_insert_default();
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

    /// Whatever was being said is over.
    fn end(&self) -> std::io::Result<()> {
        let said = self
            .said
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
            AgentEvent::Answered { finished, .. } => {
                let card = card(&finished.card, finished.is_error, &self.cwd, self.style);
                self.draw(&shortened(&card, self.style))
            }
            // What a subagent says comes back as the result of the call that sent it out.
            AgentEvent::Subagent { event, .. } => match &**event {
                AgentEvent::Answered { finished, .. } => {
                    let card = card(&finished.card, finished.is_error, &self.cwd, self.style);
                    let heading = card.lines().next().unwrap_or_default();
                    self.draw(&format!("  {heading}"))
                }
                _ => Ok(()),
            },
            // On stderr warnings are there already.
            AgentEvent::Notice { level, text }
                if *level >= NoticeLevel::Warning && self.target == WatchTarget::Stdout =>
            {
                self.draw(&self.style.dim(&self.style.wrap(&clean(text))))
            }
            _ => Ok(()),
        }
    }
}

impl Watch {
    fn show_model(&self, event: &ModelEvent) -> std::io::Result<()> {
        let waiting = match event {
            ModelEvent::Text { text, .. } if self.target == WatchTarget::Stdout => {
                return self.say(text);
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
                format!("! {error}; {to} takes over from {from}")
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

impl Sink for Watch {
    fn on_event(&self, event: &AgentEvent) {
        // Where no one reads any more, the next one to write learns of it.
        let _ = self.show(event);
    }
}

/// The beginning of a card, and how much more there is.
fn shortened(drawn: &str, style: Style) -> String {
    let lines: Vec<&str> = drawn.lines().collect();
    match lines.len().checked_sub(LONGEST_CARD) {
        None | Some(0 | 1) => drawn.to_owned(),
        Some(more) => format!(
            "{}\n{}\n",
            lines[..LONGEST_CARD].join("\n"),
            style.dim(&format!("  … {more} more lines"))
        ),
    }
}
