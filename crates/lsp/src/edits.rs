//! What a server wants changed: a workspace edit becomes steps, and text edits a whole new text.

use serde_json::Value;

use crate::{
    position::PositionEncoding,
    types::{LspTextEdit, items},
};

/// One step of a plan, in the order of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditStep {
    /// Changes of one file.
    Text {
        /// Its address.
        uri: String,
        /// The version that the server means, if it says so.
        version: Option<i64>,
        /// What changes.
        edits: Vec<LspTextEdit>,
    },
    /// A new file.
    Create {
        /// Its address.
        uri: String,
        /// What if there is one.
        existing: OnExisting,
    },
    /// Another name for a file.
    Rename {
        /// What it is called.
        old: String,
        /// What it will be called.
        new: String,
        /// What if there is one of that name.
        existing: OnExisting,
    },
    /// A file goes away.
    Delete {
        /// Its address.
        uri: String,
        /// That there is none is fine.
        may_be_missing: bool,
    },
}

/// What a step does where there is a file already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// It cannot be done.
    Refuse,
    /// It takes the other's place.
    Overwrite,
    /// Nothing is done.
    Leave,
}

/// What a workspace edit asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedEdits {
    /// Step by step.
    pub steps: Vec<EditStep>,
}

/// Why text edits cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextChangeError {
    /// Two of them change the same place.
    #[error("two changes overlap")]
    Overlap,
    /// One of them is for another text.
    #[error("a change lies outside of the text")]
    Outside,
}

impl PlannedEdits {
    /// Of a `WorkspaceEdit`. A step that cannot be read refuses all of it.
    pub fn of(edit: &Value) -> Option<Self> {
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

    /// Does it change nothing?
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

fn step(change: &Value) -> Option<EditStep> {
    let address = |name: &str| change.get(name).and_then(Value::as_str).map(str::to_owned);
    let option = |name: &str| change["options"][name] == true;
    // Overwriting wins, by the protocol.
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

/// All of them or none: a plan with a hole is another plan.
fn all_edits(list: &Value) -> Option<Vec<LspTextEdit>> {
    let edits: Vec<LspTextEdit> = items(list);
    (edits.len() == list.as_array()?.len()).then_some(edits)
}

/// A text with changes made. They all mean the text as it is; those at one place come in the order they have.
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
    use crate::types::{Position, Range};

    fn edit(from: (u32, u32), to: (u32, u32), new: &str) -> LspTextEdit {
        let place = |(line, character)| Position { line, character };
        LspTextEdit {
            range: Range {
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
        let plan = PlannedEdits::of(&json!({"changes": {"file:///a": [good], "file:///b": []}}));
        assert_eq!(plan.unwrap().steps.len(), 1);
        let documents = json!({"documentChanges": [
            {"textDocument": {"uri": "file:///a", "version": 3}, "edits": [good]},
            {"kind": "rename", "oldUri": "file:///a", "newUri": "file:///b"},
        ]});
        assert_eq!(PlannedEdits::of(&documents).unwrap().steps.len(), 2);
        for bad in [
            json!({"changes": {"file:///a": [good, {"snippet": 1}]}}),
            json!({"documentChanges": [{"kind": "move"}]}),
        ] {
            assert_eq!(PlannedEdits::of(&bad), None);
        }
        assert!(PlannedEdits::of(&json!({})).unwrap().is_empty());
    }
}
