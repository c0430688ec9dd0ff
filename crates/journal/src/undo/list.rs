//! What was done, newest first, as plain data.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::UndoHistory;
use super::looked::Looked;
use super::perform::look;
use super::record::{Ending, RecordState, Swept};
use super::units::Unit;
use crate::error::JournalError;
use crate::stamp::ContentHash;

/// One mutation of this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitSummary {
    /// What it is undone by.
    pub id: String,
    /// The call that made it.
    pub call: String,
    /// The tool that made it.
    pub tool: String,
    /// When it began.
    pub time: SystemTime,
    /// What it changed.
    pub files: Vec<FileSummary>,
    /// What it took back, or some of it, if it is an undo.
    pub undoes: Vec<String>,
    /// What became of it.
    pub state: UnitState,
    /// Could it be undone now? If not, why.
    pub undoable: Result<(), String>,
    /// What it changed and no undo restores, and why.
    pub left: Vec<(PathBuf, String)>,
    /// What was done, where the tool's name does not say it: a command line.
    pub about: String,
}

/// One file of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSummary {
    /// As the call named it.
    pub given: PathBuf,
    /// After all links.
    pub real: PathBuf,
    /// What was done to it.
    pub change: ChangeKind,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It holds something else.
    Changed,
    /// It is gone.
    Removed,
}

/// What became of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitState {
    /// It stands.
    Made,
    /// It was undone.
    Undone {
        /// The unit that undid it.
        by: String,
    },
    /// It failed, or was taken back after a crash.
    NotMade,
    /// It is running, or was interrupted and not yet recovered.
    Open,
    /// It was interrupted, and someone else changed its files since.
    Unclear,
}

impl ChangeKind {
    pub(super) fn of(before: bool, after: bool) -> Self {
        match (before, after) {
            (false, _) => Self::Created,
            (true, true) => Self::Changed,
            (true, false) => Self::Removed,
        }
    }
}

impl UndoHistory {
    /// The latest `limit` units, newest first. Reads the files to tell what can be undone.
    pub fn list(&self, limit: usize) -> Result<Vec<UnitSummary>, JournalError> {
        let units = self.units()?;
        let mut now = Now::default();
        let newest_first = units.all.iter().rev().take(limit);
        Ok(newest_first
            .map(|unit| summary(unit, &units.all, &mut now))
            .collect())
    }

    /// The files of what an undo would take back, without looking at them: what permission is
    /// asked for.
    pub fn files_of(&self, which: &super::Which) -> Result<Vec<FileSummary>, JournalError> {
        let units = self.units()?;
        let mut files: Vec<FileSummary> = Vec::new();
        let mut seen = HashSet::new();
        for unit in super::take_back::choose(&units, which)? {
            for file in files_in(unit) {
                if seen.insert(file.real.clone()) {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }
}

/// The hashes of files as they are now, each read once.
#[derive(Default)]
struct Now<'u>(HashMap<&'u Path, Option<Option<String>>>);

impl<'u> Now<'u> {
    /// `None`: it cannot be read.
    fn hash(&mut self, real: &'u Path) -> &Option<Option<String>> {
        self.0.entry(real).or_insert_with(|| {
            let now = look(real, u64::MAX).ok()?;
            Some(now.map(|now| ContentHash::of(&now.bytes).to_string()))
        })
    }
}

fn summary<'u>(unit: &'u Unit, all: &'u [Unit], now: &mut Now<'u>) -> UnitSummary {
    let state = match (&unit.ending, &unit.undone_by) {
        (Some(Ending::Made), None) => UnitState::Made,
        (Some(Ending::Made), Some(by)) => UnitState::Undone { by: by.clone() },
        (Some(Ending::NotMade), _) => UnitState::NotMade,
        (Some(Ending::Unclear), _) => UnitState::Unclear,
        (None, _) => UnitState::Open,
    };
    let undoable = match &state {
        UnitState::Made => unchanged(unit, all, now),
        UnitState::Undone { by } => Err(format!("undone by {by}")),
        UnitState::NotMade => Err("it changed nothing".to_owned()),
        UnitState::Open => Err("it is running, or was interrupted".to_owned()),
        UnitState::Unclear => {
            Err("it was interrupted, and its files were changed since".to_owned())
        }
    };
    UnitSummary {
        id: unit.id().to_owned(),
        call: unit.intent.call.clone(),
        tool: unit.intent.tool.clone(),
        time: UNIX_EPOCH + Duration::from_millis(unit.intent.time),
        files: files_in(unit).collect(),
        undoes: (unit.intent.undoes.iter().chain(&unit.intent.part_of))
            .cloned()
            .collect(),
        state,
        undoable,
        left: (unit.intent.left.iter())
            .map(|left| (left.path.clone(), left.why.clone()))
            .collect(),
        about: unit.intent.about.clone(),
    }
}

fn unchanged<'u>(unit: &'u Unit, all: &'u [Unit], now: &mut Now<'u>) -> Result<(), String> {
    let later = |path: &Path| {
        let later = all.iter().rev().take_while(|later| later.id() != unit.id());
        let ours =
            later.filter(|later| later.stands() && files_in(later).any(|file| file.real == path));
        match ours.last() {
            Some(later) => format!(
                "{} was changed again by {}: undo that first",
                path.display(),
                later.id()
            ),
            None => format!("{} was changed by someone else since", path.display()),
        }
    };
    for one in unit.swept() {
        match Looked::at(&one.path) {
            Ok(looked) if looked.seems(&one.after) || looked.seems(&one.before) => {}
            Ok(_) => return Err(later(&one.path)),
            Err(_) => return Err(format!("{} cannot be read", one.path.display())),
        }
    }
    if unit.swept().next().is_none()
        && let Some(left) = unit.intent.left.first()
    {
        return Err(format!(
            "not covered: {}: {}",
            left.path.display(),
            left.why
        ));
    }
    for file in &unit.intent.files {
        let path = file.real.display();
        match now.hash(&file.real) {
            None => return Err(format!("{path} cannot be read")),
            Some(hash) if hash.as_deref() == file.after_hash() => {}
            Some(_) => return Err(later(&file.real)),
        }
    }
    Ok(())
}

fn files_in(unit: &Unit) -> impl Iterator<Item = FileSummary> {
    let files = unit.intent.files.iter().map(|file| FileSummary {
        given: file.given.clone(),
        real: file.real.clone(),
        change: ChangeKind::of(file.before.hash().is_some(), file.after.is_some()),
        added: file.added,
        removed: file.removed,
    });
    // A directory in which something was changed has only got another time.
    let named = |one: &&Swept| !(one.before.is_directory() && one.after.is_directory());
    let swept = unit.swept().filter(named).map(|one| FileSummary {
        given: one.path.clone(),
        real: one.path.clone(),
        change: ChangeKind::of(
            one.before != RecordState::Absent,
            one.after != RecordState::Absent,
        ),
        added: 0,
        removed: 0,
    });
    files.chain(swept)
}
