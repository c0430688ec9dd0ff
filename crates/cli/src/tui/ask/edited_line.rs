//! The line that the user edits in a question: rules, the reason of a denial, or the call.

use haft::ApprovalAnswer;
use haft_terminal::{Caret, EditOutcome, Editor, Key, KeyCode, TextLine, wrap::wrap};
use serde_json::Value;

use super::{
    AskAnswer, AskOutcome, AskRows,
    answers::{RuleLifetime, allow_with_rules, are_allow_rules, lifetimes, longest, parse_rules},
    choice::{AskSubject, ChoiceAsk},
};
use crate::tui::ui_style::UiStyle;

/// A line that the user is editing.
pub(super) struct LineEdit {
    what: EditedLine,
    pub(super) editor: Editor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditedLine {
    /// The rules of a choice, by its index, and the index of their lifetime.
    Rule {
        offer: usize,
        lifetime: usize,
    },
    Reason,
    /// One argument of the call, or the complete input.
    Change {
        argument: Option<&'static str>,
    },
}

/// The names of arguments that can be edited alone. For other calls, the user edits the complete
/// input.
const MAIN_ARGUMENTS: [&str; 1] = ["command"];

impl ChoiceAsk {
    pub(super) fn begin(&mut self, what: EditedLine) -> AskOutcome {
        let AskSubject::Request(request) = &self.about else {
            return AskOutcome::Stay;
        };
        let mut editor = Editor::new();
        let input = request.asked.as_ref().map(|asked| &asked.input);
        match what {
            EditedLine::Rule { offer, .. } => {
                let rules = request.offers.get(offer);
                let rules = rules
                    .map(|offer| offer.rules.as_slice())
                    .unwrap_or_default();
                match (are_allow_rules(request, offer), request.offers.get(offer)) {
                    (false, Some(offer)) => editor.insert(&offer.to_text()),
                    _ => {
                        editor.insert(&rules.join(", "));
                        self.trials.request(rules);
                    }
                }
            }
            EditedLine::Reason => {}
            EditedLine::Change {
                argument: Some(name),
            } => {
                let value = input.and_then(|input| input[name].as_str());
                editor.insert(value.unwrap_or_default());
            }
            EditedLine::Change { argument: None } => {
                let text =
                    input.map(|input| serde_json::to_string_pretty(input).unwrap_or_default());
                editor.insert(&text.unwrap_or_default());
            }
        }
        self.editing = Some(LineEdit { what, editor });
        AskOutcome::Stay
    }

    pub(super) fn main_argument(&self) -> Option<&'static str> {
        let AskSubject::Request(request) = &self.about else {
            return None;
        };
        let input = &request.asked.as_ref()?.input;
        MAIN_ARGUMENTS
            .into_iter()
            .find(|name| input.get(name).is_some_and(Value::is_string))
    }

    /// Handles a key in the edited line. Backspace never answers the question, even in an empty
    /// line.
    pub(super) fn edit(&mut self, key: Key) -> AskOutcome {
        let Some(line) = &mut self.editing else {
            return AskOutcome::Unused;
        };
        if key == Key::ESCAPE {
            self.editing = None;
            return AskOutcome::Stay;
        }
        if key == Key::plain(KeyCode::Tab)
            && let EditedLine::Rule { offer, lifetime } = &mut line.what
        {
            let AskSubject::Request(request) = &self.about else {
                return AskOutcome::Stay;
            };
            *lifetime = (*lifetime + 1) % lifetimes(request, *offer).len().max(1);
            return AskOutcome::Stay;
        }
        if let (EditedLine::Rule { offer, lifetime }, KeyCode::Up | KeyCode::Down) =
            (line.what, key.code)
            && let AskSubject::Request(request) = &self.about
            && request.offers.len() > 1
        {
            let count = request.offers.len();
            let step = if key.code == KeyCode::Down {
                1
            } else {
                count - 1
            };
            // The same lifetime, if the other choice has it.
            let same = lifetimes(request, offer).get(lifetime).copied();
            let offer = (offer + step) % count;
            let mut others = lifetimes(request, offer).into_iter();
            let lifetime = others.position(|other| Some(other) == same);
            let lifetime = lifetime.unwrap_or_else(|| longest(request, offer));
            return self.begin(EditedLine::Rule { offer, lifetime });
        }
        // The text of another choice describes its effect, and cannot be edited.
        if let EditedLine::Rule { offer, .. } = line.what
            && key.code != KeyCode::Enter
            && !self.is_rule_offer(offer)
        {
            return AskOutcome::Stay;
        }
        let Some(line) = &mut self.editing else {
            return AskOutcome::Unused;
        };
        if line.editor.key(key) != EditOutcome::Submit {
            return AskOutcome::Stay;
        }
        let text = line.editor.text();
        if let (EditedLine::Rule { offer, lifetime }, AskSubject::Request(request)) =
            (line.what, &self.about)
            && are_allow_rules(request, offer)
            && let Some(RuleLifetime::Saved(..)) = lifetimes(request, offer).get(lifetime)
            && let rules = parse_rules(&text)
            && !rules.is_empty()
            && let Some(note) = self.trials.objection(&rules)
        {
            self.note = Some(note);
            return AskOutcome::Stay;
        }
        match self.written(&text) {
            Ok(answer) => AskOutcome::Answer(AskAnswer::Approval(answer)),
            Err(note) => {
                self.note = Some(note);
                AskOutcome::Stay
            }
        }
    }

    /// Parses the entered line into an answer. The error describes the problem in it.
    fn written(&self, text: &str) -> Result<ApprovalAnswer, String> {
        let (Some(line), AskSubject::Request(request)) = (&self.editing, &self.about) else {
            return Err(String::new());
        };
        let text = text.trim();
        match line.what {
            EditedLine::Reason => Ok(ApprovalAnswer::Deny {
                reason: Some(text.to_owned()).filter(|text| !text.is_empty()),
            }),
            EditedLine::Rule { .. } if text.is_empty() => {
                Err("a rule is needed; Esc leaves it".to_owned())
            }
            EditedLine::Rule { offer, lifetime } => {
                let rules = match request.offers.get(offer) {
                    Some(fixed) if !are_allow_rules(request, offer) => fixed.rules.clone(),
                    _ => parse_rules(text),
                };
                Ok(allow_with_rules(request, offer, rules, lifetime))
            }
            EditedLine::Change { argument } => {
                let asked = request.asked.as_ref().map(|asked| asked.input.clone());
                let mut input = asked.unwrap_or_default();
                match argument {
                    Some(name) => input[name] = Value::String(text.to_owned()),
                    None => {
                        input = serde_json::from_str(text)
                            .map_err(|error| format!("invalid JSON: {error}"))?;
                    }
                }
                Ok(ApprovalAnswer::InputEdited { input })
            }
        }
    }

    /// Returns the rows of the edited line.
    pub(super) fn line_rows(&self, look: &UiStyle) -> AskRows {
        let Some(line) = &self.editing else {
            return AskRows::default();
        };
        let (label, behind) = match line.what {
            EditedLine::Rule { offer, lifetime } => {
                let behind = self.offer_text(offer) + &self.lifetime_text(offer, lifetime);
                match self.is_rule_offer(offer) {
                    true => ("rule: ", behind),
                    false => ("from now on: ", behind),
                }
            }
            EditedLine::Reason => ("because: ", String::new()),
            EditedLine::Change { argument } => match argument {
                Some(_) => ("instead: ", String::new()),
                None => ("input: ", String::new()),
            },
        };
        let mut editor = line.editor.clone();
        editor.set_width(look.size.row_width().saturating_sub(label.len() + 2));
        let view = editor.view((usize::from(look.size.rows) / 3).max(1), look.theme.accent);
        let mut rows = Vec::new();
        for (number, row) in view.rows.iter().enumerate() {
            let mut shown = match number {
                0 => TextLine::styled(&format!("  {label}"), look.theme.accent),
                _ => TextLine::plain(&" ".repeat(label.len() + 2)),
            };
            shown.append(row);
            rows.push(shown);
        }
        if !behind.is_empty() {
            let line = TextLine::styled(&format!("  {behind}"), look.theme.faint);
            rows.extend(wrap(&line, look.size.row_width()));
        }
        if let EditedLine::Rule { offer, .. } = line.what
            && self.is_rule_offer(offer)
        {
            rows.extend(self.trial_rows(&parse_rules(&line.editor.text()), look));
        }
        AskRows {
            rows,
            caret: Some(Caret {
                row: view.caret.row,
                offset: view.caret.offset + label.len() + 2,
            }),
        }
    }

    /// Returns whether a choice consists of allow rules, which the user may edit.
    fn is_rule_offer(&self, offer: usize) -> bool {
        let AskSubject::Request(request) = &self.about else {
            return false;
        };
        are_allow_rules(request, offer)
    }

    /// Describes what a choice of rules leaves open, and how to get to the others.
    fn offer_text(&self, offer: usize) -> String {
        let AskSubject::Request(request) = &self.about else {
            return String::new();
        };
        let mut text = String::new();
        let asks_again = request.offers.get(offer).map(|offer| &offer.asks_again);
        if let Some(parts) = asks_again.filter(|parts| !parts.is_empty()) {
            text = format!("asks again for {}, ", parts.join(", "));
        }
        if request.offers.len() > 1 {
            let (at, count) = (offer + 1, request.offers.len());
            text += &format!("choice {at} of {count} (Up, Down), ");
        }
        crate::show::distinct_line(&text)
    }

    /// Describes how long a rule would apply.
    fn lifetime_text(&self, offer: usize, lifetime: usize) -> String {
        let AskSubject::Request(request) = &self.about else {
            return String::new();
        };
        let lifetimes = lifetimes(request, offer);
        let chosen = lifetimes.get(lifetime);
        let text = chosen.map_or_else(String::new, |chosen| chosen.description());
        format!("{text} (Tab: how long)")
    }
}
