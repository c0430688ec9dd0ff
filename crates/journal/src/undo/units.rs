//! The log read as units: the changes of each call, their outcome, and which are still in effect.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::error::UndoError;
use super::record::{PathChangeRecord, RecordState, UndoIntent, UndoRecord, UnitEnding};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct UndoUnit {
    pub(super) intent: UndoIntent,
    /// `None`: interrupted, or still running in another process.
    pub(super) ending: Option<UnitEnding>,
    pub(super) note: Option<String>,
    /// The later unit that undid this one and is still in effect itself.
    pub(super) undone_by: Option<String>,
    /// Paths that later units reverted separately.
    pub(super) taken: HashSet<PathBuf>,
}

#[derive(Debug, Default)]
pub(super) struct UndoUnits {
    /// Oldest first.
    pub(super) all: Vec<UndoUnit>,
    pub(super) dropped: Vec<String>,
}

impl UndoUnit {
    pub(super) fn id(&self) -> &str {
        &self.intent.unit
    }

    pub(super) fn is_made(&self) -> bool {
        self.ending == Some(UnitEnding::Made)
    }

    /// Returns whether the unit belongs to a command or undoes one.
    pub(super) fn is_swept(&self) -> bool {
        self.intent.files.is_empty()
    }

    /// Returns whether the unit reverts another one, or a part of it.
    pub(super) fn is_undo(&self) -> bool {
        !self.intent.undoes.is_empty() || self.intent.part_of.is_some()
    }

    /// Returns the paths of any kind that no later unit reverted.
    pub(super) fn swept(&self) -> impl Iterator<Item = &PathChangeRecord> {
        let all = self.intent.swept.iter();
        all.filter(|one| !self.taken.contains(&one.path))
    }

    /// Returns all changed paths, each with whether its modes and times are known.
    pub(super) fn all_paths(&self) -> Vec<(PathChangeRecord, bool)> {
        let mut all: Vec<(PathChangeRecord, bool)> =
            self.swept().map(|one| (one.clone(), true)).collect();
        let directory = || RecordState::Directory {
            mode: 0o755,
            uid: 0,
            gid: 0,
            mtime: 0,
            extended: Vec::new(),
        };
        for file in &self.intent.files {
            let mut add = |path: &Path, before: RecordState, after: RecordState| {
                let one = PathChangeRecord::new(path.to_path_buf(), before, after);
                if !all.iter().any(|(known, _)| known.path == one.path) {
                    all.push((one, false));
                }
            };
            let after = match &file.after {
                None => RecordState::Absent,
                Some(after) => RecordState::Regular {
                    hash: after.hash.clone(),
                    size: after.size,
                    mode: 0,
                    uid: 0,
                    gid: 0,
                    mtime: 0,
                    extended: Vec::new(),
                    twin: None,
                },
            };
            add(&file.real, file.before.clone(), after);
            for made in &file.made {
                add(made, RecordState::Absent, directory());
            }
            for unmade in &file.unmade {
                add(unmade, directory(), RecordState::Absent);
            }
        }
        all
    }

    /// Returns whether the unit is in effect: made and not undone.
    pub(super) fn is_in_effect(&self) -> bool {
        self.is_made() && self.undone_by.is_none()
    }
}

impl UndoUnits {
    pub(super) fn from_records(records: Vec<UndoRecord>) -> Self {
        let mut units = Self::default();
        let mut index: HashMap<String, usize> = HashMap::new();
        for record in records {
            match record {
                UndoRecord::Intent(intent) => {
                    index.insert(intent.unit.clone(), units.all.len());
                    units.all.push(UndoUnit {
                        intent: *intent,
                        ending: None,
                        note: None,
                        undone_by: None,
                        taken: HashSet::new(),
                    });
                }
                UndoRecord::InPlace { unit, file } => {
                    let unit = index.get(&unit).map(|&at| &mut units.all[at]);
                    if let Some(file) = unit.and_then(|unit| unit.intent.files.get_mut(file)) {
                        file.in_place = true;
                    }
                }
                UndoRecord::Became { unit, file, after } => {
                    let unit = index.get(&unit).map(|&at| &mut units.all[at]);
                    if let Some(file) = unit.and_then(|unit| unit.intent.files.get_mut(file)) {
                        file.after = Some(after);
                    }
                }
                UndoRecord::Outcome { unit, ending, note } => {
                    if let Some(&at) = index.get(&unit) {
                        units.all[at].ending = Some(ending);
                        units.all[at].note = note;
                    }
                }
                UndoRecord::Dropped { units: dropped } => units.dropped.extend(dropped),
            }
        }
        units.mark_undone(&index);
        units
    }

    /// Marks undone units, from the newest back: an undo that is in effect marks the units it
    /// reverts.
    fn mark_undone(&mut self, index: &HashMap<String, usize>) {
        for at in (0..self.all.len()).rev() {
            if !self.all[at].is_in_effect() {
                continue;
            }
            if let Some(&whole) =
                (self.all[at].intent.part_of.as_ref()).and_then(|id| index.get(id))
            {
                let taken: Vec<PathBuf> =
                    self.all[at].swept().map(|one| one.path.clone()).collect();
                self.all[whole].taken.extend(taken);
            }
            let by = self.all[at].id().to_owned();
            for undone in self.all[at].intent.undoes.clone() {
                if let Some(&undone) = index.get(&undone) {
                    self.all[undone].undone_by = Some(by.clone());
                }
            }
        }
    }

    /// Returns a unit in effect with those that changed the same files at the same time, newest
    /// first. None of them can be undone alone.
    pub(super) fn together<'u>(&'u self, unit: &'u UndoUnit) -> Vec<&'u UndoUnit> {
        let is_linked = |one: &UndoUnit, other: &UndoUnit| {
            let names = |one: &UndoUnit, other: &UndoUnit| {
                !other.intent.keep.is_empty() && one.intent.overlaps.contains(&other.intent.keep)
            };
            names(one, other) || names(other, one)
        };
        let mut group = vec![unit];
        let mut at = 0;
        while let Some(&one) = group.get(at) {
            for other in &self.all {
                let is_known = group.iter().any(|known| known.id() == other.id());
                if !is_known && other.is_in_effect() && is_linked(one, other) {
                    group.push(other);
                }
            }
            at += 1;
        }
        self.newest_first(&group)
    }

    /// Sorts units, newest first, without duplicates.
    pub(super) fn newest_first(&self, units: &[&UndoUnit]) -> Vec<&UndoUnit> {
        let is_one = |one: &&UndoUnit| units.iter().any(|unit| unit.id() == one.id());
        self.all.iter().rev().filter(is_one).collect()
    }

    /// Returns the last unit that is in effect and is not an undo.
    pub(super) fn last(&self) -> Result<&UndoUnit, UndoError> {
        let mut newest_first = self.all.iter().rev();
        newest_first
            .find(|unit| unit.is_in_effect() && !unit.is_undo())
            .ok_or(match self.dropped.len() {
                0 => UndoError::Nothing,
                count => UndoError::AllDropped { count },
            })
    }

    /// Finds a unit by its id, an unambiguous prefix of it, or the id of its call.
    pub(super) fn find(&self, id: &str) -> Result<&UndoUnit, UndoError> {
        let is_dropped = |dropped: &String| id.len() >= 8 && dropped.starts_with(id);
        if self.dropped.iter().any(|dropped| dropped == id) {
            return Err(UndoError::Dropped { id: id.to_owned() });
        }
        let of_call = self.all.iter().rev().filter(|unit| unit.intent.call == id);
        if let Some(unit) = of_call.clone().find(|unit| unit.is_in_effect()) {
            return Ok(unit);
        }
        if let Some(unit) = self.all.iter().find(|unit| unit.id() == id) {
            return Ok(unit);
        }
        let mut matching = self
            .all
            .iter()
            .filter(|unit| id.len() >= 8 && unit.id().starts_with(id));
        match (matching.next(), matching.next()) {
            (Some(unit), None) => Ok(unit),
            (None, _) if self.dropped.iter().any(is_dropped) => {
                Err(UndoError::Dropped { id: id.to_owned() })
            }
            _ => Err(UndoError::Unknown {
                id: id.to_owned(),
                recent: self.recent(),
            }),
        }
    }

    fn recent(&self) -> Vec<String> {
        let standing = self.all.iter().rev().filter(|unit| unit.is_in_effect());
        standing
            .take(3)
            .map(|unit| format!("{} ({})", unit.id(), unit.intent.tool))
            .collect()
    }

    /// Returns all units made at or after a time, newest first.
    pub(super) fn since(&self, time: u64) -> Vec<&UndoUnit> {
        self.all
            .iter()
            .rev()
            .filter(|unit| unit.is_made() && unit.intent.time >= time)
            .collect()
    }

    /// Returns the stored files in this folder that the units need.
    pub(super) fn kept_below(&self, folder: &Path) -> HashSet<&Path> {
        let swept = self.all.iter().flat_map(|unit| &unit.intent.swept);
        let states = swept.flat_map(|one| [&one.before, &one.after]);
        states
            .filter_map(|state| state.kept_below(folder))
            .collect()
    }

    /// Returns the folders of units whose log could not be read.
    pub(super) fn damaged(&self) -> HashSet<&str> {
        let damaged = self.all.iter().map(|unit| &unit.intent);
        let damaged = damaged.filter(|intent| intent.swept.is_empty() && !intent.left.is_empty());
        damaged.map(|intent| intent.keep.as_str()).collect()
    }

    /// Returns the hashes that the units need.
    pub(super) fn hashes(&self) -> HashSet<&str> {
        let files = self.all.iter().flat_map(|unit| &unit.intent.files);
        let swept = self.all.iter().flat_map(|unit| &unit.intent.swept);
        let swept = swept.flat_map(|one| [one.before.hash(), one.after.hash()]);
        files
            .flat_map(|file| [file.before.hash(), file.after_hash()])
            .chain(swept)
            .flatten()
            .collect()
    }
}
