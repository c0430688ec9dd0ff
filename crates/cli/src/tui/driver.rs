//! Opens the session in the background and forwards its events to the user interface.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender},
};

use haft::engine::{permissions::SettingsScope, settings::SettingsFile};
use haft_host::{
    AgentSession, EarlierConversation, OpenError, ResolvedSettings, SessionConfig, SessionEvent,
    SessionParts, accept_trust, auto_mode, conversations, error_chain, exchanges, key_report,
    session_entries, trust_report,
};
use tokio::runtime::Handle;

use super::{
    app::{AppInput, JobResult, OpenedSession},
    first_run::{sentence_facts, trust_facts},
    keybindings::Keybindings,
    resume::MAX_EXCHANGES,
    settings::TuiSettings,
    ui::UiEvent,
};
use crate::clock::session_clock;

/// Opens one session and reports all results.
pub(crate) struct SessionDriver {
    pub(crate) config: SessionConfig,
    pub(crate) ui: Sender<UiEvent>,
    /// Receives the user's answer about trust in the directory.
    pub(crate) trust: Receiver<bool>,
    /// The number of this session. Events of an earlier session are dropped.
    pub(crate) number: u64,
}

impl SessionDriver {
    /// Starts the session in the background.
    pub(crate) fn start(self, runtime: &Handle) {
        let handle = runtime.clone();
        runtime.spawn_blocking(move || {
            let _runtime = handle.enter();
            match self.begin() {
                Ok(session) => {
                    handle.spawn(self.run_session(session));
                }
                Err(why) => self.report(AppInput::NotOpened(why)),
            }
        });
    }

    fn report(&self, input: AppInput) {
        let number = self.number;
        let _ = self.ui.send(UiEvent::FromSession { number, input });
    }

    fn send_result(&self, found: JobResult) {
        self.report(AppInput::Found(found));
    }

    fn begin(&self) -> Result<AgentSession, String> {
        let config = &self.config;
        self.ask_trust().map_err(open_error_text)?;
        let permitted = self.load_settings().map_err(open_error_text)?;
        self.report(AppInput::Settings(Box::new(settings(&permitted))));
        let folder = &permitted.settings.places.user;
        let (keybindings, warning) = Keybindings::load(&folder.join("keybindings.json"));
        self.send_result(JobResult::Keybindings(keybindings));
        for warning in permitted.warnings().into_iter().chain(warning) {
            self.send_result(JobResult::Warning(warning));
        }
        let model = &config.model;
        let is_scripted = model.script.is_some() || model.replay.is_some();
        if !is_scripted
            && let Ok(report) = key_report(config)
            && report.source.is_none()
        {
            self.send_result(JobResult::NoKey(report));
        }
        let (ui, number) = (self.ui.clone(), self.number);
        let sink = move |event: &SessionEvent| {
            let input = AppInput::Session(Box::new(event.clone()));
            let _ = ui.send(UiEvent::FromSession { number, input });
        };
        let parts = SessionParts::new(sink)
            .questions_as_events()
            .clock(session_clock());
        let session = AgentSession::open(config.clone(), parts).map_err(open_error_text)?;
        if let Some(path) = earlier(config)
            && let Ok(exchanges) = exchanges(&path, MAX_EXCHANGES)
        {
            self.send_result(JobResult::Exchanges(exchanges));
        }
        let input = session.input();
        let opened = OpenedSession {
            memory: input.memory_files(),
            mode: permitted.mode,
            model: input.model(),
            branch: branch(&config.cwd),
            may_bypass: config.allow_bypass
                || permitted.mode == haft::PermissionMode::BypassPermissions,
            question_timeout: permitted.patience,
        };
        let _ = self.ui.send(UiEvent::Opened {
            number,
            session: input,
            opened: Box::new(opened),
        });
        Ok(session)
    }

    /// Asks about trust in the directory before any of its settings take effect.
    fn ask_trust(&self) -> Result<(), OpenError> {
        let Some(facts) = trust_facts(&trust_report(&self.config)?) else {
            return Ok(());
        };
        self.send_result(JobResult::Untrusted(facts));
        if self.trust.recv() == Ok(true) {
            accept_trust(&self.config)?;
        }
        Ok(())
    }

    /// Loads the settings. If they contain sentences that haft cannot enforce in the mode `auto`, asks
    /// whether to use the mode nevertheless.
    fn load_settings(&self) -> Result<ResolvedSettings, OpenError> {
        let resolved = ResolvedSettings::load(&self.config)?;
        let sentences = auto_mode::sentences_to_accept(&self.config, &resolved);
        if sentences.is_empty() {
            return Ok(resolved);
        }
        self.send_result(JobResult::Untrusted(sentence_facts(&sentences)));
        if self.trust.recv() != Ok(true) {
            return Ok(resolved);
        }
        auto_mode::accept_sentences(&resolved, &sentences)?;
        ResolvedSettings::load(&self.config)
    }

    async fn run_session(self, session: AgentSession) {
        let problem = match session.run().await {
            Ok(_) => None,
            Err(error) => Some(open_error_text(error)),
        };
        self.report(AppInput::Ended(problem));
    }
}

fn open_error_text(error: OpenError) -> String {
    error_chain(&error.into())
}

/// Returns the terminal settings. Commands are taken only from files that are trusted to run code.
fn settings(permitted: &ResolvedSettings) -> TuiSettings {
    let all = &permitted.settings;
    let mut settings = TuiSettings::from_json(&all.merged());
    let may_run = |layer: &&SettingsFile| {
        let planted = layer.scope == SettingsScope::Local && layer.from_workspace;
        !layer.is_in_workspace() || (all.trust.runs && (!planted || all.trust.allows))
    };
    let first = |key: &str| {
        let mut layers = all.layers.iter().filter(may_run);
        layers.find_map(|layer| layer.document.value.get(key).cloned())
    };
    settings.status_line = first("statusLine");
    settings.file_suggestion = first("fileSuggestion");
    settings
}

/// Returns the transcript of the conversation to resume.
fn earlier(config: &SessionConfig) -> Option<PathBuf> {
    let environment = &config.environment;
    match config.conversation.from.as_ref()? {
        EarlierConversation::Newest => {
            let here = conversations(environment, &config.cwd);
            let newest = here.newest().ok()??;
            Some(here.path(newest.id))
        }
        EarlierConversation::Named(name) => {
            let entries = session_entries(environment, &config.cwd, true).ok()?;
            let mut entries = entries.into_iter();
            let entry = entries.find(|entry| {
                entry.id.to_string() == *name || entry.title.as_deref() == Some(name)
            });
            entry.map(|entry| entry.path)
        }
    }
}

/// Returns the current git branch of a directory, read from `.git/HEAD`.
fn branch(cwd: &Path) -> Option<String> {
    let git = cwd.ancestors().map(|folder| folder.join(".git"));
    let git = git.into_iter().find(|git| git.exists())?;
    let folder = match git.is_file() {
        // In a linked worktree, `.git` is a file with the path of the git directory.
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
