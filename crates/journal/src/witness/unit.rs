//! The units of running commands, and of commands whose process died.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use haft_witness::{OpenUnit, UnitFolder, UnitHeader, WitnessLog};

use super::fold::{FoldedUnit, fold_unit};
use super::overlap::SharedChanges;
use crate::error::JournalError;
use crate::journal::Journal;
use crate::snapshot::{CommandChanges, is_claimed, named_left};
use crate::stamp::now_ns;
use crate::undo::{
    LeaseGuard, LogMark, PathChangeRecord, RecordState, StoredBytes, UndoHistory, UndoLimits,
    UnrestorablePath, WitnessedCall, unique_name,
};
use crate::write_grant::WriteGrant;

/// A running command whose changes a guard witnesses. If it is dropped without
/// [`Journal::finish_witness`], the next recovery records the changes.
#[derive(Debug)]
pub struct WitnessUnit {
    folder: UnitFolder,
    open: OpenUnit,
    about: String,
    begun: LogMark,
    copies: PathBuf,
    /// Ends its lease of stored bytes.
    _lease: LeaseGuard,
}

impl WitnessUnit {
    /// Returns the folder of the unit.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder of copies that the commands of the session share.
    pub fn shared_copies(&self) -> &Path {
        &self.copies
    }

    /// Returns the name of the unit in [`Journal::extend_storage_lease`].
    pub fn name(&self) -> String {
        folder_name(&self.folder)
    }

    /// Returns the log, for the guard.
    pub fn log(&self) -> &File {
        &self.open.log
    }
}

impl Journal {
    /// Returns the folder in which the units of running commands are stored. It need not exist. `None`
    /// without an undo journal.
    pub fn witness_store(&self) -> Option<PathBuf> {
        Some(self.history()?.live_folder())
    }

    /// Begins a command whose changes a guard witnesses. `about` is the command in readable form;
    /// `roots` are the directories whose changes are witnessed.
    pub fn begin_witness(
        &self,
        call: &str,
        tool: &str,
        about: &str,
        roots: &[PathBuf],
    ) -> Result<WitnessUnit, JournalError> {
        let history = self.required_history()?;
        let begun = history.mark();
        let header = UnitHeader {
            call: call.to_owned(),
            tool: tool.to_owned(),
            about: about.to_owned(),
            time: crate::undo::now(),
            roots: roots.iter().map(|root| root.as_path().into()).collect(),
        };
        let failed = |error| JournalError::io("create a unit in", history.folder(), error);
        let store = history.make_witness_store().map_err(failed)?;
        let (folder, open) =
            UnitFolder::create(store.join(unique_name(call)), &header).map_err(failed)?;
        Ok(WitnessUnit {
            _lease: history.lease_guard(&folder_name(&folder)),
            folder,
            open,
            about: about.to_owned(),
            begun,
            copies: history.shared_copies_folder(),
        })
    }

    /// Returns how many more bytes the command of a unit may store: at least `needed`. `None` if the
    /// limits of the session do not allow that, even after the oldest units were dropped.
    pub fn extend_storage_lease(&self, unit: &str, needed: StoredBytes) -> Option<StoredBytes> {
        self.history()?.extend_lease(unit, needed)
    }

    /// Counts bytes that the command of a unit stores regardless of the limits.
    pub fn exceed_storage_lease(&self, unit: &str, more: StoredBytes) {
        if let Some(history) = self.history() {
            history.add_lease(unit, more);
        }
    }

    /// Returns the limits of the undo journal; `None` without one.
    pub fn undo_limits(&self) -> Option<UndoLimits> {
        Some(self.history()?.limits())
    }

    /// Records what a witnessed command changed as one unit of the undo journal, under the call of
    /// the grant. All processes of the command must have exited. `is_control` is called for each
    /// new or changed file.
    pub fn finish_witness(
        &self,
        unit: WitnessUnit,
        ticket: &WriteGrant,
        is_control: &dyn Fn(&Path) -> bool,
    ) -> CommandChanges {
        let mut changed = CommandChanges::default();
        let Some(history) = self.history() else {
            return changed;
        };
        let call = WitnessedCall {
            call: ticket.call.clone(),
            tool: ticket.tool.clone(),
            about: unit.about.clone(),
            time: None,
        };
        let finished = history.finish_unit(&unit.folder, &call, &unit.begun, is_control);
        match finished {
            Ok(finished) => {
                for one in &finished.records {
                    changed.count_record(one, is_control);
                }
                changed.not_restorable = (finished.left.iter())
                    .map(|left| (left.path.clone(), left.why.clone()))
                    .collect();
                changed.uncovered = finished.damage;
                changed.unit = finished.unit;
            }
            Err(error) => changed.uncovered = Some(error.to_string()),
        }
        changed
    }
}

/// A recorded unit.
#[derive(Debug, Default)]
pub(crate) struct FinishedUnit {
    /// The id; `None` if nothing changed.
    pub(crate) unit: Option<String>,
    pub(crate) records: Vec<PathChangeRecord>,
    pub(crate) left: Vec<UnrestorablePath>,
    /// The reason why the log could not be read.
    pub(crate) damage: Option<String>,
}

impl UndoHistory {
    /// Folds the log of a command and writes the record. The folder moves from `live/` to `keep/`
    /// first, so that the paths of its stored files stay the same; its log is removed last, so that
    /// recovery can begin again after a crash.
    pub(crate) fn finish_unit(
        &self,
        folder: &UnitFolder,
        call: &WitnessedCall,
        begun: &LogMark,
        is_control: &dyn Fn(&Path) -> bool,
    ) -> Result<FinishedUnit, JournalError> {
        let _recording = self.lock_recording();
        let mut claimed = self.changed_since(begun)?;
        let recording = self.begin_recording()?;
        let folder = recording.adopt(folder)?;
        let log = match folder.read() {
            Ok(log) => log,
            Err(error) => {
                let why = format!("the witness log of the command is damaged: {error}");
                return recording.record_damaged(&folder, call, why);
            }
        };
        let is_single = |path: &Path| is_control(path) || claimed.contains_key(path);
        let mut folded = fold_unit(&log, &folder, &is_single);
        let shared = SharedChanges::find(&self.live_folder(), &folder, &log);
        // A command whose changes are all in other records must still be named with them.
        let has_changed = !folded.records.is_empty();
        shared.remove_from(&mut folded);
        let earlier = self.continue_shared(&folder, &mut folded)?;
        let is_shared = has_changed && !(earlier.is_empty() && shared.folders.is_empty());
        for path in earlier {
            claimed.remove(&path);
        }
        remove_claimed(&mut folded, &claimed);
        let left = named_left(folded.left);
        let mut finished = FinishedUnit {
            records: folded.records,
            left,
            ..FinishedUnit::default()
        };
        let is_empty = finished.records.is_empty() && finished.left.is_empty();
        if is_empty && !is_shared {
            recording.discard(&folder);
            return Ok(finished);
        }
        recording.adopt_copies(&folded.copies)?;
        recording.copy_indexes(&folded.indexes);
        let unit = recording.record(
            &folder,
            call,
            &finished.records,
            &finished.left,
            shared.folders,
        )?;
        finished.unit = Some(unit);
        drop(recording);
        self.keep_within_limits();
        Ok(finished)
    }

    /// Records the commands whose process died. Units that another process is still writing are
    /// left alone.
    pub(crate) fn recover_commands(&self) -> Result<Vec<(String, FinishedUnit)>, JournalError> {
        let mut recovered = Vec::new();
        for folder in self.abandoned_candidates() {
            let folder = UnitFolder::open(folder);
            let _open = match folder.lock_abandoned() {
                Ok(Some(open)) => open,
                Ok(None) => continue,
                Err(error) => {
                    if error.kind() == io::ErrorKind::NotFound && !has_header(&folder) {
                        let _ = fs::remove_dir_all(folder.path());
                    }
                    continue;
                }
            };
            if !has_header(&folder) {
                // The command never began.
                let _ = fs::remove_dir_all(folder.path());
                continue;
            }
            if self.is_recorded(&folder)? {
                self.begin_recording()?.clean_up(&folder)?;
                continue;
            }
            let header = first_line(&folder);
            let header = header.and_then(|line| WitnessLog::parse(&line).ok());
            let call = match header {
                Some(WitnessLog { header, .. }) => WitnessedCall {
                    call: header.call,
                    tool: header.tool,
                    about: header.about,
                    time: Some(header.time),
                },
                None => WitnessedCall {
                    call: folder_name(&folder),
                    tool: "Bash".to_owned(),
                    about: String::new(),
                    time: None,
                },
            };
            let begun = call
                .time
                .unwrap_or_else(|| u64::try_from(now_ns() / 1_000_000).unwrap_or_default());
            let begun = LogMark::from_time(begun);
            // If a unit cannot be recorded now, the others are recorded nevertheless.
            if let Ok(finished) = self.finish_unit(&folder, &call, &begun, &|_| false) {
                recovered.push((call.tool, finished));
            }
        }
        Ok(recovered)
    }
}

fn has_header(folder: &UnitFolder) -> bool {
    first_line(folder).is_some()
}

fn first_line(folder: &UnitFolder) -> Option<Vec<u8>> {
    let log = fs::read(folder.log()).ok()?;
    let end = log.iter().position(|&byte| byte == b'\n')?;
    Some(log.get(..=end)?.to_vec())
}

pub(crate) fn folder_name(folder: &UnitFolder) -> String {
    let name = folder.path().file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Removes what other units of the session changed while the command ran.
fn remove_claimed(folded: &mut FoldedUnit, claimed: &HashMap<PathBuf, RecordState>) {
    let left = &mut folded.left;
    folded.records.retain(|one| match claimed.get(&one.path) {
        None => true,
        // It changed the path after the other unit.
        Some(claim) if is_claimed(claim, &one.before) && !is_claimed(claim, &one.after) => true,
        Some(claim) => {
            if !is_claimed(claim, &one.after) {
                let why = "several calls changed it at the same time";
                left.insert(one.path.clone(), why.to_owned());
            }
            false
        }
    });
}
