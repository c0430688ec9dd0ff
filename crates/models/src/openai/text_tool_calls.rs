//! Tool calls that a model prints as text, because its server does not parse the model's call
//! format.
//!
//! Used only if the quirk `printed_calls` is set. For other servers, a call that the text merely
//! quotes must not run.

use serde_json::{Map, Value};

/// A call found in a text.
#[derive(Debug, PartialEq)]
pub(super) struct TextToolCall {
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// Returns the text without its calls, and the calls. Calls that cannot be parsed remain in the
/// text.
pub(super) fn find(text: &str) -> (String, Vec<TextToolCall>) {
    if let Some(call) = fenced(text) {
        return (String::new(), vec![call]);
    }
    let mut said = String::new();
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(CallForm { start, end, call }) = next(rest) {
        said.push_str(&rest[..start]);
        match call {
            Some(call) => calls.push(call),
            None => said.push_str(&rest[start..end]),
        }
        rest = &rest[end..];
    }
    said.push_str(rest);
    (said.trim().to_owned(), calls)
}

/// A possible call: its range in the text, and the call if it could be parsed.
struct CallForm {
    start: usize,
    end: usize,
    call: Option<TextToolCall>,
}

fn next(text: &str) -> Option<CallForm> {
    let forms = [
        ("<tool_call>", "</tool_call>"),
        ("<function=", "</function>"),
    ];
    let at = |open: &str| text.find(open);
    let (start, (open, close)) = forms
        .into_iter()
        .filter_map(|form| Some((at(form.0)?, form)))
        .min_by_key(|(start, _)| *start)?;
    let inside = &text[start + open.len()..];
    // Models sometimes omit the closing tag of the last call.
    let end = inside.find(close);
    let body = &inside[..end.unwrap_or(inside.len())];
    let after = start + open.len() + body.len() + end.map_or(0, |_| close.len());
    let call = match open {
        "<function=" => function(body),
        _ => object(body).or_else(|| find(body).1.into_iter().next()),
    };
    // If this is not a call, only its tag is skipped: a call may follow it.
    let end = match call {
        Some(_) => after,
        None => start + open.len(),
    };
    Some(CallForm { start, end, call })
}

/// Parses `{"name": …, "arguments": {…}}`.
fn object(text: &str) -> Option<TextToolCall> {
    let Value::Object(mut object) = serde_json::from_str(text.trim()).ok()? else {
        return None;
    };
    let Value::String(name) = object.remove("name")? else {
        return None;
    };
    let arguments = object
        .remove("arguments")
        .or_else(|| object.remove("parameters"))?;
    arguments
        .is_object()
        .then_some(TextToolCall { name, arguments })
}

/// Parses `NAME>{…}`, or `NAME>` followed by `<parameter=KEY>VALUE</parameter>` for each argument.
fn function(text: &str) -> Option<TextToolCall> {
    let (name, body) = text.split_once('>')?;
    let name = name.trim().trim_matches('"').to_owned();
    let body = body.trim();
    if let Ok(arguments @ Value::Object(_)) = serde_json::from_str(body) {
        return Some(TextToolCall { name, arguments });
    }
    let mut arguments = Map::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (key, after) = rest.strip_prefix("<parameter=")?.split_once('>')?;
        let (value, after) = after.split_once("</parameter>")?;
        // Values that are JSON (numbers, lists) are parsed; all others are text.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        arguments.insert(key.trim().to_owned(), value);
        rest = after.trim_start();
    }
    let arguments = Value::Object(arguments);
    (!name.is_empty()).then_some(TextToolCall { name, arguments })
}

/// Returns the call of a reply that consists of a single fenced block with a call in it.
fn fenced(text: &str) -> Option<TextToolCall> {
    let inside = text.trim().strip_prefix("```")?.strip_suffix("```")?;
    object(inside.strip_prefix("json").unwrap_or(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_text() {
        let cases = [
            ("none", "hello", "hello", vec![]),
            (
                "tags",
                "So:\n<tool_call>\n{\"name\":\"R\",\"arguments\":{\"x\":1}}\n</tool_call>",
                "So:",
                vec![r#"R {"x":1}"#],
            ),
            (
                "two, the last without an end",
                r#"<tool_call>{"name":"R","arguments":{}}</tool_call><tool_call>{"name":"G","arguments":{}}"#,
                "",
                vec!["R {}", "G {}"],
            ),
            (
                "a function",
                r#"<function=R>{"x":1}</function> done"#,
                "done",
                vec![r#"R {"x":1}"#],
            ),
            (
                "parameters",
                "<function=R>\n<parameter=path>\n/p a\n</parameter>\n<parameter=n>3</parameter></function>",
                "",
                vec![r#"R {"path":"/p a","n":3}"#],
            ),
            (
                "a function in tags",
                "<tool_call><function=R><parameter=x>y</parameter></function></tool_call>",
                "",
                vec![r#"R {"x":"y"}"#],
            ),
            (
                "fenced",
                "```json\n{\"name\":\"R\",\"parameters\":{}}\n```",
                "",
                vec!["R {}"],
            ),
            (
                "other JSON",
                "```json\n{\"name\":\"R\"}\n```",
                "```json\n{\"name\":\"R\"}\n```",
                vec![],
            ),
            (
                "unreadable",
                "<tool_call>{\"name\":</tool_call>",
                "<tool_call>{\"name\":</tool_call>",
                vec![],
            ),
        ];
        for (what, text, said, expected) in cases {
            let (rest, calls) = find(text);
            let line = |call: &TextToolCall| format!("{} {}", call.name, call.arguments);
            let calls: Vec<String> = calls.iter().map(line).collect();
            assert_eq!(
                (rest.as_str(), calls),
                (
                    said,
                    expected.iter().map(|text| (*text).to_owned()).collect()
                ),
                "{what}"
            );
        }
    }
}
