//! What a session keeps beside its conversation.
//!
//! A service. A tool family keeps a value here by its type; the one who writes the session down asks what
//! has changed, gives it back when the session is taken up again, and tells the model again when the
//! conversation was summarized. So neither of them knows the other.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A value that a session keeps.
pub trait StateSlot: Serialize + DeserializeOwned + Default {
    /// Its name, unique in a session.
    const KEY: &'static str;

    /// What the model must read about it when it has forgotten everything; `None` for nothing.
    fn told(&self) -> Option<String>;
}

/// The values that a session keeps.
#[derive(Debug, Default)]
pub struct SessionState {
    state: Mutex<StateTable>,
}

#[derive(Debug, Default)]
struct StateTable {
    kept: BTreeMap<String, StateEntry>,
    /// Those that no one has recorded yet.
    changed: Vec<String>,
}

/// A value as it is recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StateEntry {
    /// The value.
    pub value: Value,
    /// What the model reads about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

impl SessionState {
    /// The value as it is now; one that was never kept, or that cannot be read, is the default.
    pub fn read<T: StateSlot>(&self) -> T {
        self.state().read()
    }

    /// Changes a value, unless the change fails: then nothing has changed.
    pub fn change<T: StateSlot, R, E>(
        &self,
        change: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut state = self.state();
        let mut value: T = state.read();
        let done = change(&mut value)?;
        let kept = StateEntry {
            told: value.told(),
            // A value that cannot be written is not kept; it is the tool's own type, so it can.
            value: serde_json::to_value(&value).unwrap_or_default(),
        };
        let before = state.kept.insert(T::KEY.to_owned(), kept.clone());
        if before.as_ref() != Some(&kept) && !state.changed.iter().any(|name| name == T::KEY) {
            state.changed.push(T::KEY.to_owned());
        }
        Ok(done)
    }

    /// What has changed since this was last asked.
    pub fn take_changed(&self) -> Vec<(String, StateEntry)> {
        let mut state = self.state();
        let names = std::mem::take(&mut state.changed);
        let kept = names.into_iter().filter_map(|name| {
            let kept = state.kept.get(&name)?.clone();
            Some((name, kept))
        });
        kept.collect()
    }

    /// Takes over what was recorded.
    pub fn restore(&self, kept: impl IntoIterator<Item = (String, StateEntry)>) {
        self.state().kept.extend(kept);
    }

    /// What the model must read when it has forgotten everything.
    pub fn told(&self) -> Vec<String> {
        let state = self.state();
        let told = state.kept.values().filter_map(|kept| kept.told.clone());
        told.collect()
    }

    fn state(&self) -> MutexGuard<'_, StateTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateTable {
    fn read<T: StateSlot>(&self) -> T {
        let kept = self.kept.get(T::KEY);
        kept.and_then(|kept| serde_json::from_value(kept.value.clone()).ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Count(u32);

    impl StateSlot for Count {
        const KEY: &'static str = "count";

        fn told(&self) -> Option<String> {
            (self.0 > 0).then(|| format!("{} so far", self.0))
        }
    }

    #[test]
    fn a_value_is_kept_written_down_once_and_taken_over() {
        let first = SessionState::default();
        assert_eq!(first.read::<Count>(), Count(0));
        let failed = first.change(|count: &mut Count| {
            count.0 = 9;
            Err::<(), _>("no")
        });
        assert_eq!((failed, first.read::<Count>()), (Err("no"), Count(0)));
        for _ in 0..2 {
            let done = first.change(|count: &mut Count| {
                count.0 += 1;
                Ok::<_, ()>(count.0)
            });
            assert!(done.is_ok());
        }
        let changed = first.take_changed();
        assert_eq!(changed.len(), 1);
        assert_eq!(first.take_changed(), []);
        let second = SessionState::default();
        second.restore(changed);
        assert_eq!(second.read::<Count>(), Count(2));
        assert_eq!(second.told(), ["2 so far"]);
        assert_eq!(second.take_changed(), []);
    }

    #[test]
    fn a_value_that_cannot_be_read_is_the_default() {
        let remembered = SessionState::default();
        let odd = StateEntry {
            value: "odd".into(),
            told: None,
        };
        remembered.restore([("count".to_owned(), odd)]);
        assert_eq!(remembered.read::<Count>(), Count(0));
    }
}
