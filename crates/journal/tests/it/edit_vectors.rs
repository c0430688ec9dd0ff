//! Vectors 1–64 of file-tools.md §8, in the notation of the table there:
//! `⏎` LF, `␍` CR, `·` space, `→` tab, `⍽` no-break space.

use haft_journal::edit::{EditRequest, IndentShift, MatchTier};

use crate::{Desk, assert_says};

/// From the notation of the table to the text it means.
fn meant(notation: &str) -> String {
    notation
        .chars()
        .map(|sign| match sign {
            '⏎' => '\n',
            '␍' => '\r',
            '·' => ' ',
            '→' => '\t',
            '⍽' => '\u{a0}',
            sign => sign,
        })
        .collect()
}

/// The edit, its check and its traces on a real file.
#[track_caller]
fn check_edit(
    number: &str,
    before: &[u8],
    change: &EditRequest<'_>,
    after: &[u8],
    tier: MatchTier,
) {
    let desk = Desk::with_read(before);
    let path = desk.path("file");
    let preview = desk.journal.check_edit(&path, change).unwrap().patch();
    assert_eq!(
        desk.get("file"),
        before,
        "vector {number}: a check changes nothing"
    );
    let edited = desk.journal.edit(&crate::ticket(), &path, change).unwrap();
    let found = desk.get("file").escape_ascii().to_string();
    assert_eq!(found, after.escape_ascii().to_string(), "vector {number}");
    assert_eq!(edited.tier, tier, "vector {number}");
    assert_eq!(
        (edited.patch, edited.old),
        (preview, before.to_vec()),
        "vector {number}"
    );
    assert_eq!(desk.names(), ["file"], "vector {number}");
}

fn shift(tabs: usize, spaces: usize, is_added: bool) -> IndentShift {
    IndentShift {
        tabs,
        spaces,
        is_added,
    }
}

fn once<'a>(old: &'a str, new: &'a str) -> EditRequest<'a> {
    EditRequest {
        old,
        new,
        replace_all: false,
    }
}

#[test]
fn edits_change_exactly_what_was_asked() {
    use MatchTier::{
        EndOfFile, Exact, Indentation, IndentationShift, LineNumbers, TrailingBlanks, Typography,
    };
    let cases = [
        ("1", "red⏎blue⏎", "blue", "green", "red⏎green⏎", Exact),
        ("2", "a=b⏎", "b", "$&$1$$", "a=$&$1$$⏎", Exact),
        ("3", "p⏎", "p", "\\0\\n", "\\0\\n⏎", Exact),
        ("4", "(x)+(x)?⏎y⏎", "(x)+(x)?", "z", "z⏎y⏎", Exact),
        ("13", "", "", "v", "v", Exact),
        ("16", "one⏎two", "two", "2", "one⏎2", Exact),
        ("17", "one⏎two", "two", "two⏎", "one⏎two⏎", Exact),
        ("18", "one⏎two⏎", "two⏎", "two", "one⏎two", Exact),
        ("19", "i⏎j⏎k⏎", "j", "", "i⏎k⏎", Exact),
        ("20", "i⏎j;⏎k⏎", ";", "", "i⏎j⏎k⏎", Exact),
        ("21", "i⏎j⏎k⏎", "j⏎", "", "i⏎k⏎", Exact),
        ("22", "i⏎j", "j", "", "i⏎", Exact),
        ("24", "u␍⏎v␍⏎", "u⏎v", "u⏎w⏎v", "u␍⏎w␍⏎v␍⏎", Exact),
        ("25", "u␍⏎v␍⏎", "v", "v⏎z", "u␍⏎v␍⏎z␍⏎", Exact),
        ("26", "u⏎v⏎", "u␍⏎v", "U␍⏎v", "U⏎v⏎", Exact),
        ("27", "u␍⏎v⏎w␍⏎", "v", "V", "u␍⏎V⏎w␍⏎", Exact),
        ("28", "u␍⏎v⏎w␍⏎", "u⏎v⏎w", "u⏎v⏎W", "u␍⏎v⏎W␍⏎", Exact),
        ("29", "u␍⏎v␍⏎", "u␍⏎", "u⏎", "u⏎v␍⏎", Exact),
        ("30", "50%␍60%⏎ok⏎", "ok", "OK", "50%␍60%⏎OK⏎", Exact),
        ("31", "c␍d␍", "d", "D", "c␍D␍", Exact),
        ("32", "f\u{c}g⏎h⏎", "h", "H", "f\u{c}g⏎H⏎", Exact),
        ("33", "\u{feff}n⏎", "n", "o", "\u{feff}o⏎", Exact),
        (
            "34",
            "\u{feff}n␍⏎o␍⏎",
            "n⏎o",
            "n⏎p",
            "\u{feff}n␍⏎p␍⏎",
            Exact,
        ),
        (
            "40",
            "“yes” it is⏎",
            "\"yes\" it is",
            "\"yes\" it was",
            "“yes” it was⏎",
            Typography,
        ),
        (
            "41",
            "d’ici à là⏎",
            "d'ici à là",
            "d'ici à lui",
            "d’ici à lui⏎",
            Typography,
        ),
        (
            "42",
            "say 'k'⏎",
            "say ‘k’",
            "say 'j'",
            "say 'j'⏎",
            Typography,
        ),
        ("43", "'k' ‘k’⏎", "'k'", "'j'", "'j' ‘k’⏎", Exact),
        ("45", "'k'⏎", "'k'", "‘k’", "‘k’⏎", Exact),
        (
            "46",
            "1⍽000 m⏎",
            "1 000 m",
            "1 000 km",
            "1⍽000 km⏎",
            Typography,
        ),
        (
            "47",
            "int f;⏎g⏎",
            "int⍽f;⏎g",
            "int⍽f;⏎h",
            "int f;⏎h⏎",
            Typography,
        ),
        (
            "48",
            "a – b⏎c⏎",
            "a - b⏎c",
            "a - b⏎d",
            "a – b⏎d⏎",
            Typography,
        ),
        (
            "50",
            "if a:··⏎  b⏎",
            "if a:⏎  b",
            "if a:⏎  c",
            "if a:··⏎  c⏎",
            TrailingBlanks,
        ),
        (
            "51",
            "if a:⏎  b⏎",
            "if a:·⏎  b",
            "if a:·⏎  c",
            "if a:⏎  c⏎",
            TrailingBlanks,
        ),
        ("54", "m⏎n", "m⏎n⏎", "m⏎o⏎", "m⏎o", EndOfFile),
        (
            "55",
            "→if x {⏎→→y⏎→}⏎",
            "  if x {⏎    y⏎  }",
            "  if x {⏎    z⏎  }",
            "→if x {⏎→→z⏎→}⏎",
            Indentation,
        ),
        (
            "E1",
            "→→if x {⏎→→→y⏎→→}⏎",
            "→if x {⏎→→y⏎→}",
            "→if x {⏎→→if y {⏎→→→z⏎→→}⏎→}",
            "→→if x {⏎→→→if y {⏎→→→→z⏎→→→}⏎→→}⏎",
            IndentationShift(shift(1, 0, true)),
        ),
        (
            "E2",
            "f() {⏎→a⏎}⏎",
            "→f() {⏎→→a⏎→}",
            "→f() {⏎→→if a {⏎→→→b⏎→→}⏎→}",
            "f() {⏎→if a {⏎→→b⏎→}⏎}⏎",
            IndentationShift(shift(1, 0, false)),
        ),
        (
            "E1 with spaces, CRLF and a blank line",
            "····a␍⏎␍⏎······b␍⏎",
            "a⏎⏎··b⏎",
            "a⏎⏎··if c {⏎····b⏎··}⏎",
            "····a␍⏎␍⏎······if c {␍⏎········b␍⏎······}␍⏎",
            IndentationShift(shift(0, 4, true)),
        ),
        (
            "E1 written as in the file",
            "→→if x {⏎→→→y⏎→→}⏎",
            "→if x {⏎→→y⏎→}",
            "→→if x {⏎→→→z⏎→→}",
            "→→if x {⏎→→→z⏎→→}⏎",
            Indentation,
        ),
        ("63", "a⏎b⏎", "·····2→b", "·····2→B", "a⏎B⏎", LineNumbers),
        // Corners around them.
        (
            "40 twice on a line",
            "“a” is “b”⏎",
            "\"a\" is \"b\"",
            "\"a\" was \"b\"",
            "“a” was “b”⏎",
            Typography,
        ),
        (
            "40 CRLF",
            "“a”␍⏎b␍⏎",
            "\"a\"⏎b",
            "\"a\"⏎x⏎c",
            "“a”␍⏎x␍⏎c␍⏎",
            Typography,
        ),
        ("40 deleted", "a⏎“b”⏎c⏎", "\"b\"", "", "a⏎c⏎", Typography),
        (
            "40 behind the mark",
            "\u{feff}“a” b⏎",
            "\u{feff}\"a\" b",
            "\u{feff}\"a\" c",
            "\u{feff}“a” c⏎",
            Typography,
        ),
        (
            "50 new blanks are typed ones",
            "v··⏎w⏎",
            "v·⏎w",
            "V⏎w",
            "V⏎w⏎",
            TrailingBlanks,
        ),
        (
            "50 last line stripped",
            "a⏎b→⏎c⏎",
            "a·⏎b·",
            "a·⏎B",
            "a⏎B⏎c⏎",
            TrailingBlanks,
        ),
        (
            "50 at the end of the file",
            "a··⏎b",
            "a⏎b·",
            "a⏎b·⏎c",
            "a··⏎b⏎c",
            TrailingBlanks,
        ),
        (
            "50 mixed breaks",
            "a··␍⏎b⏎c␍⏎",
            "a⏎b⏎c",
            "a⏎B⏎c",
            "a··␍⏎B⏎c␍⏎",
            TrailingBlanks,
        ),
        (
            "50 a blank line",
            "a⏎··⏎b⏎",
            "a⏎⏎b",
            "a⏎⏎c",
            "a⏎··⏎c⏎",
            TrailingBlanks,
        ),
        ("54 CRLF", "m␍⏎n", "m⏎n⏎", "m⏎o⏎p⏎", "m␍⏎o␍⏎p", EndOfFile),
        ("54 CR", "m␍n", "n␍", "o␍", "m␍o", EndOfFile),
        (
            "55 already right",
            "→a⏎→→b⏎→c⏎",
            "  a⏎    b⏎  c",
            "→a⏎→→B⏎→c",
            "→a⏎→→B⏎→c⏎",
            Indentation,
        ),
        (
            "55 CRLF and a new line",
            "→a {␍⏎→}␍⏎",
            "  a {⏎  }⏎",
            "  a {⏎  b⏎  }⏎",
            "→a {␍⏎→b␍⏎→}␍⏎",
            Indentation,
        ),
        (
            "55 blank lines",
            "→a⏎⏎→b⏎",
            "a⏎⏎b",
            "a⏎⏎x⏎b",
            "→a⏎⏎→x⏎→b⏎",
            IndentationShift(shift(1, 0, true)),
        ),
        (
            "63 several, none in new",
            "a⏎b⏎b⏎",
            "     2→b⏎     3→b⏎",
            "c⏎",
            "a⏎c⏎",
            LineNumbers,
        ),
        (
            "63 first line of a marked file",
            "\u{feff}a⏎a⏎",
            "1→a",
            "1→b",
            "\u{feff}b⏎a⏎",
            LineNumbers,
        ),
    ];
    for (number, before, old, new, after, tier) in cases {
        let (before, old, new, after) = (meant(before), meant(old), meant(new), meant(after));
        check_edit(
            number,
            before.as_bytes(),
            &once(&old, &new),
            after.as_bytes(),
            tier,
        );
    }
}

#[test]
fn all_places_are_changed_when_all_are_meant() {
    let cases = [
        ("6", "m⏎n⏎m⏎", "m", "k", "k⏎n⏎k⏎", MatchTier::Exact),
        ("8", "ooo⏎", "oo", "u", "uo⏎", MatchTier::Exact),
        ("9", "t⏎", "t", "tt", "tt⏎", MatchTier::Exact),
        ("23", "x⏎yx⏎", "x", "", "y⏎", MatchTier::Exact),
        (
            "44 all",
            "‘k’ ‚k‛⏎",
            "'k'",
            "'j'",
            "‘j’ ‚j‛⏎",
            MatchTier::Typography,
        ),
        (
            "53 all",
            "q··⏎r⏎q→⏎r⏎",
            "q⏎r",
            "q⏎s",
            "q··⏎s⏎q→⏎s⏎",
            MatchTier::TrailingBlanks,
        ),
    ];
    for (number, before, old, new, after, tier) in cases {
        let (before, old, new, after) = (meant(before), meant(old), meant(new), meant(after));
        let change = EditRequest {
            old: &old,
            new: &new,
            replace_all: true,
        };
        check_edit(number, before.as_bytes(), &change, after.as_bytes(), tier);
    }
}

#[test]
fn encodings_are_kept_and_written_in() {
    let french = "L'été dernier, le garçon a mangé des pâtes.\nÀ côté, une fenêtre était fermée.\n";
    let western = |text: &str| -> Vec<u8> { text.chars().map(|c| u32::from(c) as u8).collect() };
    let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let cases: [(&str, Vec<u8>, &str, &str, Vec<u8>, MatchTier); 8] = [
        (
            "35",
            wide("\u{feff}n\r\n"),
            "n",
            "ñ",
            wide("\u{feff}ñ\r\n"),
            MatchTier::Exact,
        ),
        (
            "35 lines",
            wide("\u{feff}a\r\nb\r\n"),
            "a\nb",
            "a\nc\nb",
            wide("\u{feff}a\r\nc\r\nb\r\n"),
            MatchTier::Exact,
        ),
        (
            "35 projected",
            wide("\u{feff}“😀” is\n"),
            "\"😀\" is",
            "\"😀\" was",
            wide("\u{feff}“😀” was\n"),
            MatchTier::Typography,
        ),
        (
            "35 with the mark",
            wide("\u{feff}a\n"),
            "\u{feff}a",
            "\u{feff}b",
            wide("\u{feff}b\n"),
            MatchTier::Exact,
        ),
        (
            "36",
            b"x=1 \xe9\n".to_vec(),
            "x=1",
            "x=2",
            b"x=2 \xe9\n".to_vec(),
            MatchTier::Exact,
        ),
        (
            "36 certain",
            western(french),
            "mangé",
            "goûté",
            western(&french.replace("mangé", "goûté")),
            MatchTier::Exact,
        ),
        (
            "38 and a whole one",
            b"\x83\x5c\n\\\n".to_vec(),
            "\\",
            "/",
            b"\x83\x5c\n/\n".to_vec(),
            MatchTier::Exact,
        ),
        (
            "UTF-8 with a stray byte",
            [french.as_bytes(), b"\xe9\n"].concat(),
            "été",
            "printemps à venir",
            [
                french.replacen("été", "printemps à venir", 1).as_bytes(),
                b"\xe9\n",
            ]
            .concat(),
            MatchTier::Exact,
        ),
    ];
    for (number, before, old, new, after, tier) in cases {
        check_edit(number, &before, &once(old, new), &after, tier);
    }
}

#[test]
fn text_of_a_double_byte_page_is_edited_as_characters() {
    let text = "設定ファイルの表示。\n値は正しくありません。\nソート順を選ぶ。\n能力の表を読み込みます。\n";
    let bytes = encoding_rs::SHIFT_JIS.encode(text).0.into_owned();
    let desk = Desk::with_read(&bytes);
    assert_eq!(desk.read("file").unwrap().lines[2].text, "ソート順を選ぶ。");
    // 0x5C is the second byte of ソ, 表 and 能: no backslash is found in them.
    assert_says(desk.edit("file", "\\", "/"), &["not found"]);
    desk.edit("file", "ソート順", "並べ順 (ABC)").unwrap();
    let expected = text.replace("ソート順", "並べ順 (ABC)");
    assert_eq!(
        desk.get("file"),
        &*encoding_rs::SHIFT_JIS.encode(&expected).0
    );
    assert_says(desk.edit("file", "ABC", "😀"), &["Shift_JIS", "U+1F600"]);
    assert_eq!(
        desk.get("file"),
        &*encoding_rs::SHIFT_JIS.encode(&expected).0
    );
}

#[test]
fn only_strict_tiers_change_several_places() {
    // Tolerant tiers have at most one place, also when all are meant.
    let all = |old, new| EditRequest {
        old,
        new,
        replace_all: true,
    };
    let desk = Desk::with_read("a:\n x\n y\nb:\n  x\n  y\n");
    let change = all("   x\n   y", "   x\n   z");
    assert_says(
        desk.journal
            .edit(&crate::ticket(), &desk.path("file"), &change),
        &["2 times if indentation"],
    );
    let desk = Desk::with_read("m\nn");
    desk.journal
        .edit(&crate::ticket(), &desk.path("file"), &all("n\n", "o\n"))
        .unwrap();
    assert_eq!(desk.get("file"), b"m\no");
}
