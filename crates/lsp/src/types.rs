//! The part of the protocol that is used. Parsed tolerantly: unknown fields are ignored, unknown
//! numbers stay numbers, and invalid items of a list are dropped.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A position in the server's units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LspPosition {
    /// The line, from 0.
    pub line: u32,
    /// The column, from 0, in units of the agreed encoding.
    pub character: u32,
}

/// A range; its end is exclusive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LspRange {
    /// The first position.
    pub start: LspPosition,
    /// The position after the last.
    pub end: LspPosition,
}

/// A range in a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "AnyLocation")]
pub struct LspLocation {
    /// The address of the file.
    pub uri: String,
    /// The range in the file.
    pub range: LspRange,
}

/// A location or a link to one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyLocation {
    #[serde(alias = "targetUri")]
    uri: String,
    range: Option<LspRange>,
    target_selection_range: Option<LspRange>,
    target_range: Option<LspRange>,
}

impl From<AnyLocation> for LspLocation {
    fn from(any: AnyLocation) -> Self {
        let range = any
            .range
            .or(any.target_selection_range)
            .or(any.target_range);
        Self {
            uri: any.uri,
            range: range.unwrap_or_default(),
        }
    }
}

/// A diagnostic of a server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// The range it applies to.
    pub range: LspRange,
    /// 1 error, 2 warning, 3 information, 4 hint; `None` if the server leaves it to the client.
    #[serde(default)]
    pub severity: Option<u32>,
    /// The code, a name or a number.
    #[serde(default)]
    pub code: Option<Value>,
    /// The part of the server that reported it.
    #[serde(default)]
    pub source: Option<String>,
    /// The message text.
    pub message: String,
    /// 1 unnecessary, 2 deprecated.
    #[serde(default)]
    pub tags: Vec<u32>,
    /// The whole diagnostic, to be sent back to the server; null if it is too large to store.
    #[serde(skip)]
    pub raw: Value,
}

impl Diagnostic {
    /// Returns the code as text, or an empty text without one.
    pub fn code_text(&self) -> String {
        match &self.code {
            Some(Value::String(code)) => code.clone(),
            Some(Value::Number(code)) => code.to_string(),
            // An older form of the field.
            Some(Value::Object(code)) => match code.get("value") {
                Some(Value::String(code)) => code.clone(),
                code => code.map(Value::to_string).unwrap_or_default(),
            },
            _ => String::new(),
        }
    }
}

/// The maximum length of a message in characters, and of its additional data in bytes, to store.
const MAX_MESSAGE_BYTES: usize = 4000;
const MAX_DATA: usize = 16 << 10;

/// Parses a list of diagnostics.
pub fn diagnostics(list: Option<&Value>) -> Vec<Diagnostic> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    let read = |item: &Value| {
        let mut found: Diagnostic = serde_json::from_value(item.clone()).ok()?;
        if let Some((at, _)) = found.message.char_indices().nth(MAX_MESSAGE_BYTES) {
            found.message.truncate(at);
        }
        // The raw form is only for sending it back to the server; a very long one would waste
        // memory.
        let is_long = found.message.len() >= MAX_MESSAGE_BYTES
            || item
                .get("data")
                .is_some_and(|data| is_longer(data, MAX_DATA));
        if !is_long {
            found.raw = item.clone();
        }
        Some(found)
    };
    items.filter_map(read).collect()
}

/// Returns whether a value would be longer than this as text, approximately.
fn is_longer(value: &Value, most: usize) -> bool {
    fn add(value: &Value, left: &mut usize) {
        let own = match value {
            Value::String(text) => text.len(),
            _ => 4,
        };
        *left = left.saturating_sub(own);
        match value {
            Value::Array(items) => items
                .iter()
                .take_while(|item| {
                    add(item, left);
                    *left > 0
                })
                .for_each(drop),
            Value::Object(fields) => fields
                .iter()
                .take_while(|(name, item)| {
                    *left = left.saturating_sub(name.len());
                    add(item, left);
                    *left > 0
                })
                .for_each(drop),
            _ => {}
        }
    }
    let mut left = most;
    add(value, &mut left);
    left == 0
}

/// A symbol in a file or in the workspace.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LspSymbol {
    /// Its name.
    pub name: String,
    /// The kind, a number of [`symbol_kind`].
    #[serde(default)]
    pub kind: u32,
    /// The range of the name, in the requested file.
    #[serde(default)]
    pub selection_range: Option<LspRange>,
    /// The range of the whole symbol, in the requested file.
    #[serde(default)]
    pub range: Option<LspRange>,
    /// The location, for workspace symbols.
    #[serde(default)]
    pub location: Option<LspLocation>,
    /// The name of the containing symbol.
    #[serde(default)]
    pub container_name: Option<String>,
    /// The contained symbols.
    #[serde(default, deserialize_with = "tolerant")]
    pub children: Vec<LspSymbol>,
}

/// A symbol in a call hierarchy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallItem {
    /// Its name.
    pub name: String,
    /// The kind, a number of [`symbol_kind`].
    #[serde(default)]
    pub kind: u32,
    /// The address of the file that contains it.
    pub uri: String,
    /// The range of the name.
    pub selection_range: LspRange,
}

/// An incoming or outgoing call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HierarchyCall {
    /// The caller or the callee.
    #[serde(alias = "from", alias = "to")]
    pub item: CallItem,
    /// The ranges of the calls, in the file of the caller.
    #[serde(default)]
    pub from_ranges: Vec<LspRange>,
}

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LspTextEdit {
    /// The range to replace.
    pub range: LspRange,
    /// The new text.
    pub new_text: String,
}

/// An action that a server offers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeAction {
    /// The title.
    pub title: String,
    /// The kind of the action.
    #[serde(default)]
    pub kind: Option<String>,
    /// The workspace edit.
    #[serde(default)]
    pub edit: Option<Value>,
    /// The reason why the action is not available now.
    #[serde(default)]
    pub disabled: Option<Value>,
    /// The whole action, to be resolved by the server.
    #[serde(skip)]
    pub raw: Value,
}

/// Parses the valid items of a list, or a single value that is not a list.
pub fn items<T: DeserializeOwned>(value: &Value) -> Vec<T> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items
            .iter()
            .filter_map(|item| serde_json::from_value(item.clone()).ok())
            .collect(),
        one => serde_json::from_value(one.clone()).into_iter().collect(),
    }
}

fn tolerant<'de, D: serde::Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(items(&Value::deserialize(deserializer)?))
}

/// Returns the text of a hover: a string, marked text, or a list of these.
pub fn hover_text(contents: &Value) -> String {
    match contents {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(hover_text).collect();
            parts.join("\n\n")
        }
        Value::Object(part) => {
            let text = part
                .get("value")
                .and_then(Value::as_str)
                .unwrap_or_default();
            match part.get("language").and_then(Value::as_str) {
                Some(language) => format!("```{language}\n{text}\n```"),
                None => text.to_owned(),
            }
        }
        _ => String::new(),
    }
}

/// Returns the name of a symbol kind.
pub fn symbol_kind(kind: u32) -> &'static str {
    const NAMES: [&str; 26] = [
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enum member",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    let at = usize::try_from(kind)
        .ok()
        .and_then(|kind| kind.checked_sub(1));
    at.and_then(|at| NAMES.get(at).copied()).unwrap_or("symbol")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_bad_item_does_not_lose_the_list() {
        let range =
            json!({"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 2}});
        let list = json!([
            {"uri": "file:///a", "range": range, "new": 1},
            {"uri": 7},
            {"targetUri": "file:///b", "targetRange": range, "targetSelectionRange": range},
        ]);
        let found: Vec<LspLocation> = items(&list);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].uri, "file:///b");
        assert_eq!(items::<LspLocation>(&list[0]).len(), 1);
        let problems = json!([
            {"range": range, "message": "a", "severity": 9, "code": 2322},
            {"message": "no range"},
            {"range": range, "message": "b", "code": "reportX", "tags": [1]},
        ]);
        let problems = diagnostics(Some(&problems));
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[0].code_text(), "2322");
        assert_eq!(problems[1].code_text(), "reportX");
    }

    #[test]
    fn hovers_of_all_forms_are_text() {
        assert_eq!(hover_text(&json!("a")), "a");
        assert_eq!(hover_text(&json!({"kind": "markdown", "value": "b"})), "b");
        let list = json!([{"language": "ts", "value": "let a"}, "c"]);
        assert_eq!(hover_text(&list), "```ts\nlet a\n```\n\nc");
    }
}
