//! Values stored with a session besides its conversation.
//!
//! [`SessionState`] is a service. A tool family stores a value here by its type. The session recorder
//! writes changed values to the transcript, restores them when the session is resumed, and reminds
//! the model of them after a compaction. Tool families and the recorder do not depend on each other.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A value that is stored with a session.
pub trait StateSlot: Serialize + DeserializeOwned + Default {
    /// Its name, unique in a session.
    const KEY: &'static str;

    /// Returns the reminder that the model must read after a compaction; `None` if it has none.
    fn reminder(&self) -> Option<String>;
}

/// The values stored with a session.
#[derive(Debug, Default)]
pub struct SessionState {
    state: Mutex<StateTable>,
}

#[derive(Debug, Default)]
struct StateTable {
    entries: BTreeMap<String, StateEntry>,
    /// The names of values that are not recorded yet.
    changed: Vec<String>,
}

/// A stored value, in its recorded form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StateEntry {
    /// The value.
    pub value: Value,
    /// The reminder for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

impl SessionState {
    /// Returns the current value. A value that was never stored, or that cannot be deserialized, is
    /// the default.
    pub fn read<T: StateSlot>(&self) -> T {
        self.state().read()
    }

    /// Changes a value. If `change` returns an error, nothing changes.
    pub fn change<T: StateSlot, R, E>(
        &self,
        change: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut state = self.state();
        let mut value: T = state.read();
        let done = change(&mut value)?;
        let kept = StateEntry {
            told: value.reminder(),
            // A value that cannot be serialized is stored as `null`; the tool's own types always
            // can.
            value: serde_json::to_value(&value).unwrap_or_default(),
        };
        let before = state.entries.insert(T::KEY.to_owned(), kept.clone());
        if before.as_ref() != Some(&kept) && !state.changed.iter().any(|name| name == T::KEY) {
            state.changed.push(T::KEY.to_owned());
        }
        Ok(done)
    }

    /// Takes the values that have changed since the last call.
    pub fn take_changed(&self) -> Vec<(String, StateEntry)> {
        let mut state = self.state();
        let names = std::mem::take(&mut state.changed);
        let kept = names.into_iter().filter_map(|name| {
            let kept = state.entries.get(&name)?.clone();
            Some((name, kept))
        });
        kept.collect()
    }

    /// Restores recorded values.
    pub fn restore(&self, kept: impl IntoIterator<Item = (String, StateEntry)>) {
        self.state().entries.extend(kept);
    }

    /// Returns the reminders that the model must read after a compaction.
    pub fn reminders(&self) -> Vec<String> {
        let state = self.state();
        let told = state.entries.values().filter_map(|kept| kept.told.clone());
        told.collect()
    }

    fn state(&self) -> MutexGuard<'_, StateTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateTable {
    fn read<T: StateSlot>(&self) -> T {
        let kept = self.entries.get(T::KEY);
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

        fn reminder(&self) -> Option<String> {
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
        assert_eq!(second.reminders(), ["2 so far"]);
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
