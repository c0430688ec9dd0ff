//! Conversion of an input type into a JSON schema that providers accept.
//!
//! schemars describes the Rust type. Providers require less: no references, no meta-schema, objects
//! that forbid unknown properties, and no `null` for optional values.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Returns the schema of an input type, and its doc comment.
pub fn input_schema<T: JsonSchema>() -> (Value, String) {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let schema = generator.subschema_for::<T>();
    describe(schema, generator)
}

/// Does the part of [`input_schema`] that is independent of the type, so that it is compiled only
/// once.
fn describe(schema: Schema, mut generator: SchemaGenerator) -> (Value, String) {
    let mut schema = schema.to_value();
    let description = schema.as_object_mut().and_then(|object| {
        // Only a type that contains itself needs a definition.
        let definitions = generator.take_definitions(true);
        if !definitions.is_empty() {
            object.insert("$defs".to_owned(), definitions.into());
        }
        object.shift_remove("description")
    });
    normalize(&mut schema);
    let description = description.and_then(|text| text.as_str().map(str::to_owned));
    (schema, description.unwrap_or_default())
}

/// Converts a schema into the form providers accept, without changing its meaning.
pub fn normalize(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    object.shift_remove("$schema");
    object.shift_remove("title");
    drop_integer_formats(object);
    constants_to_enum(object);
    drop_null(object);
    for keyword in ["properties", "patternProperties", "$defs"] {
        if let Some(Value::Object(schemas)) = object.get_mut(keyword) {
            schemas.values_mut().for_each(normalize);
        }
    }
    for keyword in ["items", "additionalProperties", "not"] {
        if let Some(inner) = object.get_mut(keyword) {
            normalize(inner);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(branches)) = object.get_mut(keyword) {
            branches.iter_mut().for_each(normalize);
        }
    }
    if object.get("type") == Some(&json!("object")) {
        // An input without fields has no `properties`, but providers require the keyword.
        object.entry("properties").or_insert_with(|| json!({}));
        object.entry("additionalProperties").or_insert(json!(false));
    }
}

/// Removes formats of numbers such as `uint64` and `double`; the type and its bounds are enough.
fn drop_integer_formats(object: &mut Map<String, Value>) {
    let numeric = object
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| {
            matches!(format, "double" | "float")
                || format.trim_start_matches('u').strip_prefix("int").is_some()
        });
    if numeric {
        object.shift_remove("format");
    }
}

/// Converts a `oneOf` of constants, which describes an enum with documented variants, into one
/// `enum`. The docs of the variants are added to the description.
fn constants_to_enum(object: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = object.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut docs = Vec::new();
    for branch in branches {
        if let Some(constant) = branch.get("const") {
            values.push(constant.clone());
            if let (Some(name), Some(doc)) = (
                constant.as_str(),
                branch.get("description").and_then(Value::as_str),
            ) {
                docs.push(format!("`{name}`: {doc}"));
            }
        } else if let Some(Value::Array(several)) = branch.get("enum") {
            values.extend(several.iter().cloned());
        } else {
            return;
        }
    }
    object.shift_remove("oneOf");
    object.insert("type".into(), json!("string"));
    object.insert("enum".into(), Value::Array(values));
    if !docs.is_empty() {
        let before = object
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = format!("{before}\n{}", docs.join("\n"));
        object.insert("description".into(), json!(text.trim()));
    }
}

/// Removes `null` from the type of an `Option<T>`. An optional parameter needs no `null`, and
/// coercion treats one that is sent anyway as missing.
fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if object.get("default") == Some(&Value::Null) {
        object.shift_remove("default");
    }
    if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
        branches.retain(|branch| branch.get("type") != Some(&json!("null")));
        if let [Value::Object(only)] = branches.as_mut_slice() {
            let only = std::mem::take(only);
            object.shift_remove("anyOf");
            for (keyword, value) in only {
                object.entry(keyword).or_insert(value);
            }
            constants_to_enum(object);
            drop_integer_formats(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Paints a wall.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Paint {
        /// Which colour.
        colour: Colour,
        /// How many coats.
        coats: Option<u64>,
        /// Where.
        spots: Vec<Spot>,
        /// Or this one.
        other: Option<Colour>,
        #[serde(default)]
        dry: bool,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        /// Like blood.
        Red,
        /// Like grass.
        Green,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Spot {
        x: f64,
        y: i32,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    #[test]
    fn a_schema_has_no_references_and_closed_objects() {
        let (schema, description) = input_schema::<Paint>();
        assert_eq!(description, "Paints a wall.");
        insta::assert_json_snapshot!(schema);
    }

    /// A list of lists.
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Nested {
        inside: Vec<Nested>,
        depth: Option<u8>,
    }

    #[test]
    fn a_type_that_contains_itself_is_defined_once() {
        let (schema, description) = input_schema::<Nested>();
        assert_eq!(description, "A list of lists.");
        let properties = json!({
            "inside": {"type": "array", "items": {"$ref": "#/$defs/Nested"}},
            "depth": {"type": "integer", "minimum": 0, "maximum": 255},
        });
        let object = |more: Value| {
            let mut object = json!({
                "type": "object",
                "properties": properties,
                "required": ["inside"],
                "additionalProperties": false,
            });
            let more = more.as_object().cloned().unwrap_or_default();
            object.as_object_mut().unwrap().extend(more);
            object
        };
        let definition = object(json!({"description": "A list of lists."}));
        assert_eq!(schema, object(json!({"$defs": {"Nested": definition}})));
    }

    #[test]
    fn an_input_without_fields_is_still_a_closed_object() {
        let (schema, _) = input_schema::<Nothing>();
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {}, "additionalProperties": false})
        );
    }
}
