//! Detection of duplicate items, for `uniqueItems`.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::Value;

use super::{check_context::InstanceLocation, number};

/// Returns an item that occurs twice, if any. Only items with the same hash are compared, and each
/// comparison costs a step.
pub(super) fn repeated<'v>(items: &'v [Value], at: InstanceLocation<'_>) -> Option<&'v Value> {
    let mut alike: HashMap<u64, Vec<&Value>> = HashMap::new();
    for item in items {
        let group = alike.entry(value_hash(item)).or_default();
        if !at.effort.spend(group.len()) {
            return None;
        }
        if group
            .iter()
            .any(|earlier| number::json_equal(earlier, item))
        {
            return Some(item);
        }
        group.push(item);
    }
    None
}

/// Returns a hash that is the same for equal values, and mostly different for different ones.
fn value_hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(value).hash(&mut hasher);
    match value {
        Value::Null => {}
        Value::Bool(flag) => flag.hash(&mut hasher),
        // Equal numbers may be written in several ways.
        Value::Number(number) => number
            .as_f64()
            .map(|n| (n + 0.0).to_bits())
            .hash(&mut hasher),
        Value::String(text) => text.hash(&mut hasher),
        Value::Array(items) => items.len().hash(&mut hasher),
        Value::Object(map) => {
            map.len().hash(&mut hasher);
            // The order of the names has no meaning.
            let names = map.keys().map(|name| {
                let mut own = DefaultHasher::new();
                name.hash(&mut own);
                own.finish()
            });
            names.fold(0, u64::wrapping_add).hash(&mut hasher);
        }
    }
    hasher.finish()
}
