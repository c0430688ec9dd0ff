//! Whole replies, letter by letter, as a person sees them.

use haft_terminal::{
    ColorLevel, LiveRegion, MarkdownCommitter, MarkdownLook, Screen, ScreenSize, TextLine,
};

use crate::emulator::Emulator;

const REPLY: &str = include_str!("reply.md");

fn look(columns: u16, unicode: bool) -> MarkdownLook {
    MarkdownLook {
        columns: usize::from(columns),
        unicode,
        ..MarkdownLook::default()
    }
}

/// Streams a reply; every frame is looked at.
fn stream(
    reply: &str,
    columns: u16,
    rows: u16,
    unicode: bool,
    mut each: impl FnMut(&Emulator),
) -> Emulator {
    let size = ScreenSize::new(columns, rows);
    let mut terminal = Emulator::new(usize::from(columns), usize::from(rows));
    let mut screen = Screen::new(size, ColorLevel::Ansi256);
    screen.set_reflows(true);
    let mut committer = MarkdownCommitter::new(look(columns, unicode));
    let mut show = |committer: &MarkdownCommitter, done: &[_], terminal: &mut Emulator| {
        let mut shown = committer.open_rows(size.row_width(), size.region_rows(false) - 1);
        shown.push(TextLine::plain("> draft"));
        let region = LiveRegion {
            rows: shown,
            ..LiveRegion::default()
        };
        terminal.draw(&mut screen, done, &region);
    };
    let mut letter = [0; 4];
    for next in reply.chars() {
        let done = committer.push(next.encode_utf8(&mut letter));
        show(&committer, &done, &mut terminal);
        each(&terminal);
    }
    let done = committer.finish();
    show(&committer, &done, &mut terminal);
    terminal
}

#[test]
fn a_reply_at_72_columns() {
    let terminal = stream(REPLY, 72, 20, true, |_| {});
    insta::assert_snapshot!(terminal.logical().join("\n"));
}

#[test]
fn a_reply_at_40_columns_in_ascii() {
    let terminal = stream(REPLY, 40, 20, false, |_| {});
    insta::assert_snapshot!(terminal.logical().join("\n"));
}

#[test]
fn streaming_shows_the_draft_once_in_every_frame_and_repeats_nothing() {
    let terminal = stream(REPLY, 50, 12, true, |terminal| {
        let drafts = terminal
            .rows()
            .iter()
            .filter(|row| *row == "> draft")
            .count();
        assert_eq!(drafts, 1);
    });
    let whole = stream(REPLY, 50, 12, true, |_| {});
    assert_eq!(terminal.logical(), whole.logical());
    // The same, committed at once.
    let mut committer = MarkdownCommitter::new(look(50, true));
    let mut done = committer.push(REPLY);
    done.extend(committer.finish());
    let mut at_once = Emulator::new(50, 12);
    let mut screen = Screen::new(ScreenSize::new(50, 12), ColorLevel::Ansi256);
    let region = LiveRegion {
        rows: vec![TextLine::plain("> draft")],
        ..LiveRegion::default()
    };
    at_once.draw(&mut screen, &done, &region);
    assert_eq!(terminal.logical(), at_once.logical());
}
