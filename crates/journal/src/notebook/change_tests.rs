//! Splices as before and after, byte for byte.

use super::*;

const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Títle\n",
    "caf\u00e9 \/ x"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "load",
   "metadata": {"big": 12345678901234567890, "small": 1e-07, "one": 1.0},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": ["]}\n"]
    }
   ],
   "source": [
    "import os\n",
    "print(1)"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn replace(cell: &str, source: &str) -> CellChange {
    CellChange::Replace {
        cell: Some(cell.to_owned()),
        source: source.to_owned(),
        kind: None,
    }
}

fn insert(after: Option<&str>, source: &str, kind: CellType) -> CellChange {
    CellChange::Insert {
        after: after.map(str::to_owned),
        source: source.to_owned(),
        kind: Some(kind),
    }
}

fn delete(cell: &str) -> CellChange {
    CellChange::Delete {
        cell: Some(cell.to_owned()),
    }
}

#[track_caller]
fn changed(text: &str, change: &CellChange) -> String {
    let spliced = splice(text.as_bytes(), change).unwrap();
    String::from_utf8(spliced.content).unwrap()
}

/// The text with some of its parts replaced, each of which must be there once.
#[track_caller]
fn with(text: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(text.to_owned(), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    })
}

#[test]
fn replacing_a_code_cell_changes_only_what_it_says_and_its_outputs() {
    let outputs = &NOTEBOOK[NOTEBOOK.find("\"outputs\"").unwrap()..];
    let outputs = &outputs[..outputs.find("\n   ],").unwrap() + 5];
    let expected = with(
        NOTEBOOK,
        &[
            ("\"execution_count\": 3", "\"execution_count\": null"),
            (outputs, "\"outputs\": []"),
            ("\"print(1)\"", "\"print(\\\"é\\\")\\n\",\n    \"\\t2\""),
        ],
    );
    assert_eq!(
        changed(NOTEBOOK, &replace("load", "import os\nprint(\"é\")\n\t2")),
        expected
    );
}

#[test]
fn lines_that_stay_keep_their_escapes() {
    let expected = with(NOTEBOOK, &[("# Títle", "# Title")]);
    assert_eq!(
        changed(NOTEBOOK, &replace("intro", "# Title\ncafé / x")),
        expected
    );
}

#[test]
fn cells_are_found_by_id_and_by_place() {
    let by = |name| changed(NOTEBOOK, &delete(name));
    assert_eq!(by("load"), by("cell-1"));
    assert_eq!(by("load"), by("1"));
    let taken = with(NOTEBOOK, &[("\"intro\"", "\"1\"")]);
    assert_eq!(changed(&taken, &delete("1")), changed(&taken, &delete("0")));
    let twice = with(NOTEBOOK, &[("\"intro\"", "\"load\"")]);
    let error = splice(twice.as_bytes(), &delete("load")).unwrap_err();
    assert!(error.to_string().contains("cell-0, cell-1"), "{error}");
}

#[test]
fn an_inserted_cell_looks_like_its_neighbours() {
    let cell = |id: &str| {
        format!(
            r#"{{
   "cell_type": "markdown",
   "id": "{id}",
   "metadata": {{}},
   "source": [
    "a\n",
    "b"
   ]
  }}"#
        )
    };
    let spliced = splice(
        NOTEBOOK.as_bytes(),
        &insert(Some("intro"), "a\nb", CellType::Markdown),
    )
    .unwrap();
    assert_eq!(spliced.cell.len(), 8);
    let expected = with(
        NOTEBOOK,
        &[(
            "x\"\n   ]\n  },",
            &format!("x\"\n   ]\n  }},\n  {},", cell(&spliced.cell)),
        )],
    );
    assert_eq!(String::from_utf8(spliced.content).unwrap(), expected);

    let first = splice(
        NOTEBOOK.as_bytes(),
        &insert(None, "a\nb", CellType::Markdown),
    )
    .unwrap();
    let expected = with(
        NOTEBOOK,
        &[(
            "\"cells\": [\n  {",
            &format!("\"cells\": [\n  {},\n  {{", cell(&first.cell)),
        )],
    );
    assert_eq!(String::from_utf8(first.content).unwrap(), expected);
}

#[test]
fn forms_are_kept() {
    let string = r#"{"cells":[{"cell_type":"code","execution_count":1,"metadata":{},"outputs":[],"source":"a"}],"nbformat":4,"nbformat_minor":4}"#;
    let crlf =
        "\u{feff}{\r\n\t\"cells\": [],\r\n\t\"nbformat\": 4,\r\n\t\"nbformat_minor\": 4\r\n}";
    let ascii = r#"{"cells": [{"cell_type": "raw", "source": ["\u00fc"]}, {"cell_type": "raw", "source": []}], "nbformat": 4}"#;
    let cases = [
        // (what it shows, before, change, after)
        (
            "a string stays a string",
            string,
            replace("0", "b\nc"),
            with(
                string,
                &[
                    ("\"source\":\"a\"", r#""source":"b\nc""#),
                    (":1,", ":null,"),
                ],
            ),
        ),
        (
            "no id before 4.5, no outputs in markdown",
            string,
            insert(Some("0"), "x", CellType::Markdown),
            with(
                string,
                &[(
                    "\"a\"}]",
                    r#""a"},{"cell_type":"markdown","metadata":{},"source":"x"}]"#,
                )],
            ),
        ),
        (
            "the only cell goes",
            string,
            delete("0"),
            r#"{"cells":[],"nbformat":4,"nbformat_minor":4}"#.to_owned(),
        ),
        (
            "mark, CRLF and tabs, into an empty list",
            crlf,
            insert(None, "x\n", CellType::Code),
            with(
                crlf,
                &[(
                    "[]",
                    "[\r\n\t\t{\r\n\t\t\t\"cell_type\": \"code\",\r\n\t\t\t\"execution_count\": null,\
                     \r\n\t\t\t\"metadata\": {},\r\n\t\t\t\"outputs\": [],\r\n\t\t\t\"source\": [\
                     \r\n\t\t\t\t\"x\\n\"\r\n\t\t\t]\r\n\t\t}\r\n\t]",
                )],
            ),
        ),
        (
            "characters are escaped where the file escapes them",
            ascii,
            replace("1", "é😀\u{1}"),
            with(ascii, &[("[]", r#"["\u00e9\ud83d\ude00\u0001"]"#)]),
        ),
        (
            "the type changes",
            string,
            CellChange::Replace {
                cell: Some("0".into()),
                source: "# x".into(),
                kind: Some(CellType::Markdown),
            },
            with(
                string,
                &[(
                    r#"{"cell_type":"code","execution_count":1,"metadata":{},"outputs":[],"source":"a"}"#,
                    r##"{"cell_type":"markdown","metadata":{},"source":"# x"}"##,
                )],
            ),
        ),
        (
            "and back, in an indented file",
            NOTEBOOK,
            CellChange::Replace {
                cell: Some("intro".into()),
                source: "".into(),
                kind: Some(CellType::Code),
            },
            with(
                NOTEBOOK,
                &[
                    (
                        "\"cell_type\": \"markdown\",\n",
                        "\"cell_type\": \"code\",\n   \"execution_count\": null,\n",
                    ),
                    (
                        "   \"metadata\": {},\n",
                        "   \"metadata\": {},\n   \"outputs\": [],\n",
                    ),
                    (
                        "[\n    \"# Títle\\n\",\n    \"caf\\u00e9 \\/ x\"\n   ]",
                        "[]",
                    ),
                ],
            ),
        ),
    ];
    for (what, before, change, after) in cases {
        assert_eq!(changed(before, &change), after, "{what}");
    }
}

#[test]
fn refusals_say_what_to_do() {
    let cases = [
        (NOTEBOOK, replace("nope", "x"), "The cells are: intro, load"),
        (
            NOTEBOOK,
            replace("cell-2", "x"),
            "no cell is named \"cell-2\"",
        ),
        (NOTEBOOK, replace(" ", "x"), "give cell_id"),
        (
            NOTEBOOK,
            replace("intro", "# Títle\ncafé / x"),
            "nothing to change",
        ),
        (
            NOTEBOOK,
            CellChange::Insert {
                after: None,
                source: String::new(),
                kind: None,
            },
            "give cell_type",
        ),
        (
            "{\"cells\": []}",
            delete("0"),
            "none, the notebook is empty",
        ),
        ("{\n \"cells\": [}", delete("0"), "2:12"),
        ("{}", delete("0"), "no list of cells"),
    ];
    for (text, change, part) in cases {
        let error = splice(text.as_bytes(), &change).unwrap_err().to_string();
        assert!(error.contains(part), "{part:?} missing in: {error}");
    }
}

#[test]
fn a_code_cell_with_the_same_source_still_loses_its_outputs() {
    let text = changed(NOTEBOOK, &replace("load", "import os\nprint(1)"));
    assert!(text.contains("\"outputs\": [],"), "{text}");
}
