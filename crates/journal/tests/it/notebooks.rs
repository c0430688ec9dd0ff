//! Notebooks of any layout, changed anywhere: only the named cell differs.

use std::ops::Range;

use haft_journal::notebook::{CellChange, CellType, Notebook, splice};
use haft_journal::{Journal, ShownExtent};
use proptest::prelude::*;
use serde_json::Value;

use crate::{Desk, assert_says, notebook_invariants};

/// A JSON text to be, and where its cells will be.
enum Json {
    Raw(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
    Cell(Box<Json>),
}

#[derive(Debug, Clone)]
struct Style {
    indent: Option<&'static str>,
    newline: &'static str,
    mark: bool,
    ascii: bool,
    tight: bool,
    final_newline: bool,
}

#[derive(Debug, Clone)]
struct Shape {
    code: bool,
    list: bool,
    turned: usize,
    source: String,
    output: String,
}

struct Writer<'a> {
    style: &'a Style,
    text: String,
    cells: Vec<Range<usize>>,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize) {
        if let Some(indent) = self.style.indent {
            self.text.push_str(self.style.newline);
            self.text.push_str(&indent.repeat(depth));
        }
    }

    fn next(&mut self, first: bool, depth: usize) {
        if !first {
            let tight = self.style.tight || self.style.indent.is_some();
            self.text.push_str(if tight { "," } else { ", " });
        }
        self.line(depth);
    }

    fn string(&mut self, text: &str) {
        let json = serde_json::to_string(text).unwrap();
        for character in json.chars() {
            if self.style.ascii && !character.is_ascii() {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    self.text.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                self.text.push(character);
            }
        }
    }

    fn write(&mut self, json: &Json, depth: usize) {
        match json {
            Json::Raw(raw) => self.text.push_str(raw),
            Json::Text(text) => self.string(text),
            Json::Cell(cell) => {
                let start = self.text.len();
                self.write(cell, depth);
                self.cells.push(start..self.text.len());
            }
            Json::List(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.next(index == 0, depth + 1);
                    self.write(item, depth + 1);
                }
                if !items.is_empty() {
                    self.line(depth);
                }
                self.text.push(']');
            }
            Json::Object(members) => {
                self.text.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    self.next(index == 0, depth + 1);
                    self.string(key);
                    self.text
                        .push_str(if self.style.tight { ":" } else { ": " });
                    self.write(value, depth + 1);
                }
                self.line(depth);
                self.text.push('}');
            }
        }
    }
}

fn cell(shape: &Shape, index: usize, ids: bool) -> Json {
    let text = |text: &str| Json::Text(text.to_owned());
    let source = if shape.list {
        let lines = shape.source.split_inclusive('\n');
        Json::List(lines.map(text).collect())
    } else {
        text(&shape.source)
    };
    let mut members = vec![
        (
            "cell_type",
            text(if shape.code { "code" } else { "markdown" }),
        ),
        (
            "metadata",
            Json::Raw(r#"{"n":1.0,"e":1e-07, "big":123456789012345678901234567890}"#.into()),
        ),
        ("source", source),
    ];
    if ids {
        members.push(("id", text(&format!("id-{index}"))));
    }
    if shape.code {
        members.push(("execution_count", Json::Raw("7".into())));
        let stream = vec![
            ("output_type", text("stream")),
            ("text", text(&shape.output)),
        ];
        members.push(("outputs", Json::List(vec![Json::Object(stream)])));
    }
    let turned = shape.turned % members.len();
    members.rotate_left(turned);
    Json::Cell(Box::new(Json::Object(members)))
}

fn written(style: &Style, shapes: &[Shape], minor: u8) -> (Vec<u8>, Vec<Range<usize>>) {
    let cells = shapes.iter().enumerate();
    let cells = cells.map(|(index, shape)| cell(shape, index, minor >= 5));
    let root = Json::Object(vec![
        ("metadata", Json::Raw("{ \"odd\" :\t[ ] }".into())),
        ("cells", Json::List(cells.collect())),
        ("nbformat", Json::Raw("4".into())),
        ("nbformat_minor", Json::Raw(minor.to_string())),
    ]);
    let mut writer = Writer {
        style,
        text: if style.mark { "\u{feff}" } else { "" }.to_owned(),
        cells: Vec::new(),
    };
    writer.write(&root, 0);
    if style.final_newline {
        writer.text.push_str(style.newline);
    }
    (writer.text.into_bytes(), writer.cells)
}

fn styles() -> impl Strategy<Value = Style> {
    let indents = [None, Some(" "), Some("  "), Some("    "), Some("\t")];
    let indents = prop::sample::select(indents.to_vec());
    let newlines = prop::sample::select(&["\n", "\r\n"][..]);
    (indents, newlines, any::<[bool; 4]>()).prop_map(|(indent, newline, flags)| Style {
        indent,
        newline,
        mark: flags[0],
        ascii: flags[1],
        tight: flags[2],
        final_newline: flags[3],
    })
}

fn sources() -> impl Strategy<Value = String> {
    let pieces = [
        "a", "\n", "\"", "\\", "é", "😀", "\t", "]}", "{[", ",", "\u{1}", "\r\n", "\\u00",
    ];
    let piece = prop::sample::select(pieces.to_vec());
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let shape = (any::<[bool; 2]>(), 0..6_usize, sources(), sources());
    let shape = shape.prop_map(|([code, list], turned, source, output)| Shape {
        code,
        list,
        turned,
        source,
        output,
    });
    prop::collection::vec(shape, 0..5)
}

/// The values of the cells, and of all else.
fn parsed(bytes: &[u8]) -> (Vec<Value>, Value) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut root: Value = serde_json::from_slice(bytes).unwrap();
    let cells = root["cells"].take();
    (cells.as_array().unwrap().clone(), root)
}

fn said(cell: &Value) -> String {
    match &cell["source"] {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
        text => text.as_str().unwrap().to_owned(),
    }
}

proptest! {
    #[test]
    fn a_replaced_cell_is_the_only_difference(
        style in styles(), shapes in shapes(), minor in 4..6_u8,
        pick in any::<prop::sample::Index>(), source in sources(), kind in 0..3,
    ) {
        prop_assume!(!shapes.is_empty());
        let (before, ranges) = written(&style, &shapes, minor);
        let index = pick.index(shapes.len());
        let kind = [None, Some(CellType::Code), Some(CellType::Markdown)][kind as usize];
        let change = CellChange::Replace { cell: Some(format!("cell-{index}")), source: source.clone(), kind };
        let Ok(spliced) = splice(&before, &change) else {
            // Only a cell that already is so may be refused.
            prop_assert_eq!(&shapes[index].source, &source);
            return Ok(());
        };
        let after = spliced.content;
        let range = ranges[index].clone();
        prop_assert!(after.starts_with(&before[..range.start]));
        prop_assert!(after.ends_with(&before[range.end..]));
        let (old, rest) = parsed(&before);
        let (new, new_rest) = parsed(&after);
        prop_assert_eq!(rest, new_rest);
        prop_assert_eq!(said(&new[index]), source);
        prop_assert_eq!(new[index]["source"].is_array(), shapes[index].list);
        let code = kind.map_or(shapes[index].code, |kind| kind == CellType::Code);
        prop_assert_eq!(&new[index]["cell_type"], if code { "code" } else { "markdown" });
        let none = Value::Array(vec![]);
        prop_assert_eq!(new[index].get("outputs"), code.then_some(&none));
        prop_assert_eq!(new[index].get("execution_count"), code.then_some(&Value::Null));
        prop_assert_eq!(&new[index]["metadata"], &old[index]["metadata"]);
        prop_assert_eq!(new[index].get("id"), old[index].get("id"));
    }

    #[test]
    fn an_inserted_cell_is_laid_out_as_if_it_had_been_there(
        style in styles(), shapes in shapes(), minor in 4..6_u8,
        pick in any::<prop::sample::Index>(), source in sources(), code in any::<bool>(),
    ) {
        let (before, ranges) = written(&style, &shapes, minor);
        // 0: first; n: after cell n-1.
        let index = pick.index(shapes.len() + 1);
        let after = index.checked_sub(1).map(|cell| cell.to_string());
        let kind = if code { CellType::Code } else { CellType::Markdown };
        let spliced = splice(&before, &CellChange::Insert { after, source: source.clone(), kind: Some(kind) }).unwrap();
        let end = ranges.get(index.saturating_sub(1));
        if let Some(range) = end {
            let at = if index == 0 { range.start } else { range.end };
            prop_assert!(spliced.content.starts_with(&before[..at]));
            prop_assert!(spliced.content.ends_with(&before[at..]));
        }
        let (_, rest) = parsed(&before);
        let (new, new_rest) = parsed(&spliced.content);
        prop_assert_eq!(rest, new_rest);
        prop_assert_eq!(said(&new[index]), source);
        prop_assert_eq!(new[index].get("id").is_some(), minor >= 5);
        prop_assert_eq!(new[index].get("outputs").is_some(), code);
        // Taking it out again gives the very bytes there were.
        let back = splice(&spliced.content, &CellChange::Delete { cell: Some(format!("cell-{index}")) }).unwrap();
        prop_assert!(back.content == before, "{}", String::from_utf8_lossy(&back.content));
    }

    #[test]
    fn damaged_notebooks_are_refused_or_changed_but_never_panic(
        style in styles(), shapes in shapes(), cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let (mut bytes, _) = written(&style, &shapes, 5);
        for (place, byte) in flips {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(cut.index(bytes.len() * 2));
        if let Ok(notebook) = Notebook::open(&bytes) {
            for cell in notebook.cells() {
                let _ = (cell.name(), cell.kind(), cell.source(), cell.outputs());
            }
        }
        for change in [
            CellChange::Replace { cell: Some("0".into()), source: "x\ny".into(), kind: None },
            CellChange::Insert { after: None, source: "x".into(), kind: Some(CellType::Code) },
            CellChange::Delete { cell: Some("cell-0".into()) },
        ] {
            let _ = splice(&bytes, &change);
        }
    }
}

#[test]
fn the_seeds_of_the_fuzz_target_keep_every_promise() {
    let seeds = crate::seeds("notebook");
    assert!(seeds.len() >= 20, "only {} seeds", seeds.len());
    for (name, bytes) in seeds {
        let case = notebook_invariants::Case::parse(&bytes);
        notebook_invariants::check(&case.unwrap_or_else(|| panic!("{name}")));
    }
}

const SMALL: &str =
    r#"{"cells": [{"cell_type": "code", "source": "a", "outputs": []}], "nbformat": 4}"#;

fn delete() -> CellChange {
    CellChange::Delete {
        cell: Some("0".to_owned()),
    }
}

fn look(journal: &Journal, desk: &Desk) {
    let raw = journal.read_bytes(&desk.path("n.ipynb"), 1 << 20).unwrap();
    journal.record_shown(raw, ShownExtent::Whole);
}

#[test]
fn a_notebook_must_be_known_and_unchanged() {
    let desk = Desk::new();
    desk.put("n.ipynb", SMALL);
    let path = desk.path("n.ipynb");
    assert_says(
        desk.journal
            .edit_notebook(&crate::ticket(), &path, &delete()),
        &["has not been read yet"],
    );
    look(&desk.journal, &desk);
    desk.put("n.ipynb", SMALL.replace("\"a\"", "\"b\""));
    assert_says(
        desk.journal.check_notebook(&path, &delete()),
        &["modified since", "\"b\""],
    );
    look(&desk.journal, &desk);
    let edited = desk
        .journal
        .edit_notebook(&crate::ticket(), &path, &delete())
        .unwrap();
    assert_eq!(edited.spliced.old_source.as_deref(), Some("b"));
    assert_eq!(desk.get("n.ipynb"), b"{\"cells\": [], \"nbformat\": 4}");
    assert_says(
        desk.journal
            .edit_notebook(&crate::ticket(), &path, &delete()),
        &["n.ipynb: no cell is named \"0\""],
    );
    assert_eq!(desk.names(), ["n.ipynb"]);
}

#[test]
fn raw_bytes_come_from_regular_files_within_the_limit() {
    let desk = Desk::new();
    desk.put("big", "12345");
    assert_says(
        desk.journal.read_bytes(&desk.path("big"), 4),
        &["too large", "5 bytes, limit 4"],
    );
    assert_says(
        desk.journal.read_bytes(&desk.path("bigg"), 4),
        &["does not exist", "big"],
    );
    assert_says(
        desk.journal.read_bytes("/dev/zero", 4),
        &["character device"],
    );
    let raw = desk.journal.read_bytes(&desk.path("big"), 5).unwrap();
    assert_eq!(raw.bytes, b"12345");
    let real = raw.real.clone();
    assert!(
        desk.journal.ledger().lookup(&real).is_none(),
        "not yet shown"
    );
    desk.journal.record_shown(raw, ShownExtent::Part);
    assert!(desk.journal.ledger().lookup(&real).unwrap().partial);
}
