//! All state of the user interface and its transitions: [`App::update`] handles an input and
//! returns the resulting effects. Nothing here blocks or does I/O.
//!
//! - `effect`: inputs and effects; `job_results`: results of background jobs; `messages`: sending
//!   messages; `history_queue`: items to print

mod effect;
mod history_queue;
mod job_results;
mod messages;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use haft::Content;
use haft_host::MemoryPlace;
use haft_terminal::{
    Capabilities, ChipId, DraftPart, Editor, HistoryItem, Key, ScreenSize, TerminalReply, TextLine,
    Theme, image::ImageProtocol, paint::TerminalControl, style::ThemeName,
};
use serde_json::Value;
use uuid::Uuid;

pub(crate) use self::effect::{AppEffect, AppInput, JobResult, OpenedSession, ViewKind};
use self::history_queue::HistoryQueue;
use super::{
    ask::OpenQuestions,
    full_question::FullQuestionView,
    history_file::PromptHistoryEntry,
    keybindings::Keybindings,
    notify,
    overlay::FullScreenView,
    popup::CompletionPopup,
    queue::MessageQueue,
    reply::{self, ReplyView},
    running_calls::RunningCalls,
    search::HistorySearchState,
    settings::TuiSettings,
    status::StatusBar,
    todos::TodoList,
    ui_style::UiStyle,
};

/// A view that covers the screen.
pub(crate) enum AppOverlay {
    /// The full text of a question.
    FullQuestion(FullQuestionView),
    Other(Box<dyn FullScreenView>),
}

/// The state of a run in progress.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) since: Instant,
    pub(crate) tokens: u64,
    pub(crate) compacting: bool,
    /// Whether the run was asked to stop.
    pub(crate) is_stopping: bool,
}

/// A short text below the editor that disappears after some time.
#[derive(Debug)]
pub(crate) struct StatusHint {
    pub(crate) text: String,
    pub(crate) until: Instant,
    pub(crate) kind: HintKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HintKind {
    /// A second Ctrl-C exits.
    LeaveByInterrupt,
    /// A second Ctrl-D exits.
    LeaveByEnd,
    Notice,
}

/// The draft is saved to disk after this time without a key press.
const DRAFT_REST: Duration = Duration::from_secs(1);

pub(crate) struct App {
    pub(crate) look: UiStyle,
    pub(crate) capabilities: Capabilities,
    pub(crate) settings: TuiSettings,
    pub(crate) cwd: PathBuf,
    pub(crate) editor: Editor,
    pub(crate) images: HashMap<ChipId, Content>,
    /// The number of images that were added to drafts, for their names.
    pictures_named: usize,
    pub(crate) pastes: usize,
    pub(crate) inputs: haft_terminal::editor::InputHistory,
    pub(crate) reply: ReplyView,
    pub(crate) calls: RunningCalls,
    pub(crate) questions: OpenQuestions,
    pub(crate) queue: MessageQueue,
    pub(crate) run: Option<RunState>,
    pub(crate) status: StatusBar,
    pub(crate) status_rows: Vec<TextLine>,
    pub(crate) todos: TodoList,
    pub(crate) popup: CompletionPopup,
    pub(crate) search: Option<HistorySearchState>,
    /// The prompt history of all projects, oldest first.
    pub(crate) prompt_history: Vec<PromptHistoryEntry>,
    /// A draft that the user stashed.
    pub(crate) stash: Option<Vec<DraftPart>>,
    draft_due: Option<Instant>,
    pub(crate) keybindings: Keybindings,
    /// The keys of an incomplete key sequence.
    pub(crate) pending_keys: Vec<Key>,
    pub(crate) memory: Vec<MemoryPlace>,
    /// The index of the memory file that `#` writes to.
    pub(crate) memory_place: usize,
    pub(crate) is_thinking_enabled: bool,
    /// Whether a command's output was printed. The result that follows would repeat it.
    pub(crate) has_answered: bool,
    /// Messages that were delivered before they were queued here, the newest first.
    delivered_early: Vec<Uuid>,
    /// The subject in the window title.
    pub(crate) window_subject: String,
    pub(crate) overlay: Option<AppOverlay>,
    pub(crate) hint: Option<StatusHint>,
    /// Effects that wait for the session to open.
    pub(crate) unsent: Vec<AppEffect>,
    pub(crate) session: AppSessionState,
    /// Whether the terminal window has the focus, if the terminal reports it.
    pub(crate) focus: Option<bool>,
    pub(crate) last_key: Option<Instant>,
    pub(crate) last_escape: Option<Instant>,
    pub(crate) question_timeout: Option<Duration>,
    pub(crate) may_bypass: bool,
    /// Whether the session has refused the mode `auto`. Shift-Tab then skips it.
    pub(crate) auto_refused: bool,
    history: HistoryQueue,
    pictures: u32,
    effects: Vec<AppEffect>,
    pub(crate) stamp: u64,
}

/// The state of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AppSessionState {
    Opening,
    Open,
    /// The session could not be opened.
    Missing,
    Over,
}

impl App {
    pub(crate) fn new(
        capabilities: Capabilities,
        size: ScreenSize,
        cwd: PathBuf,
        is_still: bool,
    ) -> Self {
        let look = UiStyle {
            theme: Theme::new(ThemeName::Auto, capabilities.background, capabilities.level),
            unicode: capabilities.unicode,
            hyperlinks: capabilities.hyperlinks,
            is_still,
            has_reduced_motion: false,
            verbose: false,
            size,
        };
        let reply = ReplyView::new(&look);
        let mut app = Self {
            status: StatusBar::new(&cwd),
            look,
            capabilities,
            settings: TuiSettings::default(),
            cwd,
            editor: Editor::new(),
            images: HashMap::new(),
            pictures_named: 0,
            pastes: 0,
            inputs: haft_terminal::editor::InputHistory::default(),
            reply,
            calls: RunningCalls::default(),
            questions: OpenQuestions::default(),
            queue: MessageQueue::default(),
            run: None,
            status_rows: Vec::new(),
            todos: TodoList::default(),
            popup: CompletionPopup::default(),
            search: None,
            prompt_history: Vec::new(),
            stash: None,
            draft_due: None,
            keybindings: Keybindings::default(),
            pending_keys: Vec::new(),
            memory: Vec::new(),
            memory_place: 0,
            is_thinking_enabled: false,
            has_answered: false,
            delivered_early: Vec::new(),
            window_subject: String::new(),
            overlay: None,
            hint: None,
            unsent: Vec::new(),
            session: AppSessionState::Opening,
            focus: None,
            last_key: None,
            last_escape: None,
            question_timeout: None,
            may_bypass: false,
            auto_refused: false,
            history: HistoryQueue::default(),
            pictures: 0,
            effects: Vec::new(),
            stamp: 0,
        };
        app.set_widths();
        app
    }

    /// Handles an input and returns the resulting effects.
    pub(crate) fn update(&mut self, input: AppInput, now: Instant) -> Vec<AppEffect> {
        match input {
            AppInput::Key {
                key,
                read_at,
                in_read,
            } => self.on_key(key, read_at, in_read, now),
            AppInput::Paste(paste) => self.on_paste(paste, now),
            AppInput::Focus(is_focused) => self.focus = Some(is_focused),
            AppInput::Reply(reply) => {
                if matches!(reply, TerminalReply::ThemeChanged { .. }) {
                    // Queries the terminal for its actual colours.
                    self.effect(AppEffect::Terminal(vec![TerminalControl::Queries]));
                }
                if self.capabilities.update_from_reply(&reply) {
                    self.look.hyperlinks = self.capabilities.hyperlinks;
                    self.choose_theme();
                }
            }
            AppInput::Written { stamp, at } => self.questions.written(stamp, at),
            AppInput::Resized(size) => {
                self.look.size = size;
                self.set_widths();
            }
            AppInput::Session(event) => self.on_session(*event, now),
            AppInput::Settings(settings) => {
                self.settings = *settings;
                self.look.verbose = self.settings.verbose;
                self.look.has_reduced_motion = self.settings.prefers_reduced_motion;
                self.set_editor_mode();
                self.choose_theme();
                self.effect(AppEffect::StatusLine);
                if self.settings.ax_screen_reader {
                    self.effect(AppEffect::BecomePlain);
                }
            }
            AppInput::Opened(opened) => self.opened(*opened),
            AppInput::NotOpened(why) => self.not_opened(why),
            AppInput::Ended(problem) => self.ended(problem),
            AppInput::Found(found) => self.on_job_result(found, now),
            AppInput::Resume(id) => self.resume(&id),
            AppInput::Tick => self.on_tick(now),
        }
        std::mem::take(&mut self.effects)
    }

    /// Removes and returns the history items that can be printed now.
    pub(crate) fn take_history(&mut self) -> Vec<HistoryItem> {
        self.history.take()
    }

    /// Like [`Self::take_history`], but for exit: skips images that are still being decoded.
    pub(crate) fn take_all_history(&mut self) -> Vec<HistoryItem> {
        self.history.take_all()
    }

    /// Adds an image to the history. It is decoded in the background. Does nothing for other
    /// content.
    pub(crate) fn show_picture(&mut self, name: &str, content: &Content) {
        if !matches!(content, Content::Image { .. }) {
            return;
        }
        self.pictures += 1;
        self.history.reserve_image(self.pictures);
        // Protocols that draw with Unicode characters need Unicode support.
        let protocol = match self.capabilities.images {
            ImageProtocol::HalfBlocks | ImageProtocol::Kitty if !self.look.unicode => {
                ImageProtocol::Name
            }
            protocol => protocol,
        };
        self.effect(AppEffect::DrawPicture {
            number: self.pictures,
            name: name.to_owned(),
            content: content.clone(),
            protocol,
        });
    }

    pub(crate) fn print(&mut self, items: impl IntoIterator<Item = HistoryItem>) {
        self.history.extend(items);
    }

    /// Prints a one-line remark.
    pub(crate) fn remark(&mut self, text: &str) {
        let item = reply::remark(text, &self.look);
        self.history.push(item);
    }

    /// Prints a warning.
    pub(crate) fn warn(&mut self, text: &str) {
        let item = reply::warning(text, &self.look);
        self.history.push(item);
    }

    pub(crate) fn hint(&mut self, text: impl Into<String>, kind: HintKind, now: Instant) {
        self.hint = Some(StatusHint {
            text: text.into(),
            until: now + Duration::from_secs(2),
            kind,
        });
    }

    pub(crate) fn effect(&mut self, effect: AppEffect) {
        self.effects.push(effect);
    }

    fn set_widths(&mut self) {
        // The prompt mark takes two columns.
        let width = self.look.size.row_width().saturating_sub(2);
        self.editor.set_width(width);
        self.reply.set_look(&self.look);
    }

    pub(crate) fn set_editor_mode(&mut self) {
        let remaps = self.settings.vim_insert_mode_remaps.iter();
        let escapes = remaps.filter(|(_, meaning)| meaning.eq_ignore_ascii_case("<esc>"));
        let escapes: Vec<&str> = escapes.map(|(keys, _)| keys.as_str()).collect();
        self.editor.set_vi(self.settings.is_vi(), &escapes);
    }

    /// Applies the configured theme. A custom theme is loaded in the background.
    pub(crate) fn choose_theme(&mut self) {
        let Capabilities {
            background, level, ..
        } = self.capabilities;
        let name = self.settings.theme.as_deref();
        match name.map_or(Some(ThemeName::Auto), ThemeName::parse) {
            Some(name) => self.set_theme(Theme::new(name, background, level)),
            None => self.effect(AppEffect::ChooseTheme),
        }
    }

    fn set_theme(&mut self, theme: Theme) {
        self.look.theme = theme;
        self.reply.set_look(&self.look);
    }

    /// Saves a user setting in the settings file.
    pub(crate) fn save(&mut self, key: &'static str, value: Value) {
        self.queue_for_session(AppEffect::SaveSetting { key, value });
    }

    /// Replaces the current session by another one.
    pub(crate) fn resume(&mut self, id: &str) {
        self.queue.take_all();
        self.questions.drain();
        self.calls.clear();
        self.todos.clear();
        let done = self.reply.finish();
        self.history.extend(done);
        self.run = None;
        self.session = AppSessionState::Opening;
        self.unsent.clear();
        self.remark(&format!("- {id} is resumed"));
        self.effect(AppEffect::Resume(id.to_owned()));
    }

    fn opened(&mut self, opened: OpenedSession) {
        self.session = AppSessionState::Open;
        self.status.mode = opened.mode;
        self.status.model = opened.model;
        self.status.branch = opened.branch;
        self.question_timeout = opened.question_timeout;
        self.memory = opened.memory;
        self.effect(AppEffect::Status);
        self.may_bypass = opened.may_bypass;
        self.auto_refused = false;
        let mut unsent = std::mem::take(&mut self.unsent);
        self.effects.append(&mut unsent);
    }

    fn not_opened(&mut self, why: String) {
        self.warn(&format!("! {why}"));
        self.session = AppSessionState::Missing;
        // Unsent messages return to the editor.
        for effect in std::mem::take(&mut self.unsent).into_iter().rev() {
            let text = match effect {
                AppEffect::SendPrompt { prompt, .. } => {
                    crate::tui::events::text_of(&prompt.content)
                }
                AppEffect::Command(line) => line,
                _ => continue,
            };
            self.editor.restore_parts(&[DraftPart::Text(text)]);
        }
        self.queue.take_all();
        self.run = None;
    }

    fn ended(&mut self, problem: Option<String>) {
        if let Some(problem) = problem {
            self.warn(&format!("! {problem}"));
        }
        let done = self.reply.finish();
        self.history.extend(done);
        self.calls.clear();
        self.questions.drain();
        self.run = None;
        self.session = AppSessionState::Over;
    }

    pub(crate) fn is_working(&self) -> bool {
        self.run.is_some()
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn on_tick(&mut self, now: Instant) {
        if self.hint.as_ref().is_some_and(|hint| hint.until <= now) {
            self.hint = None;
        }
        let is_free = self.editor.is_empty() && self.overlay.is_none();
        if let Some(answer) = self.questions.tick(is_free, now) {
            self.answer(answer);
        }
        if self.draft_due.is_some_and(|due| due <= now) {
            self.draft_due = None;
            let text = self.editor.text();
            self.effect(AppEffect::SaveDraft(text));
        }
    }

    /// Schedules saving the draft and updates the completions after an edit.
    pub(crate) fn edited(&mut self, now: Instant) {
        self.draft_due = Some(now + DRAFT_REST);
        self.request_completions();
    }

    /// Notifies the user if another window has the focus. Returns whether that is the case.
    pub(crate) fn notify_user(&mut self, text: &str, now: Instant) -> bool {
        let since = self
            .last_key
            .map(|last| now.saturating_duration_since(last));
        let is_elsewhere = notify::is_elsewhere(self.focus, since.unwrap_or(Duration::MAX));
        if is_elsewhere {
            let preferred = self.settings.preferred_notif_channel.as_deref();
            let controls = notify::notice(text, &self.capabilities, preferred);
            self.effect(AppEffect::Terminal(controls));
        }
        is_elsewhere
    }

    /// Updates the window title and the progress indicator.
    pub(crate) fn set_title(&mut self) {
        use haft_terminal::paint::ProgressState;
        let is_working = self.is_working();
        let state = match is_working {
            true => ProgressState::Busy,
            false => ProgressState::Off,
        };
        let enabled = self.settings.terminal_progress_bar_enabled;
        let title = notify::title(&self.window_subject, &self.status.folder, is_working);
        let progress = notify::progress(state, enabled);
        let controls = std::iter::once(title).chain(progress).collect();
        self.effect(AppEffect::Terminal(controls));
    }

    /// Returns the time of the next change without input, or `None` if nothing is due.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let hint = self.hint.as_ref().map(|hint| hint.until);
        let is_free = self.editor.is_empty() && self.overlay.is_none();
        let question = self.questions.due(is_free, now);
        let moving = self
            .run
            .as_ref()
            .filter(|_| self.focus != Some(false) && !self.look.is_still && self.overlay.is_none())
            .map(|run| {
                let every = match self.look.moves() {
                    true => 250,
                    false => 1000,
                };
                let elapsed = now.saturating_duration_since(run.since).as_millis();
                let step = elapsed / every + 1;
                run.since + Duration::from_millis(u64::try_from(step * every).unwrap_or(u64::MAX))
            });
        [hint, question, moving, self.draft_due]
            .into_iter()
            .flatten()
            .min()
    }
}
