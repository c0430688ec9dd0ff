//! The trials of rules on past questions. A rule is saved only after the user could see its trial.

use haft_terminal::{TextLine, wrap::wrap};

use super::choice::ChoiceAsk;
use crate::tui::ui_style::UiStyle;

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrialOutcome {
    /// The outcome as a sentence.
    pub(crate) sentence: String,
    /// Whether the rules would have allowed a call that the user denied.
    pub(crate) allows_denied: bool,
}

/// The trials for one question.
#[derive(Debug, Default)]
pub(super) struct RuleTrials {
    /// The rules that were tried, and the outcomes that have arrived.
    tried: Vec<(Vec<String>, Option<TrialOutcome>)>,
    /// The rules to be tried.
    wanted: Option<Vec<String>>,
    /// The rules that Enter saves regardless of their trial.
    confirmed: Option<Vec<String>>,
}

impl RuleTrials {
    /// Requests a trial, unless these rules were tried.
    pub(super) fn request(&mut self, rules: &[String]) {
        if rules.is_empty() || self.tried.iter().any(|(tried, _)| tried == rules) {
            return;
        }
        self.tried.push((rules.to_vec(), None));
        self.wanted = Some(rules.to_vec());
    }

    fn outcome(&self, rules: &[String]) -> Option<&TrialOutcome> {
        let (_, outcome) = self.tried.iter().find(|(tried, _)| tried == rules)?;
        outcome.as_ref()
    }

    /// Returns why Enter must not save these rules yet, once.
    pub(super) fn objection(&mut self, rules: &[String]) -> Option<String> {
        self.request(rules);
        if self.confirmed.as_deref() == Some(rules) {
            return None;
        }
        let note = match self.outcome(rules) {
            Some(outcome) if !outcome.allows_denied => return None,
            Some(_) => "it would have allowed a call that you denied; Enter saves it",
            None => "tried on past questions first; Enter again saves it",
        };
        self.confirmed = Some(rules.to_vec());
        Some(note.to_owned())
    }
}

impl ChoiceAsk {
    /// Takes the rules whose trial is wanted.
    pub(super) fn take_wanted_trial(&mut self) -> Option<Vec<String>> {
        self.trials.wanted.take()
    }

    /// Stores the outcome of a trial.
    pub(super) fn trial_ended(&mut self, rules: &[String], outcome: TrialOutcome) {
        let mut tried = self.trials.tried.iter_mut();
        if let Some((_, place)) = tried.find(|(tried, _)| tried == rules) {
            *place = Some(outcome);
        }
    }

    /// Returns the rows with the outcome for these rules.
    pub(super) fn trial_rows(&self, rules: &[String], look: &UiStyle) -> Vec<TextLine> {
        let Some(outcome) = self.trials.outcome(rules) else {
            return Vec::new();
        };
        let style = match outcome.allows_denied {
            true => look.theme.warning,
            false => look.theme.faint,
        };
        let text = format!("  {}", crate::show::distinct_line(&outcome.sentence));
        wrap(&TextLine::styled(&text, style), look.size.row_width())
    }
}
