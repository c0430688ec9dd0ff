//! Asking the person at the terminal.

use std::{
    io::{self, BufRead, IsTerminal},
    path::{Path, PathBuf},
};

use haft::{Answer, Approver, BoxFuture, Question};
use tokio::sync::Mutex;

use crate::show::{self, Style};

/// Asks on stderr, hears on stdin, one question at a time.
pub(crate) struct Terminal {
    cwd: PathBuf,
    one_at_a_time: Mutex<()>,
}

impl Terminal {
    /// `None`: there is no terminal on both ends, so nobody can be asked.
    pub(crate) fn of_this_process(cwd: PathBuf) -> Option<Self> {
        let both = io::stdin().is_terminal() && io::stderr().is_terminal();
        both.then(|| Self {
            cwd,
            one_at_a_time: Mutex::new(()),
        })
    }
}

impl Approver for Terminal {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let _turn = self.one_at_a_time.lock().await;
            let cwd = self.cwd.clone();
            tokio::task::spawn_blocking(move || put(&question, &cwd))
                .await
                .unwrap_or(Answer::Nobody)
        })
    }
}

fn put(question: &Question, cwd: &Path) -> Answer {
    let card = show::card(&question.card, false, cwd, Style::of_stderr());
    show::complain(&format!("{card}{}", why(question)));
    let always = !question.rules.is_empty();
    let choices = if always {
        "[y]es, [a]lways, [n]o"
    } else {
        "[y]es, [n]o"
    };
    loop {
        show::prompt(&format!(
            "  Allow it? {choices}, or say what to do instead: "
        ));
        let mut said = String::new();
        match io::stdin().lock().read_line(&mut said) {
            Ok(0) | Err(_) => return Answer::Nobody,
            Ok(_) => {}
        }
        match meant(said.trim(), always) {
            Ok(answer) => return answer,
            Err("") => {}
            Err(hint) => show::complain(&format!("  {hint}")),
        }
    }
}

/// Why the person is asked, and what they could agree to.
fn why(question: &Question) -> String {
    let mut text = format!("  needs your permission: {}", show::clean(&question.reason));
    let rules = show::clean(&question.rules.join(", "));
    match question.rules.len() {
        0 => {}
        1 => text += &format!("\n  [a]lways would add the rule {rules}"),
        _ => text += &format!("\n  [a]lways would add the rules {rules}"),
    }
    text
}

/// What an answer means; or why to ask again.
fn meant(said: &str, always: bool) -> Result<Answer, &'static str> {
    match said.to_lowercase().as_str() {
        "" => Err(""),
        "y" | "yes" => Ok(Answer::Allow),
        "n" | "no" => Ok(Answer::Deny { reason: None }),
        "a" | "always" if always => Ok(Answer::Always),
        "a" | "always" => Err("no rule lets calls like this one through; it is asked each time"),
        _ => Ok(Answer::Deny {
            reason: Some(said.to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use haft::{CallId, Card};

    use super::*;

    fn question(rules: &[&str]) -> Question {
        Question {
            call: CallId::new(),
            tool: "mcp__toy__x".to_owned(),
            card: Card::new("mcp__toy__x", String::new()),
            reason: "it may \u{1b}[31mchange something".to_owned(),
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            asked: None,
            agent: None,
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
        let no = |reason: Option<&str>| Answer::Deny {
            reason: reason.map(str::to_owned),
        };
        for always in [true, false] {
            assert_eq!(meant("y", always), Ok(Answer::Allow));
            assert_eq!(meant("YES", always), Ok(Answer::Allow));
            assert_eq!(meant("n", always), Ok(no(None)));
            assert_eq!(meant("", always), Err(""));
            let instead = meant("Use the README", always);
            assert_eq!(instead, Ok(no(Some("Use the README"))));
        }
        assert_eq!(meant("a", true), Ok(Answer::Always));
        assert_eq!(meant("Always", true), Ok(Answer::Always));
        assert!(meant("a", false).is_err_and(|hint| !hint.is_empty()));
    }
}
