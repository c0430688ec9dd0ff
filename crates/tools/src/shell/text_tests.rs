use proptest::prelude::*;

use super::*;

fn shown(bytes: &[u8]) -> ShownOutput {
    let mut text = TerminalText::default();
    text.push(bytes);
    text.finish()
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    match shown(bytes.as_ref()) {
        ShownOutput::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_is_what_a_terminal_would_show() {
    let cases: &[(&str, &str)] = &[
        ("plain\n", "plain"),
        ("a\tb\n c \n", "a\tb\n c "),
        ("one\r\ntwo\r\n", "one\ntwo"),
        ("one\r\r\ntwo", "one\ntwo"),
        ("10%\r20%\r100%\n", "100%"),
        ("downloading 10%\rdone\n", "done"),
        ("10%\r", "10%"),
        ("10%\r   \rdone\n", "done"),
        ("\x1b[2K\x1b[1Gone\x1b[2K\x1b[1Gtwo\n", "two"),
        ("one\r\x1b[Ktwo\n", "two"),
        ("long\x1b[2D\x1b[Kst\n", "lost"),
        ("N\x08NA\x08AM\x08M\n", "NAM"),
        ("|\x08/\x08-\x08done\n", "done"),
        ("ab\x08\x08\x08\x08c\n", "cb"),
        ("é\x08è\n", "è"),
        ("\x1b[1;31merror\x1b[0m: x\x1b[m\n", "error: x"),
        ("\x1b[38:2:1:2:3mx\x1b[?25l\x1b(B\x1b=y\n", "xy"),
        (
            "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n",
            "alink",
        ),
        ("\x1bPq#0;2;0;0\n#1~~@@\n\x1b\\after\n", "after"),
        ("\x1b_secret\x1b\\a\x1b^b\x1b\\c\x1bXd\x1b\\e\n", "ace"),
        ("a\u{9b}2Jb\x7f\x07c\n", "a2Jbc"),
        ("page\x0cnext\n", "page\nnext"),
        ("漢字 🦀 é\n", "漢字 🦀 é"),
        ("a\n\n \n\t\n", "a"),
        ("\n \n", ""),
        ("", ""),
        ("\n\nfirst", "\n\nfirst"),
        ("one\0two\0", "one\ntwo"),
    ];
    for (given, expected) in cases {
        assert_eq!(text(given), *expected, "{given:?}");
    }
}

#[test]
fn a_sequence_that_nobody_ended_does_not_swallow_the_next_line() {
    for start in ["\x1b]0;title", "\x1b[12", "\x1bP+q", "\x1b_x", "\x1b"] {
        assert_eq!(text(format!("a{start}\nb\n")), "a\nb", "{start:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_marked_one_by_one() {
    assert_eq!(text(b"na\xefve caf\xe9\n"), "na\u{fffd}ve caf\u{fffd}");
    assert_eq!(text(b"cut \xe6\xbc"), "cut \u{fffd}");
}

#[test]
fn what_is_no_text_is_named_and_not_shown() {
    let mut program = b"\x7fELF\x02\x01\x01".to_vec();
    program.extend([0; 100]);
    program.extend(b"libc.so.6");
    assert_eq!(shown(&program), ShownOutput::Binary(116));
    let wide: Vec<u8> = "wide text\n".bytes().flat_map(|byte| [byte, 0]).collect();
    assert_eq!(shown(&wide), ShownOutput::Binary(20));
    let noise: Vec<u8> = (0..=255).collect();
    assert!(matches!(shown(&noise), ShownOutput::Binary(256)));
    // A few odd bytes in a long log leave it a log.
    let mut log = b"line\n".repeat(100);
    log.extend(b"\0\xff\n");
    assert!(text(&log).starts_with("line\nline\n"));
}

#[test]
fn a_picture_printed_as_data_uri_is_a_picture() {
    let expected = ShownOutput::Image {
        mime: "image/png".to_owned(),
        bytes: b"\x89PNG".to_vec(),
    };
    assert_eq!(shown(b"data:image/png;base64,iVBORw==\n"), expected);
    assert_eq!(shown(b"data:image/png;base64,iVBO\nRw==\n"), expected);
    for no in [
        "data:image/png;base64,iVBORw",
        "data:image/png;base64,",
        "data:image/svg+xml;base64,iVBORw==",
        "see data:image/png;base64,iVBORw==",
        "data:text/plain;base64,iVBORw==",
    ] {
        assert_eq!(text(no), no);
    }
}

#[test]
fn lines_can_be_taken_while_they_come() {
    let mut output = TerminalText::default();
    output.push(b"one\ntwo\nPass");
    assert_eq!(output.take(), "one\ntwo\n");
    output.push(b"word: ");
    assert_eq!(output.take(), "");
    assert_eq!(output.unfinished(), "Password: ");
    assert_eq!(output.finish(), ShownOutput::Text("Password: ".to_owned()));
}

#[test]
fn an_excerpt_has_both_ends_and_says_what_is_missing() {
    assert_eq!(excerpt("short", 5), "short");
    assert_eq!(
        excerpt("0123456789", 4),
        "01\n\n... [6 characters truncated] ...\n\n89"
    );
    let lines: String = (10..60).map(|number| format!("line {number}\n")).collect();
    let cut = excerpt(&lines, 100);
    assert_eq!(
        cut,
        "line 10\nline 11\nline 12\nline 13\nline 14\nline 15\n\n... [305 characters truncated] ...\n\n\
         line 54\nline 55\nline 56\nline 57\nline 58\nline 59\n"
    );
}

/// Bytes as programs write them, and as no one does.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..8),
        "[a-zé漢🦀 \t\r\n\u{8}\u{c}\u{85}\u{9b}\u{0}]{0,12}".prop_map(String::into_bytes),
        "\u{1b}[\\[\\]P_^X(#]?[0-9;:?q]{0,6}[a-zA-Z\u{7}\u{18}]?".prop_map(String::into_bytes),
        Just(b"\x1b\\".to_vec()),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_control_character_gets_through(given in bytes()) {
        let mut output = TerminalText::default();
        output.push(&given);
        let mut all = output.take();
        all.push_str(output.unfinished());
        if let ShownOutput::Text(rest) = output.finish() {
            all.push_str(&rest);
        }
        prop_assert!(!all.chars().any(|character| {
            character.is_control() && !matches!(character, '\n' | '\t')
        }), "{all:?}");
    }

    #[test]
    fn it_does_not_matter_where_the_bytes_are_split(
        given in bytes(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(given.len() + 1)).collect();
        cuts.sort_unstable();
        let mut output = TerminalText::default();
        let mut from = 0;
        for cut in cuts.into_iter().chain([given.len()]) {
            output.push(&given[from..cut]);
            from = cut;
        }
        prop_assert_eq!(output.finish(), shown(&given));
        let mut output = TerminalText::default();
        for byte in &given {
            output.push(&[*byte]);
        }
        prop_assert_eq!(output.finish(), shown(&given));
    }

    #[test]
    fn an_excerpt_is_about_as_long_as_asked(given in "[a-zé\n]{0,200}", limit in 0_usize..100) {
        let cut = excerpt(&given, limit);
        let room = limit.max(given.chars().count().min(limit)) + 45;
        prop_assert!(cut.chars().count() <= room, "{cut:?}");
    }
}
