//! Which conversation a run belongs to.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use haft_agent::{Session, SessionError, Sessions, transcript::Listed};
use haft_contract::{ContextPatch, PermissionMode, SessionId};

use crate::{
    ConversationChoice, EarlierConversation, Environment, SessionConfig, SessionEvent,
    event::Events,
};

/// The conversations of a directory.
pub fn conversations(environment: &Environment, cwd: &Path) -> Sessions {
    let folder = environment.project_folder(cwd);
    Sessions::new(folder.unwrap_or_else(|| environment.temporary_folder()))
}

/// Those of all directories, each directory's by themselves.
pub fn all_conversations(environment: &Environment, cwd: &Path) -> io::Result<Vec<Sessions>> {
    let folder = environment.project_folder(cwd);
    match folder.as_deref().and_then(Path::parent) {
        Some(projects) => Sessions::of_all_projects(projects),
        None => Ok(vec![conversations(environment, cwd)]),
    }
}

/// Takes up the one that is meant.
pub(crate) fn choose(
    choice: &ConversationChoice,
    environment: &Environment,
    cwd: &Path,
) -> anyhow::Result<Session> {
    let new = choice.id.unwrap_or_else(SessionId::new);
    let here = conversations(environment, cwd);
    let until = choice.until.as_deref();
    let from = match &choice.from {
        Some(EarlierConversation::Named(name)) => Some(find(&here, name, environment, cwd)?),
        // The newest may be none at all: then this is the first.
        Some(EarlierConversation::Newest) => {
            here.newest()?.map(|Listed { id, .. }| (here.clone(), id))
        }
        None => None,
    };
    let Some((sessions, id)) = from else {
        anyhow::ensure!(
            until.is_none() && choice.drops_turn.is_none(),
            "a message to go on from, or a turn to drop, needs the conversation it belongs to: resume one by \
             its id, or continue the newest"
        );
        return another(choice, &here, new);
    };
    if let Some(prompt) = &choice.drops_turn {
        let until = until.context("a turn to drop needs the message to go on from")?;
        sessions.drops_only(id, until, prompt)?;
    }
    let forked = choice.fork || choice.id.is_some();
    Ok(if forked {
        here.fork_from(&sessions, id, new, until)?
    } else {
        sessions.resume(id, until)?
    })
}

/// The conversation that will be gone on with, as far as that is known before anything begins; from now on it is
/// the one that is meant, whichever is the newest when the first message comes. The folder where what belongs to
/// it is kept; `None`: there is none, or someone else has it open.
pub(crate) fn settle(config: &mut SessionConfig) -> Option<PathBuf> {
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
        // What is wrong with the name is said when it is taken up.
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

fn another(choice: &ConversationChoice, here: &Sessions, id: SessionId) -> anyhow::Result<Session> {
    Ok(match choice.forget {
        true => Session::in_memory(id),
        false => here.create(id).with_context(|| {
            "the session cannot be kept; set CLAUDE_CONFIG_DIR to a folder that can be written, or begin a \
             session that is not kept"
        })?,
    })
}

/// A conversation that begins in the place of another, kept like that.
pub(crate) fn successor(config: &SessionConfig, events: &Arc<Events>) -> anyhow::Result<Session> {
    let here = conversations(&config.environment, &config.cwd);
    let session = another(&config.conversation, &here, SessionId::new())?;
    match config.conversation.mirror {
        true => mirrored(session, config, events),
        false => Ok(session),
    }
}

/// A conversation that is gone on with in the place of another, by its id or title.
pub(crate) fn take_up(
    config: &SessionConfig,
    name: &str,
    events: &Arc<Events>,
) -> anyhow::Result<Session> {
    let here = conversations(&config.environment, &config.cwd);
    let (sessions, id) = find(&here, name, &config.environment, &config.cwd)?;
    let session = sessions.resume(id, None)?;
    match config.conversation.mirror {
        true => mirrored(session, config, events),
        false => Ok(session),
    }
}

/// In this project, then in all of them.
fn find(
    here: &Sessions,
    name: &str,
    environment: &Environment,
    cwd: &Path,
) -> anyhow::Result<(Sessions, SessionId)> {
    let unknown = match here.find(name) {
        Ok(id) => return Ok((here.clone(), id)),
        Err(error @ SessionError::Unknown(_)) => error,
        Err(error) => return Err(error.into()),
    };
    let all = environment.project_folder(cwd);
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

/// Reports lines as they are written.
pub(crate) fn mirror(events: &Arc<Events>) -> impl Fn(&Path, &str) + Send + Sync + 'static {
    let events = Arc::clone(events);
    move |path, line| {
        events.emit(&SessionEvent::TranscriptLine {
            path: path.to_path_buf(),
            line: line.to_owned(),
        });
    }
}

/// The same, whose lines are reported as they are written.
pub(crate) fn mirrored(
    session: Session,
    config: &SessionConfig,
    events: &Arc<Events>,
) -> anyhow::Result<Session> {
    let environment = &config.environment;
    let folder = environment.project_folder(&config.cwd);
    let folder = folder.unwrap_or_else(|| environment.temporary_folder());
    let path = folder.join(format!("{}.jsonl", session.id()));
    let mirror = mirror(events);
    Ok(session.heard_by(move |line| mirror(&path, line))?)
}

/// What the session takes over from when it last ran. Whatever the configuration says counts
/// instead, rules that deny or ask count beside it as they always do, and in another directory than it
/// started in nothing is taken over.
pub(crate) fn taken_over(session: &Session, config: &SessionConfig) -> Vec<ContextPatch> {
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
    let stays = config
        .environment
        .is_on("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR");
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
        patches.extend(worktree_of(&path));
        patches.push(ContextPatch::SetCwd { path });
    }
    patches
}

/// The worktree around a directory, if it is one that sessions make: rules about the checkout count there.
fn worktree_of(path: &Path) -> Option<ContextPatch> {
    let root = path.ancestors().find(|above| {
        let folder = above.parent();
        folder.is_some_and(|folder| folder.ends_with(".claude/worktrees"))
    })?;
    let main = root.ancestors().nth(3)?.to_path_buf();
    let path = root.to_path_buf();
    Some(ContextPatch::EnterWorktree { main, path })
}

/// Removes what a session that is not to be kept has left.
pub(crate) fn forget(config: &SessionConfig, id: SessionId, events: &Events) {
    let folder = config.environment.session_folder(&config.cwd, id);
    if folder.exists()
        && let Err(error) = fs::remove_dir_all(&folder)
    {
        events.warn(format!("{}: {error}", folder.display()));
    }
}
