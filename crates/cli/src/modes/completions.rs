//! `haft completions`: a script for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{args::Cli, exit::Exit, show};

pub(crate) fn run(shell: Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "haft", &mut script);
    show::line(String::from_utf8(script)?.trim_end())?;
    Ok(Exit::Success)
}
