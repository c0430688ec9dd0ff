//! An agent at work, for somebody who watches.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use haft_agent::{AgentEvent, Level, Sink};
use haft_models::Event;

use super::{Style, card, clean, complain, line, part};

/// A card has no more lines than this.
const LONGEST_CARD: usize = 10;

/// Shows what the model says as it says it, and each call when it is answered.
pub(crate) struct Watch {
    style: Style,
    cwd: PathBuf,
    /// Of the text that is being said.
    column: Mutex<Option<usize>>,
}

impl Watch {
    /// Paths below `cwd` are shown from there.
    pub(crate) fn new(style: Style, cwd: &Path) -> Self {
        Self {
            style,
            cwd: cwd.to_path_buf(),
            column: Mutex::default(),
        }
    }

    /// More of what the model says, broken at blanks.
    fn say(&self, text: &str) -> std::io::Result<()> {
        let mut column = self.column.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = column.unwrap_or_default();
        let mut said = String::new();
        for word in clean(text).split_inclusive([' ', '\n']) {
            let width = word.trim_end().chars().count();
            if at > 0 && at + width > self.style.width() {
                said.truncate(said.trim_end_matches(' ').len());
                said.push('\n');
                at = 0;
            }
            said += word;
            at = match word.ends_with('\n') {
                true => 0,
                false => at + word.chars().count(),
            };
        }
        *column = Some(at);
        part(&said)
    }

    /// Whatever was being said is over.
    fn end(&self) -> std::io::Result<()> {
        let mut column = self.column.lock().unwrap_or_else(PoisonError::into_inner);
        match column.take() {
            None => Ok(()),
            Some(0) => line(""),
            Some(_) => line("\n"),
        }
    }

    fn show(&self, event: &AgentEvent) -> std::io::Result<()> {
        match event {
            AgentEvent::Model(Event::Text { text, .. }) => self.say(text),
            AgentEvent::Model(Event::BlockStop { .. }) => self.end(),
            AgentEvent::Answered { finished, .. } => {
                let drawn = card(&finished.card, finished.is_error, &self.cwd, self.style);
                line(&shortened(&drawn, self.style))
            }
            // What a subagent says comes back as the result of the call that sent it out.
            AgentEvent::Subagent { event, .. } => match &**event {
                AgentEvent::Answered { finished, .. } => {
                    let drawn = card(&finished.card, finished.is_error, &self.cwd, self.style);
                    let heading = drawn.lines().next().unwrap_or_default();
                    line(&format!("  {heading}"))
                }
                _ => Ok(()),
            },
            AgentEvent::Notice { level, text } if *level >= Level::Warning => {
                line(&self.style.dim(&self.style.wrap(&clean(text))))
            }
            _ => Ok(()),
        }
    }
}

impl Sink for Watch {
    fn hear(&self, event: &AgentEvent) {
        if let Err(error) = self.show(event) {
            complain(&format!("haft: {error}"));
        }
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
