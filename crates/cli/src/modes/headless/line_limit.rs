//! Limits output lines to a length that every reader accepts.

use serde::Serialize;
use serde_json::{Map, Value};

/// The maximum length of a line. A widely used reader fails at 2^20 characters.
const MAX_LENGTH: usize = 1_000_000;

/// Fields of `tool_use_result` that may be large and that readers can do without.
const LARGE: [&str; 3] = ["originalFile", "base64", "structuredPatch"];

/// Serializes a message as a line within the limit. If it is too long, removes in this order: large
/// fields of `tool_use_result`, the whole `tool_use_result`, images and documents, the ends of
/// texts.
pub(super) fn line(message: &impl Serialize) -> serde_json::Result<String> {
    let line = serde_json::to_string(message)?;
    if fits(&line) {
        return Ok(line);
    }
    let mut message: Value = serde_json::from_str(&line)?;
    let steps: [fn(&mut Value); 4] = [
        |message| {
            if let Some(result) = message.get_mut("tool_use_result") {
                without_large(result);
            }
        },
        |message| {
            if let Some(object) = message.as_object_mut() {
                object.shift_remove("tool_use_result");
            }
            // Transcript lines carry the same field.
            let entries = message.get_mut("entries").and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten() {
                if let Some(entry) = entry.as_object_mut() {
                    entry.shift_remove("toolUseResult");
                }
            }
        },
        without_data,
        |message| cut(message, MAX_LENGTH / 4),
    ];
    for step in steps {
        step(&mut message);
        let line = message.to_string();
        if fits(&line) {
            return Ok(line);
        }
    }
    // The message has many short texts.
    cut(&mut message, 1_000);
    let line = message.to_string();
    if fits(&line) {
        return Ok(line);
    }
    let note = ("haft_note", "left out: too long for one line".into());
    let kept = ["type", "subtype", "session_id", "uuid", "request_id"]
        .into_iter()
        .filter_map(|name| Some((name, message.get(name)?.clone())));
    let short = std::iter::once(note).chain(kept);
    serde_json::to_string(&short.map(named).collect::<Map<_, _>>())
}

fn named((name, value): (&str, Value)) -> (String, Value) {
    (name.to_owned(), value)
}

fn fits(line: &str) -> bool {
    line.len() < MAX_LENGTH || line.chars().count() < MAX_LENGTH
}

fn without_large(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for name in LARGE {
                object.shift_remove(name);
            }
            object.values_mut().for_each(without_large);
        }
        Value::Array(items) => items.iter_mut().for_each(without_large),
        _ => {}
    }
}

/// Replaces images and documents by a note. The model still receives them.
fn without_data(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let kind = object.get("type").and_then(Value::as_str);
            if matches!(kind, Some("image" | "document")) && object.contains_key("source") {
                let text = format!("[{} left out of this line]", kind.unwrap_or_default());
                let note = [("type", "text".into()), ("text", text.into())];
                *value = Value::Object(note.into_iter().map(named).collect());
            } else {
                object.values_mut().for_each(without_data);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_data),
        _ => {}
    }
}

fn cut(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) => {
            if let Some((at, _)) = text.char_indices().nth(longest) {
                text.truncate(at);
                text.push_str(" [the rest is left out of this line]");
            }
        }
        Value::Object(object) => object.values_mut().for_each(|value| cut(value, longest)),
        Value::Array(items) => items.iter_mut().for_each(|value| cut(value, longest)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(content: Value, structured: Value) -> Value {
        json!({
            "type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "content": content}]},
            "tool_use_result": structured,
        })
    }

    fn made(message: &Value) -> Value {
        let line = line(message).unwrap();
        assert!(line.chars().count() < MAX_LENGTH);
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn what_a_reader_can_best_do_without_goes_first() {
        let long = "x".repeat(3_000_000);
        let small = result(json!("ok"), json!({"a": 1}));
        assert_eq!(made(&small), small);

        let file = made(&result(json!("ok"), json!({"originalFile": long, "a": 1})));
        assert_eq!(file["tool_use_result"], json!({"a": 1}));

        let all = made(&result(json!("ok"), json!({"stdout": long})));
        assert_eq!(all.get("tool_use_result"), None);
        let keys: Vec<&str> = all
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys, ["type", "message"], "and nothing comes in its place");

        let image = json!([{"type": "image", "source": {"type": "base64", "data": long}}]);
        let image = made(&result(image, json!({})));
        let told = &image["message"]["content"][0]["content"][0]["text"];
        assert_eq!(told, "[image left out of this line]");

        let text = made(&result(json!(long), json!({})));
        let told = text["message"]["content"][0]["content"].as_str().unwrap();
        assert!(told.ends_with("[the rest is left out of this line]"));
    }

    #[test]
    fn lines_of_the_transcript_lose_the_result_for_programs_too() {
        let entry = json!({"type": "user", "toolUseResult": {"stdout": "x".repeat(3_000_000)}});
        let mirror = json!({"type": "transcript_mirror", "filePath": "/t", "entries": [entry]});
        let kept =
            json!({"type": "transcript_mirror", "filePath": "/t", "entries": [{"type": "user"}]});
        assert_eq!(made(&mirror), kept);
    }

    #[test]
    fn wide_characters_count_once_and_many_texts_are_cut_too() {
        let wide = result(json!("é".repeat(900_000)), json!({}));
        assert_eq!(made(&wide), wide);
        let many: Vec<String> = (0..100).map(|_| "y".repeat(200_000)).collect();
        assert_eq!(made(&result(json!(many), json!({})))["type"], "user");
    }
}
