//! Validation messages that list all problems of an input, as text that a model can act on.

use serde_json::Value;

use super::coerce::schema_accepts;
use crate::{
    schema::{SchemaProblem, SchemaProblemKind, SchemaValidator},
    settings::suggestions,
};

/// The maximum number of reported problems.
const MAX_PROBLEMS: usize = 8;
/// The maximum number of characters of a value that are repeated in a message.
const MAX_SHOWN: usize = 60;

/// Returns all problems of the input, or `None`.
pub(super) fn problems(
    validator: &SchemaValidator,
    schema: &Value,
    input: &Value,
) -> Option<Vec<String>> {
    let mut problems = too_large(schema, input);
    if problems.is_empty() && validator.is_valid(input) {
        return None;
    }
    for found in validator.problems(input) {
        for problem in wording(&found, schema, input) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("and {more} more"));
    }
    Some(problems)
}

/// Finds whole numbers that are too large for an integer. For a schema, `1e30` is an integer.
fn too_large(schema: &Value, input: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let given = input.as_object().into_iter().flatten();
    given
        .filter(|(name, value)| {
            let wanted = properties.and_then(|all| all.get(name.as_str()));
            value.is_f64()
                && value.as_f64().is_some_and(|number| number.fract() == 0.0)
                && wanted.is_some_and(|schema| {
                    schema_accepts(schema, "integer") && !schema_accepts(schema, "number")
                })
        })
        .map(|(name, value)| {
            format!("`{name}`: expected an integer, got {value}, which is too large for one")
        })
        .collect()
}

fn wording(problem: &SchemaProblem<'_>, schema: &Value, input: &Value) -> Vec<String> {
    let pointer = &problem.pointer;
    let path = readable(pointer);
    let here = subschema(schema, pointer);
    match &problem.kind {
        SchemaProblemKind::Missing(name) => {
            let wanted = here.and_then(|schema| schema.get("properties")?.get(name));
            let expected =
                wanted.map_or_else(String::new, |schema| format!(" ({})", expected(schema)));
            vec![format!(
                "`{}` is required{expected} but missing",
                joined(&path, name)
            )]
        }
        SchemaProblemKind::Unexpected(names) => names
            .iter()
            .map(|name| unexpected_parameter(&path, name, here, input, pointer))
            .collect(),
        SchemaProblemKind::Other(words) => {
            let subject = if path.is_empty() {
                "the input".to_owned()
            } else {
                format!("`{path}`")
            };
            let got = format!("{}{}", shown(problem.value), broken_json(problem.value));
            match here {
                Some(schema) => vec![format!(
                    "{subject}: expected {}, got {got}",
                    expected(schema)
                )],
                None => vec![format!("{subject}: {words}")],
            }
        }
    }
}

fn unexpected_parameter(
    path: &str,
    name: &str,
    schema: Option<&Value>,
    input: &Value,
    pointer: &str,
) -> String {
    let full = joined(path, name);
    let Some(properties) = schema
        .and_then(|s| s.get("properties"))
        .and_then(Value::as_object)
    else {
        return format!("`{full}` is not a parameter");
    };
    // A name that was also sent cannot be the intended one.
    let sent = input.pointer(pointer).and_then(Value::as_object);
    let free = properties
        .keys()
        .map(String::as_str)
        .filter(|known| !sent.is_some_and(|sent| sent.contains_key(*known)));
    match suggestions::similar_names(name, free, 1).as_slice() {
        [meant, ..] => format!("`{full}` is not a parameter; did you mean `{meant}`?"),
        [] => {
            let known: Vec<_> = properties.keys().map(|name| format!("`{name}`")).collect();
            match known.as_slice() {
                [] => format!("`{full}` is not a parameter; the tool has no parameters"),
                known => format!(
                    "`{full}` is not a parameter; known are {}",
                    known.join(", ")
                ),
            }
        }
    }
}

/// Converts `/edits/0/old_string` to `edits[0].old_string`.
fn readable(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.parse::<usize>().is_ok() {
            path.push_str(&format!("[{part}]"));
        } else {
            path = joined(&path, &part);
        }
    }
    path
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Returns the part of the schema for this location, if only `properties` and `items` lead to it.
fn subschema<'a>(schema: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(schema, |schema, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        match schema
            .get("properties")
            .and_then(|properties| properties.get(&part))
        {
            Some(inner) => Some(inner),
            None => schema.get("items"),
        }
    })
}

/// Describes what a schema expects.
fn expected(schema: &Value) -> String {
    if let Some(Value::Array(options)) = schema.get("enum") {
        let options: Vec<_> = options.iter().map(Value::to_string).collect();
        return format!("one of {}", options.join(", "));
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(keyword) {
            let branches: Vec<_> = branches.iter().map(expected).collect();
            return branches.join(" or ");
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(one)) => article(one),
        Some(Value::Array(several)) => {
            let several: Vec<_> = several
                .iter()
                .filter_map(Value::as_str)
                .map(article)
                .collect();
            several.join(" or ")
        }
        _ => return "another value".to_owned(),
    };
    format!("{kind}{}", bounds(schema))
}

fn article(kind: &str) -> String {
    match kind {
        "array" => "a list".to_owned(),
        "integer" => "an integer".to_owned(),
        "object" => "an object".to_owned(),
        "null" => "null".to_owned(),
        other => format!("a {other}"),
    }
}

fn bounds(schema: &Value) -> String {
    let bound = |keyword: &str| schema.get(keyword).map(Value::to_string);
    let mut bounds = Vec::new();
    if schema.get("type") == Some(&Value::from("array"))
        && let Some(items) = schema
            .get("items")
            .filter(|items| items.get("type").is_some())
    {
        bounds.push(format!("each item {}", expected(items)));
    }
    for (keyword, words) in [
        ("minimum", "at least "),
        ("maximum", "at most "),
        ("exclusiveMinimum", "more than "),
        ("exclusiveMaximum", "less than "),
        ("multipleOf", "a multiple of "),
    ] {
        bounds.extend(bound(keyword).map(|limit| format!("{words}{limit}")));
    }
    for (keyword, words, unit) in [
        ("minLength", "at least", "characters"),
        ("maxLength", "at most", "characters"),
        ("minItems", "at least", "items"),
        ("maxItems", "at most", "items"),
    ] {
        bounds.extend(bound(keyword).map(|limit| format!("{words} {limit} {unit}")));
    }
    bounds.extend(bound("pattern").map(|pattern| format!("matching {pattern}")));
    if bounds.is_empty() {
        String::new()
    } else {
        format!(" ({})", bounds.join(", "))
    }
}

/// Describes the syntax error in a string that should have been JSON (truncated arguments, a
/// missing quote).
fn broken_json(value: &Value) -> String {
    match value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            match serde_json::from_str::<Value>(text) {
                Ok(_) => String::new(),
                Err(error) => format!(", which is not valid JSON: {error}"),
            }
        }
        _ => String::new(),
    }
}

/// Returns a shortened value with its type.
fn shown(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "the boolean",
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
        Value::Array(items) => return format!("a list of {}", items.len()),
        Value::Object(_) => return "an object".to_owned(),
    };
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN {
        return format!("{kind} {text}");
    }
    let head: String = text.chars().take(MAX_SHOWN).collect();
    format!("{kind} {head}… ({} characters)", text.chars().count())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_problems_come_at_once_one_a_line() {
        let schema = json!({
            "type": "object",
            "properties": {
                "file_path": {"type": "string"},
                "offset": {"type": "integer", "minimum": 0},
                "limit": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["content", "count"]},
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {"old": {"type": "string"}},
                        "required": ["old"],
                        "additionalProperties": false,
                    },
                },
                "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            },
            "required": ["file_path"],
            "additionalProperties": false,
        });
        let validator = SchemaValidator::new(&schema).unwrap();
        let cases = [
            json!({"path": "a", "ofset": 3, "limit": 0}),
            json!({"file_path": 7, "offset": "ten", "mode": "all"}),
            json!({"file_path": "a", "edits": [{"old": 1}, {"odl": "x"}], "either": 5}),
            json!({"file_path": "a", "edits": [], "teleport": "x".repeat(100), "offset": "y".repeat(100)}),
            json!(["a"]),
            json!("{\"file_path\": \"a"),
        ];
        let told: Vec<_> = cases
            .iter()
            .map(|input| problems(&validator, &schema, input).unwrap().join("\n"))
            .collect();
        insta::assert_snapshot!(told.join("\n\n"));
        assert_eq!(
            problems(&validator, &schema, &json!({"file_path": "a"})),
            None
        );
        let huge = json!({"file_path": "a", "offset": 1e30});
        let told = problems(&validator, &schema, &huge).unwrap();
        assert_eq!(
            told,
            ["`offset`: expected an integer, got 1e+30, which is too large for one"]
        );
    }
}
