//! The front matter of a Markdown file: YAML between two lines `---`.
//!
//! It is read leniently: `yes` is true where a boolean is expected, a list may be one string, and a
//! plain sentence that contains a colon is a sentence. If the front matter is still not valid YAML,
//! the result has a [`FrontMatterError`], and the body is still available.

use std::{collections::HashSet, path::Path};

use serde_json::{Map, Value};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use crate::ExtensionWarning;

/// The maximum length of front matter, in bytes.
const MAX_LENGTH: usize = 64 * 1024;

/// A parsed file.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontMatter<'a> {
    /// The values of the front matter; empty if the file has no front matter.
    pub head: FrontMatterFields,
    /// The text after the front matter.
    pub body: &'a str,
    /// The error in the front matter, which is then empty.
    pub error: Option<FrontMatterError>,
    /// A warning about a duplicate key; its last value is used.
    pub duplicate_key: Option<FrontMatterError>,
}

impl FrontMatter<'_> {
    /// Adds a warning about a duplicate key.
    pub(crate) fn warn_of_duplicate_key(&self, file: &Path, warnings: &mut Vec<ExtensionWarning>) {
        if let Some(doubled) = &self.duplicate_key {
            warnings
                .push(ExtensionWarning::new(file, doubled.message.clone()).with_line(doubled.line));
        }
    }
}

/// An error in front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatterError {
    /// The line in the file, from 1.
    pub line: Option<u64>,
    /// The description of the error.
    pub message: String,
}

/// The values of front matter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrontMatterFields(Map<String, Value>);

impl From<Map<String, Value>> for FrontMatterFields {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

/// Splits a file into front matter and body, and parses the front matter.
pub fn parse(text: &str) -> FrontMatter<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let nothing = |body, fault| FrontMatter {
        head: FrontMatterFields::default(),
        body,
        error: fault,
        duplicate_key: None,
    };
    let Some((head, body)) = split(text) else {
        let opens = text.lines().next().is_some_and(is_mark);
        let fault = opens.then(|| FrontMatterError {
            line: Some(1),
            message: "the line `---` that ends the front matter is missing".to_owned(),
        });
        return nothing(text, fault);
    };
    if head.len() > MAX_LENGTH {
        let fault = FrontMatterError {
            line: Some(1),
            message: format!("the front matter is longer than {} KiB", MAX_LENGTH >> 10),
        };
        return nothing(body, Some(fault));
    }
    let read = yaml(head).or_else(|fault| yaml(&quoted(head)).map_err(|_| fault));
    match read {
        Ok(Value::Object(map)) => FrontMatter {
            head: FrontMatterFields(map),
            body,
            error: None,
            duplicate_key: find_duplicate_key(head),
        },
        Ok(Value::Null) => nothing(body, None),
        Ok(_) => {
            let fault = FrontMatterError {
                line: Some(2),
                message: "the front matter is not a list of `key: value`".to_owned(),
            };
            nothing(body, Some(fault))
        }
        Err(fault) => nothing(body, Some(fault)),
    }
}

/// Finds the first key that begins two lines.
fn find_duplicate_key(head: &str) -> Option<FrontMatterError> {
    let mut keys = HashSet::new();
    // The first line of the front matter is the second of the file.
    head.lines().zip(2..).find_map(|(line, number)| {
        let (key, _) = line.split_once(':')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if key.is_empty() || !key.chars().all(is_name) || keys.insert(key) {
            return None;
        }
        let what = format!("`{key}` occurs twice in the front matter; the last value applies");
        let line = Some(number);
        Some(FrontMatterError {
            line,
            message: what,
        })
    })
}

/// Splits a text into front matter and body, without the `---` lines.
fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if !is_mark(first) {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if is_mark(line) {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn is_mark(line: &str) -> bool {
    line.trim_end() == "---"
}

fn yaml(head: &str) -> Result<Value, FrontMatterError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_aliases: 64,
            max_anchors: 64,
            max_recorded_anchor_events: 10_000,
            max_events: 50_000,
            flow_nesting_limit: 32,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        // `yes` may be text; it is converted only where a boolean is expected.
        strict_booleans: true,
        with_snippet: false,
    };
    if head.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str_with_options(head, options).map_err(|error| {
        // The first line of the front matter is the second of the file.
        let line = error.location().map(|location| location.line() + 1);
        let told = error.without_snippet().to_string();
        let told = told.lines().next().unwrap_or_default();
        let what = told.split(" at line ").next().unwrap_or(told);
        FrontMatterError {
            line,
            message: format!("the front matter is not valid YAML: {what}"),
        }
    })
}

/// Puts plain one-line values in quotes. Users write `description: Use it so: …`, `argument-hint:
/// [file] [mode]` and `tools: *`, and mean the text.
fn quoted(head: &str) -> String {
    let mut text = String::with_capacity(head.len() + 64);
    for line in head.lines() {
        match plain_value(line) {
            Some((key, value)) => text += &format!("{key}: {}", Value::from(value)),
            None => text += line,
        }
        text.push('\n');
    }
    text
}

/// Returns the key and value of a line, if the value is plain text that needs quotes.
fn plain_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if key.is_empty() || key.starts_with('-') || !key.chars().all(is_name) {
        return None;
    }
    let value = value.strip_prefix([' ', '\t'])?.trim();
    let first = value.chars().next()?;
    let is_meant = match first {
        // A string in quotes, possibly without the closing quote.
        '"' | '\'' => true,
        // A list; but `[file] [mode]` is not one.
        '[' => value.find(']').is_none_or(|end| end + 1 == value.len()),
        '{' => value.find('}').is_none_or(|end| end + 1 == value.len()),
        '|' | '>' => value.len() <= 3,
        // A YAML anchor or alias; but `*` and `*.md` are not aliases.
        '&' => true,
        '*' => value.len() > 1 && value[1..].chars().all(is_name),
        _ => false,
    };
    (!is_meant).then_some((key, value))
}

impl FrontMatterFields {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// Returns all keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns a value as text; numbers, booleans and lists are converted. `None` if it is empty.
    pub fn text(&self, key: &str) -> Option<String> {
        let text = match self.get(key)? {
            // YAML parses a hint like `[file]` as a list, but its author means the text.
            Value::Array(items) => {
                let items: Option<Vec<String>> = items.iter().map(scalar).collect();
                format!("[{}]", items?.join(", "))
            }
            value => scalar(value)?,
        };
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns a list, or a string split at commas and whitespace outside parentheses.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        match self.get(key)? {
            Value::Array(items) => Some(items.iter().filter_map(scalar).collect()),
            Value::Object(_) => None,
            value => Some(split_list(&scalar(value)?, |c| {
                c == ',' || c.is_whitespace()
            })),
        }
    }

    /// Returns a list, or a string split at commas only: patterns may contain spaces.
    pub fn patterns(&self, key: &str) -> Option<Vec<String>> {
        match self.get(key)? {
            Value::Array(items) => Some(items.iter().filter_map(scalar).collect()),
            Value::Object(_) => None,
            value => Some(split_list(&scalar(value)?, |c| c == ',')),
        }
    }

    /// Returns a boolean in any common spelling; `None` for other values.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(value) => Some(*value),
            value => match scalar(value)?.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" | "y" => Some(true),
                "false" | "no" | "off" | "0" | "n" => Some(false),
                _ => None,
            },
        }
    }

    /// Returns a number greater than 0.
    pub fn count(&self, key: &str) -> Option<u32> {
        let value = self.get(key)?;
        let count = match value {
            Value::Number(number) => number.as_u64()?,
            value => value.as_str()?.trim().parse().ok()?,
        };
        u32::try_from(count).ok().filter(|count| *count > 0)
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Splits at separators that are not inside `(…)` or `{…}`; parts are trimmed, empty ones dropped.
fn split_list(text: &str, splits: impl Fn(char) -> bool) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if depth > 0 || !splits(c) => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    let parts = parts.iter().map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn head(text: &str) -> FrontMatterFields {
        let file = format!("---\n{text}\n---\nbody\n");
        let parsed = parse(&file);
        assert_eq!(parsed.error, None, "{text}");
        assert_eq!(parsed.body, "body\n");
        parsed.head
    }

    #[test]
    fn a_file_without_a_head_is_all_body() {
        for text in ["", "# Title\n", "a\n---\nb\n---\n", " ---\na: 1\n---\n"] {
            let parsed = parse(text);
            assert_eq!((parsed.body, parsed.error), (text, None), "{text:?}");
        }
        assert_eq!(parse("---\n---\nx").body, "x");
        assert_eq!(parse("---\n# nothing\n---\nx").error, None);
    }

    #[test]
    fn values_as_people_write_them() {
        let head = head(
            "name: my-agent\n\
             description: Use it so: when asked. Examples: \"a\": b # c\n\
             argument-hint: [file] [mode]\n\
             hint: [issue]\n\
             tools: Read, Bash(git add:*, git status) Grep\n\
             star: *\n\
             items:\n  - a b\n  - 2\n\
             on: yes\n\
             off: 0\n\
             maxTurns: 12\n\
             version: 1.0\n\
             folded: >-\n  one\n  two\n\
             nothing:",
        );
        let text = |key| head.text(key);
        assert_eq!(
            text("description").unwrap(),
            "Use it so: when asked. Examples: \"a\": b # c"
        );
        assert_eq!(text("argument-hint").unwrap(), "[file] [mode]");
        assert_eq!(text("hint").unwrap(), "[issue]");
        assert_eq!(text("star").unwrap(), "*");
        assert_eq!(text("version").unwrap(), "1.0");
        assert_eq!(text("folded").unwrap(), "one two");
        assert_eq!(text("nothing"), None);
        assert_eq!(
            head.list("tools").unwrap(),
            ["Read", "Bash(git add:*, git status)", "Grep"]
        );
        assert_eq!(head.list("items").unwrap(), ["a b", "2"]);
        assert_eq!(head.boolean("on"), Some(true));
        assert_eq!(head.boolean("off"), Some(false));
        assert_eq!(head.boolean("name"), None);
        assert_eq!(head.count("maxTurns"), Some(12));
    }

    #[test]
    fn patterns_keep_their_blanks_and_braces() {
        let head = head("paths: src/**/*.{ts,tsx}, my docs/*.md");
        assert_eq!(
            head.patterns("paths").unwrap(),
            ["src/**/*.{ts,tsx}", "my docs/*.md"]
        );
    }

    #[test]
    fn what_is_no_yaml_is_said_with_its_line() {
        let told: Vec<String> = [
            "---\nname: a\ntools: [Read\n---\nbody",
            "---\nname: a\n  b: c\n---\nbody",
            "---\n- a\n- b\n---\nbody",
            "---\nname: \"a\n---\nbody",
            "---\nname: a\nbody",
            "---\na: &a [1]\nb: *c\nx:\n y: 1\n  z: 2\n---\nbody",
        ]
        .map(|text| {
            let parsed = parse(text);
            let fault = parsed.error.unwrap();
            assert_eq!(parsed.head, FrontMatterFields::default());
            format!("{:?} {}", fault.line, fault.message)
        })
        .to_vec();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn bombs_do_not_go_off() {
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (from, to) in ('a'..'j').zip('b'..'k') {
            bomb += &format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 9].join(","));
        }
        assert!(parse(&format!("---\n{bomb}---\n")).error.is_some());
        let deep = format!("---\na: {}\n---\n", "[".repeat(30_000));
        let parsed = parse(&deep);
        // Too deep to be a list, so it is the text it looks like.
        assert!(parsed.error.is_some() || parsed.head.text("a").is_some());
    }

    #[test]
    fn a_key_that_is_there_twice_is_noted_and_the_last_one_counts() {
        let text = "---\nname: a\ndescription: |\n  name: not a key\nname: b\n---\nBody";
        let parsed = parse(text);
        assert_eq!(parsed.head.text("name").as_deref(), Some("b"));
        let doubled = parsed.duplicate_key.unwrap();
        assert_eq!(doubled.line, Some(5));
        insta::assert_snapshot!(doubled.message, @"`name` occurs twice in the front matter; the last value applies");
        assert_eq!(parse("---\nname: a\nmodel: b\n---\n").duplicate_key, None);
    }

    #[test]
    fn a_map_given_as_json_reads_the_same() {
        let Value::Object(map) = json!({"tools": ["Read"], "background": true}) else {
            panic!()
        };
        let head = FrontMatterFields::from(map);
        assert_eq!(head.list("tools").unwrap(), ["Read"]);
        assert_eq!(head.boolean("background"), Some(true));
    }

    proptest! {
        #[test]
        fn nothing_panics_and_the_body_is_a_part_of_the_text(text in "(---\n)?([a-c]: ?)?[-\\[\\]{}|>&*!%@`\"':#a-c \n\t?,\u{e4}]{0,80}(\n---\n)?[a-c\n]{0,8}") {
            let parsed = parse(&text);
            prop_assert!(text.ends_with(parsed.body));
        }

        #[test]
        fn whatever_is_between_the_marks_never_reaches_the_body(head in "[^-]{0,60}", body in "[a-z\n]{0,20}") {
            let text = format!("---\n{head}\n---\n{body}");
            prop_assert_eq!(parse(&text).body, body);
        }
    }
}
