//! `haft completions`: prints a completion script for a shell.

use crate::{args, exit::Exit, show};

pub(crate) fn run(shell: &str) -> anyhow::Result<Exit> {
    show::line(args::completion_script(shell)?.trim_end())?;
    Ok(Exit::Success)
}
