//! Help and manual pages. The options that all commands share have their own page and are hidden on the others.

use clap::{Args, Command, CommandFactory};

use super::{Cli, HeadlessCli, SessionArgs};
use crate::show;

const FOLDED: &str = "\
Shared options (`haft help options`):
  --cwd --add-dir --tools --bare --allowed-tools --disallowed-tools --settings --setting-sources
  --permission-mode --dangerously-skip-permissions --max-concurrency --tool-budget";

/// Returns the parser of commands, with the shared options hidden.
pub(super) fn cli() -> Command {
    let shared = shared();
    let ids: Vec<_> = shared.get_arguments().map(clap::Arg::get_id).collect();
    Cli::command()
        .mut_args(|arg| match ids.contains(&arg.get_id()) {
            true => arg.hide(true),
            false => arg,
        })
        .mut_subcommands(with_note)
}

/// Returns the parser of prompts.
pub(super) fn headless() -> Command {
    HeadlessCli::command().mut_arg("add_dir", |arg| arg.num_args(1..))
}

fn shared() -> Command {
    SessionArgs::augment_args(Command::new("haft"))
}

/// Appends a note about the shared options to the help of each command.
fn with_note(command: Command) -> Command {
    let command = command.mut_subcommands(with_note);
    let note = match command.get_after_help() {
        Some(end) => format!("{end}\n\n{FOLDED}"),
        None => FOLDED.to_owned(),
    };
    command.after_help(note)
}

/// Prints the help of the command that `words` name, or of haft itself if `words` is empty. Returns `false` if there is
/// no command with this name.
pub(crate) fn show_help(words: &[String]) -> anyhow::Result<bool> {
    let mut cli = cli();
    cli.build();
    let mut command = match words {
        [word] if word == "-p" || word == "--print" => headless(),
        _ => {
            let mut found = &cli;
            for word in words {
                let Some(next) = found.find_subcommand(word) else {
                    return Ok(false);
                };
                found = next;
            }
            found.clone()
        }
    };
    let help = command.render_long_help();
    show::print(&help.ansi().to_string(), &help.to_string())?;
    Ok(true)
}

/// Prints the options that all commands share.
pub(crate) fn show_shared_options() -> anyhow::Result<()> {
    let mut shared = shared()
        .about("Options of all commands")
        .override_usage("haft -p [OPTIONS] [PROMPT]\n       haft [OPTIONS] COMMAND")
        .disable_help_flag(true);
    let help = shared.render_long_help();
    show::print(&help.ansi().to_string(), &help.to_string())?;
    Ok(())
}

/// Returns the names and parsers of the manual pages: haft, prompts, and each command.
pub(crate) fn pages() -> Vec<(String, Command)> {
    let mut cli = cli();
    cli.build();
    let mut pages = vec![(
        "haft-prompt".to_owned(),
        headless().display_name("haft-prompt"),
    )];
    collect("haft".to_owned(), &cli, &mut pages);
    pages
}

fn collect(name: String, command: &Command, pages: &mut Vec<(String, Command)>) {
    let shown = |one: &&Command| !one.is_hide_set() && one.get_name() != "help";
    for below in command.get_subcommands().filter(shown) {
        collect(format!("{name}-{}", below.get_name()), below, pages);
    }
    pages.push((name, command.clone()));
}
