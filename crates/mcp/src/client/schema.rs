//! Converts a server's schema to the form that providers accept: one object at the root, no
//! references.

use serde_json::{Map, Value, json};

/// The maximum number of parts of a schema. Beyond this number, references are not expanded.
const MAX_PARTS: usize = 20_000;
/// The maximum nesting depth at which references are still expanded. Each expanded reference adds
/// to the depth.
const MAX_DEPTH: usize = 64;

/// Returns the schema in the form that providers accept, and a description of what that form cannot
/// express.
pub(super) fn fitting(schema: &Value) -> (Value, Option<String>) {
    let mut inliner = ReferenceInliner {
        root: schema,
        within: Vec::new(),
        parts: 0,
        depth: 0,
    };
    let mut object = match inliner.inline(schema) {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    for name in ["$schema", "$defs", "definitions"] {
        object.shift_remove(name);
    }
    let told = flatten(&mut object);
    object.insert("type".to_owned(), json!("object"));
    if !object.get("properties").is_some_and(Value::is_object) {
        object.insert("properties".to_owned(), json!({}));
    }
    (Value::Object(object), told)
}

/// Replaces each reference by its target. A reference that is recursive or leads out of the schema
/// accepts anything.
struct ReferenceInliner<'a> {
    root: &'a Value,
    /// The references that are being expanded.
    within: Vec<String>,
    parts: usize,
    depth: usize,
}

impl ReferenceInliner<'_> {
    fn inline(&mut self, value: &Value) -> Value {
        self.parts += 1;
        self.depth += 1;
        let inlined = self.inline_parts(value);
        self.depth -= 1;
        inlined
    }

    fn inline_parts(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(object) => match object.get("$ref").and_then(Value::as_str) {
                Some(reference) => self.referred(reference, object),
                None => object
                    .iter()
                    .filter(|(name, _)| !["$defs", "definitions"].contains(&name.as_str()))
                    .map(|(name, value)| (name.clone(), self.inline(value)))
                    .collect(),
            },
            Value::Array(items) => items.iter().map(|item| self.inline(item)).collect(),
            other => other.clone(),
        }
    }

    fn referred(&mut self, reference: &str, beside: &Map<String, Value>) -> Value {
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| self.root.pointer(pointer))
            .filter(|_| self.parts < MAX_PARTS && self.depth < MAX_DEPTH)
            .filter(|_| !self.within.iter().any(|known| known == reference));
        let mut found = match target {
            Some(target) => {
                self.within.push(reference.to_owned());
                let found = self.inline(target);
                self.within.pop();
                found
            }
            None => json!({}),
        };
        if let Some(found) = found.as_object_mut() {
            for (name, value) in beside {
                if name != "$ref" {
                    found.insert(name.clone(), value.clone());
                }
            }
        }
        found
    }
}

/// Merges alternatives at the root into one object. Their joint or exclusive requirements are
/// described as text.
fn flatten(object: &mut Map<String, Value>) -> Option<String> {
    let mut told = Vec::new();
    for (keyword, sentence) in [
        ("allOf", None),
        ("anyOf", Some("Give the parameters of at least one group")),
        ("oneOf", Some("Give the parameters of exactly one group")),
    ] {
        let Some(Value::Array(branches)) = object.shift_remove(keyword) else {
            continue;
        };
        let mut groups = Vec::new();
        for branch in &branches {
            for (name, schema) in branch["properties"].as_object().into_iter().flatten() {
                let properties = object.entry("properties").or_insert_with(|| json!({}));
                if let Some(properties) = properties.as_object_mut() {
                    properties.entry(name).or_insert_with(|| schema.clone());
                }
            }
            let required = branch["required"].as_array().cloned().unwrap_or_default();
            if sentence.is_none() {
                let all = object.entry("required").or_insert_with(|| json!([]));
                if let Some(all) = all.as_array_mut() {
                    all.extend(required);
                }
            } else if !required.is_empty() {
                let names: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
                groups.push(names.join(", "));
            }
        }
        if let (Some(sentence), false) = (sentence, groups.is_empty()) {
            told.push(format!("{sentence}: {}.", groups.join(" | ")));
        }
    }
    (!told.is_empty()).then(|| told.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_schema_passes_as_it_is() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer", "description": "One."}},
            "required": ["a"],
        });
        assert_eq!(fitting(&schema), (schema.clone(), None));
        assert_eq!(
            fitting(&Value::Null).0,
            json!({"type": "object", "properties": {}})
        );
    }

    #[test]
    fn references_are_put_in_place_and_circles_take_anything() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$defs": {
                "Point": {"type": "object", "properties": {"x": {"type": "number"}}},
                "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}},
            },
            "type": "object",
            "properties": {
                "at": {"$ref": "#/$defs/Point", "description": "Where."},
                "tree": {"$ref": "#/$defs/Tree"},
                "far": {"$ref": "https://example.com/schema"},
            },
        });
        insta::assert_json_snapshot!(fitting(&schema).0);
    }

    #[test]
    fn alternatives_at_the_root_become_one_object() {
        let schema = json!({
            "properties": {"a": {"type": "string"}},
            "allOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]}],
            "oneOf": [
                {"properties": {"c": {"type": "string"}}, "required": ["c"]},
                {"properties": {"d": {"type": "string"}}, "required": ["d", "a"]},
            ],
        });
        insta::assert_json_snapshot!(fitting(&schema));
    }

    #[test]
    fn a_long_chain_of_references_is_followed_a_part_of_the_way() {
        for steps in [["$ref"].as_slice(), &["items", "$ref"]] {
            let mut defs = Map::new();
            for depth in 0..20_000 {
                let mut next = json!(format!("#/$defs/d{}", depth + 1));
                for step in steps.iter().rev() {
                    next = json!({*step: next});
                }
                defs.insert(format!("d{depth}"), next);
            }
            defs.insert("d20000".to_owned(), json!({"type": "string"}));
            let schema = json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}});
            let (fitted, _) = fitting(&schema);
            assert!(fitted.to_string().len() < 10_000);
        }
    }

    #[test]
    fn a_schema_that_doubles_at_each_step_comes_to_an_end() {
        let mut defs = Map::new();
        for depth in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", depth + 1)});
            defs.insert(
                format!("d{depth}"),
                json!({"properties": {"a": next, "b": next}}),
            );
        }
        let schema = json!({"$defs": defs, "$ref": "#/$defs/d0"});
        let (fitted, _) = fitting(&schema);
        assert!(fitted.to_string().len() < 10_000_000);
    }
}
