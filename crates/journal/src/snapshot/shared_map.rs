//! A persistent map whose versions share their common parts.
//!
//! It is split into parts by the key's hash; a copy increments one reference count, and a change
//! copies one part.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

/// The number of parts: with 150,000 keys a change copies a few dozen.
const PARTS: usize = 4096;

#[derive(Debug, Clone)]
pub(crate) struct SharedMap<K, V> {
    parts: Arc<Vec<Arc<HashMap<K, V>>>>,
    hasher: RandomState,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self {
            parts: Arc::default(),
            hasher: RandomState::new(),
        }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> SharedMap<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.parts.get(self.part_of(key))?.get(key)
    }

    /// Inserts a value and returns the previous one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let part = self.part_of(&key);
        let parts = Arc::make_mut(&mut self.parts);
        if parts.is_empty() {
            parts.resize_with(PARTS, Arc::default);
        }
        Arc::make_mut(&mut parts[part]).insert(key, value)
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if self.get(key).is_some() {
            let part = self.part_of(key);
            let parts = Arc::make_mut(&mut self.parts);
            Arc::make_mut(&mut parts[part]).remove(key);
        }
    }

    fn part_of(&self, key: &K) -> usize {
        self.hasher.hash_one(key) as usize % PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stays_as_it_was() {
        let mut map = SharedMap::default();
        for key in 0..10_000_u32 {
            assert_eq!(map.insert(key, key), None);
        }
        let copy = map.clone();
        assert_eq!(map.insert(7, 70), Some(7));
        map.remove(&8);
        map.remove(&20_000);
        assert_eq!(
            (map.get(&7), map.get(&8), map.get(&9)),
            (Some(&70), None, Some(&9))
        );
        assert_eq!((copy.get(&7), copy.get(&8)), (Some(&7), Some(&8)));
    }
}
