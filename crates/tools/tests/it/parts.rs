//! A file larger than one answer, read to its end by doing nothing but what each answer says.

use haft_journal::estimate_tokens;
use serde_json::{Map, Value, json};

use crate::session::{Session, text_of};

/// What an answer tells the reader to send next, such as `offset 79` or `offset 3, char_offset 2000`.
fn told(note: &str) -> Map<String, Value> {
    let words = note.trim_end_matches([']', '\n']);
    let pairs = words.split(", ").map(|pair| {
        let (name, number) = pair.split_once(' ').expect("a name and a number");
        let number: u64 = number.parse().expect("a number");
        (name.to_owned(), json!(number))
    });
    pairs.collect()
}

async fn ask(session: &Session, name: &str, next: &Map<String, Value>) -> String {
    let mut input = next.clone();
    input.insert("file_path".to_owned(), json!(name));
    let output = session.output("Read", input.into()).await;
    let text = text_of(&output.expect("an answer"));
    assert!(!text.contains("unchanged since"), "no part comes twice");
    assert!(
        estimate_tokens(text.len() as u64) < 26_000,
        "{}",
        text.len()
    );
    text
}

const READ_ON: &str = "; read on with ";
const CONTINUE: &str = "; continue with ";

/// The lines of a file; each must come with its number.
async fn lines(session: &Session, name: &str) -> Vec<String> {
    let (mut lines, mut next): (Vec<String>, _) = (Vec::new(), Some(Map::new()));
    while let Some(input) = next.take() {
        for row in ask(session, name, &input).await.split('\n') {
            let Some((number, text)) = row.split_once('\t') else {
                assert!(row.starts_with('['), "{row}");
                next = row.split_once(CONTINUE).map(|(_, how)| told(how));
                continue;
            };
            let number: usize = number.trim().parse().unwrap();
            assert_eq!(number, lines.len() + 1);
            lines.push(rest_of_line(session, name, text).await);
        }
    }
    lines
}

/// A line, read on until it is whole.
async fn rest_of_line(session: &Session, name: &str, shown: &str) -> String {
    let mut shown = shown.to_owned();
    let mut line = String::new();
    while let Some((text, how)) = shown.split_once(" [cut: the line has ") {
        line.push_str(text);
        let mut input = told(how.split_once(READ_ON).expect("how to go on").1);
        input.insert("limit".to_owned(), json!(1));
        let answer = ask(session, name, &input).await;
        let (row, _) = answer.split_once('\n').expect("a footer");
        shown = row.split_once('\t').expect("a number").1.to_owned();
    }
    line + &shown
}

#[tokio::test]
async fn a_text_larger_than_an_answer() {
    let many: String = (0..9_000).map(|line| format!("line {line}\n")).collect();
    let heavy: String = (0..400)
        .map(|line| format!("{line} {}\n", "é word".repeat(150)))
        .collect();
    let wide = format!(
        "short\n{}\n\n{}\r\nend",
        "0123456789é".repeat(6_000),
        "x".repeat(4_000)
    );
    let one_line = "no break at all, ".repeat(8_000);
    let session = Session::new([
        ("many", many.as_str()),
        ("heavy", heavy.as_str()),
        ("wide", wide.as_str()),
        ("one line", one_line.as_str()),
        ("just one answer", "a\n\nb"),
    ]);
    for (name, content) in [
        ("many", &many),
        ("heavy", &heavy),
        ("wide", &wide),
        ("one line", &one_line),
    ] {
        let expected: Vec<&str> = content.lines().collect();
        assert!(lines(&session, name).await == expected, "{name}");
    }
    assert_eq!(lines(&session, "just one answer").await, ["a", "", "b"]);
}

/// Vector 86, read on: what lies deep inside a line of 5 MB, and its very end.
#[tokio::test]
async fn any_place_of_a_very_long_line() {
    let line = "0123456789".repeat(500_000);
    let session = Session::new([("long", line.as_str())]);
    for (from, length) in [(2_000, 2_000), (2_499_995, 2_000), (4_999_990, 10)] {
        let input = json!({"file_path": "long", "char_offset": from});
        let text = session.say("Read", input).await.ok();
        let shown = text.strip_prefix("     1\t").unwrap();
        let expected = &line[from..from + length];
        assert!(shown.starts_with(expected), "{from}");
        assert!(shown[length..].starts_with([' ', '\n']), "{from}");
    }
    let input = json!({"file_path": "long", "char_offset": 5_000_000});
    let error = session.say("Read", input).await.failed();
    assert!(error.contains("5000000 characters"), "{error}");
}

/// The sources of a notebook's cells, each read on until it is whole.
async fn sources(session: &Session, name: &str) -> Vec<String> {
    let (mut sources, mut next): (Vec<String>, _) = (Vec::new(), Some(Map::new()));
    let mut is_cut = false;
    while let Some(input) = next.take() {
        let answer = ask(session, name, &input).await;
        for cell in answer.split("<cell id=").skip(1) {
            let (_, source) = cell.split_once("</cell_type>").expect("a cell");
            let (source, rest) = source.split_once("</cell id=").expect("its end");
            let (source, cut) = match source.split_once(" [cut: the source has ") {
                Some((source, how)) => (source, Some(told(how.split_once(READ_ON).unwrap().1))),
                None => (source, None),
            };
            match is_cut {
                true => sources.last_mut().expect("its beginning").push_str(source),
                false => sources.push(source.to_owned()),
            }
            is_cut = cut.is_some();
            // What is cut is read on before the next cells.
            next = cut.or_else(|| rest.split_once(CONTINUE).map(|(_, how)| told(how)));
            if is_cut {
                break;
            }
        }
    }
    sources
}

#[tokio::test]
async fn a_notebook_larger_than_an_answer() {
    let long = "x = 'é'\n".repeat(30_000);
    let expected = [
        "first".to_owned(),
        "y\n".repeat(20_000),
        long,
        "z\n".repeat(30_000),
        "last".to_owned(),
    ];
    let cells: Vec<Value> = expected
        .iter()
        .map(|source| json!({"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": null}))
        .collect();
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    let session = Session::new([("n.ipynb", notebook.to_string().as_str())]);
    assert!(sources(&session, "n.ipynb").await == expected);
    let past = json!({"file_path": "n.ipynb", "offset": 5, "char_offset": 4});
    let error = session.say("Read", past).await.failed();
    assert!(error.contains("cell 5 has 4 characters"), "{error}");
}

/// A cell that did not fit was not seen whole, so the notebook may not be overwritten.
#[tokio::test]
async fn a_cut_cell_is_a_partial_view() {
    let cell = json!({"cell_type": "markdown", "metadata": {}, "source": "x".repeat(100_000)});
    let notebook = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    let session = Session::new([("n.ipynb", notebook.to_string().as_str())]);
    let read = json!({"file_path": "n.ipynb"});
    let text = session.say("Read", read).await.ok();
    assert!(
        text.ends_with(
            " [cut: the source has 100000 characters; read on with offset 1, char_offset 87500]</cell id=\"cell-0\">"
        ),
        "{}",
        &text[text.len() - 200..]
    );
    let write = json!({"file_path": "n.ipynb", "content": "{}"});
    let error = session.say("Write", write).await.refused();
    assert!(error.contains("PARTIAL"), "{error}");
}
