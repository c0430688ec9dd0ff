//! Asks the user at the terminal.

use haft::{ApprovalAnswer, ApprovalRequest, BoxFuture};
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
    let always = !request.rules.is_empty();
    let choices = if always {
        "[y]es, [a]lways, [n]o"
    } else {
        "[y]es, [n]o"
    };
    let prompt = format!("  {question} {choices}, or {otherwise}: ");
    loop {
        let LineInput::Line(said) = read_answer(source, &prompt, None) else {
            return ApprovalAnswer::Unavailable;
        };
        match parse_answer(said.trim(), always) {
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
    let rules = show::distinct_line(&question.rules.join(", "));
    match question.rules.len() {
        0 => {}
        1 => text += &format!("\n  [a]lways would add the rule {rules}"),
        _ => text += &format!("\n  [a]lways would add the rules {rules}"),
    }
    text
}

/// Parses an answer. The error is the text to show before the question is asked again.
fn parse_answer(said: &str, always: bool) -> Result<ApprovalAnswer, &'static str> {
    match said.to_lowercase().as_str() {
        "" => Err(""),
        "y" | "yes" => Ok(ApprovalAnswer::Allow),
        "n" | "no" => Ok(ApprovalAnswer::Deny { reason: None }),
        "a" | "always" if always => Ok(ApprovalAnswer::AllowAlways),
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

    fn question(rules: &[&str]) -> ApprovalRequest {
        ApprovalRequest {
            kind: ApprovalKind::Permission,
            call: CallId::new(),
            tool: "mcp__toy__x".to_owned(),
            card: Card::new("mcp__toy__x", String::new()),
            reason: "it may \u{1b}[31mchange something".to_owned(),
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            asked: None,
            ..ApprovalRequest::default()
        }
    }

    #[test]
    fn the_question_says_which_rules_would_be_kept() {
        let texts = [&[][..], &["mcp__toy__x"], &["Bash(a *)", "Bash(b)"]];
        let texts = texts.map(|rules| why(&question(rules)));
        insta::assert_snapshot!(texts.join("\n\n"));
    }

    #[test]
    fn an_answer_is_a_word_or_what_to_do_instead() {
        let no = |reason: Option<&str>| ApprovalAnswer::Deny {
            reason: reason.map(str::to_owned),
        };
        for always in [true, false] {
            assert_eq!(parse_answer("y", always), Ok(ApprovalAnswer::Allow));
            assert_eq!(parse_answer("YES", always), Ok(ApprovalAnswer::Allow));
            assert_eq!(parse_answer("n", always), Ok(no(None)));
            assert_eq!(parse_answer("", always), Err(""));
            let instead = parse_answer("Use the README", always);
            assert_eq!(instead, Ok(no(Some("Use the README"))));
        }
        assert_eq!(parse_answer("a", true), Ok(ApprovalAnswer::AllowAlways));
        assert_eq!(
            parse_answer("Always", true),
            Ok(ApprovalAnswer::AllowAlways)
        );
        assert!(parse_answer("a", false).is_err_and(|hint| !hint.is_empty()));
    }
}
