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
/// The minimum length of an id in the list.
const SHORT_ID: usize = 8;
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
    if let Some(file) = &undo.file {
        let undone = undo_file(&histories, &ticket, &cwd.join(file))?;
        print_outcome(&undone, &cwd)?;
        return Ok(Exit::Success);
    }
    let mut nothing = true;
    for (history, which) in chosen(&histories, undo)? {
        let undone = history.undo(&ticket, &which, mode)?;
        nothing = false;
        if undo.since.is_none() && undone.undid.len() > 1 {
            let ids: Vec<&str> = undone.undid.iter().map(|(id, _)| id.as_str()).collect();
            show::line(&format!(
                "These changed the same files at the same time, so they are undone together: {}",
                ids.join(", ")
            ))?;
        }
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

/// Returns the changes of all sessions with their histories, the newest first.
fn changes(histories: &[UndoHistory]) -> anyhow::Result<Vec<(&UndoHistory, UnitSummary)>> {
    let mut changes = Vec::new();
    for history in histories {
        let units = history.list(MAX_COUNT)?.into_iter();
        changes.extend(units.map(|unit| (history, unit)));
    }
    changes.sort_by_key(|(_, unit)| std::cmp::Reverse(unit.time));
    Ok(changes)
}

/// Undoes the last change of a file, or of each file in a directory that the last change there made.
fn undo_file(
    histories: &[UndoHistory],
    ticket: &WriteGrant,
    path: &Path,
) -> anyhow::Result<UndoOutcome> {
    // The name may be missing now: only its directory is resolved.
    let path = match (
        path.parent().and_then(|above| above.canonicalize().ok()),
        path.file_name(),
    ) {
        (Some(above), Some(name)) => above.join(name),
        _ => path.to_path_buf(),
    };
    for (history, unit) in changes(histories)? {
        let files = unit.files.iter().map(|file| file.real.clone());
        let files: Vec<PathBuf> = files.filter(|file| file.starts_with(&path)).collect();
        if !is_in_effect(&unit) || !unit.undoes.is_empty() || files.is_empty() {
            continue;
        }
        if files.len() == unit.files.len() {
            let whole = UndoSelection::Unit(unit.id);
            return Ok(history.undo(ticket, &whole, UndoMode::Apply)?);
        }
        return Ok(history.revert_paths(ticket, &unit.id, &files)?);
    }
    anyhow::bail!("no change of {} can be undone", path.display())
}

/// Finds a change by its number in the list, by an id of the list, or by the beginning of an id.
fn find<'a, 'h>(
    changes: &'a [(&'h UndoHistory, UnitSummary)],
    wanted: &str,
) -> anyhow::Result<&'a (&'h UndoHistory, UnitSummary)> {
    let number = wanted.parse::<usize>().ok();
    if let Some(number) = number.filter(|_| wanted.len() < SHORT_ID) {
        let found = number.checked_sub(1).and_then(|index| changes.get(index));
        return found.with_context(|| {
            format!("no change has the number {wanted}; `haft undo --list` shows all changes")
        });
    }
    let matches = |id: &str| {
        id == wanted
            || (wanted.len() >= SHORT_ID && (id.starts_with(wanted) || id.ends_with(wanted)))
    };
    let mut found = changes
        .iter()
        .filter(|(_, unit)| matches(&unit.id) || unit.call == wanted);
    let first = found.next().with_context(|| {
        format!("no change has the id {wanted}; `haft undo --list` shows all changes")
    })?;
    let is_exact = first.1.id == wanted || first.1.call == wanted;
    anyhow::ensure!(
        is_exact || found.next().is_none(),
        "several changes have ids like {wanted}; give more characters of the id"
    );
    Ok(first)
}

/// Returns, for each id, the shortest end of it that no other one has.
fn short_ids(ids: &[&str]) -> Vec<String> {
    let end = |id: &str, length: usize| {
        let skipped = id.chars().count().saturating_sub(length);
        id.chars().skip(skipped).collect::<String>()
    };
    let mut length = SHORT_ID;
    loop {
        let short: Vec<String> = ids.iter().map(|id| end(id, length)).collect();
        let distinct: std::collections::HashSet<&String> = short.iter().collect();
        let longest = ids.iter().map(|id| id.len()).max().unwrap_or_default();
        if distinct.len() == ids.len() || length >= longest {
            return short;
        }
        length += 1;
    }
}

/// Returns the selected changes with their sessions, the newest first.
fn chosen<'a>(
    histories: &'a [UndoHistory],
    undo: &UndoFlags,
) -> anyhow::Result<Vec<(&'a UndoHistory, UndoSelection)>> {
    let changes = changes(histories)?;
    match (&undo.change, &undo.since) {
        (Some(wanted), _) => {
            let (history, unit) = find(&changes, wanted)?;
            Ok(vec![(history, UndoSelection::Unit(unit.id.clone()))])
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
    let changes = changes(histories)?;
    if changes.is_empty() {
        show::line("Nothing was changed here.")?;
        return Ok(Exit::Success);
    }
    let ids: Vec<&str> = changes.iter().map(|(_, unit)| unit.id.as_str()).collect();
    let row_number = |id: &String| {
        let found = ids.iter().position(|known| known == id);
        found.map_or_else(|| id.clone(), |index| (index + 1).to_string())
    };
    let mut rows = vec![["#", "ID", "TIME", "TOOL", "FILES", "STATE"].map(str::to_owned)];
    for (number, ((_, unit), id)) in (1..).zip(changes.iter().zip(short_ids(&ids))) {
        rows.push([
            number.to_string(),
            id,
            local_time(unit.time),
            unit.tool.clone(),
            files(unit, cwd),
            with_overlaps(state(unit), unit.overlaps.iter().map(row_number).collect()),
        ]);
    }
    show::line(show::table(&rows).trim_end())?;
    Ok(Exit::Success)
}

/// Formats a time as `2026-01-31 12:00` in the time zone of the machine.
fn local_time(time: SystemTime) -> String {
    let local = |time: SystemTime| jiff::Zoned::try_from(time).ok();
    local(time).map_or_else(
        || format!("{} UTC", utc_time::show(time)),
        |time| time.strftime("%Y-%m-%d %H:%M").to_string(),
    )
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

/// Adds the numbers of the changes that can only be undone together with this one.
fn with_overlaps(state: String, overlaps: Vec<String>) -> String {
    match overlaps.is_empty() {
        true => state,
        false => format!("{state}, together with {}", overlaps.join(", ")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_differ() {
        let ids = [
            "0190a000-0000-7000-8000-000012345678",
            "0190a000-0000-7000-8000-000112345678",
            "0190a000-0000-7000-8000-0000aaaaaaaa",
            "0190a000-0000-7000-8000-0000aaaaaaaa#2",
            "x",
        ];
        let expected = ["012345678", "112345678", "0aaaaaaaa", "aaaaaaa#2", "x"];
        assert_eq!(short_ids(&ids), expected);
    }
}
