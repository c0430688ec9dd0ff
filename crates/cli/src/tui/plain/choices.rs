//! A question as numbered choices, and the meaning of its answers.

use haft::{
    ApprovalAnswer, ApprovalRequest, CardSection, GrantEnd, RuleOffer,
    contract::rule_offer::OfferKind,
};
use haft_host::{FormQuestion, UserQuestions};
use serde_json::{Map, Value};

use crate::{
    show,
    terminal_approver::{always_answer, session_answer},
    terminal_questions::{ParsedReply, parse_reply},
};

/// An open question.
#[derive(Debug)]
pub(super) enum NumberedQuestion {
    /// A permission question about a call, or the approval of a plan.
    Permission {
        request: Box<ApprovalRequest>,
        is_plan: bool,
        /// The user chose to give a reason for the denial; the next line is that reason.
        wants_reason: bool,
        /// The user chose to allow it for a time; the next line is its number.
        wants_end: bool,
    },
    /// Questions of the model, answered one by one.
    Asked {
        asked: Box<UserQuestions>,
        answers: Map<String, Value>,
        at: usize,
        wants_words: bool,
    },
}

/// The outcome of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum AnswerStep {
    /// The question is answered.
    Done(ApprovalAnswer),
    /// The next part of the question must be shown.
    Next,
    /// The input is invalid; contains a hint.
    Again(String),
}

/// The choices for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberedChoice {
    Once,
    /// The choice of rules with this index.
    Always(usize),
    /// Like `Always`, but for this session only.
    Session(usize),
    No,
    NoWithReason,
    /// The first choice of rules, for a time.
    ForNow,
}

/// The ends of a permission for a time; `None` is that of the session.
const FOR_NOW: [Option<GrantEnd>; 3] = [Some(GrantEnd::Task), Some(GrantEnd::HALF_HOUR), None];

fn end_text(end: Option<GrantEnd>) -> String {
    end.map_or_else(|| "for this session".to_owned(), GrantEnd::description)
}

impl NumberedQuestion {
    pub(super) fn permission(request: ApprovalRequest) -> Self {
        Self::Permission {
            request: Box::new(request),
            is_plan: false,
            wants_reason: false,
            wants_end: false,
        }
    }

    pub(super) fn plan(request: ApprovalRequest) -> Self {
        Self::Permission {
            request: Box::new(request),
            is_plan: true,
            wants_reason: false,
            wants_end: false,
        }
    }

    pub(super) fn for_user_questions(asked: UserQuestions) -> Self {
        Self::Asked {
            asked: Box::new(asked),
            answers: Map::new(),
            at: 0,
            wants_words: false,
        }
    }

    /// Returns the lines of the question, without prefixes.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Permission {
                wants_reason: true, ..
            }
            | Self::Asked {
                wants_words: true, ..
            } => Vec::new(),
            Self::Permission {
                wants_end: true, ..
            } => {
                let ends = (1..).zip(FOR_NOW);
                ends.map(|(number, end)| format!("{number} {}", end_text(end)))
                    .collect()
            }
            Self::Permission { request, .. } => self.permission_lines(request),
            Self::Asked { asked, at, .. } => {
                let question = asked.questions.get(*at);
                let count = asked.questions.len();
                question.map_or_else(Vec::new, |question| question_lines(question, *at, count))
            }
        }
    }

    /// Returns the prompt.
    pub(super) fn prompt(&self) -> &'static str {
        match self {
            Self::Permission {
                wants_reason: true, ..
            } => "question: why not, or what to do instead? ",
            Self::Asked {
                wants_words: true, ..
            } => "question: your answer: ",
            Self::Asked { asked, at, .. } => {
                let several = asked.questions.get(*at);
                match several.is_some_and(|question| question.multi_select) {
                    true => "question: numbers and Enter, - for no answer: ",
                    false => "question: number and Enter, - for no answer: ",
                }
            }
            Self::Permission { .. } => "question: number and Enter: ",
        }
    }

    fn choices(&self) -> Vec<NumberedChoice> {
        match self {
            Self::Permission {
                request,
                is_plan: false,
                ..
            } => {
                let mut choices = vec![NumberedChoice::Once];
                for (at, offer) in request.offers.iter().enumerate() {
                    if offer.kind() != OfferKind::AllowRules {
                        choices.push(NumberedChoice::Session(at));
                    }
                    choices.push(NumberedChoice::Always(at));
                }
                // The best choice comes first.
                let offers = request.offers.first().map(RuleOffer::kind);
                if offers == Some(OfferKind::Offline) {
                    choices.rotate_left(1);
                    let once = choices.pop();
                    choices.splice(2..2, once);
                }
                choices.extend([NumberedChoice::No, NumberedChoice::NoWithReason]);
                // Last, so that the other numbers mean the same with and without it.
                choices.extend(request.rule_offer().map(|_| NumberedChoice::ForNow));
                choices
            }
            _ => vec![
                NumberedChoice::Once,
                NumberedChoice::No,
                NumberedChoice::NoWithReason,
            ],
        }
    }

    fn permission_lines(&self, request: &ApprovalRequest) -> Vec<String> {
        let is_plan = matches!(self, Self::Permission { is_plan: true, .. });
        let card = request.shown();
        // The subject of the decision is shown with confusable characters marked.
        let subject = show::distinct_line(&card.subject);
        let mut heading = format!("{} {subject}", show::distinct_line(&card.title));
        if let Some(agent) = &request.agent {
            heading += &format!(", for agent {agent}");
        }
        if !card.summary.is_empty() {
            heading += &format!("  {}", card.summary);
        }
        let mut lines = vec![heading.trim().to_owned()];
        for piece in &card.body {
            match piece {
                CardSection::Diff(hunks) => {
                    let changed = hunks.iter().flat_map(|hunk| &hunk.lines);
                    lines.extend(changed.map(|line| format!("  {line}")));
                }
                CardSection::Text(text) | CardSection::Muted(text) | CardSection::Alarm(text) => {
                    let text = if is_plan {
                        text.clone()
                    } else {
                        show::distinct(text)
                    };
                    lines.extend(text.lines().map(|line| format!("  {line}")));
                }
            }
        }
        for part in &request.parts {
            let text = show::distinct_line(&part.text);
            let meaning = show::distinct_line(&part.meaning);
            lines.push(format!("  part: {text}: {meaning}"));
        }
        for (given, real) in &request.resolved_elsewhere {
            let shown =
                |path: &std::path::PathBuf| show::distinct_line(&path.display().to_string());
            let [given, real] = [shown(given), shown(real)];
            lines.push(format!("{given} really is {real}"));
        }
        lines.extend(
            request
                .look_alikes
                .iter()
                .map(|text| show::distinct_line(text)),
        );
        let because = match request.reasons.as_slice() {
            [] => std::slice::from_ref(&request.reason),
            because => because,
        };
        let because = because.iter().filter(|why| !why.is_empty());
        lines.extend(because.map(|why| format!("why: {}", show::distinct_line(why))));
        lines.extend(request.confinement.iter().cloned());
        for (number, choice) in (1..).zip(self.choices()) {
            let words = match (choice, is_plan) {
                (NumberedChoice::Once, false) => "yes, once".to_owned(),
                (NumberedChoice::Once, true) => "go ahead".to_owned(),
                (NumberedChoice::Always(at), _) => {
                    let rules = request.offers.get(at).map(RuleOffer::to_text);
                    let rules = show::distinct_line(&rules.unwrap_or_default());
                    format!("yes, and always: {rules}")
                }
                (NumberedChoice::Session(at), _) => {
                    let rules = request.offers.get(at).map(RuleOffer::to_text);
                    let rules = show::distinct_line(&rules.unwrap_or_default());
                    format!("yes, and for this session: {rules}")
                }
                (NumberedChoice::No, false) => "no".to_owned(),
                (NumberedChoice::No, true) => "keep planning".to_owned(),
                (NumberedChoice::NoWithReason, false) => "no, and say why".to_owned(),
                (NumberedChoice::NoWithReason, true) => "say what to change".to_owned(),
                (NumberedChoice::ForNow, _) => {
                    let rules = request.rule_offer().map(RuleOffer::to_text);
                    let rules = show::distinct_line(&rules.unwrap_or_default());
                    format!("yes, and for a time: {rules}")
                }
            };
            lines.push(format!("{number} {words}"));
        }
        lines
    }

    /// Handles a line that was typed as the answer.
    pub(super) fn answer(&mut self, line: &str) -> AnswerStep {
        let line = line.trim();
        let choices = self.choices();
        match self {
            Self::Permission {
                request,
                wants_reason,
                wants_end,
                ..
            } => {
                if *wants_end {
                    let number = line.parse::<usize>().ok();
                    let end = number.and_then(|number| FOR_NOW.get(number.checked_sub(1)?));
                    let rules = request.rule_offer();
                    let rules = rules.map_or_else(Vec::new, |offer| offer.rules.clone());
                    return match end {
                        Some(Some(end)) => {
                            AnswerStep::Done(ApprovalAnswer::allow_until(rules, *end))
                        }
                        Some(None) => AnswerStep::Done(ApprovalAnswer::allow_in_session(rules)),
                        None => {
                            AnswerStep::Again(format!("type a number from 1 to {}", FOR_NOW.len()))
                        }
                    };
                }
                if *wants_reason {
                    let reason = Some(line.to_owned()).filter(|line| !line.is_empty());
                    return AnswerStep::Done(ApprovalAnswer::Deny { reason });
                }
                let number = line.parse::<usize>().ok();
                let choice = number.and_then(|number| choices.get(number.checked_sub(1)?));
                match choice {
                    Some(NumberedChoice::Once) => AnswerStep::Done(ApprovalAnswer::Allow),
                    Some(NumberedChoice::Always(at)) => {
                        AnswerStep::Done(always_answer(&request.offers, *at))
                    }
                    Some(NumberedChoice::Session(at)) => {
                        AnswerStep::Done(session_answer(&request.offers, *at))
                    }
                    Some(NumberedChoice::No) => {
                        AnswerStep::Done(ApprovalAnswer::Deny { reason: None })
                    }
                    Some(NumberedChoice::NoWithReason) => {
                        *wants_reason = true;
                        AnswerStep::Next
                    }
                    Some(NumberedChoice::ForNow) => {
                        *wants_end = true;
                        AnswerStep::Next
                    }
                    None => AnswerStep::Again(format!("type a number from 1 to {}", choices.len())),
                }
            }
            Self::Asked {
                asked,
                answers,
                at,
                wants_words,
            } => {
                let Some(question) = asked.questions.get(*at) else {
                    return AnswerStep::Done(asked.answered(std::mem::take(answers)));
                };
                let reply = match *wants_words {
                    true if line.is_empty() => ParsedReply::Nothing,
                    true => ParsedReply::Answer(line.to_owned()),
                    false => parse_reply(line, question),
                };
                match reply {
                    ParsedReply::Again(hint) => return AnswerStep::Again(hint),
                    ParsedReply::Other => {
                        *wants_words = true;
                        return AnswerStep::Next;
                    }
                    ParsedReply::Answer(answer) => {
                        answers.insert(question.question.clone(), answer.into());
                    }
                    ParsedReply::Nothing => {}
                }
                (*at, *wants_words) = (*at + 1, false);
                match *at < asked.questions.len() {
                    true => AnswerStep::Next,
                    false => AnswerStep::Done(asked.answered(std::mem::take(answers))),
                }
            }
        }
    }
}

fn question_lines(question: &FormQuestion, at: usize, count: usize) -> Vec<String> {
    let mut heading = question.question.clone();
    if !question.header.is_empty() {
        heading = format!("{}: {heading}", question.header);
    }
    if count > 1 {
        heading += &format!(" ({} of {count})", at + 1);
    }
    let mut lines = vec![heading];
    for (number, option) in (1..).zip(&question.options) {
        let description = match option.description.is_empty() {
            true => String::new(),
            false => format!(", {}", option.description),
        };
        lines.push(format!("{number} {}{description}", option.label));
        let preview = option.preview.iter().flat_map(|preview| preview.lines());
        lines.extend(preview.map(|line| format!("  {line}")));
    }
    let other = question.options.len() + 1;
    lines.push(format!("{other} other: enter your answer"));
    lines
}
