//! The limits of the journal: size, age and number of units. The oldest units are dropped first,
//! each as a whole, but because of their size only units of a minimum age. Their ids are stored, so
//! that a request to undo them can report the reason.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::UndoHistory;
use super::leases::{StoredBytes, size_at};
use super::mutation::now;
use super::record::{FileRecord, PathChangeRecord, RecordState, UndoRecord};
use super::store::UndoStore;
use super::units::UndoUnits;
use crate::error::JournalError;

/// The limits per session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoLimits {
    /// The total size of all preimages, in bytes.
    pub bytes: u64,
    /// The age after which units are dropped.
    pub age: Duration,
    /// The number of units; if there are more, the oldest are dropped.
    pub units: usize,
    /// The total size in bytes of removed files that are stored by a hard link instead of copied. A
    /// quarter of the free space limits it, too.
    pub pinned: u64,
    /// The age below which no unit is dropped because of its size.
    pub min_age: Duration,
}

impl Default for UndoLimits {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            age: Duration::from_secs(30 * 24 * 60 * 60),
            units: 10_000,
            pinned: 10 << 30,
            min_age: Duration::from_secs(60 * 60),
        }
    }
}

/// The number of ids of dropped units that are stored.
const REMEMBERED: usize = 20_000;

/// Totals of the undo folder, as known to this process.
#[derive(Debug, Default)]
pub(super) struct UndoTotals {
    pub(super) ids: HashSet<String>,
    hashes: HashSet<String>,
    bytes: u64,
    /// The stored files that are not named by their hash, and their total size.
    kept: HashSet<PathBuf>,
    pinned: u64,
    oldest: Option<u64>,
}

impl UndoTotals {
    pub(super) fn from_units(units: &UndoUnits, store: &UndoStore) -> Self {
        let mut tally = Self::default();
        for unit in &units.all {
            tally.ids.insert(unit.id().to_owned());
            tally.oldest.get_or_insert(unit.intent.time);
            tally.add(&unit.intent.files);
            tally.add_swept(&unit.intent.swept, store);
        }
        tally
    }

    pub(super) fn add(&mut self, files: &[FileRecord]) {
        for (hash, size) in files.iter().flat_map(contents) {
            if self.hashes.insert(hash.to_owned()) {
                self.bytes += size;
            }
        }
    }

    /// Adds what a command changed. Its contents must be stored already; holes are left out.
    pub(super) fn add_swept(&mut self, swept: &[PathChangeRecord], store: &UndoStore) {
        let folder = store.kept_folder();
        for (path, size) in swept.iter().flat_map(|one| kept_files(one, folder)) {
            if self.kept.insert(path.to_path_buf()) {
                self.pinned += size;
            }
        }
        for (hash, _) in swept.iter().filter_map(|one| content(&one.before)) {
            if self.hashes.insert(hash.to_owned()) {
                self.bytes += size_at(&store.blob_path(hash));
            }
        }
    }

    /// Records that a unit was made at this time, after all others.
    pub(super) fn add_unit_time(&mut self, time: u64) {
        self.oldest.get_or_insert(time);
    }

    /// Returns the totals of stored bytes.
    pub(super) fn stored(&self) -> StoredBytes {
        StoredBytes {
            copied: self.bytes,
            pinned: self.pinned,
        }
    }

    #[cfg(test)]
    pub(super) fn hashes(&self) -> usize {
        self.hashes.len()
    }

    /// Returns whether a unit must be dropped. `max` are the limits of what is stored.
    fn exceeds(&self, limits: &UndoLimits, max: StoredBytes) -> bool {
        let is_older = |age| self.oldest.is_some_and(|oldest| is_older(oldest, age));
        let is_too_large = self.bytes > max.copied || (self.pinned > 0 && self.pinned > max.pinned);
        (is_too_large && is_older(limits.min_age))
            || self.ids.len() > limits.units
            || is_older(limits.age)
    }
}

/// Returns the stored files that a record names, with their sizes.
fn kept_files<'r>(
    one: &'r PathChangeRecord,
    folder: &'r Path,
) -> impl Iterator<Item = (&'r Path, u64)> {
    [&one.before, &one.after].into_iter().filter_map(|state| {
        let size = match state {
            RecordState::Moved { seal, .. } => seal.size,
            RecordState::Regular { size, .. } => *size,
            _ => 0,
        };
        Some((state.kept_below(folder)?, size))
    })
}

/// Returns whether a unit of this time has at least this age.
fn is_older(time: u64, age: Duration) -> bool {
    now().saturating_sub(time) >= u64::try_from(age.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the hashes and sizes of the contents that a file's record may have stored.
fn contents(file: &FileRecord) -> impl Iterator<Item = (&str, u64)> {
    let before = content(&file.before);
    let after = file.after.as_ref();
    let after = after.map(|after| (after.hash.as_str(), after.size));
    before.into_iter().chain(after)
}

fn content(state: &RecordState) -> Option<(&str, u64)> {
    match state {
        RecordState::Regular { hash, size, .. } => Some((hash.as_str(), *size)),
        _ => None,
    }
}

impl UndoHistory {
    /// Drops the oldest units if a limit is exceeded. Called after each change. Ignores errors: if
    /// the folder cannot be written, the next change reports that.
    pub(crate) fn keep_within_limits(&self) {
        let exceeds = self
            .tally()
            .as_ref()
            .is_some_and(|tally| tally.exceeds(&self.limits, self.max_stored(tally.stored())));
        if exceeds {
            let _ = self.drop_oldest(StoredBytes::default());
        }
    }

    /// Drops the oldest units, so that `needed` bytes can be stored in addition.
    pub(super) fn drop_oldest(&self, needed: StoredBytes) -> Result<(), JournalError> {
        let Some(log) = self.store().open_alone()? else {
            return Ok(());
        };
        let mut records = self.store().records()?;
        let units = UndoUnits::from_records(records.clone());
        let mut dropped = units.dropped.clone();
        let stored = UndoTotals::from_units(&units, self.store()).stored();
        let max = self.max_stored(stored).minus(needed);
        dropped.extend(first_to_go(&units, &self.limits, self.store(), max));
        let gone: HashSet<&String> = dropped.iter().collect();
        records.retain(|record| match record {
            UndoRecord::Intent(intent) => !gone.contains(&intent.unit),
            UndoRecord::InPlace { unit, .. }
            | UndoRecord::Became { unit, .. }
            | UndoRecord::Outcome { unit, .. } => !gone.contains(unit),
            UndoRecord::Dropped { .. } => false,
        });
        let forgotten = dropped.len().saturating_sub(REMEMBERED);
        let remembered = dropped.split_off(forgotten);
        records.insert(0, UndoRecord::Dropped { units: remembered });
        log.rewrite(&records)
            .map_err(|error| self.store().failed(error))?;
        let kept = UndoUnits::from_records(records);
        self.store().keep_only(&kept);
        *self.tally() = Some(UndoTotals::from_units(&kept, self.store()));
        Ok(())
    }
}

/// Returns the ids of the oldest units, as many as needed to use at most nine tenths of each limit.
/// The newest unit always stays. `max` are the limits of what is stored.
fn first_to_go(
    units: &UndoUnits,
    limits: &UndoLimits,
    store: &UndoStore,
    max: StoredBytes,
) -> Vec<String> {
    let mut totals = UndoTotals::default();
    let mut stored = 0;
    let mut go = Vec::new();
    for (age, unit) in units.all.iter().rev().enumerate() {
        totals.add(&unit.intent.files);
        totals.add_swept(&unit.intent.swept, store);
        stored += 1;
        let time = unit.intent.time;
        let is_large = totals.pinned > max.pinned / 10 * 9 || totals.bytes > max.copied / 10 * 9;
        let fits = !(is_large && is_older(time, limits.min_age))
            && stored <= (limits.units / 10 * 9).max(1)
            && !is_older(time, limits.age);
        // A unit without an outcome is left to recovery.
        if age > 0 && (!fits || !go.is_empty()) && unit.ending.is_some() {
            go.push(unit.id().to_owned());
        }
    }
    go
}
