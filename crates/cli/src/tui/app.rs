//! All state of the face, and what changes it: [`App::update`] takes what happened and says what is to be done.
//! Nothing here waits, reads or writes.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use haft::{ApprovalAnswer, Content, PermissionMode};
use haft_agent::{Prompt, mentioned};
use haft_host::SessionEvent;
use haft_terminal::{
    Capabilities, ChipId, Editor, HistoryItem, Key, ScreenSize, TerminalReply, TextLine, TextStyle,
    Theme,
    input::PasteResult,
    paint::{PromptMark, TerminalControl},
    style::ThemeName,
};
use uuid::Uuid;

use super::{
    ask::OpenQuestions,
    calls::RunningCalls,
    look::Look,
    overlay::View,
    queue::{DeliveryTime, MessageQueue, WaitingMessage},
    reply::{self, Reply},
    settings::TuiSettings,
    status::StatusBar,
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
    pub(crate) mode: PermissionMode,
    pub(crate) model: String,
    pub(crate) branch: Option<String>,
    pub(crate) may_bypass: bool,
    pub(crate) patience: Option<Duration>,
}

/// What was found out in the background.
pub(crate) enum Found {
    /// To be printed.
    Lines(Vec<HistoryItem>),
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Effect {
    /// To the session.
    Say {
        prompt: Prompt,
        time: DeliveryTime,
    },
    /// A slash command.
    Command(String),
    TakeBack(Uuid),
    /// Stops the run; what waits is not sent.
    Interrupt,
    Answer {
        id: u64,
        answer: ApprovalAnswer,
    },
    Trust(bool),
    SetMode(PermissionMode),
    ToBackground,
    Terminal(Vec<TerminalControl>),
    /// Opens a session; there is none.
    Open,
    ScrollAway,
    /// Ctrl-Z.
    Suspend,
    Leave,
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
    pub(crate) overlay: Option<Overlay>,
    pub(crate) hint: Option<Hint>,
    /// Said before there was a session.
    pub(crate) unsent: Vec<Effect>,
    pub(crate) session: SessionState,
    pub(crate) is_focused: bool,
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
            overlay: None,
            hint: None,
            unsent: Vec::new(),
            session: SessionState::Opening,
            is_focused: true,
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
            Input::Focus(is_focused) => self.is_focused = is_focused,
            Input::Reply(reply) => {
                if self.capabilities.learn(&reply) {
                    self.set_theme();
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
                let escapes = self.settings.vim_insert_mode_remaps.keys();
                let escapes: Vec<&str> = escapes.map(String::as_str).collect();
                self.editor.set_vi(self.settings.is_vi(), &escapes);
                self.set_theme();
            }
            Input::Opened(opened) => self.opened(*opened),
            Input::NotOpened(why) => self.not_opened(why),
            Input::Ended(problem) => self.ended(problem),
            Input::Found(Found::Lines(lines)) => self.history.extend(lines),
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

    fn set_theme(&mut self) {
        let name = self.settings.theme.as_deref().and_then(ThemeName::parse);
        let Capabilities {
            background, level, ..
        } = self.capabilities;
        self.look.theme = Theme::new(name.unwrap_or_default(), background, level);
        self.look.hyperlinks = self.capabilities.hyperlinks;
        self.reply.set_look(&self.look);
    }

    fn opened(&mut self, opened: OpenedSession) {
        self.session = SessionState::Open;
        self.status.mode = opened.mode;
        self.status.model = opened.model;
        self.status.branch = opened.branch;
        self.patience = opened.patience;
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
            self.editor
                .put_back(&[haft_terminal::DraftPart::Text(text)]);
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
    pub(crate) fn say(&mut self, time: DeliveryTime, now: Instant) {
        let text = self.editor.text();
        let parts = self.editor.take();
        self.inputs.add(&text);
        let images = parts.iter().filter_map(|part| match part {
            haft_terminal::DraftPart::Chip(id) => self.images.get(id).cloned(),
            haft_terminal::DraftPart::Text(_) => None,
        });
        let mut content = vec![Content::text(text.clone())];
        content.extend(images);
        self.send(text, parts, content, time, now);
    }

    /// The same for words that were not typed.
    pub(crate) fn say_text(&mut self, text: &str, now: Instant) {
        let parts = vec![haft_terminal::DraftPart::Text(text.to_owned())];
        let content = vec![Content::text(text)];
        self.send(text.to_owned(), parts, content, DeliveryTime::Steer, now);
    }

    fn send(
        &mut self,
        text: String,
        parts: Vec<haft_terminal::DraftPart>,
        content: Vec<Content>,
        time: DeliveryTime,
        now: Instant,
    ) {
        if matches!(self.session, SessionState::Missing | SessionState::Over) {
            // It may work now: a key was set, a file was repaired.
            self.session = SessionState::Opening;
            self.effects.push(Effect::Open);
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
            self.run = Some(RunState {
                since: now,
                tokens: 0,
                compacting: false,
                is_stopping: false,
            });
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
        self.history.push(HistoryItem::Mark(PromptMark::Start));
        for (number, line) in text.lines().enumerate() {
            let mark = match number {
                0 => format!("{} ", self.look.angle()),
                _ => "  ".to_owned(),
            };
            let mut shown = TextLine::styled(&mark, self.look.theme.accent);
            shown.push(line, TextStyle::new().bold());
            self.history.push(HistoryItem::Prose {
                line: shown,
                indent: 2,
            });
        }
        self.history.push(HistoryItem::Mark(PromptMark::Output));
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
            if let super::ask::QuestionId::Session(id) = id {
                let answer = ApprovalAnswer::Deny { reason: None };
                self.effects.push(Effect::Answer { id, answer });
            }
        }
        self.effects.push(Effect::Interrupt);
    }

    /// What is printed when everything is over.
    pub(crate) fn farewell(&self) -> Vec<String> {
        let Some(session) = &self.status.session else {
            return Vec::new();
        };
        let mut lines = vec![format!("haft -r {session}")];
        if self.status.cost > 0.0 {
            lines.push(super::words::dollars(self.status.cost));
        }
        lines
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
    }

    /// When something changes by itself; `None`: never.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let hint = self.hint.as_ref().map(|hint| hint.until);
        let is_free = self.editor.is_empty() && self.overlay.is_none();
        let question = self.questions.due(is_free, now);
        let moving = self
            .run
            .as_ref()
            .filter(|_| self.is_focused && !self.look.is_still && self.overlay.is_none())
            .map(|run| {
                let every = match self.look.moves() {
                    true => 250,
                    false => 1000,
                };
                let elapsed = now.saturating_duration_since(run.since).as_millis();
                let step = elapsed / every + 1;
                run.since + Duration::from_millis(u64::try_from(step * every).unwrap_or(u64::MAX))
            });
        [hint, question, moving].into_iter().flatten().min()
    }
}
