//! Performs effects: on the session, in the background and on the terminal.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use haft::PermissionMode;
use haft_host::{
    CommandOutcome, EarlierConversation, Environment, QueuedKind, SessionInput, TrialLimits,
};
use haft_models::ThinkingMode;

use super::{Ui, UiEvent};
use crate::clock::session_clock;
use crate::tui::{
    app::{AppEffect, AppInput, AppOverlay, HintKind, JobResult, ViewKind},
    ask::TrialOutcome,
    clipboard,
    events::text_of,
    external_editor,
    first_run::directory_facts,
    jobs::{self, PersistTask},
    overlay::{FullScreenView, ViewEffect},
    status_line::{StatusLine, StatusLineConfig},
    theme,
    view::{self, PermissionsView, ResumeView, RewindView, TasksView, TranscriptView, UndoView},
};

/// The maximum time of a trial of rules, so that a question about a call does not wait for it.
const MAX_TRIAL_TIME: Duration = Duration::from_millis(300);

impl Ui {
    pub(super) fn perform(&mut self, effect: AppEffect) {
        match effect {
            AppEffect::Open => self.open_session(),
            AppEffect::Resume(id) => self.resume(id),
            AppEffect::Trust(trusted) => {
                if let Some(background) = &self.background {
                    let _ = background.trust.send(trusted);
                }
            }
            AppEffect::Terminal(controls) => self.writer.send(controls),
            AppEffect::ScrollAway => self.writer.scroll_away(),
            AppEffect::Suspend => self.suspend(),
            AppEffect::Leave => self.is_leaving = true,
            AppEffect::BecomePlain => {
                self.is_leaving = true;
                self.becomes_plain = true;
            }
            AppEffect::EditDraft(text) => {
                let edited = self.in_editor(&text);
                self.app_update(AppInput::Found(JobResult::Edited(edited)), Instant::now());
            }
            AppEffect::RunViewEffect(effect) => self.perform_view_effect(effect),
            AppEffect::Show(kind) => self.show(kind),
            AppEffect::ChooseTheme
            | AppEffect::StatusLine
            | AppEffect::Complete { .. }
            | AppEffect::SaveHistory(_)
            | AppEffect::SaveDraft(_)
            | AppEffect::Copy(_)
            | AppEffect::LoadPicture { .. }
            | AppEffect::DrawPicture { .. }
            | AppEffect::ClipboardPicture => self.in_background(effect),
            effect => self.perform_on_session(effect),
        }
    }

    /// Performs an effect on the session. Does not block.
    pub(super) fn perform_on_session(&mut self, effect: AppEffect) {
        let Some(session) = self.session.clone() else {
            return;
        };
        match effect {
            AppEffect::SendPrompt { prompt, time } => drop(session.submit(prompt, time)),
            AppEffect::Shell { command, id } => {
                let known_as = session.run_shell(command);
                self.app.queue.change_id(id, known_as);
            }
            AppEffect::Withdraw(id) => drop(session.withdraw_message(id)),
            AppEffect::Interrupt => {
                // The app has already withdrawn the messages that it knows. These are the others.
                for message in session.interrupt_and_withdraw().into_iter().rev() {
                    let mark = match message.kind {
                        QueuedKind::Shell => "!",
                        QueuedKind::Prompt => "",
                    };
                    let text = text_of(&message.prompt.content);
                    self.app.set_draft(&format!("{mark}{text}"));
                }
            }
            AppEffect::Answer { id, answer } => drop(session.answer(id, answer)),
            AppEffect::TryRules { id, rules } => self.try_rules(id, rules, session),
            AppEffect::SetMode(mode) => {
                if let Err(why) = session.set_permission_mode(mode) {
                    self.app.warn(&format!("! {why}"));
                    self.app.auto_refused |= mode == PermissionMode::Auto;
                    self.app.status.mode = session.mode();
                }
            }
            AppEffect::SetThinking(thinks) => session.set_thinking(match thinks {
                true => ThinkingMode::Adaptive,
                false => ThinkingMode::Off,
            }),
            AppEffect::ToBackground => {
                if let Err(why) = session.move_to_background(None) {
                    self.app.warn(&format!("! {why}"));
                }
            }
            AppEffect::Status => self.status(&session),
            AppEffect::NotifyHooks(message) => {
                if let Some(background) = &self.background {
                    let tell = async move { session.notify_waiting_for_user(&message).await };
                    background.runtime.spawn(tell);
                }
            }
            AppEffect::Command(line) => self.command(line, session),
            AppEffect::AskDirectory(words) => self.work(move || match session.directory(&words) {
                Ok(facts) => JobResult::Untrusted(directory_facts(&facts)),
                Err(why) => JobResult::Warning(why),
            }),
            AppEffect::SaveNote { text, place } => self.work(move || {
                let scope = session.memory_files().get(place).map(|place| place.scope);
                let scope = scope.unwrap_or(haft_host::MemoryScope::Project);
                match session.append_memory(&text, scope) {
                    Ok(file) => JobResult::Remark(format!("saved in {}", file.display())),
                    Err(why) => JobResult::Warning(why),
                }
            }),
            AppEffect::SaveSetting { key, value } => {
                self.work(move || match session.save_setting(key, &value) {
                    Ok(file) => JobResult::Remark(format!("{key} is saved in {}", file.display())),
                    Err(why) => JobResult::Warning(why),
                });
            }
            _ => {}
        }
    }

    /// Runs blocking work in the background and reports its result.
    pub(super) fn work(&self, work: impl FnOnce() -> JobResult + Send + 'static) {
        let Some(background) = &self.background else {
            return;
        };
        let ui = self.sender.clone();
        background.runtime.spawn_blocking(move || {
            let _ = ui.send(UiEvent::App(AppInput::Found(work())));
        });
    }

    /// Tries rules on past questions in the background.
    fn try_rules(&self, id: u64, rules: Vec<String>, session: SessionInput) {
        let Some(background) = &self.background else {
            return;
        };
        let runtime = background.runtime.clone();
        self.work(move || {
            let limits = TrialLimits::within(session_clock().now(), MAX_TRIAL_TIME);
            let outcome = match runtime.block_on(session.try_rules(&rules, &limits)) {
                Ok(trial) => TrialOutcome {
                    sentence: trial.sentence(),
                    allows_denied: !trial.denied.is_empty(),
                },
                Err(problem) => TrialOutcome {
                    sentence: problem,
                    allows_denied: false,
                },
            };
            JobResult::RuleTrial { id, rules, outcome }
        });
    }

    pub(super) fn command(&self, line: String, session: SessionInput) {
        let Some(background) = &self.background else {
            return;
        };
        let ui = self.sender.clone();
        background.runtime.spawn(async move {
            let found = match session.command(&line).await {
                CommandOutcome::Answered(answer) => JobResult::Answer { line, answer },
                CommandOutcome::Queued(id) => JobResult::Queued { id, line },
                CommandOutcome::Unknown => JobResult::NoCommand(line),
            };
            let _ = ui.send(UiEvent::App(AppInput::Found(found)));
        });
    }

    pub(super) fn in_background(&mut self, effect: AppEffect) {
        let session = self.app.status.session.clone().unwrap_or_default();
        let Some(background) = &mut self.background else {
            return;
        };
        let environment = background.config.environment.clone();
        match effect {
            AppEffect::SaveHistory(text) => background
                .persist_thread
                .enqueue(PersistTask::History { text, session }),
            AppEffect::SaveDraft(text) => background
                .persist_thread
                .enqueue(PersistTask::Draft { text, session }),
            AppEffect::StatusLine => {
                let config = self.app.settings.status_line.as_ref();
                let cwd = background.config.cwd.clone();
                let config = config.and_then(|value| StatusLineConfig::from_json(value, cwd));
                let ui = self.sender.clone();
                background.status_line = config.map(|config| {
                    let show = move |rows| {
                        let rows = AppInput::Found(JobResult::StatusRows(rows));
                        let _ = ui.send(UiEvent::App(rows));
                    };
                    StatusLine::start(config, Box::new(show))
                });
                if let Some(session) = self.session.clone() {
                    self.status(&session);
                }
            }
            AppEffect::Complete { query, number } => {
                let completer = background.completer.clone();
                self.work(move || {
                    let found = completer.find(&query);
                    JobResult::Completions { number, found }
                });
            }
            AppEffect::Copy(text) => self.work(move || {
                let outcome = clipboard::copy(&text, &environment);
                JobResult::Copied {
                    said: outcome.message,
                    controls: outcome.controls,
                }
            }),
            AppEffect::LoadPicture { path, pasted } => self.work(move || JobResult::Picture {
                picture: jobs::picture(&path),
                pasted: Some(pasted),
            }),
            AppEffect::ClipboardPicture => self.work(|| JobResult::Picture {
                picture: jobs::clipboard_picture(),
                pasted: None,
            }),
            AppEffect::DrawPicture {
                number,
                name,
                content,
                protocol,
            } => self.work(move || {
                let item = jobs::drawn(&content, &name, protocol, number);
                JobResult::Drawn { number, item }
            }),
            AppEffect::ChooseTheme => {
                let places = environment.settings_places(&background.config.cwd);
                let name = self.app.settings.theme.clone();
                let (known, level) = (
                    self.app.capabilities.background,
                    self.app.capabilities.level,
                );
                self.work(move || {
                    let folder = places.user.join("themes");
                    let found = theme::theme(name.as_deref(), known, level, &folder);
                    JobResult::Theme(Box::new(found))
                });
            }
            _ => {}
        }
    }

    /// Ends the current session and resumes another one.
    pub(super) fn resume(&mut self, id: String) {
        if let Some(session) = self.session.take() {
            session.close();
            session.detach();
        }
        if let Some(background) = &mut self.background {
            background.config.conversation.from = Some(EarlierConversation::Named(id));
        }
        self.open_session();
    }

    pub(super) fn status(&mut self, session: &SessionInput) {
        let usage = session.context_usage();
        let status = &mut self.app.status;
        if usage.total > 0 {
            status.context = Some((usage.total, usage.window));
        }
        status.mode = session.mode();
        status.allowed_hosts = match status.mode {
            PermissionMode::Auto => session.allowed_hosts(),
            _ => 0,
        };
        status.model = session.model();
        status.cost = status.cost.max(session.costs().total_usd);
        if let Some(line) = self
            .background
            .as_ref()
            .and_then(|one| one.status_line.as_ref())
        {
            line.update(self.app.status_facts(session));
        }
        self.pace.change(Instant::now());
    }

    /// Shows the list of sessions to resume at startup.
    pub(crate) fn pick_session(&mut self) {
        self.show(ViewKind::Resume);
        self.pace.change(Instant::now());
    }

    pub(super) fn show(&mut self, kind: ViewKind) {
        let now = SystemTime::now();
        let opened = match (kind, &self.session) {
            (ViewKind::Keys, _) => Some(boxed((view::keys_view(&self.app.look), Vec::new()))),
            (ViewKind::Resume, _) => self.background.as_ref().map(|background| {
                let config = &background.config;
                let environment = config.environment.clone();
                boxed(ResumeView::open(config.cwd.clone(), environment, now))
            }),
            (ViewKind::Transcript, Some(session)) => session
                .transcript_path()
                .map(|path| boxed(TranscriptView::open(path))),
            (kind, Some(session)) => {
                let session = Arc::new(session.clone());
                match kind {
                    ViewKind::Undo => Some(boxed(UndoView::open(session, now))),
                    ViewKind::Rewind => Some(boxed(RewindView::open(session, now))),
                    ViewKind::Tasks => Some(boxed(TasksView::open(session))),
                    _ => Some(boxed(PermissionsView::open(session))),
                }
            }
            (_, None) => None,
        };
        let Some((view, effects)) = opened else {
            self.app.hint(
                "there is nothing to show yet",
                HintKind::Notice,
                Instant::now(),
            );
            return;
        };
        self.app.overlay = Some(AppOverlay::Other(view));
        for effect in effects {
            self.perform_view_effect(effect);
        }
    }

    pub(super) fn perform_view_effect(&mut self, effect: ViewEffect) {
        match effect {
            ViewEffect::Job(job) => self.work(move || JobResult::ViewData(job())),
            ViewEffect::Copy(text) => self.in_background(AppEffect::Copy(text)),
            ViewEffect::Edit(text) => {
                let _ = self.in_editor(&text);
            }
            ViewEffect::SetDraft(text) => self.app.set_draft(&text),
            ViewEffect::Resume(id) => self.app_update(AppInput::Resume(id), Instant::now()),
        }
    }

    /// Opens a text in the user's editor, which uses the terminal until it exits.
    pub(super) fn in_editor(&mut self, text: &str) -> Result<String, String> {
        let environment = self.background.as_ref();
        let environment = environment.map(|background| background.config.environment.clone());
        self.release_terminal();
        let edited =
            external_editor::edit(text, &environment.unwrap_or_else(Environment::from_process));
        self.reclaim_terminal();
        edited
    }
}

fn boxed(
    (view, effects): (impl FullScreenView + 'static, Vec<ViewEffect>),
) -> (Box<dyn FullScreenView>, Vec<ViewEffect>) {
    (Box::new(view), effects)
}
