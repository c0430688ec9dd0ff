//! Vectors 1–64 of file-tools.md §8, in the notation of the table there: `⏎` LF, `␍` CR, `·` space,
//! `→` tab, `⍽` no-break space. Each: one Read, one Edit, then the file and what is said.

use std::fs;

use serde_json::json;

use super::{edit, read};
use crate::session::Session;

use Outcome::{Done, Kept};

enum Outcome {
    /// The file afterwards, and words of the answer.
    Done(&'static str, &'static [&'static str]),
    /// The file stays as it is; words of the error.
    Kept(&'static [&'static str]),
}

/// Number, file before, `old_string`, `new_string`, outcome.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Outcome,
);

#[rustfmt::skip] // a table reads as a table
const ONCE: &[Row] = &[
    ("1", "red⏎blue⏎", "blue", "green", Done("red⏎green⏎", &["1 place, line 2"])),
    ("2", "a=b⏎", "b", "$&$1$$", Done("a=$&$1$$⏎", &[])),
    ("3", "p⏎", "p", "\\0\\n", Done("\\0\\n⏎", &[])),
    ("4", "(x)+(x)?⏎y⏎", "(x)+(x)?", "z", Done("z⏎y⏎", &[])),
    ("5", "m⏎n⏎m⏎", "m", "k", Kept(&["Found 2 matches", "lines 1 and 3"])),
    ("7", "ooo⏎", "oo", "u", Kept(&["Found 2 matches"])),
    ("10", "w⏎", "w", "w", Kept(&["identical"])),
    ("11", "w⏎", "", "v", Kept(&["the file is not", "Use Write"])),
    ("13", "", "", "v", Done("v", &[])),
    ("15", "Key⏎", "key", "x", Kept(&["String to replace not found"])),
    ("16", "one⏎two", "two", "2", Done("one⏎2", &[])),
    ("17", "one⏎two", "two", "two⏎", Done("one⏎two⏎", &[])),
    ("18", "one⏎two⏎", "two⏎", "two", Done("one⏎two", &[])),
    ("19", "i⏎j⏎k⏎", "j", "", Done("i⏎k⏎", &[])),
    ("20", "i⏎j;⏎k⏎", ";", "", Done("i⏎j⏎k⏎", &[])),
    ("21", "i⏎j⏎k⏎", "j⏎", "", Done("i⏎k⏎", &[])),
    ("22", "i⏎j", "j", "", Done("i⏎", &[])),
    ("24", "u␍⏎v␍⏎", "u⏎v", "u⏎w⏎v", Done("u␍⏎w␍⏎v␍⏎", &[])),
    ("25", "u␍⏎v␍⏎", "v", "v⏎z", Done("u␍⏎v␍⏎z␍⏎", &[])),
    ("26", "u⏎v⏎", "u␍⏎v", "U␍⏎v", Done("U⏎v⏎", &[])),
    ("27", "u␍⏎v⏎w␍⏎", "v", "V", Done("u␍⏎V⏎w␍⏎", &[])),
    ("28", "u␍⏎v⏎w␍⏎", "u⏎v⏎w", "u⏎v⏎W", Done("u␍⏎v⏎W␍⏎", &[])),
    ("29", "u␍⏎v␍⏎", "u␍⏎", "u⏎", Done("u⏎v␍⏎", &[])),
    ("30", "50%␍60%⏎ok⏎", "ok", "OK", Done("50%␍60%⏎OK⏎", &[])),
    ("31", "c␍d␍", "d", "D", Done("c␍D␍", &[])),
    ("32", "f\u{c}g⏎h⏎", "h", "H", Done("f\u{c}g⏎H⏎", &["line 2"])),
    ("33", "\u{feff}n⏎", "n", "o", Done("\u{feff}o⏎", &[])),
    ("34", "\u{feff}n␍⏎o␍⏎", "n⏎o", "n⏎p", Done("\u{feff}n␍⏎p␍⏎", &[])),
    ("40", "“yes” it is⏎", "\"yes\" it is", "\"yes\" it was", Done("“yes” it was⏎", &["Matched ignoring typography"])),
    ("41", "d’ici à là⏎", "d'ici à là", "d'ici à lui", Done("d’ici à lui⏎", &["Matched ignoring typography"])),
    ("42", "say 'k'⏎", "say ‘k’", "say 'j'", Done("say 'j'⏎", &["Matched ignoring typography"])),
    ("43", "'k' ‘k’⏎", "'k'", "'j'", Done("'j' ‘k’⏎", &["1 place"])),
    ("44", "‘k’ ‚k‛⏎", "'k'", "j", Kept(&["Found 2 matches"])),
    ("45", "'k'⏎", "'k'", "‘k’", Done("‘k’⏎", &[])),
    ("46", "1⍽000 m⏎", "1 000 m", "1 000 km", Done("1⍽000 km⏎", &["Matched ignoring typography"])),
    ("47", "int f;⏎g⏎", "int⍽f;⏎g", "int⍽f;⏎h", Done("int f;⏎h⏎", &["Matched ignoring typography"])),
    ("48", "a – b⏎c⏎", "a - b⏎c", "a - b⏎d", Done("a – b⏎d⏎", &["Matched ignoring typography"])),
    ("49", "wait…⏎", "wait...", "go", Kept(&["not found", "Closest place: line 1"])),
    ("50", "if a:··⏎  b⏎", "if a:⏎  b", "if a:⏎  c", Done("if a:··⏎  c⏎", &["Matched ignoring whitespace at line ends"])),
    ("51", "if a:⏎  b⏎", "if a:·⏎  b", "if a:·⏎  c", Done("if a:⏎  c⏎", &["Matched ignoring whitespace at line ends"])),
    ("51b", "v··⏎w⏎", "v⏎w", "V⏎w", Kept(&["line 1", "2 whitespace characters", "stay"])),
    ("52", "car⏎", "ca··", "x", Kept(&["not found"])),
    ("53", "q··⏎r⏎q→⏎r⏎", "q⏎r", "s", Kept(&["Found 2 matches", "lines 1 and 3"])),
    ("54", "m⏎n", "m⏎n⏎", "m⏎o⏎", Done("m⏎o", &["Matched without the line break at the end"])),
    ("55", "→if x {⏎→→y⏎→}⏎", "··if x {⏎····y⏎··}", "··if x {⏎····z⏎··}", Done("→if x {⏎→→z⏎→}⏎", &["Matched ignoring indentation"])),
    ("56", "··k=1⏎", "→k=1", "→k=2", Kept(&["not found", "-→k=1", "+··k=1"])),
    ("57", "a:⏎·x⏎·y⏎b:⏎··x⏎··y⏎", "···x⏎···y", "z", Kept(&["2 times if indentation is ignored: lines 2 and 5"])),
    ("58", "A{⏎p=1⏎q=2⏎}B⏎", "A{⏎p=1⏎q=3⏎}B", "", Kept(&["Closest place: lines 1–4", "first difference at line 3"])),
    ("59", "g(a , b)⏎", "g(a, b)", "h", Kept(&["not found"])),
    ("60", "a⏎b⏎c⏎", "a⏎...⏎c", "z", Kept(&["not found"])),
    ("61", "a⏎b⏎", "a\\nb", "z", Kept(&["two characters"])),
    ("62", "new⏎", "old", "new", Kept(&["already present at line 1"])),
    ("63", "a⏎b⏎", "·····2→b", "·····2→B", Done("a⏎B⏎", &["Matched without the line numbers"])),
    ("64", "a⏎b⏎", "·····7→b", "B", Kept(&["not found"])),
];

#[rustfmt::skip]
const EVERYWHERE: &[Row] = &[
    ("6", "m⏎n⏎m⏎", "m", "k", Done("k⏎n⏎k⏎", &["2 places, lines 1 and 3"])),
    ("8", "ooo⏎", "oo", "u", Done("uo⏎", &[])),
    ("9", "t⏎", "t", "tt", Done("tt⏎", &[])),
    ("23", "x⏎yx⏎", "x", "", Done("y⏎", &[])),
];

/// The vectors of the tables.
pub(super) fn numbers() -> impl Iterator<Item = &'static str> {
    ONCE.iter().chain(EVERYWHERE).map(|row| row.0)
}

/// From the notation of the table to the text it means.
fn meant(notation: &str) -> String {
    let signs = notation.chars().map(|sign| match sign {
        '⏎' => '\n',
        '␍' => '\r',
        '·' => ' ',
        '→' => '\t',
        '⍽' => '\u{a0}',
        sign => sign,
    });
    signs.collect()
}

async fn check(row: &Row, replace_all: bool) {
    let (number, before, old, new, outcome) = row;
    let session = Session::new([("f", meant(before).as_str())]);
    read(&session, "f").await;
    let mut input = edit("f", &meant(old), &meant(new));
    input["replace_all"] = json!(replace_all);
    let said = session.say("Edit", input).await;
    let after = session.project.read("f");
    let (text, words) = match outcome {
        Done(expected, words) => {
            assert_eq!(after, meant(expected), "{number}");
            (said.ok(), words)
        }
        Kept(words) => {
            assert_eq!(after, meant(before), "{number}: changed");
            (said.refused(), words)
        }
    };
    for word in *words {
        assert!(text.contains(word), "{number}: {word:?} missing in {text}");
    }
    // Said exactly where `old_string` is not what the file says.
    let is_tolerant = words.iter().any(|word| word.starts_with("Matched"));
    assert_eq!(text.contains("Matched"), is_tolerant, "{number}: {text}");
}

#[tokio::test]
async fn one_place() {
    for row in ONCE {
        check(row, false).await;
    }
}

#[tokio::test]
async fn every_place() {
    for row in EVERYWHERE {
        check(row, true).await;
    }
}

#[tokio::test]
async fn v012_an_empty_old_string_creates_a_missing_file() {
    let session = Session::new([]);
    let said = session.say("Edit", edit("new", "", "v\n")).await.ok();
    assert!(said.starts_with("Created new"), "{said}");
    assert_eq!(session.project.read("new"), "v\n");
}

#[tokio::test]
async fn v014_nothing_else_does() {
    let session = Session::new([]);
    let error = session.say("Edit", edit("new", "a", "b")).await.refused();
    assert!(error.contains("does not exist"), "{error}");
    assert!(!session.project.path("new").exists());
}

/// The file as bytes: encodings and what is no text.
async fn on_bytes(before: &[u8], old: &str, new: &str) -> (Result<String, String>, Vec<u8>) {
    let session = Session::new([]);
    session.project.write("f", before);
    let _ = session.say("Read", json!({"file_path": "f"})).await; // refused for a binary file
    let said = match session.output("Edit", edit("f", old, new)).await {
        Ok(output) => Ok(crate::session::text_of(&output)),
        Err(error) => Err(error.to_string()),
    };
    (said, fs::read(session.project.path("f")).unwrap())
}

#[tokio::test]
async fn v035_utf_16_is_written_as_utf_16() {
    let (said, after) = on_bytes(b"\xff\xfen\0\r\0\n\0", "n", "ñ").await;
    assert_eq!(after, b"\xff\xfe\xf1\0\r\0\n\0");
    let said = said.unwrap();
    assert!(said.contains("-n\n+ñ"), "{said}");
}

#[tokio::test]
async fn v036_a_stray_byte_is_kept() {
    let (said, after) = on_bytes(b"x=1 \xe9\n", "x=1", "x=2").await;
    said.unwrap();
    assert_eq!(after, b"x=2 \xe9\n");
}

#[tokio::test]
async fn v037_an_unsure_code_page_takes_only_ascii() {
    let before = b"x=1 \xe9\n";
    let (said, after) = on_bytes(before, "x=1", "x=é").await;
    let error = said.unwrap_err();
    assert!(error.contains("windows-1252"), "{error}");
    assert_eq!(after, before);
}

#[tokio::test]
async fn v038_half_a_character_is_no_match() {
    let before = b"\x83\x5c\n";
    let (said, after) = on_bytes(before, "\\", "/").await;
    let error = said.unwrap_err();
    assert!(error.contains("not found"), "{error}");
    assert_eq!(after, before);
}

#[tokio::test]
async fn v039_a_binary_file_is_not_edited() {
    let before = b"a\0b\n";
    let (said, after) = on_bytes(before, "b", "c").await;
    let error = said.unwrap_err();
    assert!(error.contains("binary file"), "{error}");
    assert_eq!(after, before);
}
