//! Checks many calls or commands, one per line.

use std::{
    io::{self, BufRead, BufReader},
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
};

use haft_host::CallExplainer;
use haft_shell::{LineLocation, analyze};
use serde::Deserialize;
use tokio::runtime::Builder;

use crate::{exit::Exit, show::ManyLines};

/// The answer to a line: a decision and its reason, or the problem with the line.
type LineAnswer = Result<(&'static str, String), String>;

/// Answers each line of stdin with a line `decision TAB reason` on stdout. Invalid lines get the
/// decision `cautious`; empty lines are skipped.
pub(super) fn run(
    answer: impl Fn(&str) -> LineAnswer,
    cautious: &'static str,
) -> anyhow::Result<Exit> {
    let mut out = ManyLines::default();
    let mut input = BufReader::with_capacity(1 << 16, io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let answered = match str::from_utf8(line) {
            // A panic must not prevent the answers to the remaining lines.
            Ok(text) => panic::catch_unwind(AssertUnwindSafe(|| answer(text)))
                .unwrap_or_else(|_| Err("the line could not be evaluated".to_owned())),
            Err(_) => Err("the line is not UTF-8".to_owned()),
        };
        let (word, reason) = answered.unwrap_or_else(|problem| (cautious, problem));
        let reason = reason.replace(|next: char| next.is_control(), " ");
        out.line(&format!("{word}\t{reason}"))?;
        // A client that sends one line at a time waits for its answer. With more lines buffered,
        // the output is not flushed yet.
        if !input.buffer().contains(&b'\n') {
            out.flush()?;
        }
    }
    out.flush()?;
    Ok(Exit::Success)
}

#[derive(Deserialize)]
struct CommandLine {
    #[serde(alias = "command")]
    cmd: String,
    #[serde(default)]
    cwd: Option<PathBuf>,
}

pub(super) fn classify(line: &str) -> LineAnswer {
    let command: CommandLine = read(line)?;
    let place = LineLocation {
        cwd: command.cwd.unwrap_or_else(|| PathBuf::from("/workspace")),
        home: Some(PathBuf::from("/home/user")),
    };
    let analysis = analyze(&command.cmd, &place);
    Ok((analysis.verdict.name(), analysis.reason))
}

fn read<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| format!("the line is not valid: {error}"))
}

/// Evaluates the call of each line.
pub(super) fn check_all() -> anyhow::Result<Exit> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let judge = runtime.block_on(CallExplainer::standalone())?;
    let judge = judge.with_program(std::env::current_exe().ok());
    let check = |line: &str| {
        let (behavior, reason) = runtime.block_on(judge.evaluate(read(line)?))?;
        Ok((behavior.name(), reason))
    };
    run(check, "deny")
}
