//! The log read as units: what each call did, how it ended, and what still stands.

use std::collections::{HashMap, HashSet};

use super::error::UndoError;
use super::record::{Ending, Intent, Record};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    pub(super) intent: Intent,
    /// `None`: interrupted, or still running in another process.
    pub(super) ending: Option<Ending>,
    pub(super) note: Option<String>,
    /// The later unit that took this one back, and still stands itself.
    pub(super) undone_by: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Units {
    /// Oldest first.
    pub(super) all: Vec<Unit>,
    pub(super) dropped: Vec<String>,
}

impl Unit {
    pub(super) fn id(&self) -> &str {
        &self.intent.unit
    }

    pub(super) fn is_made(&self) -> bool {
        self.ending == Some(Ending::Made)
    }

    /// Its files are as it left them, as far as this journal knows.
    pub(super) fn stands(&self) -> bool {
        self.is_made() && self.undone_by.is_none()
    }
}

impl Units {
    pub(super) fn of(records: Vec<Record>) -> Self {
        let mut units = Self::default();
        let mut index: HashMap<String, usize> = HashMap::new();
        for record in records {
            match record {
                Record::Intent(intent) => {
                    index.insert(intent.unit.clone(), units.all.len());
                    units.all.push(Unit {
                        intent,
                        ending: None,
                        note: None,
                        undone_by: None,
                    });
                }
                Record::InPlace { unit, file } => {
                    let unit = index.get(&unit).map(|&at| &mut units.all[at]);
                    if let Some(file) = unit.and_then(|unit| unit.intent.files.get_mut(file)) {
                        file.in_place = true;
                    }
                }
                Record::Outcome { unit, ending, note } => {
                    if let Some(&at) = index.get(&unit) {
                        units.all[at].ending = Some(ending);
                        units.all[at].note = note;
                    }
                }
                Record::Dropped { units: dropped } => units.dropped.extend(dropped),
            }
        }
        units.mark_undone(&index);
        units
    }

    /// From the newest back: an undo that still stands takes its units down.
    fn mark_undone(&mut self, index: &HashMap<String, usize>) {
        for at in (0..self.all.len()).rev() {
            if !self.all[at].stands() {
                continue;
            }
            let by = self.all[at].id().to_owned();
            for undone in self.all[at].intent.undoes.clone() {
                if let Some(&undone) = index.get(&undone) {
                    self.all[undone].undone_by = Some(by.clone());
                }
            }
        }
    }

    /// The last unit that changed something, stands, and is not itself an undo.
    pub(super) fn last(&self) -> Result<&Unit, UndoError> {
        let mut newest_first = self.all.iter().rev();
        newest_first
            .find(|unit| unit.stands() && unit.intent.undoes.is_empty())
            .ok_or(UndoError::Nothing)
    }

    /// By its id, a beginning of it that is clear, or the id of its call.
    pub(super) fn find(&self, id: &str) -> Result<&Unit, UndoError> {
        if self.dropped.iter().any(|dropped| dropped == id) {
            return Err(UndoError::Dropped { id: id.to_owned() });
        }
        let of_call = self.all.iter().rev().filter(|unit| unit.intent.call == id);
        if let Some(unit) = of_call.clone().find(|unit| unit.stands()) {
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
            _ => Err(UndoError::Unknown {
                id: id.to_owned(),
                recent: self.recent(),
            }),
        }
    }

    fn recent(&self) -> Vec<String> {
        let standing = self.all.iter().rev().filter(|unit| unit.stands());
        standing
            .take(3)
            .map(|unit| format!("{} ({})", unit.id(), unit.intent.tool))
            .collect()
    }

    /// Everything made at or after a time, newest first.
    pub(super) fn since(&self, time: u64) -> Vec<&Unit> {
        self.all
            .iter()
            .rev()
            .filter(|unit| unit.is_made() && unit.intent.time >= time)
            .collect()
    }

    /// The hashes the units need.
    pub(super) fn hashes(&self) -> HashSet<&str> {
        let files = self.all.iter().flat_map(|unit| &unit.intent.files);
        files
            .flat_map(|file| [file.before.hash(), file.after_hash()])
            .flatten()
            .collect()
    }
}
