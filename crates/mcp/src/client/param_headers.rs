//! Tool parameters that are also sent as headers, so that intermediaries can route by them
//! (2026-07-28). A tool's schema marks them with `x-mcp-header`.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::message::RpcMessage;

/// The maximum number of headers per tool.
const MAX_COUNT: usize = 64;
/// The maximum depth of a schema to search.
const MAX_DEPTH: usize = 16;

/// The path to a property, and the name of its header.
type ParamHeader = (Vec<String>, String);

/// The headers of calls, by tool.
#[derive(Default)]
pub(super) struct ParamHeaders(HashMap<String, Vec<ParamHeader>>);

impl ParamHeaders {
    /// Records the headers of these tools. Tools with invalid headers are removed from the list.
    pub(super) fn take_headers(&mut self, tools: Vec<Value>) -> Vec<Value> {
        self.0.clear();
        let usable = tools.into_iter().filter(|tool| {
            let name = tool["name"].as_str().unwrap_or_default();
            let mut found = Vec::new();
            match search(&tool["inputSchema"], &mut Vec::new(), &mut found)
                .and_then(|()| unique(&found))
            {
                Ok(()) => {
                    if !found.is_empty() {
                        self.0.insert(name.to_owned(), found);
                    }
                    true
                }
                Err(why) => {
                    tracing::warn!(tool = name, why, "a tool of an MCP server is left out");
                    false
                }
            }
        });
        usable.collect()
    }

    /// Returns the headers for a message.
    pub(super) fn headers_for(&self, message: &RpcMessage) -> Vec<(String, String)> {
        let RpcMessage::Request { method, params, .. } = message else {
            return Vec::new();
        };
        let wanted = params["name"].as_str().filter(|_| method == "tools/call");
        let wanted = wanted.and_then(|name| self.0.get(name));
        let headers = wanted.into_iter().flatten().filter_map(|(path, header)| {
            let value = path
                .iter()
                .try_fold(&params["arguments"], |value, name| value.get(name));
            let value = match value? {
                Value::String(text) => header_value(text),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return None,
            };
            Some((format!("mcp-param-{}", header.to_ascii_lowercase()), value))
        });
        headers.collect()
    }
}

/// Finds the properties that are sent as headers. The error describes an invalid one.
fn search(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    if path.len() == MAX_DEPTH {
        return Ok(());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        if let Some(header) = property.get("x-mcp-header") {
            let header = header.as_str().filter(|header| is_token(header));
            let header = header
                .ok_or_else(|| format!("the `x-mcp-header` of {name} is not a header name"))?;
            let is_plain = ["string", "integer", "boolean"]
                .iter()
                .any(|kind| property["type"] == *kind);
            if !is_plain || found.len() == MAX_COUNT {
                return Err(format!("{name} has a type that cannot be sent as a header"));
            }
            found.push((path.clone(), header.to_owned()));
        }
        search(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn unique(found: &[ParamHeader]) -> Result<(), String> {
    let mut seen = HashSet::new();
    let twice = found
        .iter()
        .find(|(_, header)| !seen.insert(header.to_ascii_lowercase()));
    match twice {
        None => Ok(()),
        Some((_, header)) => Err(format!("two properties use the header {header}")),
    }
}

/// Returns whether a text may be part of a header name.
fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(fits)
}

/// Encodes a text as a header value: anything but printable ASCII is encoded as Base64.
pub(super) fn header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if is_plain && text.trim() == text && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!(
        "=?base64?{}?=",
        data_encoding::BASE64.encode(text.as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::RpcId;

    fn tool(name: &str, properties: Value) -> Value {
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
    }

    #[test]
    fn arguments_are_headers_where_the_schema_says_so() {
        let mut headers = ParamHeaders::default();
        let inner = json!({"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}});
        let properties = json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "on": {"type": "boolean", "x-mcp-header": "On"},
            "place": inner,
            "query": {"type": "string"},
        });
        assert_eq!(headers.take_headers(vec![tool("t", properties)]).len(), 1);
        let arguments = json!({"region": "a\r\nx: y", "n": 3, "on": null, "place": {"zone": "z"}, "query": "q"});
        let call = |name: &str| {
            let params = json!({"name": name, "arguments": arguments});
            headers.headers_for(&RpcMessage::request(RpcId::Number(1), "tools/call", params))
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("mcp-param-region", "=?base64?YQ0KeDogeQ==?="),
            pair("mcp-param-n", "3"),
            pair("mcp-param-zone", "z"),
        ];
        assert_eq!(call("t"), expected);
        assert!(call("other").is_empty());
    }

    #[test]
    fn a_tool_that_wants_what_cannot_be_a_header_is_left_out() {
        let text = |header: &str| json!({"a": {"type": "string", "x-mcp-header": header}});
        let twice = json!({
            "a": {"type": "string", "x-mcp-header": "X"},
            "b": {"type": "string", "x-mcp-header": "x"},
        });
        let tools = vec![
            tool("good", text("Region")),
            tool("empty", text("")),
            tool("split", text("A\r\nB")),
            tool("colon", text("A:B")),
            tool(
                "number",
                json!({"a": {"type": "number", "x-mcp-header": "A"}}),
            ),
            tool(
                "object",
                json!({"a": {"type": "object", "x-mcp-header": "A"}}),
            ),
            tool("odd", json!({"a": {"type": "string", "x-mcp-header": 1}})),
            tool("twice", twice),
        ];
        let usable = ParamHeaders::default().take_headers(tools);
        assert_eq!(usable.len(), 1);
        assert_eq!(usable[0]["name"], "good");
    }
}
