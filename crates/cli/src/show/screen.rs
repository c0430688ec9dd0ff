//! The way out: nothing else in the workspace writes to stdout or stderr, and a test holds it to that.
//!
//! Where stdout is a terminal, what goes there is cleaned, no matter who wrote it. Where it is a pipe or a
//! file, programs read it, and every byte stays as it is. Stderr is for people wherever it goes: it is
//! always cleaned.

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    sync::OnceLock,
};

use haft_terminal::paint::TerminalControl;
use tracing_subscriber::fmt::MakeWriter;

use super::{
    Style,
    clean::{clean, clean_drawing, clean_json},
};

/// What a text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    /// Words, ours and others'.
    Text,
    /// Words with the colours of a `Style` around them. Others' words in it are clean already.
    Drawing,
    Json,
}

impl TextKind {
    fn cleaned(self, text: &str, style: Style) -> String {
        match self {
            Self::Drawing if style.has_colours() => clean_drawing(text),
            Self::Text | Self::Drawing => clean(text),
            Self::Json => clean_json(text),
        }
    }
}

/// Is there a person at the other end of stdout?
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Is there a person at the other end of stderr?
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

impl Style {
    pub(crate) fn of_stdout() -> Self {
        Self::of(&io::stdout())
    }

    pub(crate) fn of_stderr() -> Self {
        Self::of(&io::stderr())
    }
}

/// A line on stdout, at once.
pub(crate) fn line(text: &str) -> io::Result<()> {
    out(&format!("{text}\n"), TextKind::Text)
}

/// A part of a line on stdout, at once.
pub(crate) fn part(text: &str) -> io::Result<()> {
    out(text, TextKind::Text)
}

/// A line on stdout that is drawn with a style; others' words in it are clean already.
pub(crate) fn drawn(text: &str) -> io::Result<()> {
    out(&format!("{text}\n"), TextKind::Drawing)
}

/// A part of such a line.
pub(crate) fn drawn_part(text: &str) -> io::Result<()> {
    out(text, TextKind::Drawing)
}

/// What acts on a terminal and is no text: a mark, the bell. Nothing where stdout is something else.
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

/// JSON on stdout, and a line end. On a terminal too it is JSON that says the same.
pub(crate) fn json(text: &str) -> io::Result<()> {
    out(&format!("{text}\n"), TextKind::Json)
}

/// One of two texts on stdout: with colours for a terminal that has them.
pub(crate) fn print(coloured: &str, plain: &str) -> io::Result<()> {
    let text = match Style::of_stdout().has_colours() {
        true => coloured,
        false => plain,
    };
    drawn(text.trim_end())
}

fn out(text: &str, kind: TextKind) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    // In one piece: a reader that waits for the line is woken once.
    if stdout.is_terminal() {
        stdout.write_all(kind.cleaned(text, Style::of_stdout()).as_bytes())?;
    } else {
        stdout.write_all(text.as_bytes())?;
    }
    stdout.flush()
}

/// A line on stderr. Where even that fails there is no one left to tell.
pub(crate) fn warn(text: &str) {
    err(&format!("{text}\n"), TextKind::Text);
}

/// A line on stderr that is drawn with a style; others' words in it are clean already.
pub(crate) fn warn_drawn(text: &str) {
    err(&format!("{text}\n"), TextKind::Drawing);
}

/// A question on stderr, with the cursor left behind it.
pub(crate) fn prompt(text: &str) {
    err(text, TextKind::Text);
}

fn err(text: &str, kind: TextKind) {
    let cleaned = kind.cleaned(text, Style::of_stderr());
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(cleaned.as_bytes())
        .and_then(|()| stderr.flush());
}

/// Lines on stdout, many of them: they wait until they are flushed.
#[derive(Debug, Default)]
pub(crate) struct ManyLines {
    waiting: String,
}

impl ManyLines {
    /// At most this much waits.
    const MOST: usize = 1 << 16;

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.waiting.push_str(text);
        self.waiting.push('\n');
        match self.waiting.len() > Self::MOST {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        out(&std::mem::take(&mut self.waiting), TextKind::Text)
    }
}

/// Where log lines go: stderr, each in one piece.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLines;

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

/// Where logs go while the terminal is drawn on.
static LOG_FILE: OnceLock<File> = OnceLock::new();

/// From now on logs go to this file.
pub(crate) fn log_to(file: File) {
    let _ = LOG_FILE.set(file);
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(mut file) = LOG_FILE.get() {
            return file.write(bytes);
        }
        err(&String::from_utf8_lossy(bytes), TextKind::Text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
