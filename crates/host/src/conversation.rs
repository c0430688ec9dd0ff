//! The conversation of a session: new, resumed or forked.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use haft_agent::{OpenTranscript, ProjectSessions, SessionError, transcript::SessionListing};
use haft_contract::{ContextPatch, PermissionMode, SessionId};

use crate::{
    ConversationChoice, EarlierConversation, Environment, SessionConfig, SessionEvent,
    event::EventEmitter,
};

/// Returns the conversations of a directory.
pub fn conversations(environment: &Environment, cwd: &Path) -> ProjectSessions {
    let folder = environment.project_folder(cwd);
    ProjectSessions::new(folder.unwrap_or_else(|| environment.sessions_without_home()))
}

/// Returns the conversations of all directories, grouped by directory.
pub fn all_conversations(
    environment: &Environment,
    cwd: &Path,
) -> io::Result<Vec<ProjectSessions>> {
    let folder = environment.project_folder(cwd);
    match folder.as_deref().and_then(Path::parent) {
        Some(projects) => ProjectSessions::all_projects(projects),
        None => Ok(vec![conversations(environment, cwd)]),
    }
}

/// Opens the chosen conversation.
pub(crate) fn choose(
    choice: &ConversationChoice,
    environment: &Environment,
    cwd: &Path,
) -> anyhow::Result<OpenTranscript> {
    let new = choice.id.unwrap_or_else(SessionId::new);
    let here = conversations(environment, cwd);
    let until = choice.until.as_deref();
    let from = match &choice.from {
        Some(EarlierConversation::Named(name)) => Some(find(&here, name, environment, cwd)?),
        // If the directory has no conversation yet, a new one is started.
        Some(EarlierConversation::Newest) => here
            .newest()?
            .map(|SessionListing { id, .. }| (here.clone(), id)),
        None => None,
    };
    let Some((sessions, id)) = from else {
        anyhow::ensure!(
            until.is_none() && choice.drops_turn.is_none(),
            "a message to resume from, or a turn to drop, needs its conversation: resume one by its id, or \
             continue the newest"
        );
        return new_transcript(choice, &here, new);
    };
    if let Some(prompt) = &choice.drops_turn {
        let until = until.context("a turn to drop needs the message to resume from")?;
        sessions.check_drops_only(id, until, prompt)?;
    }
    let forked = choice.fork || choice.id.is_some();
    Ok(if forked {
        here.fork_from(&sessions, id, new, until)?
    } else {
        sessions.resume(id, until)?
    })
}

/// Determines the conversation to resume before the session starts, and fixes the choice: a newer
/// conversation no longer changes it. Returns the folder with its data. `None`: no conversation is
/// resumed, or another process has it open.
pub(crate) fn find_resumable(config: &mut SessionConfig) -> Option<PathBuf> {
    let choice = &config.conversation;
    if choice.fork || choice.id.is_some() || choice.forget {
        return None;
    }
    let here = conversations(&config.environment, &config.cwd);
    let (sessions, id) = match choice.from.as_ref()? {
        EarlierConversation::Newest => {
            let id = here.newest().ok()??.id;
            (here, id)
        }
        // A problem with the name is reported when the conversation is opened.
        EarlierConversation::Named(name) => {
            find(&here, name, &config.environment, &config.cwd).ok()?
        }
    };
    config.conversation.from = Some(EarlierConversation::Named(id.to_string()));
    if sessions.is_in_use(id) {
        return None;
    }
    Some(match &config.state_folder {
        Some(folder) => folder.clone(),
        None => config.environment.session_folder(&config.cwd, id),
    })
}

fn new_transcript(
    choice: &ConversationChoice,
    here: &ProjectSessions,
    id: SessionId,
) -> anyhow::Result<OpenTranscript> {
    Ok(match choice.forget {
        true => OpenTranscript::in_memory(id),
        false => here.create(id).with_context(|| {
            "the session cannot be saved; set CLAUDE_CONFIG_DIR to a writable folder, or start a session \
             that is not saved"
        })?,
    })
}

/// Starts a new conversation that replaces the current one, stored in the same way.
pub(crate) fn new_conversation(
    config: &SessionConfig,
    events: &Arc<EventEmitter>,
) -> anyhow::Result<OpenTranscript> {
    let here = conversations(&config.environment, &config.cwd);
    let session = new_transcript(&config.conversation, &here, SessionId::new())?;
    match config.conversation.mirror {
        true => mirrored(session, config, events),
        false => Ok(session),
    }
}

/// Resumes a conversation by its id or title, to replace the current one.
pub(crate) fn resume(
    config: &SessionConfig,
    name: &str,
    events: &Arc<EventEmitter>,
) -> anyhow::Result<OpenTranscript> {
    let here = conversations(&config.environment, &config.cwd);
    let (sessions, id) = find(&here, name, &config.environment, &config.cwd)?;
    let session = sessions.resume(id, None)?;
    match config.conversation.mirror {
        true => mirrored(session, config, events),
        false => Ok(session),
    }
}

/// Finds a conversation in this project, or otherwise in all projects.
fn find(
    here: &ProjectSessions,
    name: &str,
    environment: &Environment,
    cwd: &Path,
) -> anyhow::Result<(ProjectSessions, SessionId)> {
    let unknown = match here.find(name) {
        Ok(id) => return Ok((here.clone(), id)),
        Err(error @ SessionError::Unknown(_)) => error,
        Err(error) => return Err(error.into()),
    };
    let all = environment.project_folder(cwd);
    let projects = all.as_deref().and_then(Path::parent);
    for project in projects.map(fs::read_dir).into_iter().flatten().flatten() {
        let sessions = ProjectSessions::new(project?.path());
        match sessions.find(name) {
            Ok(id) => return Ok((sessions, id)),
            Err(SessionError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(unknown.into())
}

/// Returns a callback that reports transcript lines as events.
pub(crate) fn mirror(events: &Arc<EventEmitter>) -> impl Fn(&Path, &str) + Send + Sync + 'static {
    let events = Arc::clone(events);
    move |path, line| {
        events.emit(&SessionEvent::TranscriptLine {
            path: path.to_path_buf(),
            line: line.to_owned(),
        });
    }
}

/// Reports the lines of a conversation when they are written.
pub(crate) fn mirrored(
    session: OpenTranscript,
    config: &SessionConfig,
    events: &Arc<EventEmitter>,
) -> anyhow::Result<OpenTranscript> {
    let environment = &config.environment;
    let folder = environment.project_folder(&config.cwd);
    let folder = folder.unwrap_or_else(|| environment.sessions_without_home());
    let path = folder.join(format!("{}.jsonl", session.id()));
    let mirror = mirror(events);
    Ok(session.with_line_callback(move |line| mirror(&path, line))?)
}

/// Returns the state to restore from the last run of the conversation: permissions, activated tools
/// and the working directory. Values in the configuration override it, and deny and ask rules still
/// apply. If the start directory differs, no permissions are restored.
pub(crate) fn restored_patches(
    session: &OpenTranscript,
    config: &SessionConfig,
) -> Vec<ContextPatch> {
    let cwd = config.cwd.as_path();
    let loaded = session.loaded();
    let terms = &loaded.terms;
    let mut patches = Vec::new();
    if !terms.tools.is_empty() {
        let names = terms.tools.clone();
        patches.push(ContextPatch::ActivateTools { names });
    }
    let mut directories = vec![cwd.to_path_buf()];
    if terms.start == cwd {
        let is_said = config.permission_mode.is_some();
        // A transcript is untrusted input, so these modes are never restored.
        let never = [
            PermissionMode::Plan,
            PermissionMode::Auto,
            PermissionMode::BypassPermissions,
        ];
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
    let stays = config
        .environment
        .is_on("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR");
    let inside = |path: &Path| {
        // Compare real paths: a symlink may point outside by now.
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
        patches.extend(worktree_of(&path));
        patches.push(ContextPatch::SetCwd { path });
    }
    patches
}

/// Returns the patch to enter the worktree around a directory, if a session created that worktree:
/// rules for the checkout apply there.
fn worktree_of(path: &Path) -> Option<ContextPatch> {
    let root = path.ancestors().find(|above| {
        let folder = above.parent();
        folder.is_some_and(|folder| folder.ends_with(".claude/worktrees"))
    })?;
    let main = root.ancestors().nth(3)?.to_path_buf();
    let path = root.to_path_buf();
    Some(ContextPatch::EnterWorktree { main, path })
}

/// Removes the data of a session that must not be stored.
pub(crate) fn delete_unsaved(config: &SessionConfig, id: SessionId, events: &EventEmitter) {
    let folder = config.environment.session_folder(&config.cwd, id);
    if folder.exists()
        && let Err(error) = fs::remove_dir_all(&folder)
    {
        events.warn(format!("{}: {error}", folder.display()));
    }
}
