//! An agent at work, for someone who watches.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use haft_agent::{AgentEvent, NoticeLevel, Sink};
use haft_models::ModelEvent;

use super::{Style, card, clean, drawn, line, part};

/// A card has no more lines than this.
const LONGEST_CARD: usize = 10;

/// Shows what the model says as it says it, and each call when it is answered.
pub(crate) struct Watch {
    style: Style,
    cwd: PathBuf,
    said: Mutex<Option<ReplyLine>>,
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
    pub(crate) fn new(style: Style, cwd: &Path) -> Self {
        Self {
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
            AgentEvent::Model(ModelEvent::Text { text, .. }) => self.say(text),
            AgentEvent::Model(ModelEvent::BlockStop { .. }) => self.end(),
            AgentEvent::Answered { finished, .. } => {
                let card = card(&finished.card, finished.is_error, &self.cwd, self.style);
                drawn(&shortened(&card, self.style))
            }
            // What a subagent says comes back as the result of the call that sent it out.
            AgentEvent::Subagent { event, .. } => match &**event {
                AgentEvent::Answered { finished, .. } => {
                    let card = card(&finished.card, finished.is_error, &self.cwd, self.style);
                    let heading = card.lines().next().unwrap_or_default();
                    drawn(&format!("  {heading}"))
                }
                _ => Ok(()),
            },
            AgentEvent::Notice { level, text } if *level >= NoticeLevel::Warning => {
                drawn(&self.style.dim(&self.style.wrap(&clean(text))))
            }
            _ => Ok(()),
        }
    }
}

impl Sink for Watch {
    fn on_event(&self, event: &AgentEvent) {
        // Where no one reads any more, the one who writes next to them hears of it.
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
