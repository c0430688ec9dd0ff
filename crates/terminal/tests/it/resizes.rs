//! Vector 1: whatever size a terminal gets, each line is there once, in order, with one region.

use haft_terminal::{Caret, HistoryItem, LiveRegion, TextLine};
use proptest::prelude::*;

use crate::emulator::{Emulator, prose, region, screen, verbatim};

fn check(terminal: &Emulator, lines: usize) {
    let logical = terminal.logical();
    let numbers: Vec<&str> = logical
        .iter()
        .filter_map(|line| line.strip_prefix("line "))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let expected: Vec<String> = (0..lines).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected, "{logical:#?}");
    for part in ["> the draft", " status"] {
        let count = logical.iter().filter(|line| line.starts_with(part)).count();
        assert_eq!(count, 1, "{part}: {logical:#?}");
    }
}

#[test]
fn each_line_is_there_once_at_every_size() {
    let (mut terminal, mut screen) = (Emulator::new(80, 24), screen(80, 24));
    for number in 0..80 {
        terminal.shell(&format!("line {number} of the shell\r\n"));
    }
    let region = region(&[
        "> the draft, which is longer than forty columns are",
        " status",
    ]);
    terminal.draw(&mut screen, &[], &region);
    check(&terminal, 80);
    for columns in [118, 90, 60, 40] {
        for rows in [12, 40] {
            terminal.resize(&mut screen, columns, rows);
            terminal.draw(&mut screen, &[], &region);
            check(&terminal, 80);
        }
    }
    // A drag.
    for step in 0..48u16 {
        let columns = if step < 24 {
            118 - step * 3
        } else {
            46 + (step - 24) * 3
        };
        terminal.resize(&mut screen, columns, 24 + step % 7);
        terminal.draw(&mut screen, &[], &region);
    }
    check(&terminal, 80);
}

#[test]
fn a_caret_exactly_at_the_new_edge_costs_no_line() {
    for columns in [10, 12, 13, 25, 26, 49, 50, 51, 52] {
        for back in [0, 1, 25] {
            let (mut terminal, mut screen) = (Emulator::new(80, 20), screen(80, 20));
            let draft = format!("> the draft {}", "x".repeat(38));
            let mut shown = region(&[&draft, " status"]);
            shown.caret = Some(Caret {
                row: 0,
                offset: 50 - back,
            });
            let lines: Vec<HistoryItem> = (0..5).map(|n| verbatim(&format!("line {n}"))).collect();
            terminal.draw(&mut screen, &lines, &shown);
            terminal.resize(&mut screen, columns, 20);
            terminal.draw(&mut screen, &[], &region(&["> t", " status"]));
            let mut expected: Vec<String> = (0..5).map(|n| format!("line {n}")).collect();
            expected.extend(["> t".to_owned(), " status".to_owned()]);
            assert_eq!(terminal.logical(), expected, "{columns}, {back}");
        }
    }
}

#[test]
fn several_resizes_between_two_frames_are_one() {
    let (mut terminal, mut screen) = (Emulator::new(100, 20), screen(100, 20));
    let shown = region(&["> the draft", " status"]);
    let lines: Vec<HistoryItem> = (0..30)
        .map(|n| prose(&format!("line {n} with some words behind it")))
        .collect();
    terminal.draw(&mut screen, &lines, &shown);
    for columns in [90, 61, 33, 120] {
        terminal.resize(&mut screen, columns, 20);
    }
    terminal.draw(&mut screen, &[verbatim("line 30")], &shown);
    check(&terminal, 31);
}

#[test]
fn prose_is_reflowed_by_the_terminal() {
    let (mut terminal, mut screen) = (Emulator::new(40, 20), screen(40, 20));
    let text = "line 0 one two three four five six seven eight nine ten eleven twelve";
    let shown = region(&["> the draft", " status"]);
    terminal.draw(&mut screen, &[prose(text)], &shown);
    terminal.resize(&mut screen, 100, 20);
    terminal.draw(&mut screen, &[], &shown);
    let logical = terminal.logical();
    let words: Vec<&str> = logical[0].split_whitespace().collect();
    assert_eq!(words.join(" "), text);
}

#[test]
fn where_rows_are_cut_and_not_reflowed_rows_count_one_each() {
    let mut screen = screen(80, 10);
    screen.set_reflows(false);
    screen.frames(&[], &region(&["a row of twenty five cells", "> x", "s"]));
    screen.resize(haft_terminal::ScreenSize::new(10, 10));
    assert_eq!(screen.extent(), (1, 3));
    screen.set_reflows(true);
    assert_eq!(screen.extent(), (3, 5));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_sequence_of_sizes_and_frames_keeps_every_line(
        steps in prop::collection::vec((20u16..120, 8u16..40, any::<bool>(), 0usize..3), 1..20)
    ) {
        let (mut terminal, mut screen) = (Emulator::new(80, 24), screen(80, 24));
        let shown = [
            region(&["> the draft", " status"]),
            region(&["working", "> the draft", " status"]),
            region(&["> the draft", " status", "popup"]),
        ];
        let mut lines = 0;
        terminal.draw(&mut screen, &[], &shown[0]);
        for (columns, rows, prints, shape) in steps {
            terminal.resize(&mut screen, columns, rows);
            let mut history = Vec::new();
            if prints {
                history.push(verbatim(&format!("line {lines} {}", "x".repeat(lines * 7))));
                history.push(prose(&format!("line {} {}", lines + 1, "word ".repeat(lines))));
                lines += 2;
            }
            terminal.draw(&mut screen, &history, &shown[shape]);
            check(&terminal, lines);
        }
    }

    #[test]
    fn wide_regions_with_the_caret_anywhere_cost_no_line_and_leave_no_copy(
        steps in prop::collection::vec(
            (20u16..120, 30u16..50, prop::collection::vec(0usize..100, 1..5), any::<prop::sample::Index>(), any::<prop::sample::Index>()),
            1..8,
        )
    ) {
        let (mut terminal, mut screen) = (Emulator::new(100, 40), screen(100, 40));
        // At the top of an empty screen terminals move what is above the cursor away and keep the empty rows below it.
        terminal.shell(&"shell\r\n".repeat(60));
        let mut lines = Vec::new();
        for (number, (columns, rows, widths, row, offset)) in steps.into_iter().enumerate() {
            terminal.resize(&mut screen, columns, rows);
            let shown: Vec<TextLine> = widths.iter().map(|width| TextLine::plain(&"r".repeat(*width))).collect();
            let row = row.index(shown.len());
            let caret = Caret { row, offset: offset.index(widths[row] + 1) };
            let region = LiveRegion { rows: shown, caret: Some(caret), stamp: 0 };
            let line = format!("line {number}");
            terminal.draw(&mut screen, &[verbatim(&line)], &region);
            lines.push(line);
            let mut logical = terminal.logical();
            let copies: usize = logical.iter().map(|line| line.matches('r').count()).sum();
            let width = usize::from(columns) - 1;
            let expected: usize = widths.iter().map(|cells| (*cells).min(width)).sum();
            prop_assert_eq!(copies, expected, "{:#?}", logical);
            logical.retain(|line| line.starts_with("line"));
            prop_assert_eq!(&logical, &lines);
        }
    }
}
