//! A fake model that follows simple prompts, with a server that rejects what a real one rejects.
//! It is for tests with third-party programs, whose prompts are not known in advance.
//!
//! It understands a few phrases ("Run this command: …", "Use the … agent to …", "Reply with
//! exactly: …", names of tools). It answers any other prompt with a sentence.

use serde_json::{Map, Value, json};

use crate::{
    anthropic::reply_of,
    http::{HttpFake, HttpReply, RecordedHttpRequest},
    strict,
};

/// The models in its list.
pub const MODELS: [&str; 3] = [
    "claude-opus-4-5-20251101",
    "claude-sonnet-4-5-20250929",
    "claude-haiku-4-5-20251001",
];

/// Aliases of the models, and of one more model.
const ALIASES: [&str; 4] = [
    "claude-opus-4-5",
    "claude-sonnet-4-5",
    "claude-haiku-4-5",
    "claude-3-5-haiku-20241022",
];

/// Starts the server.
pub fn start() -> HttpFake {
    HttpFake::start_with(answer)
}

/// Returns the reply to a request.
pub fn answer(asked: &RecordedHttpRequest) -> HttpReply {
    let json = |body: Value| HttpReply::new(200, "application/json", body.to_string());
    match asked.target() {
        ("GET", "/v1/models") => json(models()),
        ("POST", "/v1/messages") => strict::refusal(asked).unwrap_or_else(|| message(&asked.body)),
        ("POST", "/v1/messages/count_tokens") => json(json!({"input_tokens": 100})),
        _ => HttpReply::error(404, "not_found_error", "Not found"),
    }
}

fn models() -> Value {
    let model = |id: &&str| {
        json!({
            "type": "model", "id": id, "display_name": id, "created_at": "2025-11-01T00:00:00Z",
            "max_input_tokens": 200_000, "max_tokens": 64_000,
        })
    };
    let data: Vec<Value> = MODELS.iter().map(model).collect();
    json!({"data": data, "has_more": false, "first_id": MODELS[0], "last_id": MODELS[2]})
}

fn message(body: &Value) -> HttpReply {
    let model = body["model"].as_str().unwrap_or_default();
    if !MODELS.contains(&model) && !ALIASES.contains(&model) {
        return HttpReply::error(404, "not_found_error", &format!("model: {model}"));
    }
    let (prompt, done) = prompt(body);
    let thinks = matches!(
        body["thinking"]["type"].as_str(),
        Some("enabled" | "adaptive")
    );
    let mut blocks = Vec::new();
    if thinks {
        let thinking = format!("They ask: {prompt}");
        blocks.push(json!({"type": "thinking", "thinking": thinking, "signature": "c2lnbmVk"}));
    }
    let steps = steps(&prompt, body);
    if let Some((name, input)) = steps.into_iter().nth(done) {
        let id = format!(
            "toolu_{}_{done}",
            body["messages"].as_array().map_or(0, Vec::len)
        );
        blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        return reply_of(model, &blocks, "tool_use");
    }
    // Answers with a call of `StructuredOutput` if the tool is offered.
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    if let Some(tool) = tools.iter().find(|tool| tool["name"] == "StructuredOutput") {
        let (id, input) = (
            format!("toolu_answer_{done}"),
            shaped(&tool["input_schema"], ""),
        );
        blocks.push(json!({"type": "tool_use", "id": id, "name": tool["name"], "input": input}));
        return reply_of(model, &blocks, "tool_use");
    }
    let text = match body["output_config"].get("format") {
        Some(format) => shaped(&format["schema"], "").to_string(),
        None => reply_text(&prompt),
    };
    blocks.push(json!({"type": "text", "text": text}));
    let reply = reply_of(model, &blocks, "end_turn");
    // The reply stays open, so that it can be interrupted.
    match prompt.starts_with("Count from") {
        true => reply.silent_before("event: message_delta"),
        false => reply,
    }
}

/// Returns the text of the last prompt, and the number of calls that were made for it.
fn prompt(body: &Value) -> (String, usize) {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut calls = 0;
    for message in messages.iter().rev() {
        let blocks = match &message["content"] {
            Value::String(text) => return (text.clone(), calls),
            content => content.as_array().map_or(&[][..], Vec::as_slice),
        };
        if message["role"] == "assistant" {
            let is_call =
                |block: &&Value| block["type"] == "tool_use" && block["name"] != "ToolSearch";
            calls += blocks.iter().filter(is_call).count();
            continue;
        }
        let texts = blocks
            .iter()
            .rev()
            .filter_map(|block| block["text"].as_str());
        let mut said = texts.filter(|text| {
            !text.starts_with("<system-reminder>") && !text.starts_with("[Request interrupted")
        });
        if let Some(text) = said.next() {
            return (text.to_owned(), calls);
        }
    }
    (String::new(), calls)
}

fn reply_text(prompt: &str) -> String {
    let exactly = ["Reply with exactly: ", "Reply with: "];
    let exactly = exactly.iter().find_map(|words| prompt.strip_prefix(words));
    match exactly {
        Some(text) => text.to_owned(),
        None => format!("Here is an answer to: {prompt}"),
    }
}

/// Returns the calls that a prompt requests.
fn steps(prompt: &str, body: &Value) -> Vec<(String, Value)> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
    let one = |name: &str, input: Value| match has(name) {
        true => vec![(name.to_owned(), input)],
        false => Vec::new(),
    };
    let kind = between(prompt, "subagent_type '", "'")
        .or_else(|| between(prompt, "Use the ", " agent to "));
    if let Some(kind) = kind {
        let words = between(prompt, "prompt '", "'").unwrap_or(prompt);
        let input = json!({"subagent_type": kind, "prompt": format!("Reply with: {words}"), "description": "as asked"});
        return one("Agent", input);
    }
    for asks in ["Run: ", "command: "] {
        if let Some((_, command)) = prompt.split_once(asks) {
            return one("Bash", json!({"command": command}));
        }
    }
    if let Some(path) = between(prompt, "create the file ", " containing") {
        return one("Write", json!({"file_path": path, "content": "hello"}));
    }
    if let Some((_, rest)) = prompt.split_once("file called ") {
        let name = rest.split_whitespace().next().unwrap_or("a.txt");
        let text = between(prompt, "'", "'").unwrap_or_default();
        return one("Write", json!({"file_path": name, "content": text}));
    }
    if let Some(name) = between(prompt, "Read the ", " file") {
        return one("Read", json!({"file_path": name}));
    }
    let asked_for = |name: &str| {
        let Some((_, short)) = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
        else {
            return false;
        };
        prompt.contains(name)
            || prompt.contains(&format!("the {short} tool"))
            || asks_to(short, prompt)
    };
    let named = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
    let called = tools.iter().filter(|tool| asked_for(&named(tool)));
    let called: Vec<_> = called
        .map(|tool| (named(tool), shaped(&tool["input_schema"], "")))
        .collect();
    let listed = listed(body);
    let unloaded = listed
        .iter()
        .filter(|name| !has(name) && asked_for(name))
        .cloned();
    let unloaded: Vec<String> = unloaded.collect();
    if called.is_empty() && !unloaded.is_empty() {
        let query = format!("select:{}", unloaded.join(","));
        // Only once, in case the tools cannot be loaded.
        if !body["messages"].to_string().contains(&query) {
            return one("ToolSearch", json!({"query": query}));
        }
    }
    called
}

/// Returns the deferred tools of MCP servers: the request lists their names, and they must be
/// loaded before they are called.
fn listed(body: &Value) -> Vec<String> {
    let text = body["messages"].to_string();
    let Some((_, list)) = text.split_once("can be loaded. Call ToolSearch") else {
        return Vec::new();
    };
    let words = list.split(|c: char| !(c.is_alphanumeric() || "_-".contains(c)));
    let names = words.filter(|word| word.starts_with("mcp__"));
    let names: std::collections::BTreeSet<_> = names.map(str::to_owned).collect();
    names.into_iter().collect()
}

/// Returns whether the prompt contains a calculation for this tool.
fn asks_to(tool: &str, prompt: &str) -> bool {
    let words = match tool {
        "add" => " + ",
        "subtract" => " - ",
        "multiply" => " * ",
        "divide" => "divided by",
        "sqrt" => "square root",
        "power" => "power of",
        _ => return false,
    };
    prompt.contains(words)
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(behind).map(|(found, _)| found)
}

/// Returns a value that matches a schema.
fn shaped(schema: &Value, name: &str) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let filled: Map<String, Value> = properties
                .map(|(name, schema)| (name.clone(), shaped(schema, name)))
                .collect();
            Value::Object(filled)
        }
        Some("array") => json!([
            shaped(&schema["items"], name),
            shaped(&schema["items"], name)
        ]),
        Some("boolean") => json!(true),
        // The length of "Hello world", which these prompts use.
        Some("number" | "integer") if name.starts_with("character") => json!(11),
        Some("number" | "integer") => json!(2),
        _ => json!("Hello"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_understood() {
        let tools = json!([
            {"name": "Bash"}, {"name": "Agent"}, {"name": "Write"},
            {"name": "mcp__s__echo", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}},
        ]);
        let cases = [
            ("Run: echo 1", "Bash"),
            ("Run the bash command: echo 1", "Bash"),
            ("Use the reviewer agent to look", "Agent"),
            ("Call mcp__s__echo", "mcp__s__echo"),
            ("Create a file called a.txt with 'x' in it", "Write"),
        ];
        for (prompt, tool) in cases {
            let body = json!({"tools": tools, "messages": [{"role": "user", "content": prompt}]});
            let steps = steps(prompt, &body);
            assert_eq!(steps[0].0, tool, "{prompt}");
        }
        assert_eq!(reply_text("Reply with exactly: one"), "one");
    }
}
