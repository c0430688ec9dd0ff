//! What a person sees. The only place that writes to the terminal.

mod card;
mod clean;
pub(crate) mod moment;
mod style;
mod table;
mod watch;

use std::io::{self, IsTerminal, Write};

pub(crate) use card::card;
pub(crate) use clean::clean;
pub(crate) use style::Style;
pub(crate) use table::table;
pub(crate) use watch::Watch;

/// A line on stdout, at once.
pub(crate) fn line(text: &str) -> io::Result<()> {
    // In one piece: whoever waits for the line is woken once.
    let mut stdout = io::stdout().lock();
    stdout.write_all(format!("{text}\n").as_bytes())?;
    stdout.flush()
}

/// A part of a line on stdout, at once.
pub(crate) fn part(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// One of two texts on stdout: with colours for a terminal that has them.
pub(crate) fn print(coloured: &str, plain: &str) -> io::Result<()> {
    let text = if Style::of_stdout().has_colours() {
        coloured
    } else {
        plain
    };
    line(text.trim_end())
}

/// A line on stderr. Where even that fails there is nobody left to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A question on stderr, with the cursor left behind it.
pub(crate) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

fn wants_colours(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !dumb && !set("NO_COLOR")
}
