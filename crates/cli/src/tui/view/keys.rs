//! The list of key bindings.

use haft_terminal::{TextLine, wrap::wrap};

use super::TextView;
use crate::tui::ui_style::UiStyle;

const KEYS: [(&str, &[(&str, &str)]); 5] = [
    (
        "Writing",
        &[
            (
                "Enter",
                "send; while the model works: delivered after the current step",
            ),
            ("Shift-Enter, Alt-Enter, Ctrl-J, \\ Enter", "new line"),
            (
                "Tab",
                "accept the completion; go to a question; while the model works: send after the run",
            ),
            (
                "Up, Down",
                "move the cursor; edit queued messages; earlier messages",
            ),
            (
                "Ctrl-R, Ctrl-S",
                "search earlier messages; stash or restore the draft",
            ),
            (
                "Ctrl-G, Ctrl-X Ctrl-E",
                "edit the draft in $VISUAL or $EDITOR",
            ),
            ("Ctrl-V, a pasted path", "attach an image"),
            (
                "@  /  !  #",
                "a file; a command; a shell command; a note for memory",
            ),
        ],
    ),
    (
        "Session",
        &[
            ("Esc", "close; leave a question; interrupt the run"),
            ("Esc Esc", "clear the draft; without a draft: /rewind"),
            ("Ctrl-C", "interrupt the run; clear the draft; twice: exit"),
            ("Ctrl-D", "delete forward; without a draft: exit"),
            ("Ctrl-Z", "suspend; `fg` resumes"),
            ("Shift-Tab", "next mode: default, acceptEdits, plan"),
            ("Ctrl-B", "move the running call to the background"),
        ],
    ),
    (
        "View",
        &[
            ("Ctrl-O", "the whole transcript"),
            ("Ctrl-T", "show or hide tasks"),
            ("Ctrl-L", "clear the screen"),
            ("Ctrl-X Ctrl-Y", "copy the last reply"),
            ("Alt-P, Alt-T", "choose the model; toggle thinking"),
        ],
    ),
    (
        "At a question",
        &[
            ("y  a  n", "yes, once; yes, always (saves a rule); no"),
            (
                "r  e  v",
                "no, with a reason; edit the call; show it in full",
            ),
            ("s", "yes, all edits of this session"),
        ],
    ),
    (
        "Editing",
        &[
            ("Ctrl-A E B F, Alt-B F", "move the cursor"),
            (
                "Ctrl-W K U, Alt-D",
                "delete; Ctrl-Y pastes, Alt-Y an older deletion",
            ),
            ("Alt-U L C", "upper case, lower case, capitalize"),
            ("Ctrl-_, Alt-_", "undo, redo"),
        ],
    ),
];

/// The width of the key column. Longer keys get their own row.
const COLUMN: usize = 26;

/// Returns the view that lists the key bindings.
pub(crate) fn keys_view(look: &UiStyle) -> TextView {
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
    use crate::tui::view::test_screen::{shown, test_style};

    #[test]
    fn the_keys_at_two_widths() {
        let (wide, narrow) = (test_style(80, 44), test_style(40, 12));
        let shown_wide = shown(&mut keys_view(&wide), &wide);
        let shown_narrow = shown(&mut keys_view(&narrow), &narrow);
        insta::assert_snapshot!(format!("{shown_wide}\n=====\n{shown_narrow}"));
    }
}
