//! History above, a live region below.

use haft_terminal::{Caret, HistoryItem, LiveRegion, TextLine};

use crate::emulator::{Emulator, prose, region, screen, verbatim};

#[test]
fn history_is_printed_above_the_region_in_order() {
    let (mut terminal, mut screen) = (Emulator::new(40, 10), screen(40, 10));
    terminal.shell("$ haft\r\n");
    terminal.draw(&mut screen, &[], &region(&["> a", " status"]));
    for number in 0..20 {
        let draft = format!("> {number}");
        terminal.draw(
            &mut screen,
            &[verbatim(&format!("line {number}"))],
            &region(&[&draft, " status"]),
        );
    }
    let mut expected = vec!["$ haft".to_owned()];
    expected.extend((0..20).map(|number| format!("line {number}")));
    expected.extend(["> 19".to_owned(), " status".to_owned()]);
    assert_eq!(terminal.logical(), expected);
    assert_eq!(terminal.cursor(), Some((4, 8)));
}

#[test]
fn if_nothing_changed_nothing_is_written() {
    let (mut terminal, mut screen) = (Emulator::new(40, 10), screen(40, 10));
    let shown = region(&["> draft", " status"]);
    terminal.draw(&mut screen, &[], &shown);
    let before = terminal.bytes.len();
    for _ in 0..100 {
        terminal.draw(&mut screen, &[], &shown);
    }
    assert_eq!(terminal.bytes.len(), before);
    assert_eq!(terminal.frames, 1);
}

#[test]
fn only_changed_rows_are_rewritten() {
    let (mut terminal, mut screen) = (Emulator::new(40, 10), screen(40, 10));
    terminal.draw(
        &mut screen,
        &[],
        &region(&["working 1s", "> draft", " status"]),
    );
    let before = terminal.bytes.len();
    terminal.draw(
        &mut screen,
        &[],
        &region(&["working 2s", "> draft", " status"]),
    );
    let frame = String::from_utf8(terminal.bytes[before..].to_vec()).unwrap();
    assert!(
        frame.contains("working 2s") && !frame.contains("status") && !frame.contains("draft"),
        "{frame:?}"
    );
    assert_eq!(terminal.rows()[..3], ["working 2s", "> draft", " status"]);
    assert_eq!(terminal.cursor(), Some((7, 1)));
}

#[test]
fn a_region_may_grow_shrink_and_vanish() {
    let (mut terminal, mut screen) = (Emulator::new(40, 5), screen(40, 5));
    terminal.shell("one\r\ntwo\r\nthree\r\n");
    let shapes: [&[&str]; 6] = [
        &["> a", "s"],
        &["x", "y", "> a", "s"],
        &["> a", "s"],
        &["y", "> ab", "s"],
        &[],
        &["> again", "s"],
    ];
    for shape in shapes {
        terminal.draw(&mut screen, &[], &region(shape));
        let mut expected = vec!["one", "two", "three"];
        expected.extend(shape);
        assert_eq!(terminal.logical(), expected);
    }
    terminal.draw(&mut screen, &[verbatim("four")], &region(&["> a"]));
    assert_eq!(terminal.logical(), ["one", "two", "three", "four", "> a"]);
}

#[test]
fn a_paragraph_and_a_line_of_code_are_one_line_each_to_the_terminal() {
    // Vector 2.
    let (mut terminal, mut screen) = (Emulator::new(80, 24), screen(80, 24));
    let words: Vec<String> = (0..60).map(|number| format!("word{number}")).collect();
    let paragraph = words.join(" ");
    assert!(paragraph.len() > 300);
    let code = format!("let x = {};", "y+".repeat(96));
    terminal.draw(
        &mut screen,
        &[prose(&paragraph), verbatim(&code)],
        &region(&["> ", "s"]),
    );
    let logical = terminal.logical();
    let joined: Vec<&str> = logical[0].split_whitespace().collect();
    assert_eq!(joined, words, "words are whole and not glued");
    assert_eq!(logical[1], code, "code is exact");
    assert_eq!(logical.len(), 4, "{logical:?}");
    let width = terminal.rows().iter().map(|row| row.len()).max();
    assert!(width <= Some(80));
}

#[test]
fn list_entries_hang_and_stay_one_line() {
    let (mut terminal, mut screen) = (Emulator::new(30, 24), screen(30, 24));
    let entry = HistoryItem::Prose {
        line: TextLine::plain("- one two three four five six seven eight nine ten"),
        indent: 2,
    };
    terminal.draw(&mut screen, &[entry], &region(&["> "]));
    assert_eq!(
        terminal.rows()[..2],
        ["- one two three four five six", "  seven eight nine ten"]
    );
    assert_eq!(terminal.logical().len(), 2);
}

#[test]
fn typing_while_a_reply_streams_loses_nothing() {
    // Vector 4, without a front end: the draft is in the region and history comes in between.
    let (mut terminal, mut screen) = (Emulator::new(40, 8), screen(40, 8));
    let mut draft = String::from("> ");
    for (number, letter) in "hello".chars().enumerate() {
        draft.push(letter);
        terminal.draw(
            &mut screen,
            &[prose(&format!("reply {number}"))],
            &region(&[&draft, " s"]),
        );
    }
    assert!(terminal.logical().contains(&"> hello".to_owned()));
    let (column, row) = terminal.cursor().unwrap();
    assert_eq!((column, terminal.rows()[row].as_str()), (7, "> hello"));
}

#[test]
fn much_history_is_several_frames_that_are_each_whole() {
    let (mut terminal, mut screen) = (Emulator::new(80, 24), screen(80, 24));
    let lines: Vec<_> = (0..5000)
        .map(|number| verbatim(&format!("{number} {}", "x".repeat(60))))
        .collect();
    let frames = screen.frames(&lines, &region(&["> draft", " s"]));
    assert!(frames.len() >= 5 && frames.iter().all(|frame| frame.len() < 66 * 1024));
    for frame in frames {
        assert!(frame.starts_with(b"\x1b[?2026h") && frame.ends_with(b"\x1b[?2026l"));
        terminal.write(&frame);
        assert_eq!(
            terminal
                .rows()
                .iter()
                .filter(|row| *row == "> draft")
                .count(),
            1
        );
    }
    let logical = terminal.logical();
    assert_eq!(logical.len(), 5002);
    assert!((0..5000).all(|number| logical[number].starts_with(&format!("{number} x"))));
    // A line that is longer than a frame.
    let long = "y".repeat(200_000);
    let frames = screen.frames(&[verbatim(&long)], &region(&["> draft", " s"]));
    assert!(frames.len() >= 3);
    frames.iter().for_each(|frame| terminal.write(frame));
    assert_eq!(terminal.logical()[5000], long);
}

#[test]
fn the_cursor_is_where_the_terminal_draws_the_end() {
    // Vector 25: whatever widths the terminal has.
    for text in [
        "> a❤\u{fe0f}b",
        "> 👩\u{200d}👩\u{200d}👧x",
        "> 漢字",
        "> e\u{301}",
        "> abc",
    ] {
        let (mut terminal, mut screen) = (Emulator::new(40, 8), screen(40, 8));
        let mut drawn = Emulator::new(40, 8);
        drawn.shell(text);
        terminal.draw(&mut screen, &[], &region(&["x", text, "s"]));
        let (column, row) = terminal.cursor().unwrap();
        assert_eq!((column, row), (drawn.cursor().unwrap().0, 1), "{text}");
        // And when it moves back to the beginning.
        let mut back = region(&["x", text, "s"]);
        back.caret = Some(Caret { row: 1, offset: 2 });
        terminal.draw(&mut screen, &[], &back);
        assert_eq!(terminal.cursor(), Some((2, 1)));
    }
}

#[test]
fn without_a_caret_the_cursor_is_hidden() {
    let (mut terminal, mut screen) = (Emulator::new(40, 8), screen(40, 8));
    terminal.draw(&mut screen, &[], &region(&["> "]));
    assert!(terminal.cursor().is_some());
    terminal.draw(&mut screen, &[], &region(&["question"]));
    assert_eq!(terminal.cursor(), None);
    terminal.draw(&mut screen, &[verbatim("x")], &region(&["question"]));
    assert_eq!(terminal.cursor(), None);
    terminal.draw(&mut screen, &[], &region(&["> "]));
    assert!(terminal.cursor().is_some());
}

#[test]
fn a_region_that_is_too_large_shows_its_last_rows() {
    let (mut terminal, mut screen) = (Emulator::new(20, 4), screen(20, 4));
    let rows: Vec<TextLine> = (0..9)
        .map(|n| TextLine::plain(&format!("row {n} {}", "w".repeat(40))))
        .collect();
    let shown = LiveRegion {
        caret: Some(Caret { row: 8, offset: 5 }),
        rows,
        stamp: 0,
    };
    terminal.draw(&mut screen, &[], &shown);
    let rows = terminal.rows();
    assert_eq!(rows[0], "row 5 wwwwwwwwwwwww");
    assert_eq!(rows[3], "row 8 wwwwwwwwwwwww");
    assert_eq!(terminal.cursor(), Some((5, 3)));
    assert_eq!(
        terminal.logical().len(),
        4,
        "nothing went into the scrollback"
    );
}

#[test]
fn what_is_visible_can_scroll_away_and_nothing_is_lost() {
    let (mut terminal, mut screen) = (Emulator::new(40, 6), screen(40, 6));
    terminal.draw(
        &mut screen,
        &[verbatim("one"), verbatim("two")],
        &region(&["> x", " s"]),
    );
    let bytes = screen.scroll_away();
    terminal.write(&bytes);
    terminal.draw(&mut screen, &[], &region(&["> x", " s"]));
    assert_eq!(terminal.rows()[..3], ["> x", " s", ""]);
    let mut logical = terminal.logical();
    logical.retain(|line| !line.is_empty());
    assert_eq!(logical, ["one", "two", "> x", " s"]);
}
