//! The live region. From the top: the open block of the reply, running calls, tasks, question,
//! working row, queue, editor, completions or history search, and the hint or the status row.

use std::time::Instant;

use haft_terminal::{Caret, LiveRegion, TextLine};

use super::{
    app::{App, AppOverlay},
    ask::AskFrame,
    number_format,
    running_calls::CallFrame,
};

impl App {
    /// Returns the rows of the full-screen view, if one is open.
    pub(crate) fn overlay_rows(&mut self) -> Option<Vec<TextLine>> {
        let mut rows = match self.overlay.as_mut()? {
            AppOverlay::FullQuestion(view) => view.rows(&self.look),
            AppOverlay::Other(view) => view.rows(&self.look),
        };
        let is_own = matches!(self.overlay, Some(AppOverlay::FullQuestion(_)));
        if let Some(front) = self.questions.front().filter(|_| !is_own)
            && let Some(first) = rows.first_mut()
        {
            let text = format!("? {} waits for your answer (q)", front.title());
            *first = TextLine::styled(&text, self.look.theme.warning.reverse());
        }
        Some(rows)
    }

    pub(crate) fn region(&mut self, now: Instant) -> LiveRegion {
        self.stamp += 1;
        let is_asking = !self.questions.is_empty() || self.popup.is_open() || self.search.is_some();
        let room = self.look.size.region_rows(is_asking);
        let third = (usize::from(self.look.size.rows) / 3).max(1);
        let draft = self.editor.view(third, self.look.theme.accent);
        let step = self.step(now);
        let working = self.working_row(now, step);
        let queue = self.queue.rows(&self.look);
        let status = self.last_rows();
        let popup = match self.search.is_some() {
            true => self.search_rows(),
            false => self.popup.rows(&self.look),
        };
        let below = usize::from(working.is_some())
            + queue.len()
            + draft.rows.len()
            + popup.len()
            + status.len();
        let mut left = room.saturating_sub(below);
        let frame = AskFrame {
            look: &self.look,
            room: left,
            now,
        };
        let question = self.questions.rows(&frame, self.stamp);
        self.calls.hold(|call| self.questions.holds(call), now);
        left = left.saturating_sub(question.rows.len());
        let frame = CallFrame {
            look: &self.look,
            cwd: self.cwd(),
            now,
            step,
        };
        let mut todos = self.todos.rows(&self.look);
        todos.truncate(left);
        left -= todos.len();
        // The open block of the reply keeps at least one row.
        let reserved = usize::from(!self.reply.is_empty()).min(left);
        let calls = self.calls.rows(&frame, left - reserved);
        left = left.saturating_sub(calls.len());
        let mut rows = self.reply.rows(&self.look, left);
        rows.extend(calls);
        rows.extend(todos);
        let asked_from = rows.len();
        rows.extend(question.rows);
        rows.extend(working);
        rows.extend(queue);
        let editor_from = rows.len();
        for (number, row) in draft.rows.iter().enumerate() {
            let mut line = match number {
                0 => TextLine::styled(&format!("{} ", self.look.angle()), self.look.theme.accent),
                _ => TextLine::plain("  "),
            };
            line.append(row);
            rows.push(line);
        }
        let caret = match question.caret {
            Some(caret) => Some(Caret {
                row: asked_from + caret.row,
                ..caret
            }),
            // Keys select an option, so no caret is shown. If the window becomes lower than the
            // question, no copy of it remains in the scrollback.
            None if self.questions.has_focus() => None,
            None => {
                let mark = match draft.caret.row {
                    0 => self.look.angle().len() + 1,
                    _ => 2,
                };
                Some(Caret {
                    row: editor_from + draft.caret.row,
                    offset: draft.caret.offset + mark,
                })
            }
        };
        rows.extend(popup);
        rows.extend(status);
        LiveRegion {
            rows,
            caret,
            stamp: self.stamp,
        }
    }

    /// Returns the number of quarter seconds since the run began.
    fn step(&self, now: Instant) -> usize {
        let since = self.run.as_ref().map_or(now, |run| run.since);
        let elapsed = now.saturating_duration_since(since).as_millis();
        usize::try_from(elapsed / 250).unwrap_or_default()
    }

    fn working_row(&self, now: Instant, step: usize) -> Option<TextLine> {
        let run = self.run.as_ref()?;
        let look = &self.look;
        let mut line = TextLine::styled(look.spinner(step), look.theme.accent);
        let elapsed = number_format::seconds(now.saturating_duration_since(run.since), look);
        let what = match (run.is_stopping, run.compacting) {
            (true, _) => "Stopping",
            (false, true) => "Summarizing",
            (false, false) => "Working",
        };
        let text = if look.is_narrow() {
            format!(" {elapsed} Esc to stop")
        } else if run.tokens > 0 {
            let tokens = number_format::thousands(run.tokens);
            format!(" {what} {elapsed}, {tokens} tokens, Esc to stop")
        } else {
            format!(" {what} {elapsed}, Esc to stop")
        };
        line.push(&text, look.theme.faint);
        Some(line)
    }

    /// Returns the rows below the editor.
    fn last_rows(&self) -> Vec<TextLine> {
        match &self.hint {
            Some(hint) => {
                let text = format!(" {}", hint.text);
                vec![TextLine::styled(&text, self.look.theme.warning)]
            }
            None if self.editor.text().starts_with('#') && !self.memory.is_empty() => {
                let place = &self.memory[self.memory_place % self.memory.len()];
                let text = format!(
                    " saves a note for {} in {} (Tab: where)",
                    place.scope.name(),
                    place.path.display()
                );
                vec![TextLine::styled(&text, self.look.theme.accent)]
            }
            None if !self.status_rows.is_empty() => self.status_rows.clone(),
            None => vec![self.status.row(&self.look, self.editor.vi_mode())],
        }
    }
}
