//! How a notebook is written: line breaks, indentation, separators, escapes.
//!
//! New text follows what stands nearest; a notebook in one line stays in one line.

use super::json::Node;
use super::view::Notebook;

/// How the members of one object, and the lists below it, are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// `None`: all in one line.
    pub(super) lines: Option<Lines>,
    /// From a key to its value, such as `": "`.
    pub(super) colon: String,
    /// Between two things in one line, such as `", "`.
    pub(super) comma: String,
    /// Characters beyond ASCII are written as `\uXXXX`.
    pub(super) ascii: bool,
}

/// One thing a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// `\n` or `\r\n`.
    pub(super) newline: &'static str,
    /// Before the brackets that enclose the object.
    pub(super) outer: String,
    /// What each level adds.
    pub(super) unit: String,
}

/// What stands between an opening bracket and the first thing in it.
fn lead<'a>(text: &'a str, list: &Node<'_>, first: &Node<'_>) -> &'a str {
    &text[list.start + 1..first.start]
}

/// The break and the indentation in blanks that hold a break.
fn broken(blanks: &str) -> Option<(&'static str, &str)> {
    let last = blanks.rfind('\n')?;
    let newline = if blanks[..last].ends_with('\r') {
        "\r\n"
    } else {
        "\n"
    };
    Some((newline, &blanks[last + 1..]))
}

impl Layout {
    /// The layout of a cell: that of `cell` if there is one, else what the whole file suggests.
    pub(super) fn of(notebook: &Notebook<'_>, cell: Option<&Node<'_>>) -> Self {
        let text = notebook.text;
        let root = notebook.root.members();
        let colon = root
            .first()
            .map_or(": ", |member| &text[member.key.end..member.value.start]);
        let top = root
            .first()
            .and_then(|member| broken(lead(text, &notebook.root, &member.key)));
        // A list of more than one thing tells how things are separated in one line.
        let comma = match root.as_slice() {
            [first, second, ..] if top.is_none() => &text[first.value.end..second.key.start],
            _ if colon.ends_with(' ') => ", ",
            _ => ",",
        };
        let by_file = top.map(|(newline, indent)| Lines {
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
                        broken(lead(text, cell, &member.key)).map(|(newline, indent)| Lines {
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

    /// The break and blanks before something `depth` levels below the object's brackets.
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

    /// An object of these members, its values already JSON.
    pub(super) fn object(&self, members: &[(&str, String)]) -> String {
        let members: Vec<String> = members
            .iter()
            .map(|(key, value)| format!("\"{key}\"{}{value}", self.colon))
            .collect();
        self.object_of(&members)
    }

    /// The same of whole members.
    pub(super) fn object_of(&self, members: &[String]) -> String {
        let (first, last) = (self.before(1), self.before(0));
        format!("{{{first}{}{last}}}", members.join(&self.between(1)))
    }

    /// A list that is the value of a member of the object.
    pub(super) fn list(&self, items: &[String]) -> String {
        if items.is_empty() {
            return "[]".to_owned();
        }
        let (first, last) = (self.before(2), self.before(1));
        format!("[{first}{}{last}]", items.join(&self.between(2)))
    }

    /// A list of cells, this object the only one.
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

    /// A JSON string.
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

/// Does the file write `é` as `\u00e9`? Only if it has such escapes and no character beyond ASCII.
fn writes_ascii(text: &str) -> bool {
    let beyond = |escape: &str| {
        let unit = escape
            .get(..4)
            .map(|digits| u16::from_str_radix(digits, 16));
        matches!(unit, Some(Ok(0x80..)))
    };
    text.is_ascii() && text.split("\\u").skip(1).any(beyond)
}
