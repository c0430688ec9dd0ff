//! Records the file changes of a command, so that the user can undo them. Also reverts changes of
//! control files (files that decide what other programs run) unless the command was permitted to
//! make them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    CallContext, CallId, Confinement, ConfinementProfile, ControlFiles, ToolError,
};
use haft_journal::{CommandBaseline, Journal, SnapshotScope, WriteGrant};
use haft_shell::{Analysis, Effect};

use crate::{blocking::blocking, paths::shown};

/// The maximum number of files that a result names.
const NAMED: usize = 5;

/// The state of the watched directories before a command.
pub(crate) struct ChangeBaseline {
    journal: Arc<Journal>,
    before: CommandBaseline,
    call: CallId,
    cwd: Arc<Path>,
}

/// The report on a command's changes.
#[derive(Debug, Default)]
pub(crate) struct ChangeReport {
    /// Notes for the model.
    pub(crate) notes: Vec<String>,
    /// The reason why undo does not cover the changes, or not all of them.
    pub(crate) uncovered: Option<String>,
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
        before: journal.before_command(&sweep),
        journal,
        call,
        cwd,
    });
    watched.await.map(Some)
}

/// Records the command's changes, and reverts files that it must not make.
pub(crate) async fn record_changes(
    watched: ChangeBaseline,
    control: ControlFiles,
    command: String,
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
        let changed = journal.after_command(before, &ticket, &command, &is_control);
        let mut report = ChangeReport {
            uncovered: changed.uncovered,
            ..ChangeReport::default()
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
