//! `cleanupPeriodDays`: removes sessions that were not written to for this period.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use haft_agent::ProjectSessions;
use haft_engine::settings::{Settings, SettingsProblem};

use crate::Environment;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The name of the setting.
const SETTING: &str = "cleanupPeriodDays";

/// Returns the retention period of sessions; `None`: unlimited. Files of a workspace are ignored,
/// because the setting removes the user's sessions in all projects.
pub(crate) fn period(settings: &mut Settings) -> Option<Duration> {
    let mut users = settings.layers.iter();
    let value = users.find_map(|layer| {
        let is_users = !layer.from_workspace && layer.scope.is_users();
        let value = layer.document.value.get(SETTING)?;
        is_users.then(|| value.clone())
    })?;
    match value.as_u64() {
        Some(days) if days > 0 => Some(DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX))),
        _ => {
            settings.problems.push(SettingsProblem {
                place: SETTING.to_owned(),
                text: format!("{value}: expected a number of days above 0; nothing is removed"),
            });
            None
        }
    }
}

/// The period after which deleted sessions are removed permanently, if sessions are stored
/// indefinitely. Otherwise the retention period applies to them too.
const DELETED: Duration = DAY.saturating_mul(30);

/// Removes older sessions in the background.
pub(crate) fn remove_old(period: Option<Duration>, environment: &Environment, cwd: &Path) {
    let project = environment.project_folder(cwd);
    if let Some(aside) = project
        .as_deref()
        .map(|project| ProjectSessions::new(project).archived())
    {
        let before = SystemTime::now().checked_sub(period.unwrap_or(DELETED));
        tokio::task::spawn_blocking(move || before.map(|before| remove_of(&aside, before)));
    }
    let Some(period) = period else {
        return;
    };
    let Some(projects) = project.as_deref().and_then(Path::parent) else {
        return;
    };
    let projects = projects.to_path_buf();
    tokio::task::spawn_blocking(move || {
        let before = SystemTime::now().checked_sub(period);
        let removed = before.map(|before| remove_before(&projects, before));
        if let Some(removed) = removed.filter(|removed| *removed > 0) {
            tracing::info!(removed, "sessions past {SETTING} were removed");
        }
    });
}

/// Removes sessions of all projects. Sessions that are in use, or cannot be removed, stay.
fn remove_before(projects: &Path, before: SystemTime) -> usize {
    let all = ProjectSessions::all_projects(projects).unwrap_or_default();
    all.iter().map(|sessions| remove_of(sessions, before)).sum()
}

fn remove_of(sessions: &ProjectSessions, before: SystemTime) -> usize {
    let mut removed = 0;
    let old = sessions.list().unwrap_or_default().into_iter();
    for one in old.filter(|one| one.changed < before) {
        match sessions.delete(one.id) {
            Ok(()) => removed += 1,
            Err(error) => tracing::debug!(%error, id = %one.id, "an old session stays"),
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn what_was_not_written_to_for_so_long_goes_with_all_that_belongs_to_it() {
        let projects = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let make = |project: &str, id: u8, days: u32| {
            let folder = projects.path().join(project);
            let id = format!("00000000-0000-4000-8000-0000000000{id:02}");
            fs::create_dir_all(folder.join(&id).join("undo")).unwrap();
            let path = folder.join(format!("{id}.jsonl"));
            let line = format!("{{\"type\":\"user\",\"sessionId\":\"{id}\"}}\n");
            fs::write(&path, line).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(now - DAY * days).unwrap();
            (path, folder.join(&id))
        };
        let old = [make("a", 1, 31), make("b", 2, 400)];
        let young = [make("a", 3, 29), make("b", 4, 0)];
        let note = projects.path().join("a/memory/note.md");
        fs::create_dir_all(note.parent().unwrap()).unwrap();
        fs::write(&note, "").unwrap();
        assert_eq!(remove_before(projects.path(), now - DAY * 30), 2);
        for (path, folder) in old {
            assert!(!path.exists() && !folder.exists(), "{}", path.display());
        }
        for (path, folder) in young {
            assert!(path.exists() && folder.exists(), "{}", path.display());
        }
        assert!(note.exists());
    }
}
