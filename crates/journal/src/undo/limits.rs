//! The limits of the journal: size, age and number of units. The oldest units are dropped first,
//! each as a whole. Their ids are stored, so that a request to undo them can report the reason.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::UndoHistory;
use super::mutation::now;
use super::record::{FileRecord, PathChangeRecord, RecordState, UndoRecord};
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
    /// The total size in bytes of removed files that are kept instead of copied. `None`: 10 GiB or
    /// a quarter of the free space, whichever is less.
    pub pinned: Option<u64>,
}

impl Default for UndoLimits {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            age: Duration::from_secs(30 * 24 * 60 * 60),
            units: 10_000,
            pinned: None,
        }
    }
}

/// The default of [`UndoLimits::pinned`].
const MAX_PINNED: u64 = 10 << 30;

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
    pub(super) fn from_units(units: &UndoUnits, folder: &Path) -> Self {
        let mut tally = Self::default();
        for unit in &units.all {
            tally.ids.insert(unit.id().to_owned());
            tally.oldest.get_or_insert(unit.intent.time);
            tally.add(&unit.intent.files);
            tally.add_swept(&unit.intent.swept, folder);
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

    pub(super) fn add_swept(&mut self, swept: &[PathChangeRecord], folder: &Path) {
        for (path, size) in swept.iter().flat_map(|one| kept_files(one, folder)) {
            if self.kept.insert(path.to_path_buf()) {
                self.pinned += size;
            }
        }
        for (hash, size) in swept.iter().filter_map(|one| content(&one.before)) {
            if self.hashes.insert(hash.to_owned()) {
                self.bytes += size;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn hashes(&self) -> usize {
        self.hashes.len()
    }

    fn exceeds(&self, limits: &UndoLimits, folder: &Path) -> bool {
        let too_old = self.oldest.is_some_and(|oldest| is_too_old(oldest, limits));
        self.bytes > limits.bytes
            || self.ids.len() > limits.units
            || too_old
            || (self.pinned > 0 && self.pinned > max_pinned(limits, folder, self.pinned))
    }
}

/// Returns the limit of kept files. Their space is treated as free.
fn max_pinned(limits: &UndoLimits, folder: &Path, pinned: u64) -> u64 {
    limits.pinned.unwrap_or_else(|| {
        let free = rustix::fs::statvfs(folder).ok();
        let free = free.map(|found| found.f_bavail.saturating_mul(found.f_frsize));
        let quarter = free.map(|free| free.saturating_add(pinned) / 4);
        quarter.unwrap_or(MAX_PINNED).min(MAX_PINNED)
    })
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

fn is_too_old(time: u64, limits: &UndoLimits) -> bool {
    now().saturating_sub(time) > u64::try_from(limits.age.as_millis()).unwrap_or(u64::MAX)
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
            .is_some_and(|tally| tally.exceeds(&self.limits, self.store().kept_folder()));
        if exceeds {
            let _ = self.drop_oldest();
        }
    }

    fn drop_oldest(&self) -> Result<(), JournalError> {
        let Some(log) = self.store().open_alone()? else {
            return Ok(());
        };
        let mut records = self.store().records()?;
        let units = UndoUnits::from_records(records.clone());
        let mut dropped = units.dropped.clone();
        dropped.extend(first_to_go(
            &units,
            &self.limits,
            self.store().kept_folder(),
        ));
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
        *self.tally() = Some(UndoTotals::from_units(&kept, self.store().kept_folder()));
        Ok(())
    }
}

/// Returns the ids of the oldest units, as many as needed to use at most nine tenths of each limit.
/// The newest unit always stays.
fn first_to_go(units: &UndoUnits, limits: &UndoLimits, folder: &Path) -> Vec<String> {
    let (mut bytes, mut kept, mut pinned) = (0, 0, 0);
    let mut seen = HashSet::new();
    let mut seen_files = HashSet::new();
    let all_pinned: u64 = UndoTotals::from_units(units, folder).pinned;
    let max_pinned = max_pinned(limits, folder, all_pinned);
    let mut go = Vec::new();
    for (age, unit) in units.all.iter().rev().enumerate() {
        let swept = unit.intent.swept.iter();
        let swept = swept.filter_map(|one| content(&one.before));
        for (hash, size) in unit.intent.files.iter().flat_map(contents).chain(swept) {
            if seen.insert(hash) {
                bytes += size;
            }
        }
        for (path, size) in unit
            .intent
            .swept
            .iter()
            .flat_map(|one| kept_files(one, folder))
        {
            if seen_files.insert(path) {
                pinned += size;
            }
        }
        kept += 1;
        let fits = pinned <= max_pinned / 10 * 9
            && bytes <= limits.bytes / 10 * 9
            && kept <= (limits.units / 10 * 9).max(1)
            && !is_too_old(unit.intent.time, limits);
        // A unit without an outcome is left to recovery.
        if age > 0 && (!fits || !go.is_empty()) && unit.ending.is_some() {
            go.push(unit.id().to_owned());
        }
    }
    go
}
