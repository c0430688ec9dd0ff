//! All state of the face, and what changes it: [`App::update`] takes what happened and says what is to be done.
//! Nothing here waits, reads or writes.
//!
//! - `effect`: what happens, and what is to be done; `found`: what comes from the background; `messages`: what
//!   is said; `history_queue`: what is to be printed

mod effect;
mod found;
mod history_queue;
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

pub(crate) use self::effect::{Effect, Found, Input, OpenedSession, ViewKind};
use self::history_queue::HistoryQueue;
use super::{
    ask::OpenQuestions,
    calls::RunningCalls,
    history_file::HistoryEntry,
    keybindings::Keybindings,
    look::Look,
    notify,
    overlay::View,
    popup::Popup,
    queue::MessageQueue,
    reply::{self, Reply},
    search::Search,
    settings::TuiSettings,
    status::StatusBar,
    todos::TodoList,
    whole::WholeView,
};

/// What covers the screen.
pub(crate) enum Overlay {
    /// The whole of a question.
    Whole(WholeView),
    Other(Box<dyn View>),
}

/// A run that is under way.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) since: Instant,
    pub(crate) tokens: u64,
    pub(crate) compacting: bool,
    /// It was asked to stop.
    pub(crate) is_stopping: bool,
}

/// A word below the editor that disappears by itself.
#[derive(Debug)]
pub(crate) struct Hint {
    pub(crate) text: String,
    pub(crate) until: Instant,
    pub(crate) kind: HintKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HintKind {
    /// Ctrl-C once more leaves.
    LeaveByInterrupt,
    /// Ctrl-D once more leaves.
    LeaveByEnd,
    Said,
}

/// After so long without a key the draft is kept on disk.
const DRAFT_REST: Duration = Duration::from_secs(1);

pub(crate) struct App {
    pub(crate) look: Look,
    pub(crate) capabilities: Capabilities,
    pub(crate) settings: TuiSettings,
    pub(crate) cwd: PathBuf,
    pub(crate) editor: Editor,
    pub(crate) images: HashMap<ChipId, Content>,
    /// How many pictures were put into drafts.
    pictures_named: usize,
    pub(crate) pastes: usize,
    pub(crate) inputs: haft_terminal::editor::InputHistory,
    pub(crate) reply: Reply,
    pub(crate) calls: RunningCalls,
    pub(crate) questions: OpenQuestions,
    pub(crate) queue: MessageQueue,
    pub(crate) run: Option<RunState>,
    pub(crate) status: StatusBar,
    pub(crate) status_rows: Vec<TextLine>,
    pub(crate) todos: TodoList,
    pub(crate) popup: Popup,
    pub(crate) search: Option<Search>,
    /// What was said before, all projects, oldest first.
    pub(crate) said: Vec<HistoryEntry>,
    /// A draft that was put aside.
    pub(crate) stash: Option<Vec<DraftPart>>,
    draft_due: Option<Instant>,
    pub(crate) keybindings: Keybindings,
    /// Keys that wait for more.
    pub(crate) pending_keys: Vec<Key>,
    pub(crate) memory: Vec<MemoryPlace>,
    /// Which memory file `#` writes to.
    pub(crate) memory_place: usize,
    pub(crate) thinks: bool,
    /// A command was answered: the result that follows says the same.
    pub(crate) has_answered: bool,
    /// Messages that were delivered before we knew that they wait, the newest first.
    early: Vec<Uuid>,
    /// What the window is called after.
    pub(crate) about: String,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) hint: Option<Hint>,
    /// Said before there was a session.
    pub(crate) unsent: Vec<Effect>,
    pub(crate) session: SessionState,
    /// What the terminal says of its focus, if it ever did.
    pub(crate) focus: Option<bool>,
    pub(crate) last_key: Option<Instant>,
    pub(crate) last_escape: Option<Instant>,
    pub(crate) patience: Option<Duration>,
    pub(crate) may_bypass: bool,
    history: HistoryQueue,
    pictures: u32,
    effects: Vec<Effect>,
    pub(crate) stamp: u64,
}

/// Is there someone to talk to?
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionState {
    Opening,
    Open,
    /// It could not be opened.
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
        let look = Look {
            theme: Theme::new(ThemeName::Auto, capabilities.background, capabilities.level),
            unicode: capabilities.unicode,
            hyperlinks: capabilities.hyperlinks,
            is_still,
            has_reduced_motion: false,
            verbose: false,
            size,
        };
        let reply = Reply::new(&look);
        let mut app = Self {
            status: StatusBar::of(&cwd),
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
            popup: Popup::default(),
            search: None,
            said: Vec::new(),
            stash: None,
            draft_due: None,
            keybindings: Keybindings::default(),
            pending_keys: Vec::new(),
            memory: Vec::new(),
            memory_place: 0,
            thinks: false,
            has_answered: false,
            early: Vec::new(),
            about: String::new(),
            overlay: None,
            hint: None,
            unsent: Vec::new(),
            session: SessionState::Opening,
            focus: None,
            last_key: None,
            last_escape: None,
            patience: None,
            may_bypass: false,
            history: HistoryQueue::default(),
            pictures: 0,
            effects: Vec::new(),
            stamp: 0,
        };
        app.set_widths();
        app
    }

    /// Something happened; what is to be done.
    pub(crate) fn update(&mut self, input: Input, now: Instant) -> Vec<Effect> {
        match input {
            Input::Key {
                key,
                read_at,
                in_read,
            } => self.on_key(key, read_at, in_read, now),
            Input::Paste(paste) => self.on_paste(paste, now),
            Input::Focus(is_focused) => self.focus = Some(is_focused),
            Input::Reply(reply) => {
                if matches!(reply, TerminalReply::ThemeChanged { .. }) {
                    // The real colour.
                    self.effect(Effect::Terminal(vec![TerminalControl::Queries]));
                }
                if self.capabilities.learn(&reply) {
                    self.look.hyperlinks = self.capabilities.hyperlinks;
                    self.choose_theme();
                }
            }
            Input::Written { stamp, at } => self.questions.written(stamp, at),
            Input::Resized(size) => {
                self.look.size = size;
                self.set_widths();
            }
            Input::Session(event) => self.on_session(*event, now),
            Input::Settings(settings) => {
                self.settings = *settings;
                self.look.verbose = self.settings.verbose;
                self.look.has_reduced_motion = self.settings.prefers_reduced_motion;
                self.set_editor_mode();
                self.choose_theme();
                self.effect(Effect::StatusLine);
                if self.settings.ax_screen_reader {
                    self.effect(Effect::BecomePlain);
                }
            }
            Input::Opened(opened) => self.opened(*opened),
            Input::NotOpened(why) => self.not_opened(why),
            Input::Ended(problem) => self.ended(problem),
            Input::Found(found) => self.found(found, now),
            Input::Tick => self.on_tick(now),
        }
        std::mem::take(&mut self.effects)
    }

    /// What is to be printed, once.
    pub(crate) fn take_history(&mut self) -> Vec<HistoryItem> {
        self.history.take()
    }

    /// The same at the end, when nothing is waited for.
    pub(crate) fn take_all_history(&mut self) -> Vec<HistoryItem> {
        self.history.take_all()
    }

    /// Draws a picture behind what was printed so far, where this is one. It is decoded in the background.
    pub(crate) fn show_picture(&mut self, name: &str, content: &Content) {
        if !matches!(content, Content::Image { .. }) {
            return;
        }
        self.pictures += 1;
        self.history.keep_place(self.pictures);
        // What is drawn by characters needs those.
        let protocol = match self.capabilities.images {
            ImageProtocol::HalfBlocks | ImageProtocol::Kitty if !self.look.unicode => {
                ImageProtocol::Name
            }
            protocol => protocol,
        };
        self.effect(Effect::DrawPicture {
            number: self.pictures,
            name: name.to_owned(),
            content: content.clone(),
            protocol,
        });
    }

    pub(crate) fn print(&mut self, items: impl IntoIterator<Item = HistoryItem>) {
        self.history.extend(items);
    }

    /// Something happened that is worth a line.
    pub(crate) fn remark(&mut self, text: &str) {
        let item = reply::remark(text, &self.look);
        self.history.push(item);
    }

    /// Something to mind.
    pub(crate) fn warn(&mut self, text: &str) {
        let item = reply::warning(text, &self.look);
        self.history.push(item);
    }

    pub(crate) fn hint(&mut self, text: impl Into<String>, kind: HintKind, now: Instant) {
        self.hint = Some(Hint {
            text: text.into(),
            until: now + Duration::from_secs(2),
            kind,
        });
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn set_widths(&mut self) {
        // The mark takes two cells.
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

    /// The colours that are asked for. One of a person's own is read in the background.
    pub(crate) fn choose_theme(&mut self) {
        let Capabilities {
            background, level, ..
        } = self.capabilities;
        let name = self.settings.theme.as_deref();
        match name.map_or(Some(ThemeName::Auto), ThemeName::parse) {
            Some(name) => self.set_theme(Theme::new(name, background, level)),
            None => self.effect(Effect::ChooseTheme),
        }
    }

    fn set_theme(&mut self, theme: Theme) {
        self.look.theme = theme;
        self.reply.set_look(&self.look);
    }

    /// A setting of the person's, kept in their file.
    pub(crate) fn save(&mut self, key: &'static str, value: Value) {
        self.tell_session(Effect::SaveSetting { key, value });
    }

    /// Shows another session in place of this one.
    pub(crate) fn resume(&mut self, id: &str) {
        self.queue.take_all();
        self.questions.drain();
        self.calls.clear();
        self.todos.clear();
        let done = self.reply.finish();
        self.history.extend(done);
        self.run = None;
        self.session = SessionState::Opening;
        self.unsent.clear();
        self.remark(&format!("- {id} is taken up"));
        self.effect(Effect::Resume(id.to_owned()));
    }

    fn opened(&mut self, opened: OpenedSession) {
        self.session = SessionState::Open;
        self.status.mode = opened.mode;
        self.status.model = opened.model;
        self.status.branch = opened.branch;
        self.patience = opened.patience;
        self.memory = opened.memory;
        self.effect(Effect::Status);
        self.may_bypass = opened.may_bypass;
        let mut unsent = std::mem::take(&mut self.unsent);
        self.effects.append(&mut unsent);
    }

    fn not_opened(&mut self, why: String) {
        self.warn(&format!("! {why}"));
        self.session = SessionState::Missing;
        // What was said is not lost: it is in the editor again.
        for effect in std::mem::take(&mut self.unsent).into_iter().rev() {
            let text = match effect {
                Effect::Say { prompt, .. } => crate::tui::events::text_of(&prompt.content),
                Effect::Command(line) => line,
                _ => continue,
            };
            self.editor.put_back(&[DraftPart::Text(text)]);
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
        self.session = SessionState::Over;
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
            self.effect(Effect::KeepDraft(text));
        }
    }

    /// The draft may have changed.
    pub(crate) fn edited(&mut self, now: Instant) {
        self.draft_due = Some(now + DRAFT_REST);
        self.look_up();
    }

    /// Calls a person who looks elsewhere. `true`: they do.
    pub(crate) fn call_person(&mut self, text: &str, now: Instant) -> bool {
        let since = self
            .last_key
            .map(|last| now.saturating_duration_since(last));
        let is_elsewhere = notify::is_elsewhere(self.focus, since.unwrap_or(Duration::MAX));
        if is_elsewhere {
            let preferred = self.settings.preferred_notif_channel.as_deref();
            let controls = notify::notice(text, &self.capabilities, preferred);
            self.effect(Effect::Terminal(controls));
        }
        is_elsewhere
    }

    /// The window says what is done in it.
    pub(crate) fn set_title(&mut self) {
        use haft_terminal::paint::ProgressState;
        let is_working = self.is_working();
        let state = match is_working {
            true => ProgressState::Busy,
            false => ProgressState::Off,
        };
        let enabled = self.settings.terminal_progress_bar_enabled;
        let title = notify::title(&self.about, &self.status.folder, is_working);
        let progress = notify::progress(state, enabled);
        let controls = std::iter::once(title).chain(progress).collect();
        self.effect(Effect::Terminal(controls));
    }

    /// When something changes by itself; `None`: never.
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
