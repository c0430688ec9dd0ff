//! Which conversation a run belongs to.

use std::{env, fs, path::Path, sync::Arc};

use anyhow::Context;
use haft::{ContextPatch, PermissionMode, SessionId, project_folder, session_folder};
use haft_agent::{Session, SessionError, Sessions, transcript::Listed};
use haft_protocol::{SessionMessage, TranscriptMirror};
use serde_json::Value;

use super::{flags::SessionFlags, output::Output};
use crate::args;

/// The conversations of a directory.
pub(crate) fn of(cwd: &Path) -> Sessions {
    Sessions::new(project_folder(cwd).unwrap_or_else(env::temp_dir))
}

/// Takes up the one that is meant.
pub(super) fn choose(flags: &SessionFlags, cwd: &Path) -> anyhow::Result<Session> {
    let new = match &flags.session_id {
        None => SessionId::new(),
        Some(text) => SessionId(
            text.parse()
                .ok()
                .with_context(|| format!("--session-id {text}: expected a UUID"))?,
        ),
    };
    let here = of(cwd);
    let until = flags.resume_session_at.as_deref();
    let from = match (&flags.resume, flags.go_on) {
        (Some(name), _) if name.is_empty() => {
            anyhow::bail!("--resume: say which session; `haft sessions list` shows them")
        }
        (Some(name), _) => Some(find(&here, name, cwd)?),
        // The newest may be none at all: then this is the first.
        (None, true) => here.newest()?.map(|Listed { id, .. }| (here.clone(), id)),
        (None, false) => None,
    };
    let Some((sessions, id)) = from else {
        anyhow::ensure!(
            until.is_none(),
            "--resume-session-at goes with --resume or --continue"
        );
        return Ok(if flags.no_session_persistence {
            Session::in_memory(new)
        } else {
            here.create(new)?
        });
    };
    let forked = flags.fork_session || flags.session_id.is_some();
    Ok(if forked {
        here.fork_from(&sessions, id, new, until)?
    } else {
        sessions.resume(id, until)?
    })
}

/// In this project, then in all of them.
fn find(here: &Sessions, name: &str, cwd: &Path) -> anyhow::Result<(Sessions, SessionId)> {
    let unknown = match here.find(name) {
        Ok(id) => return Ok((here.clone(), id)),
        Err(error @ SessionError::Unknown(_)) => error,
        Err(error) => return Err(error.into()),
    };
    let all = project_folder(cwd);
    let projects = all.as_deref().and_then(Path::parent);
    for project in projects.map(fs::read_dir).into_iter().flatten().flatten() {
        let sessions = Sessions::new(project?.path());
        match sessions.find(name) {
            Ok(id) => return Ok((sessions, id)),
            Err(SessionError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(unknown.into())
}

/// The same, whose lines are told as they are written down.
pub(super) fn mirrored(
    session: Session,
    cwd: &Path,
    output: &Arc<Output>,
) -> anyhow::Result<Session> {
    let folder = project_folder(cwd).unwrap_or_else(env::temp_dir);
    let path = folder.join(format!("{}.jsonl", session.id()));
    let output = Arc::clone(output);
    Ok(session.heard_by(move |line| {
        let entry: Value = serde_json::from_str(line).unwrap_or_default();
        output.put_control(&SessionMessage::TranscriptMirror(TranscriptMirror {
            file_path: path.to_string_lossy(),
            entries: vec![entry],
        }));
    })?)
}

/// What the session takes over from when it last ran. Whatever a flag of this start says counts
/// instead, rules that deny or ask count beside it as they always do, and in another directory than it
/// started in nothing is taken over.
pub(super) fn taken_over(
    session: &Session,
    flags: &args::SessionArgs,
    cwd: &Path,
) -> Vec<ContextPatch> {
    let loaded = session.loaded();
    let terms = &loaded.terms;
    let mut patches = Vec::new();
    let mut directories = vec![cwd.to_path_buf()];
    if terms.start == cwd {
        let is_said = flags.permission_mode.is_some() || flags.dangerously_skip_permissions;
        // A transcript may say anything; these two are never taken over.
        let never = [PermissionMode::Plan, PermissionMode::BypassPermissions];
        let mode = terms.mode.filter(|mode| !is_said && !never.contains(mode));
        patches.extend(mode.map(|mode| ContextPatch::SetMode { mode }));
        for path in terms.directories.iter().filter(|path| path.is_dir()) {
            directories.push(path.clone());
            patches.push(ContextPatch::AddDirectory { path: path.clone() });
        }
        for (list, rule) in &terms.rules {
            let (list, rule) = (*list, rule.clone());
            patches.push(ContextPatch::AddRule { list, rule });
        }
    }
    let stays = env::var_os("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR").is_some_and(|it| it == "1");
    let inside = |path: &Path| {
        // As it really is: a link may lead out by now.
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(path).is_some_and(|path| {
            let mut directories = directories.iter().filter_map(|one| real(one));
            directories.any(|directory| path.starts_with(directory))
        })
    };
    if let Some(path) = loaded.cwd.clone().filter(|path| !stays && path != cwd)
        && path.is_dir()
        && inside(&path)
    {
        patches.push(ContextPatch::SetCwd { path });
    }
    patches
}

/// Removes what a session that is not to be kept has left.
pub(super) fn forget(cwd: &Path, id: SessionId) {
    let folder = session_folder(cwd, id);
    if folder.exists()
        && let Err(error) = fs::remove_dir_all(&folder)
    {
        crate::show::warn(&format!("haft: {}: {error}", folder.display()));
    }
}
