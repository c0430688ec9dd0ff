//! `haft login` and `haft logout`: store and remove the provider's API key of this user.

use std::{
    io::{self, IsTerminal, Read},
    os::fd::AsFd,
};

use haft_host::{Environment, key_report, notify_login, remove_key, store_key};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::{args::SessionArgs, exit::Exit, session, show};

/// The maximum length of a key in bytes.
const MAX_LENGTH: u64 = 10_000;

/// Stores a key.
pub(crate) async fn login(args: SessionArgs) -> anyhow::Result<Exit> {
    let key = key()?;
    let file = store_key(&Environment::from_process(), &key)?;
    let shown = show::clean(&file.display().to_string());
    show::line(&format!(
        "The key is stored in {shown}, which only you can read."
    ))?;
    let config = session::config(&args)?;
    let report = key_report(&config)?;
    if let Some(other) = report.source.filter(|source| source != "haft login") {
        let other = show::clean(&other);
        show::line(&format!(
            "Sessions here use {other} instead while it is set."
        ))?;
    }
    notify_login(&config, "An API key for the model provider is stored").await;
    Ok(Exit::Success)
}

/// Removes the stored key.
pub(crate) fn logout() -> anyhow::Result<Exit> {
    match remove_key(&Environment::from_process())? {
        Some(file) => {
            let shown = show::clean(&file.display().to_string());
            show::line(&format!("The key in {shown} is deleted."))?;
        }
        None => show::line("No key was stored.")?,
    }
    Ok(Exit::Success)
}

/// Reads a key from the terminal without echo, or from stdin if it is not a terminal.
fn key() -> anyhow::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let mut key = String::new();
        stdin.take(MAX_LENGTH).read_to_string(&mut key)?;
        return Ok(key);
    }
    show::prompt("API key of your provider (nothing is shown as you type): ");
    let unseen = EchoOff::begin(&stdin)?;
    let mut key = String::new();
    let read = stdin.read_line(&mut key);
    drop(unseen);
    show::line("")?;
    read?;
    Ok(key)
}

/// Disables the terminal's echo until it is dropped.
struct EchoOff<'a, F: AsFd>(&'a F, Termios);

impl<'a, F: AsFd> EchoOff<'a, F> {
    fn begin(terminal: &'a F) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self(terminal, before))
    }
}

impl<F: AsFd> Drop for EchoOff<'_, F> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.0, OptionalActions::Now, &self.1);
    }
}
