//! What every key does.

use haft_terminal::{TextLine, wrap::wrap};

use super::TextView;
use crate::tui::look::Look;

const KEYS: [(&str, &[(&str, &str)]); 5] = [
    (
        "Writing",
        &[
            ("Enter", "send; while working: read between two rounds"),
            ("Shift-Enter, Alt-Enter, Ctrl-J, \\ Enter", "new line"),
            (
                "Tab",
                "take the completion; to a question; while working: send after the run",
            ),
            (
                "Up, Down",
                "move; queued messages back; what was sent before",
            ),
            (
                "Ctrl-R, Ctrl-S",
                "search what was sent; put the draft aside or bring it back",
            ),
            ("Ctrl-G, Ctrl-X Ctrl-E", "the draft in $VISUAL or $EDITOR"),
            ("Ctrl-V, a pasted path", "a picture goes with the message"),
            (
                "@  /  !  #",
                "a file; a command; a shell line; a note to remember",
            ),
        ],
    ),
    (
        "Going on",
        &[
            ("Esc", "close, leave a question, stop the run"),
            ("Esc Esc", "clear the draft; without one: /rewind"),
            ("Ctrl-C", "stop the run; clear the draft; twice: leave"),
            ("Ctrl-D", "delete forward; without a draft: leave"),
            ("Ctrl-Z", "to the shell; fg comes back"),
            ("Shift-Tab", "default, acceptEdits, plan"),
            ("Ctrl-B", "what runs goes on in the background"),
        ],
    ),
    (
        "Looking",
        &[
            ("Ctrl-O", "everything, with whole outputs"),
            ("Ctrl-T", "tasks, shown or not"),
            ("Ctrl-L", "scroll away and draw again"),
            ("Ctrl-X Ctrl-Y", "copy the last answer"),
            ("Alt-P, Alt-T", "model; thinking"),
        ],
    ),
    (
        "At a question",
        &[
            ("y  a  n", "once; always, by a rule; no"),
            ("r  e  v", "no, because; change it; see it whole"),
            ("s", "all edits of this session"),
        ],
    ),
    (
        "Editing",
        &[
            ("Ctrl-A E B F, Alt-B F", "move"),
            (
                "Ctrl-W K U, Alt-D",
                "remove; Ctrl-Y brings back, Alt-Y an older one",
            ),
            ("Alt-U L C", "large, small, capital"),
            ("Ctrl-_, Alt-_", "undo, redo"),
        ],
    ),
];

/// So wide is the column of keys where there is room. Longer ones have a row of their own.
const COLUMN: usize = 26;

/// The keys, as a text to read.
pub(crate) fn keys_view(look: &Look) -> TextView {
    let mut lines = Vec::new();
    for (part, keys) in KEYS {
        if !lines.is_empty() {
            lines.push(TextLine::new());
        }
        lines.push(TextLine::styled(part, look.theme.heading));
        for (key, does) in keys {
            let is_long = look.is_narrow() || key.len() >= COLUMN;
            let indent = if look.is_narrow() { 4 } else { COLUMN + 2 };
            let width = look.size.row_width().saturating_sub(indent).max(10);
            let mut rows = wrap(&TextLine::plain(does), width).into_iter();
            let mut first = TextLine::styled(&format!("  {key:<COLUMN$}"), look.theme.accent);
            if is_long {
                first = TextLine::styled(&format!("  {key}"), look.theme.accent);
            } else if let Some(row) = rows.next() {
                first.append(&row);
            }
            lines.push(first);
            for row in rows {
                let mut line = TextLine::new();
                line.push_blanks(indent);
                line.append(&row);
                lines.push(line);
            }
        }
    }
    TextView::new("Keys", lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::view::test_screen::{look, shown};

    #[test]
    fn the_keys_at_two_widths() {
        let (wide, narrow) = (look(80, 44), look(40, 12));
        let shown_wide = shown(&mut keys_view(&wide), &wide);
        let shown_narrow = shown(&mut keys_view(&narrow), &narrow);
        insta::assert_snapshot!(format!("{shown_wide}\n=====\n{shown_narrow}"));
    }
}
