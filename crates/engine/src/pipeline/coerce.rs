//! Schema-driven repairs of the arguments that models write.
//!
//! Models send `"10"` for 10, `"true"` for true, whole lists and objects as a JSON string, and
//! `null` for values they omit. If the schema requires the other type and the value has only one
//! possible meaning, the value is converted and the repair is recorded. Nothing is guessed:
//! ambiguous values are left to the validation, which rejects them.

use serde_json::{Map, Number, Value};

use super::ArgumentRepair;

/// The maximum nesting depth that is repaired.
const DEPTH: usize = 32;

/// Repairs `input` in place and returns the repairs.
pub(super) fn coerce(schema: &Value, input: &mut Value) -> Vec<ArgumentRepair> {
    let mut repairs = Vec::new();
    if input.is_null() {
        // Some models send no arguments at all for a tool that needs none.
        *input = Value::Object(Map::new());
        repairs.push(new_repair("", "null taken as no arguments".to_owned()));
    }
    walk(schema, input, &mut String::new(), &mut repairs, DEPTH);
    repairs
}

fn new_repair(parameter: &str, note: String) -> ArgumentRepair {
    ArgumentRepair {
        parameter: parameter.to_owned(),
        note,
    }
}

fn walk(
    schema: &Value,
    value: &mut Value,
    path: &mut String,
    repairs: &mut Vec<ArgumentRepair>,
    depth: usize,
) {
    if depth == 0 {
        return;
    }
    if let Some(repaired) = coerce_value(schema, value) {
        repairs.push(new_repair(path, describe(value, &repaired)));
        *value = repaired;
    }
    match value {
        Value::Object(object) => {
            drop_nulls(schema, object, path, repairs);
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            for (name, inner) in object {
                if let Some(schema) = properties.get(name) {
                    let before = path.len();
                    if before > 0 {
                        path.push('.');
                    }
                    path.push_str(name);
                    walk(schema, inner, path, repairs, depth - 1);
                    path.truncate(before);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else {
                return;
            };
            for (index, inner) in items.iter_mut().enumerate() {
                let before = path.len();
                path.push_str(&format!("[{index}]"));
                walk(schema, inner, path, repairs, depth - 1);
                path.truncate(before);
            }
        }
        _ => {}
    }
}

/// Removes optional parameters that are `null`.
fn drop_nulls(
    schema: &Value,
    object: &mut Map<String, Value>,
    path: &str,
    repairs: &mut Vec<ArgumentRepair>,
) {
    // The usual case: none is `null`.
    if !object.values().any(Value::is_null) {
        return;
    }
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    object.retain(|name, value| {
        let optional = !required.is_some_and(|names| names.iter().any(|n| n == name));
        let takes_null = properties
            .and_then(|properties| properties.get(name))
            .is_none_or(|schema| schema_accepts(schema, "null") || schema.get("type").is_none());
        let absent = value.is_null() && optional && !takes_null;
        if absent {
            let parameter = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            repairs.push(new_repair(&parameter, "null taken as left out".to_owned()));
        }
        !absent
    });
}

/// Returns the value converted to the type that the schema expects, if it has another.
fn coerce_value(schema: &Value, value: &Value) -> Option<Value> {
    match value {
        // A schema that accepts strings gets the string, even if it accepts other types too.
        Value::String(text) if !schema_accepts(schema, "string") => {
            let text = text.trim();
            if schema_accepts(schema, "boolean") && text.eq_ignore_ascii_case("true") {
                return Some(Value::Bool(true));
            }
            if schema_accepts(schema, "boolean") && text.eq_ignore_ascii_case("false") {
                return Some(Value::Bool(false));
            }
            if schema_accepts(schema, "integer") {
                return text.parse().ok().and_then(whole_number);
            }
            if schema_accepts(schema, "number") {
                let number: f64 = text.parse().ok()?;
                return whole_number(number)
                    .or_else(|| Number::from_f64(number).map(Value::Number));
            }
            let (opening, fits): (char, fn(&Value) -> bool) = if schema_accepts(schema, "array") {
                ('[', Value::is_array)
            } else if schema_accepts(schema, "object") {
                ('{', Value::is_object)
            } else {
                return None;
            };
            let parsed: Value = text
                .starts_with(opening)
                .then(|| serde_json::from_str(text).ok())??;
            fits(&parsed).then_some(parsed)
        }
        // Some languages write the integer 10 as `10.0`.
        Value::Number(number)
            if number.is_f64()
                && schema_accepts(schema, "integer")
                && !schema_accepts(schema, "number") =>
        {
            whole_number(number.as_f64()?)
        }
        _ => None,
    }
}

/// The largest magnitude up to which a double represents every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn whole_number(number: f64) -> Option<Value> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within the exact range"
    )]
    let whole = (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)?;
    Some(Value::from(whole))
}

pub(super) fn schema_accepts(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => ["anyOf", "oneOf"].iter().any(|keyword| {
            let branches = schema.get(*keyword).and_then(Value::as_array);
            branches
                .is_some_and(|branches| branches.iter().any(|branch| schema_accepts(branch, kind)))
        }),
    }
}

fn describe(before: &Value, after: &Value) -> String {
    let kind = match after {
        Value::Bool(value) => return format!("{before} taken as {value}"),
        Value::Number(value) => return format!("{before} taken as {value}"),
        Value::Array(_) => "list",
        _ => "object",
    };
    format!("a string of JSON taken as the {kind} it holds")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::SchemaValidator;

    #[test]
    fn repairs_only_what_can_mean_one_thing() {
        let cases = [
            // (what it shows, schema of the parameter, sent, taken as)
            (
                "number in a string",
                json!({"type": "integer"}),
                json!("10"),
                json!(10),
            ),
            (
                "blanks around it",
                json!({"type": "integer"}),
                json!(" 10 "),
                json!(10),
            ),
            (
                "negative",
                json!({"type": "integer"}),
                json!("-3"),
                json!(-3),
            ),
            (
                "double for an integer",
                json!({"type": "integer"}),
                json!(10.0),
                json!(10),
            ),
            (
                "a real fraction stays",
                json!({"type": "integer"}),
                json!(1.5),
                json!(1.5),
            ),
            (
                "fraction in a string",
                json!({"type": "number"}),
                json!("0.5"),
                json!(0.5),
            ),
            (
                "not a number stays",
                json!({"type": "integer"}),
                json!("ten"),
                json!("ten"),
            ),
            (
                "infinity stays",
                json!({"type": "number"}),
                json!("inf"),
                json!("inf"),
            ),
            (
                "true",
                json!({"type": "boolean"}),
                json!("True"),
                json!(true),
            ),
            (
                "false",
                json!({"type": "boolean"}),
                json!("false"),
                json!(false),
            ),
            (
                "yes stays",
                json!({"type": "boolean"}),
                json!("yes"),
                json!("yes"),
            ),
            (
                "string where strings go",
                json!({"type": "string"}),
                json!("10"),
                json!("10"),
            ),
            (
                "string or number",
                json!({"type": ["string", "integer"]}),
                json!("10"),
                json!("10"),
            ),
            (
                "list in a string",
                json!({"type": "array"}),
                json!("[1, 2]"),
                json!([1, 2]),
            ),
            (
                "object in a string",
                json!({"type": "object"}),
                json!("{\"a\": 1}"),
                json!({"a": 1}),
            ),
            (
                "broken JSON stays",
                json!({"type": "array"}),
                json!("[1, "),
                json!("[1, "),
            ),
            (
                "an object is no list",
                json!({"type": "array"}),
                json!("{}"),
                json!("{}"),
            ),
            (
                "inside a list",
                json!({"type": "array", "items": {"type": "integer"}}),
                json!("[\"1\", 2]"),
                json!([1, 2]),
            ),
        ];
        for (what, parameter, sent, taken) in cases {
            let schema =
                json!({"type": "object", "properties": {"p": parameter}, "required": ["p"]});
            let mut input = json!({"p": sent});
            let repairs = coerce(&schema, &mut input);
            assert_eq!(input["p"], taken, "{what}");
            assert_eq!(repairs.is_empty(), sent == taken, "{what}: {repairs:?}");
        }
    }

    #[test]
    fn null_is_left_out_where_a_parameter_is_optional_and_kept_where_it_is_not() {
        let schema = json!({
            "type": "object",
            "properties": {
                "needed": {"type": "string"},
                "limit": {"type": "integer"},
                "inner": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
            },
            "required": ["needed"],
        });
        let mut input =
            json!({"needed": null, "limit": null, "inner": {"deep": null}, "odd": null});
        let repairs = coerce(&schema, &mut input);
        assert_eq!(input, json!({"needed": null, "inner": {}, "odd": null}));
        let named: Vec<_> = repairs
            .iter()
            .map(|repair| repair.parameter.as_str())
            .collect();
        assert_eq!(named, ["limit", "inner.deep"]);
    }

    #[test]
    fn the_arguments_as_a_whole_may_be_a_string_or_null() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        for (sent, taken) in [
            (json!("{\"a\": \"1\"}"), json!({"a": 1})),
            (json!(null), json!({})),
        ] {
            let mut input = sent;
            coerce(&schema, &mut input);
            assert_eq!(input, taken);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[ -~]{0,6}".prop_map(Value::from),
            "(true|False|-?[0-9]{1,20}(\\.[0-9])?|\\[1, 2\\]|\\{\"a\": null\\})"
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
            }
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
            }
            (a, b) => a == b,
        }
    }

    proptest! {
        /// Whatever a model sends: what fits already is left alone, and a repair is final.
        #[test]
        fn what_fits_is_never_changed_and_repairs_need_no_repair(input in any_json()) {
            let schema = json!({
                "type": "object",
                "properties": {
                    "a": {"type": "integer"},
                    "b": {"type": "array", "items": {"type": ["number", "boolean"]}},
                    "c": {"type": "object", "properties": {"a": {"type": "boolean"}}},
                    "d": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                },
                "required": ["d"],
            });
            let mut repaired = input.clone();
            coerce(&schema, &mut repaired);
            if SchemaValidator::new(&schema).unwrap().is_valid(&input) {
                // 3.0 is a valid integer and read as 3; nothing else may change.
                prop_assert!(same(&input, &repaired), "{input} became {repaired}");
            }
            let mut again = repaired.clone();
            prop_assert!(coerce(&schema, &mut again).is_empty());
            prop_assert_eq!(again, repaired);
        }
    }
}
