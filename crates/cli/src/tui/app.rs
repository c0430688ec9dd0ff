//! All state of the face, and what changes it: [`App::update`] takes what happened and says what is to be done.
//! Nothing here waits, reads or writes.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use haft::{ApprovalAnswer, Content, PermissionMode};
use haft_agent::{Prompt, mentioned};
use haft_host::{Delivery, Exchanges, KeyReport, MemoryPlace, SessionEvent};
use haft_terminal::{
    Capabilities, Chip, ChipId, DraftPart, Editor, HistoryItem, Key, ScreenSize, TerminalReply,
    TextLine, TextStyle, Theme,
    input::PasteResult,
    paint::{PromptMark, TerminalControl},
    style::ThemeName,
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    ask::{OpenQuestions, QuestionId, TrustFacts},
    calls::RunningCalls,
    complete::{Completion, CompletionQuery},
    history_file::HistoryEntry,
    keybindings::Keybindings,
    look::Look,
    notify,
    overlay::{View, ViewEffect},
    popup::Popup,
    queue::{MessageQueue, WaitingMessage},
    reply::{self, Reply},
    search::Search,
    settings::TuiSettings,
    status::StatusBar,
    todos::TodoList,
    whole::WholeView,
};

/// Something that happened.
pub(crate) enum Input {
    /// A key, when it was read, and how many came with it.
    Key {
        key: Key,
        read_at: Instant,
        in_read: usize,
    },
    Paste(PasteResult),
    Focus(bool),
    Reply(TerminalReply),
    /// A region is on the screen since then.
    Written {
        stamp: u64,
        at: Instant,
    },
    Resized(ScreenSize),
    Session(Box<SessionEvent>),
    /// The settings were read.
    Settings(Box<TuiSettings>),
    /// There is a session: what is known of it.
    Opened(Box<OpenedSession>),
    /// There is none, and why.
    NotOpened(String),
    /// The session ended.
    Ended(Option<String>),
    /// Something was found out in the background.
    Found(Found),
    /// Time passed.
    Tick,
}

/// What is known of a session when it is opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenedSession {
    pub(crate) memory: Vec<MemoryPlace>,
    pub(crate) mode: PermissionMode,
    pub(crate) model: String,
    pub(crate) branch: Option<String>,
    pub(crate) may_bypass: bool,
    pub(crate) patience: Option<Duration>,
}

/// What was found out in the background.
pub(crate) enum Found {
    Warning(String),
    Remark(String),
    /// What a slash command answered.
    Answer(Result<String, String>),
    /// A line that begins with a slash is no command.
    NoCommand(String),
    Completions {
        number: u64,
        found: Vec<Completion>,
    },
    /// What was said before, from the file.
    Said(Vec<HistoryEntry>),
    KeptDraft(String),
    /// A picture for the draft, or why there is none and what was pasted.
    Picture {
        picture: Result<(String, Content), String>,
        pasted: Option<String>,
    },
    Copied {
        said: String,
        controls: Vec<TerminalControl>,
    },
    /// The draft as the person's editor left it.
    Edited(Result<String, String>),
    Theme(Box<(Theme, Option<String>)>),
    Keybindings(Keybindings),
    StatusRows(Vec<TextLine>),
    /// The end of the conversation that is taken up.
    Exchanges(Exchanges),
    NoKey(KeyReport),
    /// A directory is not trusted yet.
    Untrusted(TrustFacts),
    /// A job of the view is done.
    ViewData(Box<dyn std::any::Any + Send>),
}

/// What is to be done.
pub(crate) enum Effect {
    /// To the session.
    Say {
        prompt: Prompt,
        time: Delivery,
    },
    /// A slash command of the session's.
    Command(String),
    /// A command line for the shell, and the id of its message.
    Shell {
        command: String,
        id: Uuid,
    },
    Remember {
        text: String,
        place: usize,
    },
    TakeBack(Uuid),
    /// Stops the run; what waits is not sent.
    Interrupt,
    Answer {
        id: u64,
        answer: ApprovalAnswer,
    },
    Trust(bool),
    SetMode(PermissionMode),
    SetThinking(bool),
    ToBackground,
    /// Opens a session; there is none.
    Open,
    /// Takes up another session.
    Resume(String),
    Complete {
        query: CompletionQuery,
        number: u64,
    },
    /// For the history on disk.
    KeepSaid(String),
    KeepDraft(String),
    SaveSetting {
        key: &'static str,
        value: Value,
    },
    Copy(String),
    LoadPicture {
        path: PathBuf,
        pasted: String,
    },
    ClipboardPicture,
    EditDraft(String),
    ChooseTheme,
    /// The command that writes the status row is another one.
    StatusLine,
    /// Something changed that the status row may show.
    Status,
    /// Opens a view.
    Show(ViewKind),
    OfView(ViewEffect),
    Terminal(Vec<TerminalControl>),
    ScrollAway,
    /// Ctrl-Z.
    Suspend,
    Leave,
}

/// The views there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewKind {
    /// Everything that was said and done.
    Transcript,
    Undo,
    Rewind,
    /// Other sessions.
    Resume,
    Tasks,
    Permissions,
    Keys,
}

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
    history: Vec<HistoryItem>,
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
            history: Vec::new(),
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
        std::mem::take(&mut self.history)
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
        self.to_session(Effect::SaveSetting { key, value });
    }

    fn found(&mut self, found: Found, now: Instant) {
        match found {
            Found::Warning(text) => self.warn(&format!("! {text}")),
            Found::Remark(text) => self.remark(&format!("- {text}")),
            Found::Answer(answer) => self.command_answered(answer),
            Found::NoCommand(line) => {
                self.warn(&format!(
                    "! there is no command {line}; a blank before it sends it as a message"
                ));
                self.editor.put_back(&[DraftPart::Text(line)]);
            }
            Found::Completions { number, found } => self.completions(number, found),
            Found::Said(entries) => self.set_said(entries),
            Found::KeptDraft(text) => {
                self.stash = Some(vec![DraftPart::Text(text)]);
                self.remark("- a draft of yours was kept (Ctrl-S brings it back)");
            }
            Found::Picture { picture, pasted } => self.picture(picture, pasted, now),
            Found::Copied { said, controls } => {
                self.hint(said, HintKind::Said, now);
                self.effect(Effect::Terminal(controls));
            }
            Found::Edited(Ok(text)) => self.editor.set_text(&text),
            Found::Edited(Err(why)) => self.warn(&format!("! {why}")),
            Found::Theme(found) => {
                let (theme, problem) = *found;
                self.set_theme(theme);
                if let Some(problem) = problem {
                    self.warn(&format!("! {problem}"));
                }
            }
            Found::Keybindings(keybindings) => self.keybindings = keybindings,
            Found::StatusRows(rows) => self.status_rows = rows,
            Found::Exchanges(exchanges) => self.resumed(&exchanges),
            Found::NoKey(report) => self.no_key(&report),
            Found::Untrusted(facts) => self.questions.ask_trust(facts, self.last_key),
            Found::ViewData(data) => self.view_data(data),
        }
    }

    /// What a command of the session's answered.
    pub(crate) fn command_answered(&mut self, answer: Result<String, String>) {
        match answer {
            Ok(text) => {
                for line in text.trim_end().lines() {
                    let line = TextLine::plain(line);
                    self.history.push(HistoryItem::Verbatim(line));
                }
            }
            Err(why) => self.warn(&format!("! {why}")),
        }
    }

    fn picture(
        &mut self,
        picture: Result<(String, Content), String>,
        pasted: Option<String>,
        now: Instant,
    ) {
        match (picture, pasted) {
            (Ok((label, content)), _) => {
                let number = self.images.len() + 1;
                let chip = Chip {
                    label: format!("[Image {number}: {label}]"),
                    text: String::new(),
                    unfolds: false,
                };
                let id = self.editor.insert_chip(chip);
                self.images.insert(id, content);
            }
            (Err(_), Some(pasted)) => self.editor.insert(&pasted),
            (Err(why), None) => self.hint(why, HintKind::Said, now),
        }
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
                Effect::Say { prompt, .. } => super::events::text_of(&prompt.content),
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

    /// Sends a message; `text` is what the person sees of it.
    pub(crate) fn say(&mut self, time: Delivery, now: Instant) {
        let text = self.editor.text();
        let parts = self.take_draft();
        let images = parts.iter().filter_map(|part| match part {
            DraftPart::Chip(id) => self.images.get(id).cloned(),
            DraftPart::Text(_) => None,
        });
        let mut content = vec![Content::text(text.clone())];
        content.extend(images);
        self.send(text, parts, content, time, now);
    }

    /// The draft is sent or put away: it goes into the history.
    pub(crate) fn take_draft(&mut self) -> Vec<DraftPart> {
        let text = self.editor.text();
        if self.inputs.add(&text) {
            let session = self.status.session.clone().unwrap_or_default();
            self.said.push(HistoryEntry {
                text: text.clone(),
                project: self.cwd.clone(),
                session,
                time_ms: 0,
            });
            self.effects.push(Effect::KeepSaid(text));
        }
        self.effects.push(Effect::KeepDraft(String::new()));
        self.draft_due = None;
        let parts = self.editor.take();
        self.look_up();
        parts
    }

    /// A command line for the shell, typed by the person.
    pub(crate) fn shell(&mut self, command: &str, now: Instant) {
        let text = self.editor.text();
        let parts = self.take_draft();
        let id = haft::CallId::new().0;
        self.wake_session();
        self.queue.push(WaitingMessage {
            id,
            parts,
            text,
            content: Vec::new(),
            time: Delivery::AfterRun,
        });
        if self.run.is_none() {
            self.delivered(id);
            self.begin_run(now);
        }
        let command = command.to_owned();
        self.to_session(Effect::Shell { command, id });
    }

    fn begin_run(&mut self, now: Instant) {
        self.run = Some(RunState {
            since: now,
            tokens: 0,
            compacting: false,
            is_stopping: false,
        });
    }

    fn wake_session(&mut self) {
        if matches!(self.session, SessionState::Missing | SessionState::Over) {
            // It may work now: a key was set, a file was repaired.
            self.session = SessionState::Opening;
            self.effects.push(Effect::Open);
        }
    }

    /// The same for words that were not typed.
    pub(crate) fn say_text(&mut self, text: &str, now: Instant) {
        let parts = vec![DraftPart::Text(text.to_owned())];
        let content = vec![Content::text(text)];
        self.send(text.to_owned(), parts, content, Delivery::Steer, now);
    }

    fn send(
        &mut self,
        text: String,
        parts: Vec<DraftPart>,
        content: Vec<Content>,
        time: Delivery,
        now: Instant,
    ) {
        self.wake_session();
        if self.about.is_empty() {
            self.about.clone_from(&text);
        }
        let id = haft::CallId::new().0;
        let prompt = Prompt {
            content: content.clone(),
            uuid: Some(id),
            origin: None,
            mentions: mentioned(&text),
        };
        self.queue.push(WaitingMessage {
            id,
            parts,
            text,
            content,
            time,
        });
        if self.run.is_none() {
            // It is delivered at once.
            self.delivered(id);
            self.begin_run(now);
        }
        self.to_session(Effect::Say { prompt, time });
    }

    /// For the session; kept until there is one.
    pub(crate) fn to_session(&mut self, effect: Effect) {
        match self.session {
            SessionState::Opening => self.unsent.push(effect),
            _ => self.effects.push(effect),
        }
    }

    /// A message is on its way to the model: it becomes history.
    pub(crate) fn delivered(&mut self, id: Uuid) {
        if let Some(message) = self.queue.remove(id) {
            self.print_message(&message.text);
        }
    }

    pub(crate) fn print_message(&mut self, text: &str) {
        let items = self.message_items(text);
        self.history.extend(items);
    }

    /// What a person said, as it is printed.
    pub(crate) fn message_items(&self, text: &str) -> Vec<HistoryItem> {
        let mut items = vec![HistoryItem::Mark(PromptMark::Start)];
        for (number, line) in text.lines().enumerate() {
            let mark = match number {
                0 => format!("{} ", self.look.angle()),
                _ => "  ".to_owned(),
            };
            let mut shown = TextLine::styled(&mark, self.look.theme.accent);
            shown.push(line, TextStyle::new().bold());
            items.push(HistoryItem::Prose {
                line: shown,
                indent: 2,
            });
        }
        items.push(HistoryItem::Mark(PromptMark::Output));
        items
    }

    /// Stops the run. What is not delivered comes back into the editor; nothing is sent by itself.
    pub(crate) fn stop_run(&mut self) {
        let Some(run) = &mut self.run else {
            return;
        };
        run.is_stopping = true;
        for message in self.queue.take_all().into_iter().rev() {
            self.editor.put_back(&message.parts);
            self.effects.push(Effect::TakeBack(message.id));
        }
        for id in self.questions.drain() {
            if let QuestionId::Session(id) = id {
                let answer = ApprovalAnswer::Deny { reason: None };
                self.effects.push(Effect::Answer { id, answer });
            }
        }
        self.effects.push(Effect::Interrupt);
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

    /// Calls a person who looks elsewhere.
    pub(crate) fn call_person(&mut self, text: &str, now: Instant) {
        let since = self
            .last_key
            .map(|last| now.saturating_duration_since(last));
        if notify::is_elsewhere(self.focus, since.unwrap_or(Duration::MAX)) {
            let preferred = self.settings.preferred_notif_channel.as_deref();
            let controls = notify::notice(text, &self.capabilities, preferred);
            self.effect(Effect::Terminal(controls));
        }
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
