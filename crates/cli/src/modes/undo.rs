//! `haft undo`: undoes the changes of calls in this directory, in any of its sessions.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::Context;
use haft::{CallId, Card, CardSection, DiffHunk, SessionId, session_folder};
use haft_host::utc_time;
use haft_journal::{
    ChangeKind, UndoHistory, UndoMode, UndoOutcome, UndoSelection, UnitState, UnitSummary,
    WriteGrant,
};

use crate::{
    args::{SessionArgs, UndoFlags},
    exit::Exit,
    show::{self, ConsoleStyle},
};

/// The maximum number of changes of a session that are considered.
const MAX_COUNT: usize = 1_000;
/// The maximum number of files that are listed for a change.
const MAX_FILES: usize = 50;
/// The maximum number of characters of a command line in the list.
const ABOUT: usize = 60;

pub(crate) fn run(session: &SessionArgs, undo: &UndoFlags) -> anyhow::Result<Exit> {
    let cwd = match &session.cwd {
        Some(cwd) => std::path::absolute(cwd)?,
        None => env::current_dir().context("the current directory cannot be found")?,
    };
    let histories = histories(&cwd)?;
    if undo.list {
        return list(&histories, &cwd);
    }
    let mode = if undo.preview {
        UndoMode::Preview
    } else {
        UndoMode::Apply
    };
    let ticket = WriteGrant::unconfined(CallId::new().to_string(), "haft undo");
    let mut nothing = true;
    for (history, which) in chosen(&histories, undo)? {
        let undone = history.undo(&ticket, &which, mode)?;
        nothing = false;
        print_outcome(&undone, &cwd)?;
        if undone.conflict.is_some() {
            return Ok(Exit::CallFailed);
        }
    }
    anyhow::ensure!(!nothing, "nothing to undo in {}", cwd.display());
    Ok(Exit::Success)
}

/// Returns the undo journals of all sessions in a directory.
fn histories(cwd: &Path) -> anyhow::Result<Vec<UndoHistory>> {
    let any_session = session_folder(cwd, SessionId::new());
    let project = any_session
        .parent()
        .context("the session folder has no parent")?;
    let mut folders: Vec<PathBuf> = match fs::read_dir(project) {
        Ok(entries) => entries
            .flatten()
            .map(|entry| entry.path().join("undo"))
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).context(format!("{} cannot be read", project.display())),
    };
    folders.retain(|folder| folder.is_dir());
    Ok(folders.into_iter().map(UndoHistory::open).collect())
}

/// Returns the selected changes with their sessions, the newest first.
fn chosen<'a>(
    histories: &'a [UndoHistory],
    undo: &UndoFlags,
) -> anyhow::Result<Vec<(&'a UndoHistory, UndoSelection)>> {
    let mut changes = Vec::new();
    for history in histories {
        changes.extend(
            history
                .list(MAX_COUNT)?
                .into_iter()
                .map(|unit| (history, unit)),
        );
    }
    changes.sort_by_key(|(_, unit)| std::cmp::Reverse(unit.time));
    match (&undo.call_id, &undo.since) {
        (Some(id), _) => {
            let known = changes
                .iter()
                .find(|(_, unit)| unit.id.starts_with(id.as_str()));
            let (history, _) = known.with_context(|| {
                format!("no change has the id {id}; `haft undo --list` shows them")
            })?;
            Ok(vec![(history, UndoSelection::Unit(id.clone()))])
        }
        (None, Some(since)) => {
            let since = utc_time::parse(since, SystemTime::now()).with_context(|| {
                format!("--since {since}: expected a span such as 10m, 2h, 1d, or a time such as 2026-01-31T12:00 (UTC)")
            })?;
            let mut since_then: Vec<(&UndoHistory, UndoSelection)> = Vec::new();
            for (history, unit) in &changes {
                let known = since_then
                    .iter()
                    .any(|(other, _)| other.folder() == history.folder());
                if is_in_effect(unit) && unit.time >= since && !known {
                    since_then.push((*history, UndoSelection::Since(since)));
                }
            }
            Ok(since_then)
        }
        (None, None) => {
            let last = changes
                .iter()
                .find(|(_, unit)| is_in_effect(unit) && unit.undoes.is_empty());
            Ok(last
                .map(|(history, _)| (*history, UndoSelection::Last))
                .into_iter()
                .collect())
        }
    }
}

fn is_in_effect(unit: &UnitSummary) -> bool {
    unit.state == UnitState::Made
}

fn list(histories: &[UndoHistory], cwd: &Path) -> anyhow::Result<Exit> {
    let mut units = Vec::new();
    for history in histories {
        units.extend(history.list(MAX_COUNT)?);
    }
    units.sort_by_key(|unit| std::cmp::Reverse(unit.time));
    if units.is_empty() {
        show::line("Nothing was changed here.")?;
        return Ok(Exit::Success);
    }
    let mut rows = vec![["ID", "TIME (UTC)", "TOOL", "FILES", "STATE"].map(str::to_owned)];
    rows.extend(units.iter().map(|unit| {
        [
            unit.id.clone(),
            utc_time::show(unit.time),
            unit.tool.clone(),
            files(unit, cwd),
            state(unit),
        ]
    }));
    show::line(show::table(&rows).trim_end())?;
    Ok(Exit::Success)
}

fn files(unit: &UnitSummary, cwd: &Path) -> String {
    let name =
        |path: &Path| show::clean(&path.strip_prefix(cwd).unwrap_or(path).display().to_string());
    if !unit.about.is_empty() {
        let count = match unit.files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let left = match unit.left.len() {
            0 => String::new(),
            left => format!(", {left} not restorable"),
        };
        let about: String = unit.about.chars().take(ABOUT).collect();
        return format!("{count}{left}: {}", show::clean(&about));
    }
    match unit.files.as_slice() {
        [file] => format!("{} (+{} −{})", name(&file.given), file.added, file.removed),
        files => {
            let added: u64 = files.iter().map(|file| file.added).sum();
            let removed: u64 = files.iter().map(|file| file.removed).sum();
            format!("{} files (+{added} −{removed})", files.len())
        }
    }
}

fn state(unit: &UnitSummary) -> String {
    match (&unit.state, &unit.undoable) {
        (UnitState::Made, Ok(())) if unit.undoes.is_empty() => "can be undone".to_owned(),
        (UnitState::Made, Ok(())) => "an undo; can be undone".to_owned(),
        (_, Err(why)) => show::clean(why),
        (_, Ok(())) => String::new(),
    }
}

fn print_outcome(undone: &UndoOutcome, cwd: &Path) -> anyhow::Result<()> {
    let style = ConsoleStyle::of_stdout();
    for file in undone.files.iter().take(MAX_FILES) {
        let did = match (undone.unit.is_some(), file.change) {
            (true, ChangeKind::Created) => "made again",
            (true, ChangeKind::Changed) => "restored",
            (true, ChangeKind::Removed) => "removed",
            (false, ChangeKind::Created) => "would be made again",
            (false, ChangeKind::Changed) => "would be restored",
            (false, ChangeKind::Removed) => "would be removed",
        };
        let hunks = file.patch.hunks.iter().map(|hunk| DiffHunk {
            old_start: hunk.old_start,
            old_lines: hunk.old_lines,
            new_start: hunk.new_start,
            new_lines: hunk.new_lines,
            lines: hunk.lines.clone(),
        });
        let card = Card::new("Undo", file.given.display().to_string())
            .with_summary(did)
            .with(CardSection::Diff(hunks.collect()));
        show::drawn(show::card(&card, false, cwd, style).trim_end())?;
    }
    let more = |count: usize| match count.saturating_sub(MAX_FILES) {
        0 => Ok(()),
        more => show::line(&format!("  and {more} more")),
    };
    more(undone.files.len())?;
    for (path, why) in undone.left.iter().take(MAX_FILES) {
        let name = path.strip_prefix(cwd).unwrap_or(path).display();
        show::line(&show::clean(&format!("  not restored: {name}: {why}")))?;
    }
    more(undone.left.len())?;
    if let Some(conflict) = &undone.conflict {
        let card = Card::new("Undo", "").with_summary("would be refused");
        let card = card.with(CardSection::Text(conflict.clone()));
        show::drawn(show::card(&card, true, cwd, style).trim_end())?;
    }
    if let Some(unit) = &undone.unit {
        show::line(&format!("  undone; to redo it: haft undo {unit}"))?;
    }
    Ok(())
}
