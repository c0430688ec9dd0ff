//! Questions that the model asks, one after the other. The user picks an answer or enters text.

use std::time::{Duration, Instant};

use haft::{ApprovalAnswer, ApprovalRequest};
use haft_host::{FormQuestion, UserQuestions};
use haft_terminal::{
    Caret, EditOutcome, Editor, Key, KeyCode, TextLine, TextStyle, wrap::wrap_hanging,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{AskAnswer, AskFrame, AskOutcome, AskRows, AskStatus};
use crate::tui::{cards::one_line, ui_style::UiStyle};

/// A set of questions from the model.
pub(crate) struct UserAsk {
    asked: UserQuestions,
    question_index: usize,
    answers: Map<String, Value>,
    /// The selected row: an answer, or the last row for free text.
    chosen: Option<usize>,
    marked: Vec<usize>,
    own_answer: Option<Editor>,
    deadline: Option<Instant>,
}

impl UserAsk {
    /// Creates the question. `timeout` is the timeout and the time at which it starts.
    pub(super) fn new(request: ApprovalRequest, timeout: Option<(Duration, Instant)>) -> Self {
        let input = request.asked.as_ref().map(|asked| &asked.input);
        let questions =
            input.and_then(|input| Vec::<FormQuestion>::deserialize(&input["questions"]).ok());
        Self {
            asked: UserQuestions {
                questions: questions.unwrap_or_default(),
                timeout: timeout.map(|(timeout, _)| timeout),
                request,
            },
            question_index: 0,
            answers: Map::new(),
            chosen: None,
            marked: Vec::new(),
            own_answer: None,
            deadline: timeout.map(|(timeout, since)| since + timeout),
        }
    }

    pub(super) fn is_editing(&self) -> bool {
        self.own_answer.is_some()
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(editor) = &mut self.own_answer {
            editor.insert(text);
        }
    }

    /// Returns the time at which the displayed countdown changes.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let left = self.deadline?.saturating_duration_since(now);
        Some(
            now + Duration::from_nanos(u64::from(left.subsec_nanos()))
                .max(Duration::from_millis(1)),
        )
    }

    /// Returns the default answer if the timeout has passed.
    pub(super) fn expired(&self, now: Instant) -> Option<ApprovalAnswer> {
        self.deadline
            .is_some_and(|until| until <= now)
            .then(|| self.asked.unanswered())
    }

    fn question(&self) -> Option<&FormQuestion> {
        self.asked.questions.get(self.question_index)
    }

    pub(super) fn key(&mut self, key: Key) -> AskOutcome {
        if let Some(editor) = &mut self.own_answer {
            if key == Key::ESCAPE {
                self.own_answer = None;
            } else if editor.key(key) == EditOutcome::Submit {
                let text = editor.text().trim().to_owned();
                if !text.is_empty() {
                    return self.answer(Some(text));
                }
            }
            return AskOutcome::Stay;
        }
        let Some(question) = self.question() else {
            // The input contains no valid question, so the model continues without an answer.
            return AskOutcome::Answer(AskAnswer::Approval(self.asked.answered(Map::new())));
        };
        let (other, several) = (question.options.len(), question.multi_select);
        match key.code {
            KeyCode::Up => {
                self.chosen = Some(self.chosen.map_or(other, |at| at.saturating_sub(1)));
                return AskOutcome::Stay;
            }
            KeyCode::Down => {
                self.chosen = Some(self.chosen.map_or(0, |at| (at + 1).min(other)));
                return AskOutcome::Stay;
            }
            KeyCode::Enter => {
                return match self.chosen {
                    _ if !self.marked.is_empty() => self.marked_answer(),
                    Some(at) => self.take(at),
                    None => AskOutcome::Stay,
                };
            }
            _ => {}
        }
        match key.typed() {
            Some('-') => self.answer(None),
            Some(' ') if several => {
                if let Some(at) = self.chosen.filter(|at| *at < other) {
                    self.mark(at);
                }
                AskOutcome::Stay
            }
            Some(letter) => match letter.to_digit(10).map(|digit| digit as usize) {
                Some(number @ 1..) if number <= other + 1 => match several && number <= other {
                    true => {
                        self.chosen = Some(number - 1);
                        self.mark(number - 1);
                        AskOutcome::Stay
                    }
                    false => self.take(number - 1),
                },
                _ => AskOutcome::Unused,
            },
            None => AskOutcome::Unused,
        }
    }

    fn mark(&mut self, at: usize) {
        match self.marked.iter().position(|marked| *marked == at) {
            Some(place) => drop(self.marked.remove(place)),
            None => self.marked.push(at),
        }
    }

    fn take(&mut self, at: usize) -> AskOutcome {
        let label = self
            .question()
            .and_then(|question| question.options.get(at))
            .map(|option| option.label.clone());
        match label {
            Some(label) => self.answer(Some(label)),
            None => {
                self.own_answer = Some(Editor::new());
                AskOutcome::Stay
            }
        }
    }

    /// Answers with the marked options in display order.
    fn marked_answer(&mut self) -> AskOutcome {
        self.marked.sort_unstable();
        let options = self.question().map(|question| &question.options);
        let labels = self
            .marked
            .iter()
            .filter_map(|at| Some(options?.get(*at)?.label.as_str()));
        let text = labels.collect::<Vec<_>>().join(", ");
        self.answer(Some(text))
    }

    /// Moves to the next question, or ends with all answers.
    fn answer(&mut self, text: Option<String>) -> AskOutcome {
        if let (Some(text), Some(question)) = (text, self.question()) {
            let name = question.question.clone();
            self.answers.insert(name, json!(text));
        }
        self.question_index += 1;
        self.chosen = None;
        self.marked.clear();
        self.own_answer = None;
        match self.question() {
            Some(_) => AskOutcome::Stay,
            None => {
                let answers = std::mem::take(&mut self.answers);
                AskOutcome::Answer(AskAnswer::Approval(self.asked.answered(answers)))
            }
        }
    }

    pub(super) fn rows(&mut self, frame: &AskFrame<'_>, place: &AskStatus) -> AskRows {
        let look = frame.look;
        let width = look.size.row_width();
        let Some(question) = self.question() else {
            return AskRows::default();
        };
        let mut line = TextLine::styled("? ", look.theme.warning.bold());
        if !question.header.is_empty() {
            line.push(&one_line(&question.header), look.theme.faint);
            line.push("  ", TextStyle::new());
        }
        line.push(&one_line(&question.question), TextStyle::new().bold());
        if self.asked.questions.len() > 1 {
            let text = format!(
                "   {} of {}",
                self.question_index + 1,
                self.asked.questions.len()
            );
            line.push(&text, look.theme.faint);
        }
        if let Some(until) = self.deadline {
            let left = until
                .saturating_duration_since(frame.now)
                .as_secs_f64()
                .ceil();
            line.push(&format!("   {left}s left"), look.theme.faint);
        }
        let mut rows = wrap_hanging(&line, width, 2);
        let is_ready = place.has_focus && place.is_armed;
        let widest = question
            .options
            .iter()
            .map(|option| option.label.chars().count());
        let widest = widest.max().unwrap_or_default().min(24);
        for (at, option) in question.options.iter().enumerate() {
            let mark = match (question.multi_select, self.marked.contains(&at)) {
                (true, true) => "[x] ",
                (true, false) => "[ ] ",
                (false, _) => "",
            };
            let label = format!("{mark}{:<widest$}", one_line(&option.label));
            rows.extend(self.option(at, &label, &option.description, is_ready, look));
            for preview in option.preview.iter().flat_map(|text| text.lines()) {
                rows.push(TextLine::styled(
                    &format!("      {preview}"),
                    look.theme.faint,
                ));
            }
        }
        let hint = match question.multi_select {
            true => "(Space marks several, Enter takes them, - no answer)",
            false => "(- no answer)",
        };
        let hint = if look.is_narrow() { "" } else { hint };
        let other = question.options.len();
        rows.extend(self.option(other, "Other: enter your answer", hint, is_ready, look));
        if !place.has_focus {
            rows.push(TextLine::styled("  Tab to answer", look.theme.accent));
        }
        let mut caret = None;
        if let Some(editor) = &self.own_answer {
            let mut editor = editor.clone();
            editor.set_width(width.saturating_sub(4));
            let view = editor.view(3, look.theme.accent);
            caret = Some(Caret {
                row: rows.len() + view.caret.row,
                offset: view.caret.offset + 4,
            });
            for row in &view.rows {
                let mut line = TextLine::plain("    ");
                line.append(row);
                rows.push(line);
            }
        }
        AskRows { rows, caret }
    }

    fn option(
        &self,
        at: usize,
        label: &str,
        description: &str,
        is_ready: bool,
        look: &UiStyle,
    ) -> Vec<TextLine> {
        let mut style = match is_ready {
            true => TextStyle::new(),
            false => look.theme.faint,
        };
        if self.chosen == Some(at) {
            style = style.reverse();
        }
        let mut line = TextLine::styled(&format!("  {} ", at + 1), look.theme.accent);
        line.push(label, style);
        if !description.is_empty() {
            line.push(&format!("  {}", one_line(description)), look.theme.faint);
        }
        wrap_hanging(&line, look.size.row_width(), 4)
    }
}
