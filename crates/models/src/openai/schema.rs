//! Simplifies JSON schemas for servers that support only the common parts.

use serde_json::{Map, Value, json};

/// Returns the schema without the parts that such servers reject. The tool still checks its input
/// against the full schema.
pub(super) fn plain(schema: &Value) -> Value {
    let mut plain = cleaned(schema);
    if let Value::Object(root) = &mut plain {
        root.remove("anyOf");
    }
    plain
}

fn cleaned(schema: &Value) -> Value {
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    let mut plain = Map::new();
    for (key, value) in object {
        match key.as_str() {
            "$schema" | "default" | "format" | "additionalProperties" => {}
            // The keys are names of properties and may equal the keywords above.
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let properties = properties.map(|(name, schema)| (name.clone(), cleaned(schema)));
                plain.insert(key.clone(), Value::Object(properties.collect()));
            }
            "type" => {
                plain.insert(key.clone(), one_type(value));
            }
            "items" | "not" => {
                plain.insert(key.clone(), cleaned(value));
            }
            "anyOf" | "oneOf" | "allOf" => {
                let branches = value.as_array().into_iter().flatten().map(cleaned);
                plain.insert(key.clone(), branches.collect());
            }
            _ => {
                plain.insert(key.clone(), value.clone());
            }
        }
    }
    if plain.get("type") == Some(&json!("object")) && !plain.contains_key("properties") {
        plain.insert("properties".to_owned(), json!({}));
    }
    Value::Object(plain)
}

fn one_type(value: &Value) -> Value {
    let types = value.as_array().into_iter().flatten();
    let mut types = types.filter(|name| **name != "null");
    match (types.next(), types.next()) {
        (Some(only), None) => only.clone(),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_such_servers_refuse_is_gone_and_names_stay() {
        let schema = json!({
            "$schema": "x", "type": "object", "additionalProperties": false, "anyOf": [{}],
            "properties": {
                "format": {"type": ["string", "null"], "format": "uri", "default": "a"},
                "list": {"type": "array", "items": {"type": "object"}},
                "either": {"anyOf": [{"type": "string", "default": 1}, {"type": ["string", "integer"]}]},
            },
        });
        assert_eq!(
            plain(&schema),
            json!({
                "type": "object",
                "properties": {
                    "format": {"type": "string"},
                    "list": {"type": "array", "items": {"type": "object", "properties": {}}},
                    "either": {"anyOf": [{"type": "string"}, {"type": ["string", "integer"]}]},
                },
            })
        );
    }
}
