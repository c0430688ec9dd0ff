//! The keys there are.

use haft_terminal::{TextLine, TextStyle};

use super::look::Look;

const KEYS: [(&str, &str); 30] = [
    (
        "Enter",
        "send; while something runs: delivered between two rounds",
    ),
    ("Shift-, Alt-Enter, Ctrl-J, \\ Enter", "new line"),
    (
        "Tab",
        "take the completion; to a question; while something runs: send after it",
    ),
    ("Up, Down", "move; queued messages back; earlier messages"),
    ("Esc", "close what is open, leave a question, stop the run"),
    (
        "Esc Esc",
        "clear the draft; empty: go back to an earlier message",
    ),
    ("Ctrl-C", "stop the run; clear the draft; twice: leave"),
    ("Ctrl-D", "delete forward; empty: leave"),
    ("Ctrl-Z", "stop this program; `fg` brings it back"),
    ("Shift-Tab", "mode: default, acceptEdits, plan"),
    ("Ctrl-O", "everything that happened"),
    ("Ctrl-T", "tasks shown or not"),
    (
        "Ctrl-B, Ctrl-X Ctrl-B",
        "the running command goes on in the background",
    ),
    ("Ctrl-G, Ctrl-X Ctrl-E", "the draft in your editor"),
    ("Ctrl-R", "search what was said before"),
    ("Ctrl-S", "put the draft aside, or bring it back"),
    ("Ctrl-V", "a picture from the clipboard"),
    ("Ctrl-X Ctrl-Y", "copy the last answer"),
    ("Alt-P, Alt-T", "model; thinking"),
    ("Ctrl-L", "what is visible scrolls up, redraw"),
    ("", ""),
    ("@file", "a file or folder goes with the message"),
    ("/name", "a command; /help lists them"),
    ("!command", "a command line, run as typed"),
    ("#text", "remember it"),
    ("", ""),
    ("Ctrl-A E B F, Alt-B F", "move"),
    ("Ctrl-H W K U, Alt-D, Alt-Backspace", "delete"),
    ("Ctrl-Y, Alt-Y", "bring back what was deleted"),
    ("Ctrl-_, Alt-_", "undo, redo"),
];

pub(crate) fn lines(look: &Look) -> Vec<TextLine> {
    let widest = KEYS.iter().map(|(keys, _)| keys.len()).max();
    let widest = widest.unwrap_or_default();
    let line = |(keys, meaning): &(&str, &str)| {
        let mut line = TextLine::styled(&format!(" {keys:<widest$}  "), look.theme.accent);
        line.push(meaning, TextStyle::new());
        line
    };
    KEYS.iter().map(line).collect()
}
