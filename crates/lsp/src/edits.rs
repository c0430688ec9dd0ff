//! Edits that a server requests: parses workspace edits into steps, and applies text edits to a
//! text.

use serde_json::Value;

use crate::{
    position::PositionEncoding,
    types::{LspTextEdit, items},
};

/// A step of a workspace edit, in the order of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditStep {
    /// Text edits of one file.
    Text {
        /// The address of the file.
        uri: String,
        /// The version of the document that the edits are for, if the server sends one.
        version: Option<i64>,
        /// The text edits.
        edits: Vec<LspTextEdit>,
    },
    /// Create a file.
    Create {
        /// The address of the file.
        uri: String,
        /// The behaviour if the file exists.
        existing: OnExisting,
    },
    /// Rename a file.
    Rename {
        /// The old address.
        old: String,
        /// The new address.
        new: String,
        /// The behaviour if a file with the new name exists.
        existing: OnExisting,
    },
    /// Delete a file.
    Delete {
        /// The address of the file.
        uri: String,
        /// True if a missing file is not an error.
        may_be_missing: bool,
    },
}

/// The behaviour of a step if the file already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// The step fails.
    Refuse,
    /// The existing file is replaced.
    Overwrite,
    /// The step is skipped.
    Leave,
}

/// The steps of a workspace edit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedEdits {
    /// The steps, in order.
    pub steps: Vec<EditStep>,
}

/// The reason why text edits cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextChangeError {
    /// Two edits overlap.
    #[error("two changes overlap")]
    Overlap,
    /// An edit is outside of the text.
    #[error("a change is outside the text")]
    Outside,
}

impl PlannedEdits {
    /// Parses a `WorkspaceEdit`. Returns `None` if any step cannot be parsed.
    pub fn parse(edit: &Value) -> Option<Self> {
        let mut steps = Vec::new();
        if let Some(changes) = edit.get("documentChanges").and_then(Value::as_array) {
            for change in changes {
                steps.push(step(change)?);
            }
        } else if let Some(changes) = edit.get("changes").and_then(Value::as_object) {
            for (uri, edits) in changes {
                steps.push(EditStep::Text {
                    uri: uri.clone(),
                    version: None,
                    edits: all_edits(edits)?,
                });
            }
        }
        steps.retain(|step| !matches!(step, EditStep::Text { edits, .. } if edits.is_empty()));
        Some(Self { steps })
    }

    /// Returns whether the edit changes nothing.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

fn step(change: &Value) -> Option<EditStep> {
    let address = |name: &str| change.get(name).and_then(Value::as_str).map(str::to_owned);
    let option = |name: &str| change["options"][name] == true;
    // By the protocol, overwriting takes precedence.
    let existing = match (option("overwrite"), option("ignoreIfExists")) {
        (true, _) => OnExisting::Overwrite,
        (false, true) => OnExisting::Leave,
        (false, false) => OnExisting::Refuse,
    };
    match change.get("kind").and_then(Value::as_str) {
        Some("create") => Some(EditStep::Create {
            uri: address("uri")?,
            existing,
        }),
        Some("rename") => Some(EditStep::Rename {
            old: address("oldUri")?,
            new: address("newUri")?,
            existing,
        }),
        Some("delete") => Some(EditStep::Delete {
            uri: address("uri")?,
            may_be_missing: option("ignoreIfNotExists"),
        }),
        Some(_) => None,
        None => {
            let document = change.get("textDocument")?;
            Some(EditStep::Text {
                uri: document.get("uri")?.as_str()?.to_owned(),
                version: document.get("version").and_then(Value::as_i64),
                edits: all_edits(change.get("edits")?)?,
            })
        }
    }
}

/// Parses all edits or none: applying only a part would be a different edit.
fn all_edits(list: &Value) -> Option<Vec<LspTextEdit>> {
    let edits: Vec<LspTextEdit> = items(list);
    (edits.len() == list.as_array()?.len()).then_some(edits)
}

/// Applies text edits. All positions refer to the original text; edits at the same position are
/// applied in their order.
pub fn apply(
    text: &str,
    edits: &[LspTextEdit],
    encoding: PositionEncoding,
) -> Result<String, TextChangeError> {
    let mut places = Vec::with_capacity(edits.len());
    for edit in edits {
        let bytes = encoding
            .bytes(text, edit.range)
            .ok_or(TextChangeError::Outside)?;
        places.push((bytes, edit.new_text.as_str()));
    }
    places.sort_by_key(|(bytes, _)| (bytes.start, bytes.end));
    let mut changed = String::with_capacity(text.len());
    let mut at = 0;
    for (bytes, new) in places {
        if bytes.start < at {
            return Err(TextChangeError::Overlap);
        }
        changed.push_str(&text[at..bytes.start]);
        changed.push_str(new);
        at = bytes.end;
    }
    changed.push_str(&text[at..]);
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::{LspPosition, LspRange};

    fn edit(from: (u32, u32), to: (u32, u32), new: &str) -> LspTextEdit {
        let place = |(line, character)| LspPosition { line, character };
        LspTextEdit {
            range: LspRange {
                start: place(from),
                end: place(to),
            },
            new_text: new.to_owned(),
        }
    }

    #[test]
    fn changes_mean_the_text_as_it_is() {
        let text = "a = 1\r\nb = a\r\n";
        let edits = [edit((1, 4), (1, 5), "xy"), edit((0, 0), (0, 1), "xy")];
        let changed = apply(text, &edits, PositionEncoding::Utf16);
        assert_eq!(changed.unwrap(), "xy = 1\r\nb = xy\r\n");
        let inserts = [edit((0, 0), (0, 0), "1"), edit((0, 0), (0, 0), "2")];
        let changed = apply("a", &inserts, PositionEncoding::Utf16);
        assert_eq!(changed.unwrap(), "12a");
    }

    #[test]
    fn what_overlaps_or_lies_outside_is_refused() {
        let overlap = [edit((0, 0), (0, 2), "x"), edit((0, 1), (0, 3), "y")];
        let applied = apply("abc", &overlap, PositionEncoding::Utf16);
        assert_eq!(applied, Err(TextChangeError::Overlap));
        let outside = [edit((7, 0), (7, 1), "x")];
        let applied = apply("abc", &outside, PositionEncoding::Utf16);
        assert_eq!(applied, Err(TextChangeError::Outside));
        let backwards = [edit((0, 2), (0, 1), "x")];
        let applied = apply("abc", &backwards, PositionEncoding::Utf16);
        assert_eq!(applied, Err(TextChangeError::Outside));
    }

    #[test]
    fn both_forms_of_an_edit_are_read_whole_or_not_at_all() {
        let range =
            json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}});
        let good = json!({"range": range, "newText": "x"});
        let plan = PlannedEdits::parse(&json!({"changes": {"file:///a": [good], "file:///b": []}}));
        assert_eq!(plan.unwrap().steps.len(), 1);
        let documents = json!({"documentChanges": [
            {"textDocument": {"uri": "file:///a", "version": 3}, "edits": [good]},
            {"kind": "rename", "oldUri": "file:///a", "newUri": "file:///b"},
        ]});
        assert_eq!(PlannedEdits::parse(&documents).unwrap().steps.len(), 2);
        for bad in [
            json!({"changes": {"file:///a": [good, {"snippet": 1}]}}),
            json!({"documentChanges": [{"kind": "move"}]}),
        ] {
            assert_eq!(PlannedEdits::parse(&bad), None);
        }
        assert!(PlannedEdits::parse(&json!({})).unwrap().is_empty());
    }
}
