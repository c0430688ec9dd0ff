//! The formatting of a notebook: line breaks, indentation, separators, escapes.
//!
//! New text is formatted like the nearest existing text; a notebook in one line stays in one line.

use super::json::JsonNode;
use super::view::Notebook;

/// The formatting of one object and the lists in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotebookLayout {
    /// `None` if everything is in one line.
    pub(super) lines: Option<LineLayout>,
    /// The text between a key and its value, such as `": "`.
    pub(super) colon: String,
    /// The separator within one line, such as `", "`.
    pub(super) comma: String,
    /// Non-ASCII characters are written as `\uXXXX`.
    pub(super) ascii: bool,
}

/// The layout with one element per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineLayout {
    /// `\n` or `\r\n`.
    pub(super) newline: &'static str,
    /// The indentation of the brackets that enclose the object.
    pub(super) outer: String,
    /// The additional indentation of each level.
    pub(super) unit: String,
}

/// Returns the text between an opening bracket and the first element.
fn lead<'a>(text: &'a str, list: &JsonNode<'_>, first: &JsonNode<'_>) -> &'a str {
    &text[list.start + 1..first.start]
}

/// Splits whitespace into the line break and the indentation after it; `None` if it has no break.
fn broken(blanks: &str) -> Option<(&'static str, &str)> {
    let last = blanks.rfind('\n')?;
    let newline = if blanks[..last].ends_with('\r') {
        "\r\n"
    } else {
        "\n"
    };
    Some((newline, &blanks[last + 1..]))
}

impl NotebookLayout {
    /// Detects the layout of a cell: that of `cell` if given, otherwise the layout of the whole
    /// file.
    pub(super) fn detect(notebook: &Notebook<'_>, cell: Option<&JsonNode<'_>>) -> Self {
        let text = notebook.text;
        let root = notebook.root.members();
        let colon = root
            .first()
            .map_or(": ", |member| &text[member.key.end..member.value.start]);
        let top = root
            .first()
            .and_then(|member| broken(lead(text, &notebook.root, &member.key)));
        // The second member of the root shows the separator within a line.
        let comma = match root.as_slice() {
            [first, second, ..] if top.is_none() => &text[first.value.end..second.key.start],
            _ if colon.ends_with(' ') => ", ",
            _ => ",",
        };
        let by_file = top.map(|(newline, indent)| LineLayout {
            newline,
            outer: indent.repeat(2),
            unit: indent.to_owned(),
        });
        let lines = match cell {
            None => by_file,
            Some(cell) => {
                let place = notebook.cells.first();
                let place = place.and_then(|first| broken(lead(text, &notebook.list, first)));
                let outer = place.map_or("", |(_, indent)| indent);
                let members = cell.members();
                match members.first() {
                    None => by_file,
                    Some(member) => {
                        broken(lead(text, cell, &member.key)).map(|(newline, indent)| LineLayout {
                            newline,
                            outer: outer.to_owned(),
                            unit: indent.strip_prefix(outer).unwrap_or(indent).to_owned(),
                        })
                    }
                }
            }
        };
        Self {
            lines,
            colon: colon.to_owned(),
            comma: comma.to_owned(),
            ascii: writes_ascii(text),
        }
    }

    /// Returns the break and the indentation of an element `depth` levels inside the object's
    /// brackets.
    fn before(&self, depth: usize) -> String {
        self.lines.as_ref().map_or(String::new(), |lines| {
            format!(
                "{}{}{}",
                lines.newline,
                lines.outer,
                lines.unit.repeat(depth)
            )
        })
    }

    fn between(&self, depth: usize) -> String {
        match self.lines {
            Some(_) => format!(",{}", self.before(depth)),
            None => self.comma.clone(),
        }
    }

    /// Formats an object with these members; their values are already JSON.
    pub(super) fn object(&self, members: &[(&str, String)]) -> String {
        let members: Vec<String> = members
            .iter()
            .map(|(key, value)| format!("\"{key}\"{}{value}", self.colon))
            .collect();
        self.object_of(&members)
    }

    /// Like [`Self::object`], but for members that are already JSON.
    pub(super) fn object_of(&self, members: &[String]) -> String {
        let (first, last) = (self.before(1), self.before(0));
        format!("{{{first}{}{last}}}", members.join(&self.between(1)))
    }

    /// Formats a list that is the value of a member of the object.
    pub(super) fn list(&self, items: &[String]) -> String {
        if items.is_empty() {
            return "[]".to_owned();
        }
        let (first, last) = (self.before(2), self.before(1));
        format!("[{first}{}{last}]", items.join(&self.between(2)))
    }

    /// Formats a list of cells with this object as its only element.
    pub(super) fn list_of_one(&self, object: &str) -> String {
        match &self.lines {
            Some(lines) => {
                let end = lines.outer.strip_suffix(&lines.unit).unwrap_or("");
                format!(
                    "[{newline}{}{object}{newline}{end}]",
                    lines.outer,
                    newline = lines.newline
                )
            }
            None => format!("[{object}]"),
        }
    }

    /// Formats a JSON string.
    pub(super) fn string(&self, text: &str) -> String {
        let mut quoted = String::with_capacity(text.len() + 2);
        quoted.push('"');
        for character in text.chars() {
            match character {
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                '\u{8}' => quoted.push_str("\\b"),
                '\u{c}' => quoted.push_str("\\f"),
                '\0'..' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(character))),
                other if self.ascii && !other.is_ascii() => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        quoted.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                other => quoted.push(other),
            }
        }
        quoted.push('"');
        quoted
    }
}

/// Returns whether the file escapes non-ASCII characters: it has such escapes and no non-ASCII
/// character.
fn writes_ascii(text: &str) -> bool {
    let beyond = |escape: &str| {
        let unit = escape
            .get(..4)
            .map(|digits| u16::from_str_radix(digits, 16));
        matches!(unit, Some(Ok(0x80..)))
    };
    text.is_ascii() && text.split("\\u").skip(1).any(beyond)
}
