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
    let reason = show::clean(&question.reason);
    show::complain(&format!("{card}  needs your permission: {reason}"));
    let always = !question.rules.is_empty();
    if always {
        let rules = show::clean(&question.rules.join(", "));
        show::complain(&format!("  [a]lways would add the rule {rules}"));
    }
    let choices = if always {
        "[y]es, [a]lways, [n]o"
    } else {
        "[y]es, [n]o"
    };
    loop {
        show::prompt(&format!(
            "  Allow it? {choices}, or say what to do instead: "
        ));
        let mut answer = String::new();
        match io::stdin().lock().read_line(&mut answer) {
            Ok(0) | Err(_) => return Answer::Nobody,
            Ok(_) => {}
        }
        match answer.trim() {
            "" => {}
            "y" | "Y" | "yes" => return Answer::Allow,
            "a" | "A" | "always" if always => return Answer::Always,
            "n" | "N" | "no" => return Answer::Deny { reason: None },
            said => {
                return Answer::Deny {
                    reason: Some(said.to_owned()),
                };
            }
        }
    }
}
