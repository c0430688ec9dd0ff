//! The cells of a notebook and their outputs, decoded for display.

use super::NotebookError;
use super::json::{self, JsonNode};
use crate::text::UTF8_BOM;

/// A notebook whose JSON was checked.
#[derive(Clone)]
pub struct Notebook<'a> {
    /// The text without the byte order mark.
    pub(super) text: &'a str,
    /// The number of bytes of the file before `text`.
    pub(super) mark: usize,
    pub(super) root: JsonNode<'a>,
    /// The array of cells.
    pub(super) list: JsonNode<'a>,
    pub(super) cells: Vec<JsonNode<'a>>,
}

/// One cell.
pub struct NotebookCell<'a> {
    node: JsonNode<'a>,
    index: usize,
}

/// One output of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellOutput {
    /// Text that was printed, computed or raised as an error.
    Text {
        /// The text.
        text: String,
    },
    /// An image, in base64 without line breaks.
    Image {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The base64 data.
        data: String,
    },
}

/// The image types that a model can be shown.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The text forms of a result, in order of preference.
const TEXTS: [&str; 6] = [
    "text/plain",
    "text/markdown",
    "text/latex",
    "image/svg+xml",
    "text/html",
    "application/json",
];

impl<'a> Notebook<'a> {
    /// Parses these bytes as a notebook with cells.
    pub fn open(bytes: &'a [u8]) -> Result<Self, NotebookError> {
        let mark = if bytes.starts_with(UTF8_BOM) {
            UTF8_BOM.len()
        } else {
            0
        };
        let body = &bytes[mark..];
        let text = std::str::from_utf8(body).map_err(|error| NotebookError::Json {
            fault: json::fault(body, error.valid_up_to(), "bytes that are not UTF-8"),
        })?;
        let root = json::parse(text).map_err(|fault| NotebookError::Json { fault })?;
        let not = |why| Err(NotebookError::NotNotebook { why });
        if !root.is_object() {
            return not("its JSON is not an object");
        }
        let Some(list) = root.get("cells").filter(JsonNode::is_array) else {
            return match root.get("worksheets") {
                Some(_) => not(
                    "its format is older than nbformat 4; convert it first, with \
                     `jupyter nbconvert --to notebook --inplace`",
                ),
                None => not("it has no list of cells"),
            };
        };
        let cells = list.elements();
        if !cells.iter().all(JsonNode::is_object) {
            return not("one of its cells is not an object");
        }
        Ok(Self {
            text,
            mark,
            root,
            list,
            cells,
        })
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns whether the notebook has no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the cells in order.
    pub fn cells(&self) -> impl Iterator<Item = NotebookCell<'a>> {
        let cells = self.cells.iter().enumerate();
        cells.map(|(index, node)| NotebookCell::new(*node, index))
    }

    /// Returns the programming language, if the notebook specifies it.
    pub fn language(&self) -> Option<String> {
        let metadata = self.root.get("metadata")?;
        let of = |part: &str, key: &str| metadata.get(part)?.get(key)?.text();
        of("language_info", "name").or_else(|| of("kernelspec", "language"))
    }

    /// Returns whether cells have ids, which exist since nbformat 4.5.
    pub(super) fn has_ids(&self) -> bool {
        let number = |key| self.root.get(key).and_then(|node| node.number());
        (number("nbformat"), number("nbformat_minor")) >= (Some(4), Some(5))
    }
}

impl<'a> NotebookCell<'a> {
    pub(super) fn new(node: JsonNode<'a>, index: usize) -> Self {
        Self { node, index }
    }

    /// Returns its id, or `cell-N` counted from 0.
    pub fn name(&self) -> String {
        self.id().unwrap_or_else(|| format!("cell-{}", self.index))
    }

    pub(super) fn id(&self) -> Option<String> {
        self.node.get("id")?.text().filter(|id| !id.is_empty())
    }

    /// Returns the type: `code`, `markdown` or `raw`.
    pub fn kind(&self) -> String {
        let kind = self.node.get("cell_type").and_then(|kind| kind.text());
        kind.unwrap_or_else(|| "raw".to_owned())
    }

    /// Returns its source text.
    pub fn source(&self) -> String {
        let source = self.node.get("source").and_then(|source| source.joined());
        source.unwrap_or_default()
    }

    /// Returns its outputs, in order.
    pub fn outputs(&self) -> Vec<CellOutput> {
        let outputs = self.node.get("outputs").map(|outputs| outputs.elements());
        outputs.iter().flatten().flat_map(shown).collect()
    }
}

fn shown(output: &JsonNode<'_>) -> Vec<CellOutput> {
    let text = |key: &str| output.get(key).and_then(|node| node.joined());
    match text("output_type").as_deref() {
        Some("stream") => text_outputs(text("text").unwrap_or_default()),
        Some("error") => {
            let trace: Vec<String> = output
                .get("traceback")
                .map(|trace| trace.elements())
                .iter()
                .flatten()
                .filter_map(JsonNode::text)
                .collect();
            let name = text("ename").unwrap_or_else(|| "error".to_owned());
            let value = text("evalue").unwrap_or_default();
            let last = format!("{name}: {value}");
            let trace = without_ansi(&trace.join("\n"));
            if trace.contains(last.trim_end()) {
                text_outputs(trace)
            } else {
                text_outputs(format!("{trace}\n{last}").trim_start().to_owned())
            }
        }
        _ => output.get("data").map_or(Vec::new(), |data| bundle(&data)),
    }
}

/// Converts a result that is stored in several forms. Returns the image, otherwise the best text.
fn bundle(data: &JsonNode<'_>) -> Vec<CellOutput> {
    let picture = PICTURES.iter().find_map(|kind| {
        let mut encoded = data.get(kind)?.joined()?;
        encoded.retain(|character| !character.is_ascii_whitespace());
        Some(CellOutput::Image {
            media_type: (*kind).to_owned(),
            data: encoded,
        })
    });
    if let Some(picture) = picture {
        return vec![picture];
    }
    for kind in TEXTS {
        if let Some(form) = data.get(kind) {
            return text_outputs(form.joined().unwrap_or_else(|| form.raw().to_owned()));
        }
    }
    let others = data.members();
    let others: Vec<String> = others
        .iter()
        .filter_map(|member| {
            let size = member.value.raw().len();
            Some(format!("{}, {size} bytes", member.key.text()?))
        })
        .collect();
    text_outputs(match others.is_empty() {
        true => String::new(),
        false => format!("[output that cannot be shown: {}]", others.join("; ")),
    })
}

fn text_outputs(text: String) -> Vec<CellOutput> {
    let text = without_ansi(&text);
    match text.trim().is_empty() {
        true => Vec::new(),
        false => vec![CellOutput::Text { text }],
    }
}

/// Removes terminal escape sequences.
fn without_ansi(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find('\u{1b}') {
        plain.push_str(&rest[..found]);
        rest = &rest[found + 1..];
        rest = match rest.as_bytes().first() {
            Some(b'[') => {
                let end = rest[1..].find(|byte| matches!(byte, '@'..='~'));
                end.map_or("", |end| &rest[end + 2..])
            }
            Some(b']') => {
                let end = rest.find(['\u{7}', '\u{1b}']);
                end.map_or("", |end| &rest[end..])
                    .trim_start_matches('\u{7}')
            }
            Some(b'\\') => &rest[1..], // the end of the previous sequence
            _ => rest,
        };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_named_and_shown() {
        let text = r#"{"cells": [
            {"id": "a1", "cell_type": "code", "source": ["x\n", "y"], "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["one\n", "\u001b[31mtwo\u001b[0m"]},
                {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": ["\u001b[1mline\u001b[0m"]},
                {"output_type": "execute_result", "data": {"text/plain": ["<Figure>"], "image/png": "iVBO\nRw=="}},
                {"output_type": "display_data", "data": {"text/html": "<b>", "text/plain": "b"}},
                {"output_type": "display_data", "data": {"application/vnd.x": {"a": NaN}}},
                {"output_type": "display_data", "data": {}}
            ]},
            {"cell_type": "markdown", "source": "text"},
            {}
        ], "metadata": {"kernelspec": {"language": "julia"}}}"#;
        let notebook = Notebook::open(text.as_bytes()).unwrap();
        let cells: Vec<_> = notebook
            .cells()
            .map(|cell| (cell.name(), cell.kind(), cell.source()))
            .collect();
        let expected = [
            ("a1", "code", "x\ny"),
            ("cell-1", "markdown", "text"),
            ("cell-2", "raw", ""),
        ];
        assert_eq!(
            cells,
            expected.map(|(name, kind, source)| (name.into(), kind.into(), source.into()))
        );
        assert_eq!(notebook.language().as_deref(), Some("julia"));
        let text = |text: &str| CellOutput::Text { text: text.into() };
        assert_eq!(
            notebook.cells().next().unwrap().outputs(),
            [
                text("one\ntwo"),
                text("line\nE: bad"),
                CellOutput::Image {
                    media_type: "image/png".into(),
                    data: "iVBORw==".into()
                },
                text("b"),
                text("[output that cannot be shown: application/vnd.x, 10 bytes]"),
            ]
        );
    }

    #[test]
    fn what_is_no_notebook_is_refused() {
        let cases: [(&[u8], &str); 6] = [
            (b"", "1:1"),
            (
                b"{\"cells\": [\xff]}",
                "1:12 (line:column): bytes that are not UTF-8",
            ),
            (b"[]", "not an object"),
            (b"{}", "no list of cells"),
            (b"{\"worksheets\": []}", "nbconvert"),
            (b"{\"cells\": [3]}", "not an object"),
        ];
        for (bytes, part) in cases {
            let error = Notebook::open(bytes).err().unwrap().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn escape_sequences_are_left_out() {
        let cases = [
            ("\u{1b}[0;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;url\u{1b}\\link", "link"),
            ("cut \u{1b}[3", "cut "),
            ("end \u{1b}", "end "),
        ];
        for (text, plain) in cases {
            assert_eq!(without_ansi(text), plain);
        }
    }
}
