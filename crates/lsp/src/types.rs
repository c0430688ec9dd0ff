//! The part of the protocol that is used. Read tolerantly: fields that are not known are passed over, numbers that
//! are not known stay numbers, and of a list the items that can be read are kept.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A place, as the server counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// From 0.
    pub line: u32,
    /// From 0, in units of the agreed encoding.
    pub character: u32,
}

/// From a place up to another, which is not part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The first place.
    pub start: Position,
    /// The place behind the last.
    pub end: Position,
}

/// A range in a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "AnyLocation")]
pub struct Location {
    /// The address of the file.
    pub uri: String,
    /// Where in it.
    pub range: Range,
}

/// A location or a link to one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyLocation {
    #[serde(alias = "targetUri")]
    uri: String,
    range: Option<Range>,
    target_selection_range: Option<Range>,
    target_range: Option<Range>,
}

impl From<AnyLocation> for Location {
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

/// A problem that a server found.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Where.
    pub range: Range,
    /// 1 error, 2 warning, 3 information, 4 hint; `None` if the server leaves it to the client.
    #[serde(default)]
    pub severity: Option<u32>,
    /// A name or a number.
    #[serde(default)]
    pub code: Option<Value>,
    /// Which part of the server found it.
    #[serde(default)]
    pub source: Option<String>,
    /// In words.
    pub message: String,
    /// 1 unnecessary, 2 deprecated.
    #[serde(default)]
    pub tags: Vec<u32>,
    /// All of it, as the server has to be sent it back; null where that is too much to keep.
    #[serde(skip)]
    pub raw: Value,
}

impl Diagnostic {
    /// The code as text; empty without one.
    pub fn code_text(&self) -> String {
        match &self.code {
            Some(Value::String(code)) => code.clone(),
            Some(Value::Number(code)) => code.to_string(),
            // An older form of it.
            Some(Value::Object(code)) => {
                code.get("value").map(Value::to_string).unwrap_or_default()
            }
            _ => String::new(),
        }
    }
}

/// How much of a message is kept, in characters, and how much of what comes with it, in bytes.
const MOST_MESSAGE: usize = 4000;
const MOST_DATA: usize = 16 << 10;

/// The diagnostics of a list.
pub fn diagnostics(list: Option<&Value>) -> Vec<Diagnostic> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    let read = |item: &Value| {
        let mut found: Diagnostic = serde_json::from_value(item.clone()).ok()?;
        if let Some((at, _)) = found.message.char_indices().nth(MOST_MESSAGE) {
            found.message.truncate(at);
        }
        // What a server is sent back it knows best itself; a very long one would stay in memory for nothing.
        let is_long = found.message.len() >= MOST_MESSAGE
            || item
                .get("data")
                .is_some_and(|data| is_longer(data, MOST_DATA));
        if !is_long {
            found.raw = item.clone();
        }
        Some(found)
    };
    items.filter_map(read).collect()
}

/// Would this be longer as text, roughly?
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

/// What is called by a name, in a file or in a workspace.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// A number of [`symbol_kind`].
    #[serde(default)]
    pub kind: u32,
    /// The name itself, in the file that was asked about.
    #[serde(default)]
    pub selection_range: Option<Range>,
    /// All of it, in the file that was asked about.
    #[serde(default)]
    pub range: Option<Range>,
    /// Where, for those of a workspace.
    #[serde(default)]
    pub location: Option<Location>,
    /// What it is in.
    #[serde(default)]
    pub container_name: Option<String>,
    /// What is in it.
    #[serde(default, deserialize_with = "tolerant")]
    pub children: Vec<Symbol>,
}

/// Something that calls or is called.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallItem {
    /// Its name.
    pub name: String,
    /// A number of [`symbol_kind`].
    #[serde(default)]
    pub kind: u32,
    /// The file it is in.
    pub uri: String,
    /// The name itself.
    pub selection_range: Range,
}

/// A call from somewhere, or to somewhere.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HierarchyCall {
    /// Who calls, or who is called.
    #[serde(alias = "from", alias = "to")]
    pub item: CallItem,
    /// Where the calls are, in the file of the one that calls.
    #[serde(default)]
    pub from_ranges: Vec<Range>,
}

/// One change of a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LspTextEdit {
    /// What goes.
    pub range: Range,
    /// What comes in its place.
    pub new_text: String,
}

/// Something a server offers to do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeAction {
    /// In words.
    pub title: String,
    /// What kind of thing it is.
    #[serde(default)]
    pub kind: Option<String>,
    /// What it would change.
    #[serde(default)]
    pub edit: Option<Value>,
    /// Why it cannot be done now.
    #[serde(default)]
    pub disabled: Option<Value>,
    /// All of it, to be resolved by the server.
    #[serde(skip)]
    pub raw: Value,
}

/// The items of a list that can be read, or the one thing that is no list.
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

/// The text of a hover: words, marked text, or a list of such.
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

/// What a kind of symbol is called.
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
        let found: Vec<Location> = items(&list);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].uri, "file:///b");
        assert_eq!(items::<Location>(&list[0]).len(), 1);
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
