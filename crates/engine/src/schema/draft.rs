//! The differences between the drafts of JSON Schema.

use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum SchemaDraft {
    Four,
    Six,
    Seven,
    Of2019,
    Of2020,
}

/// The structure of the value of a keyword that contains schemas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SubschemaShape {
    Schema,
    List,
    Map,
    SchemaOrList,
    /// A map of schemas, or of lists of names.
    MapOrNames,
}

impl SchemaDraft {
    /// Returns the draft whose meta-schema has this URI (without a fragment).
    pub(super) fn from_uri(uri: &str) -> Option<Self> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let rest = uri
            .strip_prefix("http://")
            .or_else(|| uri.strip_prefix("https://"))?;
        Some(match rest.strip_prefix("json-schema.org/")? {
            "draft-04/schema" => Self::Four,
            "draft-06/schema" => Self::Six,
            "draft-07/schema" => Self::Seven,
            "draft/2019-09/schema" => Self::Of2019,
            "draft/2020-12/schema" => Self::Of2020,
            _ => return None,
        })
    }

    /// Returns the draft in `$schema`. If it is missing or unknown, returns the draft of the
    /// enclosing schema.
    pub(super) fn from_schema(schema: &Map<String, Value>, around: Self) -> Self {
        schema
            .get("$schema")
            .and_then(Value::as_str)
            .and_then(Self::from_uri)
            .unwrap_or(around)
    }

    /// Returns whether the keywords next to a `$ref` are ignored: up to draft 7.
    pub(super) fn reference_alone(self) -> bool {
        self <= Self::Seven
    }

    pub(super) fn id(self, schema: &Map<String, Value>) -> Option<&str> {
        let keyword = if self == Self::Four { "id" } else { "$id" };
        if self.reference_alone() && schema.contains_key("$ref") {
            return None;
        }
        schema.get(keyword)?.as_str()
    }

    pub(super) fn holds(self, keyword: &str) -> Option<SubschemaShape> {
        let (since, until, holds) = match keyword {
            "allOf" | "anyOf" | "oneOf" => (Self::Four, Self::Of2020, SubschemaShape::List),
            "prefixItems" => (Self::Of2020, Self::Of2020, SubschemaShape::List),
            "not" | "additionalProperties" => (Self::Four, Self::Of2020, SubschemaShape::Schema),
            "additionalItems" => (Self::Four, Self::Of2019, SubschemaShape::Schema),
            "contains" | "propertyNames" => (Self::Six, Self::Of2020, SubschemaShape::Schema),
            "if" | "then" | "else" => (Self::Seven, Self::Of2020, SubschemaShape::Schema),
            "unevaluatedItems" | "unevaluatedProperties" | "contentSchema" => {
                (Self::Of2019, Self::Of2020, SubschemaShape::Schema)
            }
            "items" if self == Self::Of2020 => (Self::Of2020, Self::Of2020, SubschemaShape::Schema),
            "items" => (Self::Four, Self::Of2019, SubschemaShape::SchemaOrList),
            "properties" | "patternProperties" | "definitions" => {
                (Self::Four, Self::Of2020, SubschemaShape::Map)
            }
            "$defs" | "dependentSchemas" => (Self::Of2019, Self::Of2020, SubschemaShape::Map),
            "dependencies" => (Self::Four, Self::Of2020, SubschemaShape::MapOrNames),
            _ => return None,
        };
        (since <= self && self <= until).then_some(holds)
    }

    /// Returns the direct subschemas, each with its path.
    pub(super) fn subschemas(
        self,
        schema: &Map<String, Value>,
    ) -> impl Iterator<Item = (String, &Value)> {
        schema.iter().flat_map(move |(keyword, value)| {
            let mut found = Vec::new();
            match (self.holds(keyword), value) {
                (Some(SubschemaShape::List | SubschemaShape::SchemaOrList), Value::Array(list)) => {
                    found.extend(
                        list.iter()
                            .enumerate()
                            .map(|(at, schema)| (format!("{keyword}/{at}"), schema)),
                    );
                }
                (Some(SubschemaShape::Map | SubschemaShape::MapOrNames), Value::Object(map)) => {
                    found.extend(
                        map.iter()
                            .filter(|(_, schema)| !schema.is_array())
                            .map(|(name, schema)| (format!("{keyword}/{}", escaped(name)), schema)),
                    );
                }
                (Some(SubschemaShape::Schema | SubschemaShape::SchemaOrList), schema) => {
                    found.push((keyword.clone(), schema));
                }
                _ => {}
            }
            found
        })
    }
}

/// Escapes a name for a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
