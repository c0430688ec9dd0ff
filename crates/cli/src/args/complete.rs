//! Shell completion: commands, options of commands and of prompts, tools, conversations and help topics.

use std::ffi::OsStr;

use clap::Command;
use clap_complete::{
    engine::{ArgValueCompleter, CompletionCandidate},
    env::{CompleteEnv, Shells},
};
use haft_host::{Environment, conversations};

use super::{SessionArgs, shared};
use crate::{modes::help, runtime, session};

/// The environment variable with the name of the shell that requests completions.
const VARIABLE: &str = "HAFT_COMPLETE";

/// If a shell requests completions, prints them and exits.
pub(crate) fn answer_if_asked() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Returns the script that enables completions in a shell.
pub(crate) fn script(shell: &str) -> anyhow::Result<String> {
    let shells = Shells::builtins();
    let known: Vec<&str> = shells.names().collect();
    let Some(completer) = shells.completer(shell) else {
        anyhow::bail!(
            "no completion script for {shell:?}; available: {}",
            known.join(", ")
        );
    };
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "haft", "haft", "haft", &mut script)?;
    Ok(String::from_utf8(script)?)
}

/// Returns one parser for commands and prompts, because an incomplete line can become either.
fn command() -> Command {
    let mut command = shared::cli();
    for arg in shared::headless().get_arguments() {
        let known = command
            .get_arguments()
            .any(|one| one.get_id() == arg.get_id());
        if !known && !arg.is_hide_set() && !arg.is_positional() {
            command = command.arg(arg.clone());
        }
    }
    command
        .mut_arg("tools", |arg| arg.add(ArgValueCompleter::new(tools)))
        .mut_arg("resume", |arg| arg.add(ArgValueCompleter::new(sessions)))
        .mut_subcommand("call", |call| {
            call.mut_arg("name", |arg| arg.add(ArgValueCompleter::new(tools)))
        })
        .mut_subcommand("tools", |one| {
            one.mut_arg("name", |arg| arg.add(ArgValueCompleter::new(tools)))
        })
        .mut_subcommand("help", |one| {
            one.mut_arg("words", |arg| arg.add(ArgValueCompleter::new(topics)))
        })
        .mut_subcommand("sessions", |one| {
            one.mut_subcommands(|below| {
                below.mut_args(|arg| match arg.get_id() == "session" {
                    true => arg.add(ArgValueCompleter::new(sessions)),
                    false => arg,
                })
            })
        })
}

fn beginning_with(
    current: &OsStr,
    words: Vec<(String, Option<String>)>,
) -> Vec<CompletionCandidate> {
    let current = current.to_str().unwrap_or_default();
    let fitting = words
        .into_iter()
        .filter(|(word, _)| word.starts_with(current));
    fitting
        .map(|(word, about)| CompletionCandidate::new(word).help(about.map(Into::into)))
        .collect()
}

fn tools(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = runtime::block_on(async {
        let haft = session::tools(&SessionArgs::default(), None).await?;
        let pool = haft.pool();
        let names = pool.iter().map(|tool| (tool.spec().name.to_string(), None));
        Ok(names.collect())
    });
    beginning_with(current, names.unwrap_or_default())
}

/// Returns the topics and commands that `haft help` accepts.
fn topics(current: &OsStr) -> Vec<CompletionCandidate> {
    let cli = shared::cli();
    let mut names: Vec<_> = help::names().map(|name| (name.to_owned(), None)).collect();
    names.extend(
        cli.get_subcommands()
            .map(|one| (one.get_name().to_owned(), None)),
    );
    beginning_with(current, names)
}

/// Returns the ids of the conversations of this directory, newest first, with titles.
fn sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let listed = std::env::current_dir().ok().and_then(|cwd| {
        conversations(&Environment::from_process(), &cwd)
            .list()
            .ok()
    });
    let named = listed.unwrap_or_default().into_iter().map(|one| {
        let about = one.title.or(one.first_prompt);
        (
            one.id.to_string(),
            about.map(|text| crate::show::clean(&text).chars().take(60).collect()),
        )
    });
    beginning_with(current, named.collect())
}
