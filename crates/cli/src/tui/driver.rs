//! The session behind the face: opened in the background, followed by its events.

use std::{fs, path::Path, sync::mpsc::Sender};

use haft_host::{
    AgentSession, Permitted, SessionConfig, SessionEvent, SessionParts, error_in_words,
};
use tokio::runtime::Handle;

use super::{
    app::{Input, OpenedSession},
    settings::TuiSettings,
    ui::UiEvent,
};

/// Opens a session and follows it to its end. Everything that is found out comes as an event.
pub(crate) fn open(runtime: &Handle, config: SessionConfig, ui: Sender<UiEvent>) {
    let handle = runtime.clone();
    runtime.spawn_blocking(move || {
        let _runtime = handle.enter();
        match begin(config, &ui) {
            Ok(session) => {
                handle.spawn(follow(session, ui));
            }
            Err(why) => drop(ui.send(UiEvent::App(Input::NotOpened(why)))),
        }
    });
}

fn begin(config: SessionConfig, ui: &Sender<UiEvent>) -> Result<AgentSession, String> {
    let words = |error: haft_host::OpenError| error_in_words(&error.into());
    let permitted = Permitted::load(&config).map_err(words)?;
    let settings = TuiSettings::of(&permitted.settings.merged());
    let _ = ui.send(UiEvent::App(Input::Settings(Box::new(settings))));
    for warning in permitted.warnings() {
        let event = SessionEvent::Warning(warning);
        let _ = ui.send(UiEvent::App(Input::Session(Box::new(event))));
    }
    let branch = branch(&config.cwd);
    let allow_bypass = config.allow_bypass;
    let events = ui.clone();
    let sink = move |event: &SessionEvent| {
        let event = Box::new(event.clone());
        let _ = events.send(UiEvent::App(Input::Session(event)));
    };
    let parts = SessionParts::new(sink).questions_as_events();
    let session = AgentSession::open(config, parts).map_err(words)?;
    let input = session.input();
    let opened = OpenedSession {
        mode: permitted.mode,
        model: input.context_usage().model,
        branch,
        may_bypass: allow_bypass || permitted.mode == haft::PermissionMode::BypassPermissions,
        patience: permitted.patience,
    };
    let _ = ui.send(UiEvent::Opened(input, Box::new(opened)));
    Ok(session)
}

async fn follow(session: AgentSession, ui: Sender<UiEvent>) {
    let problem = match session.run().await {
        Ok(_) => None,
        Err(error) => Some(error_in_words(&error.into())),
    };
    let _ = ui.send(UiEvent::App(Input::Ended(problem)));
}

/// The branch that a directory is on, as git notes it.
fn branch(cwd: &Path) -> Option<String> {
    let git = cwd.ancestors().map(|folder| folder.join(".git"));
    let git = git.into_iter().find(|git| git.exists())?;
    let folder = match git.is_file() {
        // A work tree: the file says where its folder is.
        true => {
            let text = fs::read_to_string(&git).ok()?;
            let path = text.trim().strip_prefix("gitdir: ")?.to_owned();
            git.parent()?.join(path)
        }
        false => git,
    };
    let head = fs::read_to_string(folder.join("HEAD")).ok()?;
    let head = head.trim();
    let name = match head.strip_prefix("ref: refs/heads/") {
        Some(name) => name.to_owned(),
        None => head.chars().take(7).collect(),
    };
    Some(name)
}
