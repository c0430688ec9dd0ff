//! A notebook of any bytes, shown and changed: never a panic, and a change that is made leaves the
//! bytes around the cell as they were (which `splice` itself verifies: no `WouldDamage`).
#![no_main]

use haft_journal::notebook::{CellChange, CellType, Notebook, NotebookError, splice};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, String, u8)| {
    let (bytes, source, choice) = input;
    if let Ok(notebook) = Notebook::open(&bytes) {
        for cell in notebook.cells() {
            let _ = (cell.name(), cell.kind(), cell.source(), cell.outputs());
        }
    }
    let cell = Some(format!("cell-{}", choice / 6 % 4));
    let kind = [None, Some(CellType::Code), Some(CellType::Markdown)][usize::from(choice) % 3];
    let change = match choice / 3 % 3 {
        0 => CellChange::Replace { cell, source, kind },
        1 => CellChange::Insert {
            after: cell,
            source,
            kind,
        },
        _ => CellChange::Delete { cell },
    };
    let result = splice(&bytes, &change);
    assert_ne!(result.err(), Some(NotebookError::WouldDamage));
});
