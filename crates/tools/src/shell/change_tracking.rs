//! Records the file changes of a command, so that the user can undo them. Also reverts changes of
//! control files (files that decide what other programs run) unless the command was permitted to
//! make them.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    CallContext, CallId, Confinement, ConfinementProfile, ControlFiles, ToolError,
};
use haft_journal::{
    CommandBaseline, CommandChanges, Journal, SnapshotScope, StoredBytes, WitnessUnit, WriteGrant,
};
use haft_sandbox::{CommandEnd, WitnessLimits, WitnessRequest};
use haft_shell::{Analysis, Effect};
use tokio::sync::watch;

use super::{host_questions::NamedCall, storage_questions::StorageQuestions};
use crate::{blocking::blocking, paths::shown};

/// The maximum number of files that a result names.
const NAMED: usize = 5;

/// The state before a command: a scan of the directories that it may change, or, if its guard records
/// its changes, the record.
pub(crate) struct ChangeBaseline {
    journal: Arc<Journal>,
    before: BaselineKind,
    call: CallId,
    cwd: Arc<Path>,
}

enum BaselineKind {
    Scan(Box<CommandBaseline>),
    Witness {
        unit: WitnessUnit,
        /// The directories whose changes the guard records.
        roots: Vec<PathBuf>,
        limits: WitnessLimits,
        /// Decides about files that cannot be stored.
        questions: Arc<StorageQuestions>,
    },
}

/// The report on a command's changes.
#[derive(Debug)]
pub(crate) struct ChangeReport {
    /// Notes for the model.
    pub(crate) notes: Vec<String>,
    /// The number of created, changed and removed files and directories.
    pub(crate) changed_files: usize,
    /// The reason why a scan did not find the changes, or not all of them.
    pub(crate) uncovered: Option<String>,
    /// The coverage by undo; `None` if nothing changed.
    pub(crate) undo: Option<UndoCoverage>,
}

/// The coverage of a command's changes by undo.
#[derive(Debug)]
pub(crate) enum UndoCoverage {
    /// The guard recorded every change.
    Exact,
    /// Undo does not cover these changes, or does not know all of them.
    Partial(String),
    /// A scan before and after the command found the changes.
    Scanned,
    /// Undo covers no change.
    None(String),
}

impl fmt::Display for UndoCoverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Partial(why) => write!(f, "partial ({why})"),
            Self::Scanned => f.write_str("scanned"),
            Self::None(why) => write!(f, "none ({why})"),
        }
    }
}

impl UndoCoverage {
    fn new(changed: &CommandChanges, is_witnessed: bool, cwd: &Path) -> Option<Self> {
        if *changed == CommandChanges::default() {
            return None;
        }
        Some(match (&changed.uncovered, changed.not_restorable.first()) {
            (Some(why), _) if changed.unit.is_none() => Self::None(why.clone()),
            (Some(why), _) => Self::Partial(why.clone()),
            (None, Some((path, why))) => {
                let more = match changed.not_restorable.len() - 1 {
                    0 => String::new(),
                    more => format!("; and {more} more"),
                };
                Self::Partial(format!("{}: {why}{more}", shown(path, cwd)))
            }
            (None, None) if is_witnessed => Self::Exact,
            (None, None) => Self::Scanned,
        })
    }
}

impl ChangeBaseline {
    /// Returns whether the command's guard records its changes.
    pub(crate) fn is_witnessed(&self) -> bool {
        matches!(self.before, BaselineKind::Witness { .. })
    }

    /// Returns the number of open questions to the user about files that cannot be stored.
    pub(crate) fn open_questions(&self) -> Option<watch::Receiver<usize>> {
        match &self.before {
            BaselineKind::Witness { questions, .. } => Some(questions.open_questions()),
            BaselineKind::Scan(_) => None,
        }
    }

    /// Returns the request to record the command's changes, for its guard.
    pub(crate) fn witness_request(&self) -> Result<Option<WitnessRequest>, ToolError> {
        let BaselineKind::Witness {
            unit,
            roots,
            limits,
            questions,
        } = &self.before
        else {
            return Ok(None);
        };
        let log = unit.log().try_clone().map_err(|error| {
            ToolError::Failed(format!(
                "The command was not run: its changes cannot be recorded for undo: {error}"
            ))
        })?;
        Ok(Some(WitnessRequest {
            log,
            objects: unit.folder().join("objects"),
            roots: roots.clone(),
            limits: *limits,
            copies: Some(unit.shared_copies().to_path_buf()),
            policy: Some(Arc::clone(questions) as _),
        }))
    }
}

/// Returns the directories whose changes the guard of a command can record. Changes in caches are not
/// recorded.
pub(crate) fn witnessed_roots(confinement: &Confinement) -> Vec<PathBuf> {
    let writable = confinement.writable.iter();
    let recorded = writable.filter(|root| !confinement.caches.contains(root) && root.is_dir());
    recorded.cloned().collect()
}

/// Prepares the record of a command's changes by its guard. Returns `None` without a journal, or if the
/// record cannot be created. `named` is the call, for questions about files that cannot be stored.
pub(crate) async fn begin_witness(
    roots: Vec<PathBuf>,
    command: &str,
    cx: &CallContext,
    named: NamedCall,
) -> Result<Option<ChangeBaseline>, ToolError> {
    let Ok(journal) = cx.services.get::<Journal>() else {
        return Ok(None);
    };
    let (call, cwd, about) = (cx.call, Arc::clone(&cx.cwd), command.to_owned());
    let limits = cx.services.get::<WitnessLimits>();
    let limits = limits.map_or_else(|_| WitnessLimits::default(), |limits| *limits);
    let store = Arc::clone(&journal);
    let begun = blocking(move || {
        let unit = store.begin_witness(&call.to_string(), "Bash", &about, &roots);
        // If that fails, the directories are scanned instead.
        let unit = unit.ok()?;
        let lease = store.extend_storage_lease(&unit.name(), StoredBytes::default());
        Some((unit, lease.unwrap_or_default(), roots))
    });
    let Some((unit, lease, roots)) = begun.await? else {
        return Ok(None);
    };
    let relies_on_undo = cx.permissions.confinement.relies_on_undo;
    let unit_in_journal = (Arc::clone(&journal), unit.name());
    let questions = StorageQuestions::new(unit_in_journal, limits, cx, named, relies_on_undo);
    Ok(Some(ChangeBaseline {
        before: BaselineKind::Witness {
            limits: WitnessLimits {
                copy_bytes: lease.copied,
                pin_bytes: lease.pinned,
                ..limits
            },
            unit,
            roots,
            questions: Arc::new(questions),
        },
        journal,
        call,
        cwd,
    }))
}

/// Records the state of the directories that the command may change, except `own`: the folders of
/// haft itself. Returns `None` if the command cannot change anything, or without a journal.
pub(crate) async fn record_baseline(
    confinement: &Confinement,
    analysis: &Analysis,
    cx: &CallContext,
    own: [PathBuf; 2],
) -> Result<Option<ChangeBaseline>, ToolError> {
    let roots = match confinement.profile {
        ConfinementProfile::ReadOnly => return Ok(None),
        ConfinementProfile::Workspace => confinement.writable.to_vec(),
        // The command may change any path; only the project directories are watched.
        ConfinementProfile::Full => cx.permissions.directories.to_vec(),
    };
    let Ok(journal) = cx.services.get::<Journal>() else {
        return Ok(None);
    };
    let sweep = SnapshotScope {
        // The root directory is too large to watch.
        roots: roots
            .into_iter()
            .filter(|root| root.parent().is_some() && !confinement.caches.contains(root))
            .collect(),
        hints: written(analysis),
        leave_out: own.to_vec(),
    };
    let (call, cwd) = (cx.call, Arc::clone(&cx.cwd));
    let watched = blocking(move || ChangeBaseline {
        before: BaselineKind::Scan(Box::new(journal.before_command(&sweep))),
        journal,
        call,
        cwd,
    });
    watched.await.map(Some)
}

/// Records the command's changes, and reverts files that it must not make. All processes of a command
/// whose guard recorded the changes must have ended; `ended` is then its end.
pub(crate) async fn record_changes(
    watched: ChangeBaseline,
    control: ControlFiles,
    command: String,
    ended: Option<CommandEnd>,
) -> Result<ChangeReport, ToolError> {
    let ChangeBaseline {
        journal,
        before,
        call,
        cwd,
    } = watched;
    // The command's own writes are already done; this grant only applies to reverting them.
    let ticket = WriteGrant::unconfined(call.to_string(), "Bash");
    blocking(move || {
        let is_control = |path: &Path| control.is_control_file(path);
        let mut notes = Vec::new();
        let is_witnessed = matches!(before, BaselineKind::Witness { .. });
        let mut changed = match before {
            BaselineKind::Scan(before) => {
                journal.after_command(*before, &ticket, &command, &is_control)
            }
            BaselineKind::Witness {
                unit, questions, ..
            } => {
                notes.extend(questions.refused_note());
                journal.finish_witness(unit, &ticket, &is_control)
            }
        };
        if let Some(why) = ended.and_then(|ended| ended.witness_failure) {
            changed.uncovered.get_or_insert(why);
        }
        let undo = UndoCoverage::new(&changed, is_witnessed, &cwd);
        if is_witnessed && let Some(UndoCoverage::Partial(why) | UndoCoverage::None(why)) = &undo {
            notes.push(format!(
                "Undo does not cover everything that the command changed: {why}."
            ));
        }
        let mut report = ChangeReport {
            changed_files: changed.created.len() + changed.modified.len() + changed.removed.len(),
            notes,
            uncovered: changed.uncovered.filter(|_| !is_witnessed),
            undo,
        };
        if changed.control.is_empty() {
            return report;
        }
        let names = named(&changed.control, &cwd);
        let reverted = match &changed.unit {
            Some(unit) => journal
                .revert_paths(&ticket, unit, &changed.control)
                .map(drop)
                .map_err(|error| error.to_string()),
            None => Err("undo does not cover them".to_owned()),
        };
        report.notes.push(match reverted {
            Ok(()) => format!(
                "Reverted, because it decides what other programs run: {names}. Use Write or \
                 Edit for it, so that the user can be asked."
            ),
            Err(error) => format!(
                "The command made or changed {names}, which decides what other programs run, and \
                 reverting it failed: {error}. Tell the user."
            ),
        });
        report
    })
    .await
}

fn named(paths: &[PathBuf], cwd: &Path) -> String {
    let names: Vec<String> = paths
        .iter()
        .take(NAMED)
        .map(|path| shown(path, cwd))
        .collect();
    match paths.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Returns the paths that the line writes or removes, except those that the analysis cannot
/// determine.
fn written(analysis: &Analysis) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for part in &analysis.parts {
        for effect in &part.finding.effects {
            let Effect::Write(write) = effect else {
                continue;
            };
            let Some(text) = write.path.text() else {
                continue;
            };
            for place in part.cwd.iter().flatten() {
                paths.push(place.join(text));
            }
        }
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}
