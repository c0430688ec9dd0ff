//! Asks the user at the terminal.

use haft::{
    ApprovalAnswer, ApprovalRequest, BoxFuture, GrantEnd, RuleOffer, RuleScope,
    contract::rule_offer::OfferKind,
};
use haft_host::{QuestionHandler, UserQuestions};
use tokio::sync::Mutex;

use crate::{
    line_input::{AnswerSource, LineInput, read_answer},
    show::{self, ConsoleStyle},
    terminal_questions,
};

/// Asks approval questions on stderr, one at a time.
pub(crate) struct TerminalApprover {
    source: AnswerSource,
    one_at_a_time: Mutex<()>,
}

impl TerminalApprover {
    /// Returns an approver for stdin and stderr, or `None` unless both are terminals.
    pub(crate) fn from_stdio() -> Option<Self> {
        Self::with(AnswerSource::from_stdin()?)
    }

    /// Like [`Self::from_stdio`], but reads the answers from `/dev/tty` if stdin is not a
    /// terminal.
    pub(crate) fn from_stdio_or_tty() -> Option<Self> {
        Self::with(AnswerSource::from_stdin_or_tty()?)
    }

    fn with(source: AnswerSource) -> Option<Self> {
        show::stderr_is_terminal().then(|| Self {
            source,
            one_at_a_time: Mutex::new(()),
        })
    }
}

impl TerminalApprover {
    /// Asks a question as soon as no other one is open, and waits for the answer.
    fn ask_exclusively(
        &self,
        put: impl FnOnce(&AnswerSource) -> ApprovalAnswer + Send + 'static,
    ) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let _turn = self.one_at_a_time.lock().await;
            let source = self.source.clone();
            tokio::task::spawn_blocking(move || put(&source))
                .await
                .unwrap_or(ApprovalAnswer::Unavailable)
        })
    }
}

impl QuestionHandler for TerminalApprover {
    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.ask_exclusively(move |source| {
            ask(source, &request, "Allow it?", "say what to do instead")
        })
    }

    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        self.ask_exclusively(move |source| terminal_questions::ask_questions(source, &asked))
    }

    fn plan(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.ask_exclusively(move |source| ask(source, &request, "Go ahead?", "say what to change"))
    }
}

fn ask(
    source: &AnswerSource,
    request: &ApprovalRequest,
    question: &str,
    otherwise: &str,
) -> ApprovalAnswer {
    let card = show::question(request.shown(), ConsoleStyle::of_stderr());
    show::warn_drawn(&format!("{card}{}", why(request)));
    let offers = &request.offers;
    let choices = match offers.len() {
        0 => "[y]es, [n]o",
        1 => "[y]es, [t]ask, [m] 30 minutes, [s]ession, [a]lways, [n]o",
        _ => "[y]es, [t]ask, [m] 30 minutes, [s]ession, [a]lways, [a2] narrower, [n]o",
    };
    let prompt = format!("  {question} {choices}, or {otherwise}: ");
    loop {
        let LineInput::Line(said) = read_answer(source, &prompt, None) else {
            return ApprovalAnswer::Unavailable;
        };
        match parse_answer(said.trim(), offers) {
            Ok(answer) => return answer,
            Err("") => {}
            Err(hint) => show::warn(&format!("  {hint}")),
        }
    }
}

/// Returns the reason for the question and the rules that "always" would add.
fn why(question: &ApprovalRequest) -> String {
    // A question without a call shows its content on the card already.
    let reason = match question.asked {
        Some(_) => &question.reason,
        None => question.reasons.first().unwrap_or(&question.reason),
    };
    let reason = show::distinct_line(reason);
    let mut text = format!("  needs your permission: {reason}");
    for look_alike in &question.look_alikes {
        text += &format!("\n  {}", show::distinct_line(look_alike));
    }
    for (at, offer) in question.offers.iter().enumerate() {
        let name = match at {
            0 => "[a]lways".to_owned(),
            at => format!("[a{}]", at + 1),
        };
        let effect = match (offer.kind(), offer.rules.len()) {
            (OfferKind::AllowRules, 1) => "add the rule",
            (OfferKind::AllowRules, _) => "add the rules",
            _ => "allow",
        };
        let rules = show::distinct_line(&offer.to_text());
        text += &format!("\n  {name} would {effect} {rules}");
    }
    if let Some(offer) = question.rule_offer() {
        let task = GrantEnd::Task.description();
        let rules = match question.offers.first() {
            Some(first) if first == offer => "the same".to_owned(),
            _ => show::distinct_line(&offer.to_text()),
        };
        text += &format!(
            "\n  [t], [m] and [s] allow {rules} {task}, for 30 minutes and for this session"
        );
    }
    text
}

/// Returns the approval that saves the rules of a choice.
pub(crate) fn always_answer(offers: &[RuleOffer], at: usize) -> ApprovalAnswer {
    match offers.get(at) {
        Some(offer) if at > 0 => ApprovalAnswer::Updated {
            input: None,
            patches: Vec::new(),
            keep: offer.rules.clone(),
            scope: None,
        },
        _ => ApprovalAnswer::AllowAlways,
    }
}

/// Returns the approval that adds the rules of a choice to the session.
pub(crate) fn session_answer(offers: &[RuleOffer], at: usize) -> ApprovalAnswer {
    ApprovalAnswer::Updated {
        input: None,
        patches: Vec::new(),
        keep: offers
            .get(at)
            .map_or_else(Vec::new, |offer| offer.rules.clone()),
        scope: Some(RuleScope::Session),
    }
}

/// Parses an answer. The error is the text to show before the question is asked again.
fn parse_answer(said: &str, offers: &[RuleOffer]) -> Result<ApprovalAnswer, &'static str> {
    let lower = said.to_lowercase();
    let number = lower
        .strip_prefix('a')
        .and_then(|rest| rest.parse::<usize>().ok());
    if let Some(number) = number {
        return match number.checked_sub(1) {
            Some(at) if at < offers.len() => Ok(always_answer(offers, at)),
            _ => Err("that choice does not exist"),
        };
    }
    let mut kinds = offers.iter();
    if let Some(first) = kinds.find(|offer| offer.kind() == OfferKind::AllowRules) {
        let rules = first.rules.clone();
        match lower.as_str() {
            "t" | "task" => return Ok(ApprovalAnswer::allow_until(rules, GrantEnd::Task)),
            "m" | "30" => return Ok(ApprovalAnswer::allow_until(rules, GrantEnd::HALF_HOUR)),
            "s" | "session" => return Ok(ApprovalAnswer::allow_in_session(rules)),
            _ => {}
        }
    }
    match lower.as_str() {
        "" => Err(""),
        "y" | "yes" => Ok(ApprovalAnswer::Allow),
        "n" | "no" => Ok(ApprovalAnswer::Deny { reason: None }),
        "a" | "always" if !offers.is_empty() => Ok(always_answer(offers, 0)),
        "a" | "always" => Err("no rule can allow calls like this one; you are asked each time"),
        _ => Ok(ApprovalAnswer::Deny {
            reason: Some(said.to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use haft::{ApprovalKind, CallId, Card};

    use super::*;

    fn offer(rules: &[&str], asks_again: &[&str]) -> RuleOffer {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        RuleOffer {
            rules: owned(rules),
            asks_again: owned(asks_again),
        }
    }

    fn question(offers: &[RuleOffer]) -> ApprovalRequest {
        ApprovalRequest {
            kind: ApprovalKind::Permission,
            call: CallId::new(),
            tool: "mcp__toy__x".to_owned(),
            card: Card::new("mcp__toy__x", String::new()),
            reason: "it may \u{1b}[31mchange something".to_owned(),
            offers: offers.to_vec(),
            asked: None,
            ..ApprovalRequest::default()
        }
    }

    #[test]
    fn the_question_says_which_rules_would_be_kept() {
        let texts = [
            &[][..],
            &[offer(&["mcp__toy__x"], &[])],
            &[
                offer(&["Bash(a *)", "Bash(b *)"], &["c 'd'"]),
                offer(&["Bash(a x)"], &[]),
            ],
        ];
        let texts = texts.map(|offers| why(&question(offers)));
        insta::assert_snapshot!(texts.join("\n\n"));
    }

    #[test]
    fn an_answer_is_a_word_or_what_to_do_instead() {
        let no = |reason: Option<&str>| ApprovalAnswer::Deny {
            reason: reason.map(str::to_owned),
        };
        let two = [
            offer(&["Bash(a *)"], &[]),
            offer(&["Bash(a b)", "Bash(c)"], &[]),
        ];
        for offers in [&two[..], &[]] {
            assert_eq!(parse_answer("y", offers), Ok(ApprovalAnswer::Allow));
            assert_eq!(parse_answer("YES", offers), Ok(ApprovalAnswer::Allow));
            assert_eq!(parse_answer("n", offers), Ok(no(None)));
            assert_eq!(parse_answer("", offers), Err(""));
            let instead = parse_answer("Use the README", offers);
            assert_eq!(instead, Ok(no(Some("Use the README"))));
            let instead = parse_answer("add a2", offers);
            assert_eq!(instead, Ok(no(Some("add a2"))));
        }
        let rules = || two[0].rules.clone();
        let ends = [
            ("t", ApprovalAnswer::allow_until(rules(), GrantEnd::Task)),
            (
                "M",
                ApprovalAnswer::allow_until(rules(), GrantEnd::HALF_HOUR),
            ),
            ("session", ApprovalAnswer::allow_in_session(rules())),
        ];
        for (said, expected) in ends {
            assert_eq!(parse_answer(said, &two), Ok(expected));
            let instead = parse_answer(said, &[]);
            assert_eq!(instead, Ok(no(Some(said))), "no rule to add");
        }
        for always in ["a", "Always", "a1"] {
            assert_eq!(parse_answer(always, &two), Ok(ApprovalAnswer::AllowAlways));
        }
        let second = ApprovalAnswer::Updated {
            input: None,
            patches: Vec::new(),
            keep: vec!["Bash(a b)".to_owned(), "Bash(c)".to_owned()],
            scope: None,
        };
        assert_eq!(parse_answer("A2", &two), Ok(second));
        for (said, offers) in [("a", &[][..]), ("a1", &[]), ("a3", &two), ("a0", &two)] {
            assert!(parse_answer(said, offers).is_err_and(|hint| !hint.is_empty()));
        }
    }
}
