//! The few sequences used to draw on the main screen. None of them is a query, scrolls a region or
//! erases the display.

use std::io::Write;

pub(crate) const BEGIN_FRAME: &[u8] = b"\x1b[?2026h";
pub(crate) const END_FRAME: &[u8] = b"\x1b[?2026l";
pub(crate) const ERASE_REST_OF_ROW: &[u8] = b"\x1b[K";
pub(crate) const SAVE_CURSOR: &[u8] = b"\x1b7";
pub(crate) const RESTORE_CURSOR: &[u8] = b"\x1b8";
pub(crate) const SHOW_CURSOR: &[u8] = b"\x1b[?25h";
pub(crate) const HIDE_CURSOR: &[u8] = b"\x1b[?25l";
pub(crate) const NEXT_LINE: &[u8] = b"\r\n";

pub(crate) fn up(rows: usize, out: &mut Vec<u8>) {
    step(rows, 'A', out);
}

/// Moves down within the screen: it never scrolls.
pub(crate) fn down(rows: usize, out: &mut Vec<u8>) {
    step(rows, 'B', out);
}

pub(crate) fn right(cells: usize, out: &mut Vec<u8>) {
    step(cells, 'C', out);
}

fn step(count: usize, direction: char, out: &mut Vec<u8>) {
    match count {
        0 => {}
        1 => out.extend_from_slice(format!("\x1b[{direction}").as_bytes()),
        // Writing to a vector cannot fail.
        _ => drop(write!(out, "\x1b[{count}{direction}")),
    }
}

/// Erases `rows` rows, starting at the cursor's row, and returns to it. The cursor is saved and
/// restored rather than moved back up, because a shrinking terminal may have dropped some of the
/// rows.
pub(crate) fn erase_rows(rows: usize, out: &mut Vec<u8>) {
    if rows == 0 {
        return;
    }
    out.extend_from_slice(SAVE_CURSOR);
    for row in 0..rows {
        if row > 0 {
            down(1, out);
        }
        out.extend_from_slice(ERASE_REST_OF_ROW);
    }
    out.extend_from_slice(RESTORE_CURSOR);
}
