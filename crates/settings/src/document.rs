//! A settings file: JSON with comments and trailing commas.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use jsonc_parser::{
    CollectOptions, ParseOptions, ast,
    common::Ranged,
    cst::{CstInputValue, CstRootNode},
    parse_to_ast,
};
use rustix::fs::OFlags;
use serde_json::{Map, Number, Value};

/// The maximum size of a settings file, in bytes.
pub const MAX_SIZE: u64 = 2 * 1024 * 1024;

/// The byte order mark that some editors put before UTF-8.
const BOM: &str = "\u{feff}";

/// A problem with a settings file or one of its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    /// The file with the line, or the flag.
    pub place: String,
    /// The problem and its consequence.
    pub text: String,
}

impl std::fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// A syntax error in settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsParseError {
    /// The line, from 1, if known.
    pub line: Option<usize>,
    /// The description of the error.
    pub text: String,
}

impl std::fmt::Display for SettingsParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A parsed file, with the lines of its values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsDocument {
    /// The content; always an object.
    pub value: Value,
    /// JSON pointers of values that replaced an earlier value with the same name.
    pub repeated: Vec<String>,
    lines: HashMap<String, usize>,
}

impl SettingsDocument {
    /// Parses a text.
    pub fn parse(text: &str) -> Result<Self, SettingsParseError> {
        let text = text.strip_prefix(BOM).unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(Self::from_value(Value::Object(Map::new())));
        }
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options());
        let parsed = parsed.map_err(|error| SettingsParseError {
            line: Some(error.line_display()),
            text: format!("{}, in column {}", error.kind(), error.column_display()),
        })?;
        let Some(root @ ast::Value::Object(_)) = parsed.value else {
            return Err(SettingsParseError {
                line: None,
                text: "a settings file is one JSON object".to_owned(),
            });
        };
        let mut reader = DocumentReader {
            ends: text.match_indices('\n').map(|(at, _)| at).collect(),
            document: Self::default(),
        };
        let value = reader.convert(&root, "");
        Ok(Self {
            value,
            ..reader.document
        })
    }

    /// Creates a document from a value without a file.
    pub fn from_value(value: Value) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }

    /// Returns the line of a value by its JSON pointer, from 1.
    pub fn line(&self, pointer: &str) -> Option<usize> {
        self.lines.get(pointer).copied()
    }
}

/// Returns the parse options: comments and trailing commas, otherwise standard JSON.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Converts a syntax tree to a value and records the line of each value.
struct DocumentReader {
    /// The offsets of line breaks.
    ends: Vec<usize>,
    document: SettingsDocument,
}

impl DocumentReader {
    fn convert(&mut self, value: &ast::Value<'_>, pointer: &str) -> Value {
        let line = self.ends.partition_point(|end| *end < value.start()) + 1;
        self.document.lines.insert(pointer.to_owned(), line);
        match value {
            ast::Value::StringLit(string) => Value::String(string.value.to_string()),
            ast::Value::NumberLit(number) => number
                .value
                .parse::<Number>()
                .map_or(Value::Null, Value::Number),
            ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::Array(array) => {
                let elements = array.elements.iter().enumerate();
                let elements =
                    elements.map(|(at, element)| self.convert(element, &format!("{pointer}/{at}")));
                Value::Array(elements.collect())
            }
            ast::Value::Object(object) => {
                let mut map = Map::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    let inner = format!("{pointer}/{escaped}");
                    let value = self.convert(&property.value, &inner);
                    if map.insert(name.to_owned(), value).is_some() {
                        self.document.repeated.push(inner);
                    }
                }
                Value::Object(map)
            }
        }
    }
}

/// Returns the text of a settings file with entries added to the list at the path `names`; comments,
/// order and indentation are preserved.
pub fn with_entries(text: &str, names: &[&str], entries: &[String]) -> Result<String, String> {
    let (mark, text) = match text.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", text),
    };
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &options()).map_err(|error| error.to_string())?;
    let mut object = root
        .object_value()
        .ok_or("a settings file is one JSON object")?;
    let Some((last, above)) = names.split_last() else {
        return Err("no setting is named".to_owned());
    };
    for name in above {
        object = object
            .object_value_or_create(name)
            .ok_or_else(|| format!("its {name} are not an object"))?;
    }
    let array = object
        .array_value_or_create(last)
        .ok_or_else(|| format!("its {} is not a list", names.join(".")))?;
    let known: Vec<Value> = array
        .elements()
        .iter()
        .filter_map(|element| element.to_serde_value())
        .collect();
    for entry in entries {
        if !known.iter().any(|value| value == entry) {
            array.ensure_multiline();
            array.append(entry.as_str().into());
        }
    }
    Ok(format!("{mark}{root}"))
}

/// Returns the text of a settings file without these rules; everything else is preserved, also
/// comments between rules. Rules that the list does not contain are ignored.
pub fn without_rules(text: &str, list: &str, rules: &[String]) -> Result<String, String> {
    let (mark, text) = match text.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", text),
    };
    let root = CstRootNode::parse(text, &options()).map_err(|error| error.to_string())?;
    let array = root
        .object_value()
        .and_then(|object| object.object_value("permissions"))
        .and_then(|permissions| permissions.array_value(list));
    for element in array.iter().flat_map(|array| array.elements()) {
        let value = element.to_serde_value();
        let value = value.as_ref().and_then(Value::as_str);
        if value.is_some_and(|value| rules.iter().any(|rule| rule.trim() == value.trim())) {
            element.remove();
        }
    }
    Ok(format!("{mark}{root}"))
}

/// Returns the text of a settings file with one value set at the path `names`; everything else is
/// preserved.
pub fn with_value(text: &str, names: &[&str], value: &Value) -> Result<String, String> {
    let (mark, text) = match text.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", text),
    };
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &options()).map_err(|error| error.to_string())?;
    let mut object = root
        .object_value()
        .ok_or("a settings file is one JSON object")?;
    let Some((last, above)) = names.split_last() else {
        return Err("no setting is named".to_owned());
    };
    for name in above {
        object = object
            .object_value_or_create(name)
            .ok_or_else(|| format!("its {name} is not an object"))?;
    }
    match object.get(last) {
        Some(property) => property.set_value(input(value)),
        None => {
            object.append(last, input(value));
        }
    }
    Ok(format!("{mark}{root}"))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(fields.collect())
        }
    }
}

/// Opens a regular file. Any other file is an error: opening a named pipe would wait for a writer.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    // Opened once, and checked through the open file.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Reads a settings file: `None` if it does not exist. Fails for files that are not regular or too
/// large.
pub fn read(path: &Path) -> Result<Option<String>, String> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(format!("it is larger than {} MiB", MAX_SIZE >> 20));
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| "it is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\u{feff}{
  // what may run
  \"permissions\": {
    \"allow\": [
      \"Bash(npm test *)\", // the tests
    ],
  },
}
";

    #[test]
    fn comments_are_fine_and_lines_are_known() {
        let document = SettingsDocument::parse(FILE).unwrap();
        assert_eq!(
            document.value["permissions"]["allow"][0],
            "Bash(npm test *)"
        );
        assert_eq!(document.line("/permissions/allow/0"), Some(5));
        let broken = SettingsDocument::parse("{\n  \"a\": }").unwrap_err();
        assert_eq!(broken.line, Some(2), "{broken}");
        assert!(SettingsDocument::parse("[1]").is_err());
        assert!(SettingsDocument::parse("{'a': 1}").is_err());
    }

    #[test]
    fn an_edit_keeps_everything_else() {
        let edited =
            with_entries(FILE, &["permissions", "allow"], &["Bash(make)".to_owned()]).unwrap();
        insta::assert_snapshot!(edited);
        let again = with_entries(
            &edited,
            &["permissions", "allow"],
            &["Bash(make)".to_owned()],
        )
        .unwrap();
        assert_eq!(again, edited);
        insta::assert_snapshot!(
            with_entries("", &["permissions", "allow"], &["Bash(make)".to_owned()]).unwrap()
        );
    }

    #[test]
    fn a_value_is_put_in_and_everything_else_stays() {
        let put =
            |text: &str, names: &[&str], value: Value| with_value(text, names, &value).unwrap();
        let once = put(FILE, &["env", "A"], "1".into());
        let twice = put(&once, &["model"], "m".into());
        insta::assert_snapshot!(put(
            &twice,
            &["env", "A"],
            serde_json::json!({"x": [1, true]})
        ));
        assert!(with_value("{\"env\": 1}", &["env", "A"], &Value::Null).is_err());
    }
}
