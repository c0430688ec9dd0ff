//! The process that restores the terminal when this one cannot: `kill -9`, no memory.

use std::{
    env,
    fs::File,
    io::{self, Write},
    process::{ChildStdin, Command, Stdio},
};

use haft_terminal::{GuardMessage, guard, input::SavedModes};

/// The first argument of the guard; the second are the modes of the terminal.
const NAME: &str = "__guard";

/// Is this process the guard? Then it does its work and ends.
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
    guard::watch(
        File::from(pipe.try_clone_to_owned()?),
        output,
        terminal,
        &modes,
    )?;
    Ok(())
}

/// The way to the guard. Dropped without a goodbye, the guard restores the terminal.
pub(crate) struct GuardLink(Option<ChildStdin>);

impl GuardLink {
    /// Starts the guard. Without one everything works but `kill -9`.
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

    pub(crate) fn tell(&mut self, message: GuardMessage) {
        if let Some(pipe) = &mut self.0
            && pipe.write_all(&[message.encode()]).is_err()
        {
            self.0 = None;
        }
    }

    /// The terminal is restored: the guard has nothing to do.
    pub(crate) fn goodbye(&mut self) {
        self.tell(GuardMessage::Goodbye);
        self.0 = None;
    }
}
