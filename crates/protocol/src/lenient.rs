//! Input that is not quite what it should be: what cannot be understood counts as absent.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

/// Something kept as it was written, beside what it means where that is understood.
#[derive(Debug, Clone, PartialEq)]
pub struct AsWritten<T> {
    value: Value,
    meaning: Option<T>,
}

impl<T> AsWritten<T> {
    /// What it means.
    pub fn meaning(&self) -> Option<&T> {
        self.meaning.as_ref()
    }

    /// As it was written.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// As it was written.
    pub fn into_value(self) -> Value {
        self.value
    }
}

impl<T: DeserializeOwned> From<Value> for AsWritten<T> {
    fn from(value: Value) -> Self {
        let meaning = T::deserialize(&value).ok();
        Self { value, meaning }
    }
}

impl<T: DeserializeOwned> Default for AsWritten<T> {
    fn default() -> Self {
        Value::Null.into()
    }
}

impl<T> Serialize for AsWritten<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for AsWritten<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

/// For a field: its default where the value is of another type.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// For a field whose type makes something of every value.
pub(crate) fn any<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<Value>,
{
    Value::deserialize(deserializer).map(T::from)
}

/// For a field that is an object, or nothing. (An array would be read as the fields of a struct in turn.)
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Value::deserialize(deserializer).map(read_object)
}

/// For a list: the entries that make sense; none where it is no list.
pub(crate) fn entries<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let entries: Vec<Value> = or_default(deserializer)?;
    Ok(sensible(entries))
}

/// For a list, the entries that make sense; it must be one.
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

/// An object, if it is one.
pub(crate) fn read_object<T: DeserializeOwned>(value: Value) -> Option<T> {
    match value {
        Value::Object(_) => serde_json::from_value(value).ok(),
        _ => None,
    }
}

/// For a field that may be absent, null, or there: `None`, `Some(None)`, `Some(Some(value))`.
pub(crate) fn there<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// For `skip_serializing_if`.
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// For `skip_serializing_if`: it is always written.
pub(crate) fn never<T>(_: &T) -> bool {
    false
}
