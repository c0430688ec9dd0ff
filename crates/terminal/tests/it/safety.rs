//! What must never arrive at the main screen.

use haft_terminal::{
    ColorLevel, HistoryItem, LiveRegion, Screen, ScreenSize, TextColor, TextLine, TextStyle, Theme,
    screen::ViewScreen,
};

use crate::emulator::{Emulator, prose, region, screen, verbatim};

/// Vector 3: every control sequence of the bytes.
fn sequences(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let csi = text.split("\x1b[").skip(1);
    csi.map(|rest| {
        let end = rest.find(|c: char| ('@'..='~').contains(&c)).unwrap();
        rest[..=end].to_owned()
    })
    .collect()
}

#[test]
fn the_main_screen_sees_no_erase_scroll_region_mouse_or_query() {
    let (mut terminal, mut screen) = (Emulator::new(60, 12), screen(60, 12));
    for step in 0..40u16 {
        let rows: Vec<String> = (0..step % 6).map(|n| format!("row {n} {step}")).collect();
        let mut rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        rows.push("> draft 漢");
        let history = [
            verbatim("code"),
            prose("a paragraph of several words that wraps around the edge of it"),
        ];
        let history = &history[..usize::from(step % 3)];
        if step % 5 == 0 {
            terminal.resize(&mut screen, 50 + step, 10 + step % 9);
        }
        terminal.draw(&mut screen, history, &region(&rows));
    }
    for sequence in sequences(&terminal.bytes) {
        let last = sequence.chars().last().unwrap();
        let is_fine = match last {
            'A' | 'B' | 'C' | 'm' => true,
            'K' => sequence == "K",
            'h' | 'l' => matches!(&sequence[..sequence.len() - 1], "?2026" | "?25"),
            _ => false,
        };
        assert!(is_fine, "CSI {sequence}");
    }
}

#[test]
fn text_of_others_is_shown_as_text() {
    // Vector 36.
    let (mut terminal, mut screen) = (Emulator::new(60, 12), screen(60, 12));
    let evil = "before\x1b[2J\x1b]52;c;eA==\x07\x1b[?1049h\u{9b}2J\r\nafter";
    let mut link = TextLine::new();
    link.push_link("text", "http://x\x1b\\\x1b[2J", TextStyle::new());
    terminal.draw(
        &mut screen,
        &[verbatim(evil), prose(evil), HistoryItem::Verbatim(link)],
        &region(&["> \x1b[2J"]),
    );
    let logical = terminal.logical();
    assert_eq!(
        logical[0],
        "before␛[2J␛]52;c;eA==␇␛[?1049h<U+009B>2J␍␊after"
    );
    assert!(logical[1].starts_with("before␛[2J"));
    assert_eq!(logical[logical.len() - 1], "> ␛[2J");
    assert!(
        sequences(&terminal.bytes)
            .iter()
            .all(|sequence| !sequence.ends_with('J'))
    );
}

#[test]
fn a_view_leaves_the_main_screen_as_it_was() {
    let (mut terminal, mut screen) = (Emulator::new(40, 6), screen(40, 6));
    terminal.draw(&mut screen, &[verbatim("one")], &region(&["> draft", " s"]));
    let (before, cursor) = (terminal.logical(), terminal.cursor());
    let mut view = ViewScreen::new(ScreenSize::new(40, 6), ColorLevel::Ansi16);
    let rows: Vec<TextLine> = (0..9)
        .map(|n| TextLine::plain(&format!("view {n}")))
        .collect();
    terminal.write(&view.frame(&rows).unwrap());
    assert_eq!(terminal.rows()[..2], ["view 0", "view 1"]);
    assert_eq!(view.frame(&rows), None, "nothing changed");
    terminal.write(&view.frame(&rows[3..]).unwrap());
    assert_eq!(terminal.rows()[0], "view 3");
    terminal.write(&view.leave());
    assert_eq!((terminal.logical(), terminal.cursor()), (before, cursor));
    assert_eq!(
        terminal.terminal().active_screen_kind(),
        avt::ScreenKind::Primary
    );
}

#[test]
fn without_colours_no_colour_is_sent() {
    // Vector 30.
    let theme = Theme::default();
    let mut line = TextLine::styled("error", theme.failure);
    line.push(" code", theme.inline_code.bold());
    line.push(" chosen", TextStyle::new().reverse().bg(TextColor::Ansi(4)));
    let mut screen = Screen::new(ScreenSize::new(40, 8), ColorLevel::None);
    let region = LiveRegion {
        rows: vec![line.clone()],
        ..LiveRegion::default()
    };
    let bytes = screen
        .frames(&[HistoryItem::Verbatim(line)], &region)
        .concat();
    let styles: Vec<String> = sequences(&bytes)
        .into_iter()
        .filter(|sequence| sequence.ends_with('m'))
        .collect();
    assert_eq!(styles, ["0;1m", "0;7m", "0m", "0;1m", "0;7m", "0m"]);
}
