//! Writing the record of a witnessed command, and the files that it keeps.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haft_witness::{UnitFolder, UnitHeader};

use super::mutation::{now, write_pending_records};
use super::record::{PathChangeRecord, UndoIntent, UndoRecord, UnitEnding, UnrestorablePath};
use super::store::{Durability, UndoLogFile};
use super::units::UndoUnit;
use super::{RecoveredUnit, RecoveryVerdict, UndoError, UndoHistory, UndoLimits};
use crate::error::JournalError;
use crate::witness::{FinishedUnit, folder_name};

/// The name of a log that could not be read.
const DAMAGED_LOG: &str = "log.damaged";

/// The call that ran a witnessed command.
#[derive(Debug)]
pub(crate) struct WitnessedCall {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) about: String,
    /// The time of the unit in milliseconds since the epoch; `None` for the present time.
    pub(crate) time: Option<u64>,
}

/// The open journal while a witnessed command is recorded. Until then, no other process removes
/// stored files.
pub(crate) struct CommandRecording<'h> {
    history: &'h UndoHistory,
    log: UndoLogFile,
}

impl UndoHistory {
    /// Returns the folder of running commands, which need not exist.
    pub(crate) fn live_folder(&self) -> PathBuf {
        self.store().live_folder()
    }

    /// Returns the folder of the copies that commands share.
    pub(crate) fn shared_copies_folder(&self) -> PathBuf {
        self.store().shared_copies_folder()
    }

    /// Returns the limits.
    pub(crate) fn limits(&self) -> UndoLimits {
        self.limits
    }

    /// Returns the folder of running commands, and creates it and that of their stored files.
    pub(crate) fn make_witness_store(&self) -> io::Result<PathBuf> {
        self.store().make_folder()?;
        let live = self.store().live_folder();
        let shared = self.store().shared_copies_folder();
        for folder in [&live, &shared, self.store().kept_folder()] {
            let mut builder = fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(folder)?;
        }
        Ok(live)
    }

    pub(crate) fn begin_recording(&self) -> Result<CommandRecording<'_>, JournalError> {
        let log = self.store().open()?;
        write_pending_records(self, &log)?;
        Ok(CommandRecording { history: self, log })
    }

    /// Returns the folders of commands that run or were interrupted.
    pub(crate) fn abandoned_candidates(&self) -> Vec<PathBuf> {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let live = entries(&self.store().live_folder()).map(|entry| entry.path());
        let shared = self.store().shared_copies_folder();
        let live = live.filter(|path| *path != shared);
        let kept = entries(self.store().kept_folder()).map(|entry| entry.path());
        let kept = kept.filter(|path| UnitFolder::open(path).log().exists());
        let mut all: Vec<PathBuf> = live.chain(kept).collect();
        let created = |path: &PathBuf| {
            let owner = fs::metadata(path.join("owner")).ok();
            owner.and_then(|owner| owner.modified().ok())
        };
        all.sort_by_cached_key(created);
        all
    }

    /// Fails if a command that changed the same files as one of these units is still running.
    pub(super) fn check_overlaps_ended(&self, units: &[&UndoUnit]) -> Result<(), UndoError> {
        for unit in units {
            if let Some(running) = self.running_overlap(unit) {
                return Err(UndoError::OverlapRunning {
                    id: unit.id().to_owned(),
                    running,
                });
            }
        }
        Ok(())
    }

    /// Returns the call of a running command that changed the same files as this unit.
    pub(super) fn running_overlap(&self, unit: &UndoUnit) -> Option<String> {
        let live = self.store().live_folder();
        let mut overlaps = unit.intent.overlaps.iter();
        overlaps.find_map(|name| {
            let header = UnitFolder::open(live.join(name)).read_header().ok()?;
            Some(header.call)
        })
    }

    /// Returns the changes of the units in effect that share files with the command of this folder,
    /// by path. Of several changes of a path, the last one is returned.
    pub(crate) fn records_shared_with(
        &self,
        folder: &str,
    ) -> Result<HashMap<PathBuf, PathChangeRecord>, JournalError> {
        let units = self.units()?;
        let is_linked = |unit: &&UndoUnit| {
            unit.is_in_effect() && unit.intent.overlaps.iter().any(|name| name == folder)
        };
        let linked = units.all.iter().filter(is_linked);
        let records = linked.flat_map(|unit| unit.swept().cloned());
        Ok(records.map(|one| (one.path.clone(), one)).collect())
    }

    /// Returns the commands that are running, the oldest first.
    pub(crate) fn running_commands(&self) -> Vec<UnitHeader> {
        let entries = fs::read_dir(self.store().live_folder());
        let folders = entries.into_iter().flatten().flatten();
        let headers = folders.filter_map(|entry| UnitFolder::open(entry.path()).read_header().ok());
        let mut running: Vec<UnitHeader> = headers.collect();
        running.sort_by_key(|header| header.time);
        running
    }

    /// Returns whether a command of this call is running.
    pub(crate) fn is_running(&self, call: &str) -> bool {
        self.running_commands()
            .iter()
            .any(|header| header.call == call)
    }

    pub(crate) fn is_recorded(&self, folder: &UnitFolder) -> Result<bool, JournalError> {
        let name = folder_name(folder);
        let units = self.units()?;
        Ok(units.all.iter().any(|unit| unit.intent.keep == name))
    }

    /// Like [`Self::recover_commands`], but returns the units in the form of recovery.
    pub(super) fn recover_witnessed(&self) -> Result<Vec<RecoveredUnit>, JournalError> {
        let all = self.recover_commands()?.into_iter();
        let units = all.filter_map(|(tool, finished)| {
            Some(RecoveredUnit {
                unit: finished.unit?,
                tool,
                files: finished.records.into_iter().map(|one| one.path).collect(),
                verdict: RecoveryVerdict::Completed,
            })
        });
        Ok(units.collect())
    }
}

impl CommandRecording<'_> {
    fn failed(&self, error: io::Error) -> JournalError {
        self.history.store().failed(error)
    }

    /// Moves the folder of a unit to the stored files.
    pub(crate) fn adopt(&self, folder: &UnitFolder) -> Result<UnitFolder, JournalError> {
        let kept = self.history.store().kept_folder();
        if folder.path().starts_with(kept) {
            return Ok(folder.clone());
        }
        let to = kept.join(folder_name(folder));
        fs::create_dir_all(kept)
            .and_then(|()| fs::rename(folder.path(), &to))
            .map_err(|error| self.failed(error))?;
        Ok(UnitFolder::open(to))
    }

    /// Stores copies under their hashes without copying them again.
    pub(crate) fn adopt_copies(
        &self,
        copies: &HashMap<String, PathBuf>,
    ) -> Result<(), JournalError> {
        for (hash, copy) in copies {
            self.history
                .store()
                .adopt(copy, hash)
                .map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Copies contents that are only compared with later ones; errors are ignored.
    pub(crate) fn copy_indexes(&self, indexes: &HashMap<String, PathBuf>) {
        for (hash, path) in indexes {
            let _ = self.history.store().put_file(path, hash, false);
        }
    }

    /// Writes the record, and then removes the log and the stored files that it does not name.
    pub(crate) fn record(
        &self,
        folder: &UnitFolder,
        call: &WitnessedCall,
        records: &[PathChangeRecord],
        left: &[UnrestorablePath],
        overlaps: Vec<String>,
    ) -> Result<String, JournalError> {
        let unit = self.history.new_unit(&call.call)?;
        self.history.count_swept(records);
        let intent = UndoRecord::Intent(Box::new(UndoIntent {
            unit: unit.clone(),
            call: call.call.clone(),
            tool: call.tool.clone(),
            time: call.time.unwrap_or_else(now),
            swept: records.to_vec(),
            left: left.to_vec(),
            observed: true,
            about: call.about.clone(),
            keep: folder_name(folder),
            overlaps,
            ..UndoIntent::default()
        }));
        let outcome = UndoRecord::Outcome {
            unit: unit.clone(),
            ending: UnitEnding::Made,
            note: None,
        };
        // The command's own writes are not certain to survive a power failure either.
        self.log
            .append_all(&[intent, outcome], Durability::BestEffort)
            .map_err(|error| self.failed(error))?;
        self.clean_up(folder)?;
        Ok(unit)
    }

    /// Removes the log of a recorded unit, and stored files that no record names.
    pub(crate) fn clean_up(&self, folder: &UnitFolder) -> Result<(), JournalError> {
        let units = self.history.units()?;
        let name = folder_name(folder);
        let own = units.all.iter().filter(|unit| unit.intent.keep == name);
        let kept = self.history.store().kept_folder();
        let swept = own.flat_map(|unit| &unit.intent.swept);
        let states = swept.flat_map(|one| [&one.before, &one.after]);
        let needed: HashSet<&Path> = states.filter_map(|state| state.kept_below(kept)).collect();
        for entry in fs::read_dir(folder.objects())
            .into_iter()
            .flatten()
            .flatten()
        {
            if !needed.contains(entry.path().as_path()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_file(folder.path().join("owner"));
        let _ = fs::remove_file(folder.log());
        // Both are removed only if no stored file is left.
        let _ = fs::remove_dir(folder.objects());
        let _ = fs::remove_dir(folder.path());
        Ok(())
    }

    /// Records a unit whose log cannot be read. Its stored files stay.
    pub(crate) fn record_damaged(
        &self,
        folder: &UnitFolder,
        call: &WitnessedCall,
        why: String,
    ) -> Result<FinishedUnit, JournalError> {
        let damaged = folder.path().join(DAMAGED_LOG);
        fs::rename(folder.log(), &damaged).map_err(|error| self.failed(error))?;
        let left = vec![UnrestorablePath {
            path: damaged,
            why: why.clone(),
        }];
        let unit = self.record(folder, call, &[], &left, Vec::new())?;
        Ok(FinishedUnit {
            unit: Some(unit),
            left,
            damage: Some(why),
            ..FinishedUnit::default()
        })
    }

    /// Removes the folder of a command that changed nothing.
    pub(crate) fn discard(&self, folder: &UnitFolder) {
        let _ = fs::remove_dir_all(folder.path());
    }
}
