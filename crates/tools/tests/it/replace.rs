//! ReplaceInFiles with `regex`: it finds what Grep finds and splices as Edit does.

use std::collections::BTreeSet;

use haft_search::{GrepMatches, GrepMode, GrepQuery, SearchEngine, StopCondition};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use crate::session::Session;

/// Signs that no drawn text has.
const OPEN: char = '⟪';
const CLOSE: char = '⟫';

#[derive(Debug, Clone, Copy)]
enum Written {
    Utf8,
    Utf8Marked,
    Utf16Le,
    Utf16Be,
    /// windows-1252, with enough text around to be certain.
    Western,
}

impl Written {
    fn bytes(self, text: &str) -> Vec<u8> {
        let wide = |join: fn(u16) -> [u8; 2]| {
            let units = text.encode_utf16().flat_map(join);
            join(0xfeff).into_iter().chain(units).collect()
        };
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf8Marked => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            Self::Utf16Le => wide(u16::to_le_bytes),
            Self::Utf16Be => wide(u16::to_be_bytes),
            Self::Western => text.chars().map(|character| character as u8).collect(),
        }
    }

    fn text(self, bytes: &[u8]) -> String {
        let wide = |join: fn([u8; 2]) -> u16| {
            let units: Vec<u16> = bytes
                .chunks(2)
                .map(|pair| join([pair[0], pair[1]]))
                .collect();
            assert_eq!(units[0], 0xfeff, "the mark stays first");
            String::from_utf16(&units[1..]).unwrap()
        };
        match self {
            Self::Utf8 => String::from_utf8(bytes.to_vec()).unwrap(),
            Self::Utf8Marked => {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                text.strip_prefix('\u{feff}')
                    .expect("the mark stays first")
                    .to_owned()
            }
            Self::Utf16Le => wide(u16::from_le_bytes),
            Self::Utf16Be => wide(u16::from_be_bytes),
            Self::Western => bytes.iter().map(|byte| char::from(*byte)).collect(),
        }
    }
}

fn encodings() -> impl Strategy<Value = Written> {
    prop_oneof![
        Just(Written::Utf8),
        Just(Written::Utf8Marked),
        Just(Written::Utf16Le),
        Just(Written::Utf16Be),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    let ends = prop_oneof![Just("\n"), Just("\r\n"), Just("\r"), Just("")];
    let line = "[abé \t]{0,4}";
    (vec((line, ends), 0..6), 0..3).prop_map(|(lines, style)| {
        let one = ["\n", "\r\n"];
        let end = |drawn: &'static str| match (style, drawn) {
            (2, drawn) | (_, drawn @ "") => drawn,
            (style, _) => one[style as usize],
        };
        lines
            .into_iter()
            .map(|(line, drawn)| line + end(drawn))
            .collect()
    })
}

fn patterns() -> impl Strategy<Value = String> {
    const ATOMS: &[&str] = &[
        "a", "b", "é", ".", "[ab]", "[^a]", r"\s", r"\w", "^", "$", r"\b", "(a|b)", r"\r", r"\n",
        r"\A", r"\z", " ", r"\r\n",
    ];
    let atom = prop::sample::select(ATOMS);
    let times = prop::sample::select(&["", "", "", "*", "+", "?"][..]);
    vec((atom, times), 1..4).prop_map(|atoms| {
        let grouped = |(atom, times)| format!("(?:{atom}){times}");
        atoms.into_iter().map(grouped).collect()
    })
}

/// The numbers of the lines Grep shows, or its refusal.
fn grep_lines(session: &Session, pattern: &str, multiline: bool) -> Result<BTreeSet<u64>, String> {
    let query = GrepQuery {
        mode: GrepMode::Content {
            before: 0,
            after: 0,
            only_matching: false,
        },
        multiline,
        ..GrepQuery::new(pattern, session.project.root())
    };
    let engine = session.services.get::<SearchEngine>().unwrap();
    let report = engine
        .grep(&query, &StopCondition::never())
        .map_err(|error| error.to_string())?;
    let GrepMatches::Rows(rows) = report.found else {
        panic!("rows were asked for")
    };
    Ok(rows.iter().filter_map(|row| row.line).collect())
}

/// The lines of all marked places, counted in the text without the marks.
fn marked_lines(marked: &str) -> BTreeSet<u64> {
    let mut lines = BTreeSet::new();
    let (mut plain, mut start) = (String::new(), 0);
    for character in marked.chars() {
        match character {
            OPEN => start = plain.len(),
            CLOSE => {
                let line = |at: usize| 1 + plain[..at].matches('\n').count() as u64;
                let end = plain.len();
                // A line feed belongs to the line it ends.
                let last = end - usize::from(end > start && plain.ends_with('\n'));
                lines.extend(line(start)..=line(last));
            }
            other => plain.push(other),
        }
    }
    lines
}

async fn replace(session: &Session, mut input: Value) -> Result<String, String> {
    input["regex"] = json!(true);
    input["preview"] = json!(false);
    input["path"] = json!(session.project.root());
    match session.say("ReplaceInFiles", input).await {
        crate::session::Said::Ok(text) => Ok(text),
        other => Err(other.error()),
    }
}

fn bytes(session: &Session) -> Vec<u8> {
    std::fs::read(session.project.path("f")).unwrap()
}

fn now<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_replaced_is_what_grep_finds(
        text in texts(),
        pattern in patterns(),
        multiline in any::<bool>(),
        written in encodings(),
    ) {
        // There ripgrep takes every place where it goes on for the beginning of the text.
        prop_assume!(!(multiline && pattern.contains(r"\A")));
        let session = Session::new([]);
        session.project.write("f", written.bytes(&text));
        let found = grep_lines(&session, &pattern, multiline);
        let input = json!({
            "pattern": pattern, "replacement": format!("{OPEN}$0{CLOSE}"), "multiline": multiline,
        });
        let said = now(replace(&session, input));
        let after = written.text(&bytes(&session));
        match found {
            Err(refusal) => {
                prop_assert_eq!(said, Err(refusal));
                prop_assert_eq!(after, text);
            }
            Ok(lines) => {
                let said = said.unwrap();
                prop_assert_eq!(lines.is_empty(), said.contains("matches in no file"), "{}", said);
                let plain: String = after.chars().filter(|c| ![OPEN, CLOSE].contains(c)).collect();
                prop_assert_eq!(&plain, &text, "only what matched changes");
                prop_assert_eq!(marked_lines(&after), lines, "{:?}", after);
            }
        }
    }
}

#[tokio::test]
async fn marks_breaks_and_code_pages_are_kept() {
    let french =
        "Été à côté, où était le garçon déjà passé.\nÀ la fenêtre fermée, l'élève a mangé.\n";
    let cases: [(&str, Written, &str, &str, &str, bool, &str); 9] = [
        (
            "`^` is behind the mark",
            Written::Utf8Marked,
            "a\nb\n",
            "^",
            "-",
            false,
            "-a\n-b\n",
        ),
        (
            "`^.` is not the mark",
            Written::Utf8Marked,
            "ab\n",
            "^.",
            "",
            false,
            "b\n",
        ),
        (
            "`^a` finds line 1",
            Written::Utf8Marked,
            "a\n",
            "^a",
            "b",
            false,
            "b\n",
        ),
        (
            "nothing behind the last line",
            Written::Utf8,
            "a\n",
            "x*$",
            "!",
            true,
            "a!\n",
        ),
        (
            "CRLF named",
            Written::Utf8,
            "a\r\nb\r\n",
            r"\r\n",
            "\n",
            true,
            "a\nb\n",
        ),
        (
            "CRLF kept",
            Written::Utf16Le,
            "a \r\nb\r\n",
            r"\s+$",
            "",
            false,
            "a\r\nb\r\n",
        ),
        (
            "a line feed is the whole break",
            Written::Utf8,
            "a\r\nb\r\n",
            r"\nb",
            "-b",
            true,
            "a-b\r\n",
        ),
        (
            "groups keep their breaks",
            Written::Utf8,
            "a\r\nb\nc\n",
            r"(?s)a(.+)c",
            "$1\n$1",
            true,
            "\r\nb\n\n\r\nb\n\n",
        ),
        (
            "a code page",
            Written::Western,
            french,
            "l'(élève)?",
            "L'$1",
            false,
            french,
        ),
    ];
    for (what, written, before, pattern, replacement, multiline, after) in cases {
        let session = Session::new([]);
        session.project.write("f", written.bytes(before));
        let input = json!({"pattern": pattern, "replacement": replacement, "multiline": multiline});
        let said = replace(&session, input).await.unwrap();
        let found = written.text(&bytes(&session));
        assert_eq!(found, after, "{what}: {said}");
    }
    let session = Session::new([]);
    session.project.write("f", Written::Western.bytes(french));
    let input = json!({"pattern": r"fen\w*", "replacement": "x"});
    let said = replace(&session, input).await.unwrap();
    assert!(said.contains("windows-1252"), "{said}");
    let input = json!({"pattern": r"dernier|le ", "replacement": "é$0"});
    let said = replace(&session, input).await.unwrap();
    assert!(said.contains("Changed 1 place"), "{said}");
    let found = Written::Western.text(&bytes(&session));
    assert_eq!(found, french.replace("le ", "éle "));
}

#[tokio::test]
async fn a_file_with_two_names_is_changed_once_and_notebooks_are_not() {
    let session = Session::new([("a.txt", "x\n"), ("n.ipynb", "{\"cells\": [\"x\"]}\n")]);
    std::fs::hard_link(session.project.path("a.txt"), session.project.path("b.txt")).unwrap();
    let said = replace(&session, json!({"pattern": "x", "replacement": "xx"}))
        .await
        .unwrap();
    assert!(said.contains("Changed 1 place in 1 file"), "{said}");
    assert_eq!(session.project.read("b.txt"), "xx\n");
    assert_eq!(session.project.read("n.ipynb"), "{\"cells\": [\"x\"]}\n");
    let input = json!({"pattern": "x", "replacement": "y", "path": session.project.root()});
    let said = session.say("ReplaceInFiles", input).await.ok();
    let (_, left) = said.split_once("Skipped:").expect("says what it leaves");
    insta::assert_snapshot!(left.trim());
}

#[tokio::test]
async fn a_line_break_without_multiline_is_refused_as_by_grep() {
    let session = Session::new([("a.txt", "a\nb\n")]);
    let input = json!({"pattern": r"a\nb", "replacement": "c"});
    let refusal = replace(&session, input).await.unwrap_err();
    assert_eq!(Err(refusal), grep_lines(&session, r"a\nb", false));
}
