//! The binary on a terminal.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    process::{Child, Command, Stdio},
};

use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{
        LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
    },
};

/// A terminal that nothing runs on yet. It shows exactly the bytes that are written to it.
pub(crate) struct Screen {
    master: File,
    slave: File,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let noctty = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(noctty)
            .open(std::ffi::OsStr::from_bytes(name.to_bytes()))
            .unwrap();
        let mut modes = tcgetattr(&slave).unwrap();
        modes.output_modes.remove(OutputModes::OPOST);
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&slave, OptionalActions::Now, &modes).unwrap();
        let size = Winsize {
            ws_row: 50,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        Self {
            master: master.into(),
            slave,
        }
    }

    /// As if a person typed it, whether something listens or not.
    pub(crate) fn types(&self, text: &str) {
        (&self.master).write_all(text.as_bytes()).unwrap();
    }

    /// Runs it with stdout and stderr on this terminal; stdin too, unless the command has another.
    pub(crate) fn run(self, command: &mut Command, stdin: Input) -> Running {
        let end = || Stdio::from(self.slave.try_clone().unwrap());
        command.stdout(end()).stderr(end());
        match stdin {
            Input::Terminal => command.stdin(end()),
            Input::Pipe => command.stdin(Stdio::piped()),
        };
        let child = command.spawn().unwrap();
        // The command must not keep our ends open: the end of the program is the end of the screen.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Running {
            master: self.master,
            child,
            seen: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Terminal,
    Pipe,
}

/// The binary on a terminal.
pub(crate) struct Running {
    master: File,
    pub(crate) child: Child,
    seen: Vec<u8>,
}

impl Running {
    pub(crate) fn types(&self, text: &str) {
        (&self.master).write_all(text.as_bytes()).unwrap();
    }

    /// Everything up to this text, which comes after all that was awaited before.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let from = self.seen.len();
        loop {
            let shown = String::from_utf8_lossy(&self.seen[from..]).into_owned();
            if shown.contains(text) {
                return shown;
            }
            assert!(self.read(), "the end came before {text:?}: {shown}");
        }
    }

    /// How much was shown that nobody has read.
    pub(crate) fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.master).unwrap()
    }

    /// `false` at the end.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.master.read(&mut buffer) {
            // What a terminal says when its other end is closed.
            Err(error) if error.raw_os_error() == Some(5) => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => panic!("{error}"),
            Ok(0) => false,
            Ok(count) => {
                self.seen.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }

    /// Everything that was ever shown, and how it ended.
    pub(crate) fn end(mut self) -> (Vec<u8>, i32) {
        while self.read() {}
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (std::mem::take(&mut self.seen), code)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
