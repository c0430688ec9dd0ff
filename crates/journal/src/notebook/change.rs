//! Changes of a notebook: one cell replaced, inserted or deleted.

use std::collections::HashMap;
use std::ops::Range;

use super::NotebookError;
use super::json::{JsonNode, ObjectMember};
use super::layout::NotebookLayout;
use super::view::{Notebook, NotebookCell};

/// The types that a new or changed cell can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellType {
    /// Executable source.
    Code,
    /// Formatted text.
    Markdown,
}

impl CellType {
    /// Returns the name that the notebook format uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

/// A change of one cell. A cell is identified by its id, by `cell-N` or by N, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellChange {
    /// Sets a new source and optionally a new type. A code cell loses its outputs.
    Replace {
        /// The cell.
        cell: Option<String>,
        /// Its new source.
        source: String,
        /// Its new type; `None` leaves the type unchanged.
        kind: Option<CellType>,
    },
    /// Inserts a cell after the given one, or before all others.
    Insert {
        /// The cell before the new one; `None` inserts it first.
        after: Option<String>,
        /// Its source.
        source: String,
        /// Its type, which is required.
        kind: Option<CellType>,
    },
    /// Removes a cell.
    Delete {
        /// The cell.
        cell: Option<String>,
    },
}

/// The changed notebook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotebookSplice {
    /// All bytes of the file.
    pub content: Vec<u8>,
    /// The name of the cell that was changed, inserted or removed.
    pub cell: String,
    /// Its type after the change, or before its removal.
    pub kind: String,
    /// Its source before the change; `None` for a new cell.
    pub old_source: Option<String>,
    /// The programming language of the notebook, if specified.
    pub language: Option<String>,
}

/// Computes the file after the change. Bytes outside the cell do not change.
pub fn splice(bytes: &[u8], change: &CellChange) -> Result<NotebookSplice, NotebookError> {
    let notebook = Notebook::open(bytes)?;
    let done = match change {
        CellChange::Replace { cell, source, kind } => {
            replace(&notebook, notebook.find(cell.as_deref())?, source, *kind)
        }
        CellChange::Insert {
            after,
            source,
            kind,
        } => {
            let kind = kind.ok_or(NotebookError::NoType)?;
            let after = match after.as_deref().filter(|name| !name.trim().is_empty()) {
                Some(name) => Some(notebook.find(Some(name))?),
                None => None,
            };
            insert(&notebook, after, source, kind)
        }
        CellChange::Delete { cell } => delete(&notebook, notebook.find(cell.as_deref())?),
    };
    let mut content = bytes[..notebook.mark].to_vec();
    let mut at = 0;
    for (range, text) in &done.edits {
        content.extend_from_slice(&notebook.text.as_bytes()[at..range.start]);
        content.extend_from_slice(text.as_bytes());
        at = range.end;
    }
    content.extend_from_slice(&notebook.text.as_bytes()[at..]);
    if content == bytes {
        return Err(NotebookError::Unchanged);
    }
    verify(&notebook, change, &done, &content)?;
    Ok(NotebookSplice {
        content,
        language: notebook.language(),
        cell: done.cell,
        kind: done.kind,
        old_source: done.old_source,
    })
}

/// Edits of the text, ascending and not overlapping, with a description of the changed cell.
struct CellEdit {
    edits: Vec<(Range<usize>, String)>,
    index: usize,
    cell: String,
    kind: String,
    old_source: Option<String>,
}

impl<'a> Notebook<'a> {
    fn cell(&self, index: usize) -> NotebookCell<'a> {
        NotebookCell::new(self.cells[index], index)
    }

    /// Returns the index of the cell with this name; ids have priority over positions.
    fn find(&self, name: Option<&str>) -> Result<usize, NotebookError> {
        let ids = || self.cells().map(|cell| cell.name()).collect();
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
            return Err(NotebookError::NoCellNamed { ids: ids() });
        };
        let with_id = self.cells().enumerate();
        let with_id = with_id.filter(|(_, cell)| cell.id().as_deref() == Some(name));
        let with_id: Vec<usize> = with_id.map(|(index, _)| index).collect();
        if let [only] = with_id.as_slice() {
            return Ok(*only);
        }
        if !with_id.is_empty() {
            let places = with_id.iter().map(|index| format!("cell-{index}"));
            return Err(NotebookError::AmbiguousCell {
                asked: name.to_owned(),
                places: places.collect(),
            });
        }
        let place = name.strip_prefix("cell-").unwrap_or(name).parse();
        match place {
            Ok(index) if index < self.len() => Ok(index),
            _ => Err(NotebookError::UnknownCell {
                asked: name.to_owned(),
                ids: ids(),
            }),
        }
    }

    /// Returns an id that no cell has. It depends only on the notebook and the source.
    fn fresh_id(&self, source: &str) -> String {
        let taken: Vec<String> = self.cells().filter_map(|cell| cell.id()).collect();
        let candidates = (0_u64..).map(|attempt| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.text.as_bytes());
            hasher.update(source.as_bytes());
            hasher.update(&attempt.to_le_bytes());
            hasher.finalize().to_hex()[..8].to_owned()
        });
        let mut free = candidates.filter(|id| !taken.contains(id));
        free.next().unwrap_or_default()
    }
}

fn replace(
    notebook: &Notebook<'_>,
    index: usize,
    source: &str,
    kind: Option<CellType>,
) -> CellEdit {
    let (node, cell) = (notebook.cells[index], notebook.cell(index));
    let layout = NotebookLayout::detect(notebook, Some(&node));
    let old_kind = cell.kind();
    let new_kind = kind.map_or_else(|| old_kind.clone(), |kind| kind.name().to_owned());
    let members = node.members();
    let source = match members.iter().rfind(|member| member.is("source")) {
        Some(member) => SourceJson::like(notebook.text, &layout, &member.value, source),
        None => SourceJson::list(&layout, source),
    };
    let is_kept = new_kind == old_kind && members.iter().any(|member| member.is("source"));
    let edits = if is_kept {
        edits_in_place(&members, &new_kind, &source.0)
    } else {
        let text = recast(notebook.text, &layout, &members, &new_kind, &source.0);
        vec![(node.start..node.end, text)]
    };
    CellEdit {
        edits,
        index,
        cell: cell.name(),
        kind: new_kind,
        old_source: Some(cell.source()),
    }
}

/// Replaces single values of a cell; all other bytes of the cell stay the same.
fn edits_in_place(
    members: &[ObjectMember<'_>],
    kind: &str,
    source: &str,
) -> Vec<(Range<usize>, String)> {
    let mut edits = Vec::new();
    for member in members {
        let value = member.value;
        let new = match () {
            () if member.is("source") => source,
            () if kind == "code" && member.is("outputs") && !value.elements().is_empty() => "[]",
            () if kind == "code" && member.is("execution_count") => "null",
            () => continue,
        };
        edits.push((value.start..value.end, new.to_owned()));
    }
    edits
}

/// Builds the cell with another type: removes members that the type does not have, and adds those
/// it requires.
fn recast(
    text: &str,
    layout: &NotebookLayout,
    members: &[ObjectMember<'_>],
    kind: &str,
    source: &str,
) -> String {
    let is_code = kind == "code";
    let member = |key: &str, value: &str| format!("\"{key}\"{}{value}", layout.colon);
    let mut kept = vec![member("cell_type", &layout.string(kind))];
    if is_code {
        kept.push(member("execution_count", "null"));
    }
    let dropped = [
        "cell_type",
        "execution_count",
        "outputs",
        "source",
        "attachments",
    ];
    let stays = |one: &&ObjectMember<'_>| !dropped.iter().any(|key| one.is(key));
    kept.extend(
        members
            .iter()
            .filter(stays)
            .map(|one| text[one.key.start..one.value.end].to_owned()),
    );
    if is_code {
        kept.push(member("outputs", "[]"));
    }
    kept.push(member("source", source));
    layout.object_of(&kept)
}

fn insert(notebook: &Notebook<'_>, after: Option<usize>, source: &str, kind: CellType) -> CellEdit {
    // An adjacent cell is the model for the layout.
    let model = notebook.cells.get(after.unwrap_or(0));
    let layout = NotebookLayout::detect(notebook, model);
    let form = model.and_then(|cell| cell.get("source"));
    let source_text = match form {
        Some(form) if form.is_string() => SourceJson(layout.string(source)),
        _ => SourceJson::list(&layout, source),
    };
    let id = notebook.has_ids().then(|| notebook.fresh_id(source));
    let mut members = vec![("cell_type", layout.string(kind.name()))];
    if kind == CellType::Code {
        members.push(("execution_count", "null".to_owned()));
    }
    if let Some(id) = &id {
        members.push(("id", layout.string(id)));
    }
    members.push(("metadata", "{}".to_owned()));
    if kind == CellType::Code {
        members.push(("outputs", "[]".to_owned()));
    }
    members.push(("source", source_text.0));
    let cell = layout.object(&members);
    let index = after.map_or(0, |after| after + 1);
    let edit = match (notebook.cells.as_slice(), after) {
        ([], _) => {
            let list = notebook.list;
            (list.start..list.end, layout.list_of_one(&cell))
        }
        (cells, Some(after)) => {
            let end = cells[after].end;
            (end..end, format!("{}{cell}", separator(notebook, &layout)))
        }
        (cells, None) => {
            let start = cells[0].start;
            (
                start..start,
                format!("{cell}{}", separator(notebook, &layout)),
            )
        }
    };
    CellEdit {
        edits: vec![edit],
        index,
        cell: id.unwrap_or_else(|| format!("cell-{index}")),
        kind: kind.name().to_owned(),
        old_source: None,
    }
}

/// Returns the text between two cells.
fn separator(notebook: &Notebook<'_>, layout: &NotebookLayout) -> String {
    let text = notebook.text;
    match notebook.cells.as_slice() {
        [first, second, ..] => text[first.end..second.start].to_owned(),
        [only] => match &text[notebook.list.start + 1..only.start] {
            lead if lead.contains('\n') => format!(",{lead}"),
            _ => layout.comma.clone(),
        },
        [] => String::new(),
    }
}

fn delete(notebook: &Notebook<'_>, index: usize) -> CellEdit {
    let cell = notebook.cell(index);
    let cells = &notebook.cells;
    let edit = match (index, cells.get(index + 1)) {
        (0, None) => (notebook.list.start..notebook.list.end, "[]".to_owned()),
        (0, Some(next)) => (cells[0].start..next.start, String::new()),
        _ => (cells[index - 1].end..cells[index].end, String::new()),
    };
    CellEdit {
        edits: vec![edit],
        index,
        cell: cell.name(),
        kind: cell.kind(),
        old_source: Some(cell.source()),
    }
}

/// The JSON text of a source.
struct SourceJson(String);

impl SourceJson {
    /// Formats a source like the one it replaces; lines that do not change keep their bytes.
    fn like(text: &str, layout: &NotebookLayout, old: &JsonNode<'_>, source: &str) -> Self {
        if old.is_string() {
            return Self(match old.text().as_deref() == Some(source) {
                true => old.raw().to_owned(),
                false => layout.string(source),
            });
        }
        let elements = old.elements();
        let known: HashMap<String, &str> = elements
            .iter()
            .filter_map(|element| Some((element.text()?, element.raw())))
            .collect();
        let items = lines(source).map(|line| match known.get(line) {
            Some(raw) => (*raw).to_owned(),
            None => layout.string(line),
        });
        let items: Vec<String> = items.collect();
        let (Some(first), Some(last)) = (elements.first(), elements.last()) else {
            return Self(layout.list(&items));
        };
        if items.is_empty() {
            return Self("[]".to_owned());
        }
        let open = &text[old.start..first.start];
        let close = &text[last.end..old.end];
        let between = match elements.as_slice() {
            [first, second, ..] => text[first.end..second.start].to_owned(),
            _ if open.contains('\n') => format!(",{}", &open[1..]),
            _ => layout.comma.clone(),
        };
        Self(format!("{open}{}{close}", items.join(&between)))
    }

    fn list(layout: &NotebookLayout, source: &str) -> Self {
        let items: Vec<String> = lines(source).map(|line| layout.string(line)).collect();
        Self(layout.list(&items))
    }
}

/// Returns the lines with their breaks; none for an empty text.
fn lines(source: &str) -> impl Iterator<Item = &str> {
    source.split_inclusive('\n')
}

/// Checks that the result is a notebook in which only that cell differs and has the requested
/// source.
fn verify(
    before: &Notebook<'_>,
    change: &CellChange,
    done: &CellEdit,
    content: &[u8],
) -> Result<(), NotebookError> {
    let damaged = |_| NotebookError::WouldDamage;
    let after = Notebook::open(content).map_err(damaged)?;
    let raw = |notebook: &Notebook<'_>, range: Range<usize>| -> Vec<String> {
        let cells = notebook.cells.get(range).unwrap_or_default();
        cells.iter().map(|cell| cell.raw().to_owned()).collect()
    };
    let (skip_before, skip_after, source) = match change {
        CellChange::Replace { source, .. } => (1, 1, Some(source)),
        CellChange::Insert { source, .. } => (0, 1, Some(source)),
        CellChange::Delete { .. } => (1, 0, None),
    };
    let (index, old, new) = (done.index, before.len(), after.len());
    let same = old + skip_after == new + skip_before
        && raw(before, 0..index) == raw(&after, 0..index)
        && raw(before, index + skip_before..old) == raw(&after, index + skip_after..new)
        && source.is_none_or(|source| after.cell(index).source() == *source)
        && before.text[..before.list.start] == after.text[..after.list.start]
        && before.text[before.list.end..] == after.text[after.list.end..];
    if same {
        Ok(())
    } else {
        Err(NotebookError::WouldDamage)
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
