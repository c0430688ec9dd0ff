//! The only module in the workspace that writes to stdout or stderr; a test enforces this.
//!
//! On a terminal, everything on stdout is cleaned, regardless of its source. In a pipe or a file,
//! programs read stdout, so it is written byte for byte. Stderr is for users, so it is always
//! cleaned.

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    sync::OnceLock,
};

use haft_terminal::paint::TerminalControl;
use tracing_subscriber::fmt::MakeWriter;

use super::{
    ConsoleStyle,
    clean::{clean, clean_drawing, clean_json},
};

/// The kind of a text, which decides how it is cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScreenTextKind {
    /// Plain text from any source.
    Text,
    /// Text with the colours of a [`ConsoleStyle`]. Data in it has already been cleaned.
    Drawing,
    Json,
}

impl ScreenTextKind {
    fn cleaned(self, text: &str, style: ConsoleStyle) -> String {
        match self {
            Self::Drawing if style.has_colours() => clean_drawing(text),
            Self::Text | Self::Drawing => clean(text),
            Self::Json => clean_json(text),
        }
    }
}

/// Returns whether stdout is a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns whether stderr is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

impl ConsoleStyle {
    pub(crate) fn of_stdout() -> Self {
        Self::for_stream(&io::stdout())
    }

    pub(crate) fn of_stderr() -> Self {
        Self::for_stream(&io::stderr())
    }
}

/// Writes a line to stdout and flushes it.
pub(crate) fn line(text: &str) -> io::Result<()> {
    out(&format!("{text}\n"), ScreenTextKind::Text)
}

/// Writes a part of a line to stdout and flushes it.
pub(crate) fn part(text: &str) -> io::Result<()> {
    out(text, ScreenTextKind::Text)
}

/// Writes a styled line to stdout. Data in it must have been cleaned.
pub(crate) fn drawn(text: &str) -> io::Result<()> {
    out(&format!("{text}\n"), ScreenTextKind::Drawing)
}

/// Writes a part of a styled line to stdout. Data in it must have been cleaned.
pub(crate) fn drawn_part(text: &str) -> io::Result<()> {
    out(text, ScreenTextKind::Drawing)
}

/// Sends a control sequence (for example a mark or the bell) to the terminal. Does nothing if
/// stdout is not a terminal.
pub(crate) fn control(control: &TerminalControl) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if !stdout.is_terminal() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    control.write(&mut bytes);
    stdout.write_all(&bytes)?;
    stdout.flush()
}

/// Writes JSON and a line end to stdout. On a terminal, unsafe characters are escaped.
pub(crate) fn json(text: &str) -> io::Result<()> {
    out(&format!("{text}\n"), ScreenTextKind::Json)
}

/// Prints one of two texts to stdout: `coloured` if the terminal supports colours.
pub(crate) fn print(coloured: &str, plain: &str) -> io::Result<()> {
    let text = match ConsoleStyle::of_stdout().has_colours() {
        true => coloured,
        false => plain,
    };
    drawn(text.trim_end())
}

fn out(text: &str, kind: ScreenTextKind) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    // Written in one piece, so that a reader that waits for the line is woken only once.
    if stdout.is_terminal() {
        stdout.write_all(kind.cleaned(text, ConsoleStyle::of_stdout()).as_bytes())?;
    } else {
        stdout.write_all(text.as_bytes())?;
    }
    stdout.flush()
}

/// Writes a line to stderr. Errors are ignored, because they cannot be reported anywhere else.
pub(crate) fn warn(text: &str) {
    err(&format!("{text}\n"), ScreenTextKind::Text);
}

/// Writes a styled line to stderr. Data in it must have been cleaned.
pub(crate) fn warn_drawn(text: &str) {
    err(&format!("{text}\n"), ScreenTextKind::Drawing);
}

/// Writes a prompt to stderr and leaves the cursor after it.
pub(crate) fn prompt(text: &str) {
    err(text, ScreenTextKind::Text);
}

fn err(text: &str, kind: ScreenTextKind) {
    let cleaned = kind.cleaned(text, ConsoleStyle::of_stderr());
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(cleaned.as_bytes())
        .and_then(|()| stderr.flush());
}

/// A buffer for many lines on stdout.
#[derive(Debug, Default)]
pub(crate) struct ManyLines {
    waiting: String,
}

impl ManyLines {
    /// The size in bytes above which the buffer is flushed.
    const FLUSH_BYTES: usize = 1 << 16;

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.waiting.push_str(text);
        self.waiting.push('\n');
        match self.waiting.len() > Self::FLUSH_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        out(&std::mem::take(&mut self.waiting), ScreenTextKind::Text)
    }
}

/// The writer of log lines. Writes each in one piece: to the file of [`log_to`] if it was called,
/// otherwise to stderr.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLines;

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

/// The log file that is used while the user interface draws on the terminal.
static LOG_FILE: OnceLock<File> = OnceLock::new();

/// Redirects logs to this file from now on.
pub(crate) fn log_to(file: File) {
    let _ = LOG_FILE.set(file);
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(mut file) = LOG_FILE.get() {
            return file.write(bytes);
        }
        err(&String::from_utf8_lossy(bytes), ScreenTextKind::Text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
