//! The list of changes, newest first, as plain data.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haft_witness::UnitHeader;

use super::UndoHistory;
use super::mutation::read_snapshot;
use super::observed_path::ObservedPath;
use super::record::{PathChangeRecord, UnitEnding};
use super::units::{UndoUnit, UndoUnits};
use crate::error::JournalError;
use crate::stamp::ContentHash;

/// One change of this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitSummary {
    /// The id for undoing it.
    pub id: String,
    /// The id of the call that made it.
    pub call: String,
    /// The tool that made it.
    pub tool: String,
    /// The time when it began.
    pub time: SystemTime,
    /// The changed files.
    pub files: Vec<FileSummary>,
    /// The units that it reverts, completely or partly, if it is an undo.
    pub undoes: Vec<String>,
    /// The state of the unit.
    pub state: UnitState,
    /// Whether it could be undone now; if not, the reason.
    pub undoable: Result<(), String>,
    /// Changes of this unit that undo cannot revert, with the reason.
    pub left: Vec<(PathBuf, String)>,
    /// The units that changed the same files at the same time, newest first: they can only be undone
    /// together with this one.
    pub overlaps: Vec<String>,
    /// A description, if the tool's name does not suffice: a command line.
    pub about: String,
}

/// One file of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSummary {
    /// The path as the call named it.
    pub given: PathBuf,
    /// The path with all links resolved.
    pub real: PathBuf,
    /// The kind of change.
    pub change: ChangeKind,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// The kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It did not exist before.
    Created,
    /// Its content is different.
    Changed,
    /// It was removed.
    Removed,
}

/// The state of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitState {
    /// It was made and is still in effect.
    Made,
    /// It was undone.
    Undone {
        /// The id of the unit that undid it.
        by: String,
    },
    /// It failed, or was reverted after a crash.
    NotMade,
    /// It is running, or was interrupted and not yet recovered.
    Open,
    /// It was interrupted, and its files were changed by others since.
    Unclear,
}

impl ChangeKind {
    pub(super) fn from_existence(before: bool, after: bool) -> Self {
        match (before, after) {
            (false, _) => Self::Created,
            (true, true) => Self::Changed,
            (true, false) => Self::Removed,
        }
    }
}

impl UndoHistory {
    /// Returns the latest `limit` units, newest first. Reads the files to find out what can be
    /// undone.
    /// Commands that a crash interrupted are recorded first.
    pub fn list(&self, limit: usize) -> Result<Vec<UnitSummary>, JournalError> {
        self.record_abandoned();
        let units = self.units()?;
        let kept = self.store().kept_folder();
        let mut now = CurrentHashes::default();
        let running = self
            .running_commands()
            .into_iter()
            .rev()
            .map(running_summary);
        let newest_first = units.all.iter().rev();
        let recorded = newest_first.map(|unit| {
            let mut summary = summary(unit, &units, kept, &mut now);
            if let Some(running) = self.running_overlap(unit) {
                summary.undoable = Err(format!("{running} changes the same files and is running"));
            }
            summary
        });
        Ok(running.chain(recorded).take(limit).collect())
    }

    /// Returns the files that an undo would change, without reading them, for the permission
    /// request.
    pub fn files_of(&self, which: &super::UndoSelection) -> Result<Vec<FileSummary>, JournalError> {
        self.record_abandoned();
        let units = self.units()?;
        let mut files: Vec<FileSummary> = Vec::new();
        let mut seen = HashSet::new();
        for unit in super::revert::choose(&units, which)? {
            for file in files_in(unit, self.store().kept_folder()) {
                if seen.insert(file.real.clone()) {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }
}

/// The present hashes of files, each computed once.
#[derive(Default)]
struct CurrentHashes<'u>(HashMap<&'u Path, Option<Option<String>>>);

impl<'u> CurrentHashes<'u> {
    /// Returns the hash of a file; the inner `None` if it does not exist, the outer one if it
    /// cannot be read.
    fn hash(&mut self, real: &'u Path) -> &Option<Option<String>> {
        self.0.entry(real).or_insert_with(|| {
            let now = read_snapshot(real, u64::MAX).ok()?;
            Some(now.map(|now| ContentHash::compute(&now.bytes).to_string()))
        })
    }
}

fn running_summary(command: UnitHeader) -> UnitSummary {
    UnitSummary {
        id: command.call.clone(),
        call: command.call,
        tool: command.tool,
        time: UNIX_EPOCH + Duration::from_millis(command.time),
        files: Vec::new(),
        undoes: Vec::new(),
        state: UnitState::Open,
        undoable: Err("still running".to_owned()),
        left: Vec::new(),
        overlaps: Vec::new(),
        about: command.about,
    }
}

fn summary<'u>(
    unit: &'u UndoUnit,
    units: &'u UndoUnits,
    kept: &Path,
    now: &mut CurrentHashes<'u>,
) -> UnitSummary {
    let group = match unit.is_in_effect() {
        true => units.together(unit),
        false => vec![unit],
    };
    let state = match (&unit.ending, &unit.undone_by) {
        (Some(UnitEnding::Made), None) => UnitState::Made,
        (Some(UnitEnding::Made), Some(by)) => UnitState::Undone { by: by.clone() },
        (Some(UnitEnding::NotMade), _) => UnitState::NotMade,
        (Some(UnitEnding::Unclear), _) => UnitState::Unclear,
        (None, _) => UnitState::Open,
    };
    let undoable = match &state {
        UnitState::Made => {
            let mut later = HashSet::new();
            let mut all = group.iter();
            all.try_for_each(|one| unchanged(one, &units.all, kept, now, &mut later))
        }
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
        files: files_in(unit, kept).collect(),
        undoes: (unit.intent.undoes.iter().chain(&unit.intent.part_of))
            .cloned()
            .collect(),
        state,
        undoable,
        left: (unit.intent.left.iter())
            .map(|left| (left.path.clone(), left.why.clone()))
            .collect(),
        overlaps: (group.iter().map(|one| one.id().to_owned()))
            .filter(|id| id != unit.id())
            .collect(),
        about: unit.intent.about.clone(),
    }
}

/// Checks that the paths of a unit are unchanged since. Skips those in `checked`, which later units
/// of its group have changed, and adds its own.
fn unchanged<'u>(
    unit: &'u UndoUnit,
    all: &'u [UndoUnit],
    kept: &Path,
    now: &mut CurrentHashes<'u>,
    checked: &mut HashSet<PathBuf>,
) -> Result<(), String> {
    let later = |path: &Path| {
        let later = all.iter().rev().take_while(|later| later.id() != unit.id());
        let ours = later.filter(|later| {
            later.is_in_effect() && files_in(later, kept).any(|file| file.real == path)
        });
        match ours.last() {
            Some(later) => format!(
                "{} was changed again by {}: undo that first",
                path.display(),
                later.id()
            ),
            None => format!("{} was changed outside this session since", path.display()),
        }
    };
    for one in unit.swept() {
        if !checked.insert(one.path.clone()) {
            continue;
        }
        match ObservedPath::from_path(&one.path) {
            Ok(looked) if looked.probably_is(&one.after) || looked.probably_is(&one.before) => {}
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

fn files_in<'u>(unit: &'u UndoUnit, kept: &'u Path) -> impl Iterator<Item = FileSummary> + 'u {
    let files = unit.intent.files.iter().map(|file| FileSummary {
        given: file.given.clone(),
        real: file.real.clone(),
        change: ChangeKind::from_existence(file.before.hash().is_some(), file.after.is_some()),
        added: file.added,
        removed: file.removed,
    });
    // A directory that is in both states got only another time.
    let named = move |one: &&PathChangeRecord| {
        let is_name = one.before.is_present() || one.after.is_present();
        let is_directory = one.before.is_directory() && one.after.is_directory();
        is_name && !is_directory && !one.is_unchanged() && !one.path.starts_with(kept)
    };
    let swept = unit.swept().filter(named).map(|one| FileSummary {
        given: one.path.clone(),
        real: one.path.clone(),
        change: ChangeKind::from_existence(one.before.is_present(), one.after.is_present()),
        added: 0,
        removed: 0,
    });
    files.chain(swept)
}
