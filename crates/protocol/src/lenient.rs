//! Lenient reading: a value of the wrong type is treated as absent.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

/// A JSON value that is preserved unchanged, together with the parsed value if it is valid.
#[derive(Debug, Clone, PartialEq)]
pub struct RawOrParsed<T> {
    value: Value,
    parsed: Option<T>,
}

impl<T> RawOrParsed<T> {
    /// Returns the parsed value, if the JSON is valid.
    pub fn parsed(&self) -> Option<&T> {
        self.parsed.as_ref()
    }

    /// Returns the unchanged JSON.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the unchanged JSON.
    pub fn into_value(self) -> Value {
        self.value
    }
}

impl<T: DeserializeOwned> From<Value> for RawOrParsed<T> {
    fn from(value: Value) -> Self {
        let meaning = T::deserialize(&value).ok();
        Self {
            value,
            parsed: meaning,
        }
    }
}

impl<T: DeserializeOwned> Default for RawOrParsed<T> {
    fn default() -> Self {
        Value::Null.into()
    }
}

impl<T> Serialize for RawOrParsed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for RawOrParsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

/// Reads a field. A value of another type becomes the default.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Reads a field whose type accepts every value.
pub(crate) fn any<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<Value>,
{
    Value::deserialize(deserializer).map(T::from)
}

/// Reads an optional object. (Serde would read an array as the fields of a struct, in order.)
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Value::deserialize(deserializer).map(read_object)
}

/// Reads the valid entries of a list. A value that is not a list becomes an empty list.
pub(crate) fn entries<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let entries: Vec<Value> = or_default(deserializer)?;
    Ok(sensible(entries))
}

/// Reads the valid entries of a list. A value that is not a list is an error.
pub(crate) fn entries_of_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Vec::<Value>::deserialize(deserializer).map(sensible)
}

fn sensible<T: DeserializeOwned>(entries: Vec<Value>) -> Vec<T> {
    let entries = entries.into_iter().map(serde_json::from_value);
    entries.filter_map(Result::ok).collect()
}

/// Returns the value if it is a valid object.
pub(crate) fn read_object<T: DeserializeOwned>(value: Value) -> Option<T> {
    match value {
        Value::Object(_) => serde_json::from_value(value).ok(),
        _ => None,
    }
}

/// Reads a field that may be absent, null or set: `None`, `Some(None)`, `Some(Some(value))`.
pub(crate) fn there<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Returns whether the value is false, for `skip_serializing_if`.
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// Always returns false, for `skip_serializing_if`: the field is always written.
pub(crate) fn never<T>(_: &T) -> bool {
    false
}
