//! The values of keywords, checked while a schema is compiled.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::{
    NumericBound, SchemaError, SchemaKeyword, SizeUnit, TypeSet,
    draft::{SchemaDraft, SubschemaShape, escaped},
    number,
};

/// A place in the schema.
#[derive(Clone, Copy)]
pub(super) struct SchemaPlace<'a> {
    pub(super) pointer: &'a str,
    pub(super) resource: usize,
    pub(super) draft: SchemaDraft,
}

impl SchemaPlace<'_> {
    pub(super) fn error(self, keyword: &str, problem: impl Into<String>) -> SchemaError {
        SchemaError {
            pointer: match keyword {
                "" => self.pointer.to_owned(),
                keyword => format!("{}/{}", self.pointer, escaped(keyword)),
            },
            problem: problem.into(),
        }
    }
}

/// Returns whether the value is a flag. Draft 4 has no schemas `true` and `false`, but these
/// keywords may have a boolean value.
pub(super) fn flag_in_four(keyword: &str, value: &Value, draft: SchemaDraft) -> bool {
    draft == SchemaDraft::Four
        && value.is_boolean()
        && matches!(keyword, "additionalItems" | "additionalProperties")
}

/// Checks that the value of a keyword that contains schemas has the right type.
pub(super) fn holder(
    keyword: &str,
    value: &Value,
    here: SchemaPlace<'_>,
) -> Result<(), SchemaError> {
    let fits = match here.draft.holds(keyword) {
        // A value that should be a schema is checked when it is compiled.
        None | Some(SubschemaShape::Schema | SubschemaShape::SchemaOrList) => true,
        Some(SubschemaShape::List) => value.as_array().is_some_and(|list| !list.is_empty()),
        Some(SubschemaShape::Map | SubschemaShape::MapOrNames) => value.is_object(),
    };
    if fits {
        return Ok(());
    }
    let wanted = match here.draft.holds(keyword) {
        Some(SubschemaShape::List) => "it must be a list of schemas with at least one",
        _ => "it must be an object",
    };
    Err(here.error(keyword, wanted))
}

pub(super) fn text<'v>(
    keyword: &str,
    value: &'v Value,
    here: SchemaPlace<'_>,
) -> Result<&'v str, SchemaError> {
    value
        .as_str()
        .ok_or_else(|| here.error(keyword, format!("it must be a string, not {value}")))
}

/// Checks a keyword whose value must be a string and has no other meaning.
pub(super) fn check_string(
    keyword: &str,
    value: &Value,
    here: SchemaPlace<'_>,
) -> Result<Option<SchemaKeyword>, SchemaError> {
    text(keyword, value, here).map(|_| None)
}

pub(super) fn flag(
    keyword: &str,
    value: &Value,
    here: SchemaPlace<'_>,
) -> Result<bool, SchemaError> {
    value
        .as_bool()
        .ok_or_else(|| here.error(keyword, format!("it must be true or false, not {value}")))
}

pub(super) fn count(
    keyword: &str,
    value: &Value,
    here: SchemaPlace<'_>,
) -> Result<u64, SchemaError> {
    number::count(value)
        .ok_or_else(|| here.error(keyword, format!("it must be a whole number, not {value}")))
}

pub(super) fn list<'v>(
    keyword: &str,
    value: &'v Value,
    here: SchemaPlace<'_>,
) -> Result<&'v Vec<Value>, SchemaError> {
    value
        .as_array()
        .ok_or_else(|| here.error(keyword, format!("it must be a list, not {value}")))
}

/// Returns a list of names, which must be distinct.
pub(super) fn names(
    keyword: &str,
    value: &Value,
    here: SchemaPlace<'_>,
) -> Result<Vec<String>, SchemaError> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for name in list(keyword, value, here)? {
        let name = text(keyword, name, here)?;
        if !seen.insert(name) {
            return Err(here.error(keyword, format!("`{name}` is there twice")));
        }
        names.push(name.to_owned());
    }
    if names.is_empty() && here.draft == SchemaDraft::Four {
        return Err(here.error(keyword, "it must not be empty"));
    }
    Ok(names)
}

pub(super) fn limit<'v>(
    keyword: &str,
    value: &'v Value,
    here: SchemaPlace<'_>,
) -> Result<&'v Number, SchemaError> {
    value
        .as_number()
        .ok_or_else(|| here.error(keyword, format!("it must be a number, not {value}")))
}

pub(super) fn bound(
    keyword: &str,
    value: &Value,
    all: &Map<String, Value>,
    here: SchemaPlace<'_>,
) -> Result<Option<SchemaKeyword>, SchemaError> {
    // In draft 4 `exclusiveMinimum` is a flag next to `minimum`.
    let exclusive = |name: &str| {
        here.draft == SchemaDraft::Four && all.get(name).and_then(Value::as_bool) == Some(true)
    };
    let kind = match keyword {
        "minimum" if exclusive("exclusiveMinimum") => NumericBound::MoreThan,
        "minimum" => NumericBound::Least,
        "maximum" if exclusive("exclusiveMaximum") => NumericBound::LessThan,
        "maximum" => NumericBound::Most,
        flagged if here.draft == SchemaDraft::Four => {
            flag(flagged, value, here)?;
            return Ok(None);
        }
        "exclusiveMinimum" => NumericBound::MoreThan,
        _ => NumericBound::LessThan,
    };
    Ok(Some(SchemaKeyword::Bound(
        kind,
        limit(keyword, value, here)?.clone(),
    )))
}

pub(super) fn size(
    keyword: &str,
    value: &Value,
    of: SizeUnit,
    here: SchemaPlace<'_>,
) -> Result<SchemaKeyword, SchemaError> {
    let limit = count(keyword, value, here)?;
    let least = keyword.starts_with("min");
    Ok(SchemaKeyword::Size {
        of,
        least: least.then_some(limit),
        most: (!least).then_some(limit),
    })
}

/// Combines `contentEncoding` and `contentMediaType` into one keyword. If both are present, it is
/// created for `contentEncoding`.
pub(super) fn content(
    keyword: &str,
    value: &Value,
    all: &Map<String, Value>,
    here: SchemaPlace<'_>,
) -> Result<Option<SchemaKeyword>, SchemaError> {
    text(keyword, value, here)?;
    let second = keyword == "contentMediaType" && all.contains_key("contentEncoding");
    if !matches!(here.draft, SchemaDraft::Six | SchemaDraft::Seven) || second {
        return Ok(None);
    }
    let says =
        |keyword: &str, wanted: &str| all.get(keyword).and_then(Value::as_str) == Some(wanted);
    Ok(Some(SchemaKeyword::Content {
        base64: says("contentEncoding", "base64"),
        json: says("contentMediaType", "application/json"),
    }))
}

pub(super) fn types(value: &Value, here: SchemaPlace<'_>) -> Result<TypeSet, SchemaError> {
    let names = match value {
        Value::String(_) => vec![value.clone()],
        Value::Array(names) if !names.is_empty() => names.clone(),
        _ => return Err(here.error("type", format!("it must be a type or several, not {value}"))),
    };
    let mut types = TypeSet {
        whole_floats: here.draft > SchemaDraft::Four,
        ..TypeSet::default()
    };
    for name in &names {
        let allowed = match name.as_str() {
            Some("null") => &mut types.null,
            Some("boolean") => &mut types.boolean,
            Some("object") => &mut types.object,
            Some("array") => &mut types.array,
            Some("number") => &mut types.number,
            Some("integer") => &mut types.integer,
            Some("string") => &mut types.string,
            _ => return Err(here.error("type", format!("{name} is not a type"))),
        };
        if std::mem::replace(allowed, true) {
            return Err(here.error("type", format!("{name} is there twice")));
        }
    }
    Ok(types)
}
