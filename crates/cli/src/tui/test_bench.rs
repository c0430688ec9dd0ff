//! The user interface on an in-process terminal with a controllable clock.

use std::time::{Duration, Instant};

use avt::Terminal;
use haft::{ApprovalRequest, Card, ToolUse};
use haft_agent::AgentEvent;
use haft_host::{SessionActivity, SessionEvent};
use haft_models::ModelEvent;
use haft_terminal::{
    Capabilities, InputEvent, Key, Screen, ScreenSize, TerminalEnvironment,
    input::{PasteResult, TimedParser},
};
use serde_json::Value;

use super::app::{App, AppEffect, AppInput, OpenedSession};

pub(crate) struct UiTestBench {
    pub(crate) app: App,
    pub(crate) now: Instant,
    pub(crate) effects: Vec<AppEffect>,
    pub(crate) bytes: Vec<u8>,
    parser: TimedParser,
    screen: Screen,
    terminal: Terminal,
}

impl UiTestBench {
    /// Creates a bench in ASCII, without colours and animations.
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        let ascii = |name: &str| (name == "LANG").then(|| "C".to_owned());
        Self::with(columns, rows, true, ascii)
    }

    pub(crate) fn with(
        columns: u16,
        rows: u16,
        is_still: bool,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let capabilities = Capabilities::from_environment(&TerminalEnvironment::new(&variable));
        let size = ScreenSize::new(columns, rows);
        let app = App::new(capabilities, size, "/home/me/src/shop".into(), is_still);
        let screen = Screen::new(size, app.capabilities.level);
        let terminal =
            Terminal::with_scrollback(usize::from(columns), usize::from(rows), None).unwrap();
        let parser = TimedParser::new(app.capabilities.is_remote);
        let mut bench = Self {
            app,
            now: Instant::now(),
            effects: Vec::new(),
            bytes: Vec::new(),
            parser,
            screen,
            terminal,
        };
        bench.update(AppInput::Opened(Box::new(OpenedSession {
            model: "MODEL".to_owned(),
            branch: Some("main".to_owned()),
            ..OpenedSession::default()
        })));
        bench
    }

    pub(crate) fn update(&mut self, input: AppInput) {
        let effects = self.app.update(input, self.now);
        self.effects.extend(effects);
        self.draw();
    }

    fn draw(&mut self) {
        let history = self.app.take_history();
        let region = self.app.region(self.now);
        let stamp = region.stamp;
        for frame in self.screen.frames(&history, &region) {
            self.bytes.extend_from_slice(&frame);
            self.terminal.feed(std::str::from_utf8(&frame).unwrap());
        }
        let at = self.now;
        let effects = self.app.update(AppInput::Written { stamp, at }, at);
        self.effects.extend(effects);
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        let size = ScreenSize::new(columns, rows);
        self.screen.resize(size);
        let sides = (usize::from(columns), usize::from(rows));
        self.terminal.resize(sides.0, sides.1);
        self.update(AppInput::Resized(size));
    }

    /// Advances the clock and handles what becomes due.
    pub(crate) fn wait(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        if let Some(due) = self.parser.due().filter(|due| *due <= until) {
            self.now = due.max(self.now);
            let events = self.parser.expire(self.now);
            self.input(events);
        }
        while let Some(due) = self.app.due(self.now).filter(|due| *due <= until) {
            self.now = due.max(self.now);
            self.update(AppInput::Tick);
            if self.app.due(self.now).is_some_and(|next| next <= self.now) {
                break;
            }
        }
        self.now = until;
    }

    /// Types keys as a terminal sends them, each in a separate read, 100 ms apart.
    pub(crate) fn type_keys(&mut self, text: &str) {
        for letter in text.chars() {
            self.wait(100);
            self.key(Key::char(letter));
        }
    }

    pub(crate) fn key(&mut self, key: Key) {
        let read_at = self.now;
        self.update(AppInput::Key {
            key,
            read_at,
            in_read: 1,
        });
    }

    /// Handles the bytes of one read.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let events = self.parser.read(bytes, self.now);
        self.input(events);
    }

    fn input(&mut self, events: Vec<InputEvent>) {
        let is_key = |event: &&InputEvent| matches!(event, InputEvent::Key(_));
        let in_read = events.iter().filter(is_key).count();
        for event in events {
            let read_at = self.now;
            self.update(match event {
                InputEvent::Key(key) => AppInput::Key {
                    key,
                    read_at,
                    in_read,
                },
                InputEvent::Paste(paste) => AppInput::Paste(paste),
                InputEvent::Focus(is_focused) => AppInput::Focus(is_focused),
                InputEvent::Reply(reply) => AppInput::Reply(reply),
            });
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.update(AppInput::Paste(PasteResult::Text(text.to_owned())));
    }

    pub(crate) fn session(&mut self, event: SessionEvent) {
        self.update(AppInput::Session(Box::new(event)));
    }

    pub(crate) fn agent(&mut self, event: AgentEvent) {
        self.session(SessionEvent::Agent(event));
    }

    pub(crate) fn runs(&mut self) {
        self.session(SessionEvent::Activity(SessionActivity::Running));
    }

    pub(crate) fn idle(&mut self) {
        self.session(SessionEvent::Activity(SessionActivity::Idle));
    }

    pub(crate) fn says(&mut self, text: &str) {
        self.agent(AgentEvent::Model(ModelEvent::Text {
            index: 0,
            text: text.to_owned(),
        }));
    }

    pub(crate) fn asks(&mut self, id: u64, request: ApprovalRequest) {
        let request = Box::new(request);
        self.session(SessionEvent::Question { id, request });
    }

    /// Returns the effects since the last call.
    pub(crate) fn take_effects(&mut self) -> Vec<AppEffect> {
        std::mem::take(&mut self.effects)
    }

    /// Like [`Self::take_effects`], but without effects that only store or show state.
    pub(crate) fn deeds(&mut self) -> Vec<AppEffect> {
        let mut effects = self.take_effects();
        effects.retain(|effect| {
            !matches!(
                effect,
                AppEffect::Terminal(_)
                    | AppEffect::Status
                    | AppEffect::StatusLine
                    | AppEffect::SaveDraft(_)
                    | AppEffect::SaveHistory(_)
                    | AppEffect::Complete { .. }
            )
        });
        effects
    }

    pub(crate) fn draft(&self) -> String {
        self.app.editor.text()
    }

    /// Returns the visible rows without trailing empty ones.
    pub(crate) fn rows(&self) -> String {
        let lines = self.terminal.screen().visible_lines();
        let lines: Vec<String> = lines
            .map(|line| line.text().trim_end().to_owned())
            .collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Returns all lines including the scrollback, with wrapped lines joined.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut goes_on = false;
        for line in self.terminal.primary_screen().all_lines() {
            let text = line.text();
            match (goes_on, lines.last_mut()) {
                (true, Some(last)) => last.push_str(&text),
                _ => lines.push(text),
            }
            goes_on = line.is_wrapped();
        }
        lines
            .iter()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// Returns the column and row of the cursor.
    pub(crate) fn cursor(&self) -> Option<(usize, usize)> {
        self.terminal.cursor().position()
    }
}

/// Returns a permission question.
pub(crate) fn request(tool: &str, card: Card, input: Value, rules: &[&str]) -> ApprovalRequest {
    ApprovalRequest {
        tool: tool.to_owned(),
        card,
        reason: "no rule allows it".to_owned(),
        offers: haft::RuleOffer::for_call(rules.iter().map(|rule| (*rule).to_owned()).collect())
            .into_iter()
            .collect(),
        asked: Some(tool_use(tool, input)),
        ..ApprovalRequest::default()
    }
}

fn tool_use(tool: &str, input: Value) -> ToolUse {
    ToolUse {
        id: "toolu_1".to_owned(),
        name: tool.to_owned(),
        input,
    }
}
