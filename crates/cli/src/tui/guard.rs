//! A helper process that restores the terminal if this process cannot, for example after `kill -9`
//! or when it runs out of memory.

use std::{
    env,
    fs::File,
    io::{self, Write},
    process::{ChildStdin, Command, Stdio},
};

use haft_terminal::{GuardMessage, input::SavedModes, restore_guard};

/// The first argument of the guard process. The second one contains the terminal modes.
const NAME: &str = "__guard";

/// Runs the guard and exits, if this process was started as the guard.
pub(crate) fn serve_if_asked() {
    let mut args = env::args().skip(1);
    if args.next().as_deref() != Some(NAME) {
        return;
    }
    let code = match args.next().map(|modes| serve(&modes)) {
        Some(Ok(())) => 0,
        _ => 1,
    };
    std::process::exit(code);
}

fn serve(modes: &str) -> io::Result<()> {
    rustix::process::setsid()?;
    let (pipe, terminal) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let modes = SavedModes::decode(modes, terminal)?;
    let output = File::from(terminal.try_clone_to_owned()?);
    restore_guard::watch(
        File::from(pipe.try_clone_to_owned()?),
        output,
        terminal,
        &modes,
    )?;
    Ok(())
}

/// The connection to the guard. If it closes without [`Self::end_guard`], the guard restores the
/// terminal.
pub(crate) struct TerminalGuardLink(Option<ChildStdin>);

impl TerminalGuardLink {
    /// Starts the guard. If that fails, only the recovery from `kill -9` is missing.
    pub(crate) fn start(terminal: &File, modes: &SavedModes) -> Self {
        let start = || -> io::Result<Option<ChildStdin>> {
            let mut child = Command::new(env::current_exe()?)
                .args([NAME, &modes.encode()])
                .stdin(Stdio::piped())
                .stdout(terminal.try_clone()?)
                .stderr(Stdio::null())
                .current_dir("/")
                .env_clear()
                .spawn()?;
            Ok(child.stdin.take())
        };
        Self(start().unwrap_or_default())
    }

    pub(crate) fn send(&mut self, message: GuardMessage) {
        if let Some(pipe) = &mut self.0
            && pipe.write_all(&[message.encode()]).is_err()
        {
            self.0 = None;
        }
    }

    /// Tells the guard that the terminal is restored and that it can exit.
    pub(crate) fn end_guard(&mut self) {
        self.send(GuardMessage::Goodbye);
        self.0 = None;
    }
}
