use proptest::prelude::*;

use super::*;
use crate::{
    input::{KeyModifiers, PasteResult, TerminalReply},
    style::Rgb,
};

fn events(bytes: &[u8]) -> Vec<InputEvent> {
    let mut parser = InputParser::new();
    let mut events = parser.feed(bytes);
    events.extend(parser.expire());
    events
}

fn key(bytes: &[u8]) -> Key {
    match events(bytes).as_slice() {
        [InputEvent::Key(key)] => *key,
        other => panic!("{bytes:?}: {other:?}"),
    }
}

fn plain(code: KeyCode) -> Key {
    Key::plain(code)
}

#[test]
fn keys_in_every_spelling() {
    let control = KeyModifiers {
        control: true,
        ..KeyModifiers::NONE
    };
    let cases: [(&[u8], Key); 40] = [
        (b"a", Key::char('a')),
        ("é".as_bytes(), Key::char('é')),
        ("🦀".as_bytes(), Key::char('🦀')),
        (b"\r", Key::RETURN),
        (b"\n", Key::LINE_FEED),
        (b"\t", plain(KeyCode::Tab)),
        (b"\x7f", plain(KeyCode::Backspace)),
        (b"\x01", Key::control('a')),
        (b"\x1f", Key::control('_')),
        (b"\x00", Key::control(' ')),
        (b"\x1b", Key::ESCAPE),
        (b"\x1bb", Key::char('b').with_alt()),
        (b"\x1b\r", Key::RETURN.with_alt()),
        (b"\x1b\x7f", plain(KeyCode::Backspace).with_alt()),
        (b"\x1b[", Key::char('[').with_alt()),
        (b"\x1b_", Key::char('_').with_alt()),
        (b"\x1bO", Key::char('O').with_alt()),
        (b"\x1b[A", plain(KeyCode::Up)),
        (b"\x1bOA", plain(KeyCode::Up)),
        (
            b"\x1b[1;5C",
            Key {
                code: KeyCode::Right,
                modifiers: control,
            },
        ),
        (b"\x1b[Z", plain(KeyCode::Tab).with_shift()),
        (b"\x1b[H", plain(KeyCode::Home)),
        (b"\x1b[4~", plain(KeyCode::End)),
        (b"\x1b[3~", plain(KeyCode::Delete)),
        (
            b"\x1b[3;5~",
            Key {
                code: KeyCode::Delete,
                modifiers: control,
            },
        ),
        (b"\x1bOP", plain(KeyCode::Function(1))),
        (b"\x1b[15~", plain(KeyCode::Function(5))),
        (b"\x1b[24~", plain(KeyCode::Function(12))),
        (b"\x1b[[B", plain(KeyCode::Function(2))),
        (b"\x1b[13;2u", Key::RETURN.with_shift()),
        (b"\x1b[27;2;13~", Key::RETURN.with_shift()),
        (b"\x1b[27u", Key::ESCAPE),
        (b"\x1b[97;5u", Key::control('a')),
        (
            b"\x1b[97:65;6u",
            Key {
                code: KeyCode::Char('a'),
                modifiers: KeyModifiers {
                    shift: true,
                    ..control
                },
            },
        ),
        (b"\x1b[27;5;97~", Key::control('a')),
        (b"\x1b[228;2u", Key::char('Ä')),
        (b"\x1b[57414u", Key::RETURN),
        (b"\x1b[57400u", Key::char('1')),
        (b"\x1b[127;3u", plain(KeyCode::Backspace).with_alt()),
        (b"\x1b[1;1:1A", plain(KeyCode::Up)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(key(bytes), expected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn releases_locks_mice_and_unknown_sequences_are_no_keys() {
    for bytes in [
        &b"\x1b[97;1:3u"[..],
        b"\x1b[1;1:3A",
        b"\x1b[57358u",
        b"\x1b[M !!",
        b"\x1b[<0;3;4M",
        b"\x1b[12;40R",
        b"\x1b[8;24;80t",
        b"\x1b[?2026;2$y",
        b"\x1b]10;rgb:0/0/0\x07",
        b"\x1bP1$r0m\x1b\\",
    ] {
        assert_eq!(events(bytes), [], "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn answers_between_keys_leave_no_junk() {
    let bytes = b"a\x1b]11;rgb:ffff/ffff/ffff\x1b\\b\x1bP>|tmux 3.3a\x1b\\c\x1b_Gi=31;OK\x1b\\d\x1b[?62;4;22ce\x1b[?997;2nf\x1b[Ig\x1b[?1uh";
    let expected = [
        InputEvent::Key(Key::char('a')),
        InputEvent::Reply(TerminalReply::Background(Rgb(255, 255, 255))),
        InputEvent::Key(Key::char('b')),
        InputEvent::Reply(TerminalReply::Version("tmux 3.3a".into())),
        InputEvent::Key(Key::char('c')),
        InputEvent::Reply(TerminalReply::Graphics(true)),
        InputEvent::Key(Key::char('d')),
        InputEvent::Reply(TerminalReply::Attributes(vec![62, 4, 22])),
        InputEvent::Key(Key::char('e')),
        InputEvent::Reply(TerminalReply::ThemeChanged { is_dark: false }),
        InputEvent::Key(Key::char('f')),
        InputEvent::Focus(true),
        InputEvent::Key(Key::char('g')),
        InputEvent::Reply(TerminalReply::KeyboardFlags(1)),
        InputEvent::Key(Key::char('h')),
    ];
    assert_eq!(events(bytes), expected);
}

#[test]
fn a_paste_is_one_event_whatever_is_in_it() {
    let pasted = events(b"x\x1b[200~a\r\n\x1b[Ab\x03\x1b[201~y");
    let text = PasteResult::Text("a\n␛[Ab␃".into());
    let expected = [
        InputEvent::Key(Key::char('x')),
        InputEvent::Paste(text),
        InputEvent::Key(Key::char('y')),
    ];
    assert_eq!(pasted, expected);
}

#[test]
fn two_escapes_are_two_keys_and_an_arrow_behind_one_is_an_arrow() {
    assert_eq!(
        events(b"\x1b\x1b"),
        [InputEvent::Key(Key::ESCAPE), InputEvent::Key(Key::ESCAPE)]
    );
    let expected = [
        InputEvent::Key(Key::ESCAPE),
        InputEvent::Key(plain(KeyCode::Up)),
    ];
    assert_eq!(events(b"\x1b\x1b[A"), expected);
}

#[test]
fn alt_with_a_letter_that_begins_sequences_is_a_key_when_another_follows() {
    let redo = InputEvent::Key(Key::char('_').with_alt());
    assert_eq!(events(b"\x1b_\x1b_"), [redo.clone(), redo.clone()]);
    assert_eq!(
        events(b"\x1b_\x03"),
        [redo, InputEvent::Key(Key::control('c'))]
    );
    let bracket = InputEvent::Key(Key::char('[').with_alt());
    assert_eq!(
        events(b"\x1b[\x1b[A"),
        [bracket, InputEvent::Key(plain(KeyCode::Up))]
    );
}

#[test]
fn an_answer_that_was_cut_off_does_not_swallow_what_is_typed() {
    let keys = events(b"\x1b]11;rgb:ff\rq");
    assert_eq!(
        keys,
        [
            InputEvent::Key(Key::RETURN),
            InputEvent::Key(Key::char('q'))
        ]
    );
    let keys = events(b"\x1bP>|xterm\x03");
    assert_eq!(keys, [InputEvent::Key(Key::control('c'))]);
    let long = [
        b"\x1b]11;".as_slice(),
        &vec![b'x'; 3 * MAX_SEQUENCE],
        b"\x07z",
    ]
    .concat();
    assert_eq!(events(&long), [InputEvent::Key(Key::char('z'))]);
}

#[test]
fn broken_characters_are_replaced_and_what_follows_is_read() {
    for (bytes, expected) in [
        (&b"\xffa"[..], "\u{fffd}a"),
        (b"\xc3a", "\u{fffd}a"),
        (b"\xe2\x82", "\u{fffd}"),
        (b"\xe2\x82\x1b[A", "\u{fffd}^"),
        (b"\xc3\xc3\xa9", "\u{fffd}\u{e9}"),
    ] {
        let typed: String = events(bytes)
            .iter()
            .map(|event| match event {
                InputEvent::Key(Key {
                    code: KeyCode::Char(c),
                    ..
                }) => *c,
                _ => '^',
            })
            .collect();
        assert_eq!(typed, expected, "{bytes:?}");
    }
}

#[test]
fn the_caller_learns_what_is_unfinished() {
    let wait = |bytes: &[u8]| {
        let mut parser = InputParser::new();
        parser.feed(bytes);
        parser.wait()
    };
    assert_eq!(wait(b"a"), None);
    assert_eq!(wait(b"\x1b"), Some(ParserWait::Escape));
    assert_eq!(wait(b"\x1b["), Some(ParserWait::Escape));
    assert_eq!(wait(b"\x1b[1;"), Some(ParserWait::Sequence));
    assert_eq!(wait(b"\x1b]11;"), Some(ParserWait::Sequence));
    assert_eq!(wait(b"\x1b[200~abc"), Some(ParserWait::Paste));
}

#[test]
fn an_escape_waits_longer_over_a_network() {
    let local = ParserWait::Escape.timeout(false);
    let remote = ParserWait::Escape.timeout(true);
    // Vector 22: stopped within 40 ms at home; a CR that comes 60 ms later still belongs to it abroad.
    assert!(local.as_millis() < 40 && remote.as_millis() > 60);
    let mut parser = InputParser::new();
    assert_eq!(parser.feed(b"\x1b"), []);
    assert_eq!(
        parser.feed(b"\r"),
        [InputEvent::Key(Key::RETURN.with_alt())]
    );
}

/// Bytes in which much happens.
fn sequences() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\x1b".to_vec()),
        Just(b"\x1b[200~".to_vec()),
        Just(b"\x1b[201~".to_vec()),
        Just(b"\x1b]11;rgb:0/0/0\x1b\\".to_vec()),
        Just(b"\x1b_Gi=31;OK\x1b\\".to_vec()),
        Just(b"\x1b[1;5A".to_vec()),
        Just(b"\x1b[M".to_vec()),
        Just("é漢🦀".as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
        "[ -~]{0,5}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn however_bytes_are_split_the_events_are_the_same(
        bytes in sequences(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)
    ) {
        let whole = InputParser::new().feed(&bytes);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut parser = InputParser::new();
        let split: Vec<_> = cuts
            .windows(2)
            .flat_map(|cut| parser.feed(&bytes[cut[0]..cut[1]]))
            .collect();
        prop_assert_eq!(split, whole);
    }
}
