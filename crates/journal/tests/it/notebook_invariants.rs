//! What holds for every change of every notebook: shared by the seeds and the fuzz target
//! (`fuzz/fuzz_targets/notebook.rs` includes this file).

use haft_journal::notebook::{
    CellChange, CellType, Notebook, NotebookError, NotebookSplice, splice,
};
use serde_json::Value;

/// One question to NotebookEdit, owned.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    file: Vec<u8>,
    change: CellChange,
}

impl Case {
    /// Any bytes as a case: a letter for the change, a digit for the cell (anything else: none),
    /// then the source and the file, separated by 0x1E.
    ///
    /// Letters: `r` replace, `c` as code, `m` as markdown; the capitals insert; `d` deletes.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let ([letter, digit], rest) = bytes.split_first_chunk()?;
        let end = rest.iter().position(|&byte| byte == 0x1e)?;
        let source = String::from_utf8_lossy(&rest[..end]).into_owned();
        let cell = digit
            .is_ascii_digit()
            .then(|| format!("cell-{}", char::from(*digit)));
        let kind = match letter.to_ascii_lowercase() {
            b'c' => Some(CellType::Code),
            b'm' => Some(CellType::Markdown),
            _ => None,
        };
        let change = match letter {
            b'd' => CellChange::Delete { cell },
            letter if letter.is_ascii_uppercase() => CellChange::Insert {
                after: cell,
                source,
                kind,
            },
            _ => CellChange::Replace { cell, source, kind },
        };
        let file = rest[end + 1..].to_vec();
        Some(Self { file, change })
    }
}

/// Shows and changes; panics if a promise is broken.
pub(crate) fn check(case: &Case) {
    let file = &case.file;
    match Notebook::open(file) {
        Ok(notebook) => shown(&notebook),
        Err(NotebookError::Json { fault }) => {
            assert!(fault.line > 0 && fault.column > 0);
            assert!(
                parsed(file).is_none() || fault.what == "nested too deeply",
                "valid JSON was refused: {fault}"
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match splice(file, &case.change) {
        Ok(spliced) => check_spliced(case, &spliced),
        Err(error) => assert_ne!(error, NotebookError::WouldDamage),
    }
}

fn shown(notebook: &Notebook<'_>) {
    for cell in notebook.cells() {
        let _ = (cell.name(), cell.kind(), cell.source(), cell.outputs());
    }
}

/// Only the named cell differs, and it says what was asked; as another JSON reader sees it, too.
fn check_spliced(case: &Case, spliced: &NotebookSplice) {
    assert_ne!(spliced.content, case.file, "a change that changes nothing");
    let notebook = Notebook::open(&spliced.content).unwrap();
    shown(&notebook);
    let (Some((mut old, rest)), Some((mut new, new_rest))) =
        (parsed(&case.file), parsed(&spliced.content))
    else {
        // What this reader does not take: `NaN`, half a surrogate pair, a number too large.
        return;
    };
    assert_eq!(rest, new_rest, "something outside the cells changed");
    let named = |cell: &Option<String>| -> Option<usize> {
        let digits = cell.as_deref()?.strip_prefix("cell-")?;
        digits.parse().ok()
    };
    // An id that looks like a place goes before the place.
    let is_place = |cells: &[Value]| {
        let id = |cell: &Value| cell["id"].as_str().map(str::to_owned);
        !cells
            .iter()
            .filter_map(id)
            .any(|id| id.starts_with("cell-"))
    };
    if !is_place(&old) {
        return;
    }
    let (index, source) = match &case.change {
        CellChange::Replace { cell, source, .. } => (named(cell).unwrap(), Some(source)),
        CellChange::Insert { after, source, .. } => {
            (named(after).map_or(0, |at| at + 1), Some(source))
        }
        CellChange::Delete { cell } => (named(cell).unwrap(), None),
    };
    if let Some(source) = source {
        let cell = new.remove(index);
        assert_eq!(&said(&cell), source);
        assert_eq!(cell["cell_type"].as_str().unwrap_or("raw"), spliced.kind);
        if spliced.kind == "code" {
            let none = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
            assert!(none(&cell["outputs"]) && cell["execution_count"].is_null());
        }
    }
    if !matches!(case.change, CellChange::Insert { .. }) {
        old.remove(index);
    }
    assert_eq!(old, new, "another cell changed");
}

/// The cells and all else.
fn parsed(bytes: &[u8]) -> Option<(Vec<Value>, Value)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut root: Value = serde_json::from_slice(bytes).ok()?;
    let cells = root.get_mut("cells").map_or(Value::Null, Value::take);
    let cells = cells.as_array().cloned().unwrap_or_default();
    Some((cells, root))
}

fn said(cell: &Value) -> String {
    match &cell["source"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    }
}
