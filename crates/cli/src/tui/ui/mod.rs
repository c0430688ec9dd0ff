//! The main thread, which owns all state: it receives events, passes them to [`App`] and performs
//! the resulting effects. Separate threads read and write the terminal.

mod perform;

use std::{
    fs::File,
    os::fd::AsFd,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use haft_host::{SessionConfig, SessionInput, StopKind};
use haft_search::SharedEngine;
use haft_terminal::{
    FrameWriter, GuardMessage, InputEvent, LiveRegion, RestoreState, Screen, TerminalReply,
    input::{InputChunk, InputReader, RawMode, TimedParser, terminal_size},
    paint::TerminalControl,
    screen::{FramePace, WriterEvent},
};
use tokio::runtime::Handle;

use super::{
    app::{App, AppInput, OpenedSession},
    commands,
    complete::{CompletableCommand, Completer, CompletionSettings},
    driver::SessionDriver,
    guard::TerminalGuardLink,
    jobs::PersistThread,
    resume::ExitSummary,
    status_line::StatusLine,
};
use crate::{exit::Exit, show};

/// The time that the session has to end when the user exits.
const FAREWELL: Duration = Duration::from_secs(3);
/// The time to wait for a slow terminal before its modes are restored.
const LAST_FRAME: Duration = Duration::from_secs(1);

/// An event for the main thread.
pub(crate) enum UiEvent {
    Chunk(InputChunk),
    Writer(WriterEvent),
    App(AppInput),
    /// An input from the session with this number.
    FromSession {
        number: u64,
        input: AppInput,
    },
    Opened {
        number: u64,
        session: SessionInput,
        opened: Box<OpenedSession>,
    },
    Resized,
    /// A signal requests termination.
    Stop(StopKind),
}

pub(crate) struct Ui {
    pub(crate) app: App,
    terminal: File,
    raw: RawMode,
    restore: Arc<RestoreState>,
    writer: FrameWriter,
    reader: Option<InputReader>,
    guard: Option<TerminalGuardLink>,
    parser: TimedParser,
    pace: FramePace,
    sender: Sender<UiEvent>,
    background: Option<UiBackground>,
    session: Option<SessionInput>,
    in_view: bool,
    is_leaving: bool,
    /// The time at which the terminal was queried for its capabilities. `None` once it has
    /// answered.
    queried_at: Option<Instant>,
    /// The settings request the plain line interface.
    pub(crate) becomes_plain: bool,
}

/// The background threads and tasks.
struct UiBackground {
    runtime: Handle,
    config: SessionConfig,
    persist_thread: PersistThread,
    completer: Completer,
    status_line: Option<StatusLine>,
    /// The number of the newest session.
    number: u64,
    /// Sends the user's answer about trust to the session that waits for it.
    trust: Sender<bool>,
}

/// The result of the user interface.
pub(crate) struct UiEnd {
    pub(crate) exit: Exit,
    pub(crate) session: Option<SessionInput>,
}

impl Ui {
    /// Draws the first frame, without reading or waiting for anything before.
    pub(crate) fn start(
        terminal: File,
        raw: RawMode,
        restore: Arc<RestoreState>,
        app: App,
        sender: Sender<UiEvent>,
    ) -> anyhow::Result<Self> {
        let mut screen = Screen::new(app.look.size, app.capabilities.level);
        screen.set_reflows(app.capabilities.reflows);
        let events = sender.clone();
        let on_event = move |event| drop(events.send(UiEvent::Writer(event)));
        let writer = FrameWriter::start(
            screen,
            terminal.try_clone()?,
            Arc::clone(&restore),
            on_event,
        )?;
        let is_remote = app.capabilities.is_remote;
        let mut ui = Self {
            app,
            terminal,
            raw,
            restore,
            writer,
            reader: None,
            guard: None,
            parser: TimedParser::new(is_remote),
            pace: FramePace::new(),
            sender,
            background: None,
            session: None,
            in_view: false,
            is_leaving: false,
            queried_at: None,
            becomes_plain: false,
        };
        ui.draw();
        Ok(ui)
    }

    /// Starts what the first frame does not need: terminal modes, capability queries, the input
    /// reader and the guard process.
    pub(crate) fn listen(&mut self) -> anyhow::Result<()> {
        self.writer.send([
            TerminalControl::EnterModes,
            TerminalControl::PushTitle,
            TerminalControl::Queries,
        ]);
        self.queried_at = Some(Instant::now());
        let events = self.sender.clone();
        self.reader = Some(InputReader::start(self.terminal.as_fd(), move |chunk| {
            drop(events.send(UiEvent::Chunk(chunk)));
        })?);
        self.guard = Some(TerminalGuardLink::start(&self.terminal, self.raw.saved()));
        Ok(())
    }

    /// Starts opening a session.
    #[cfg_attr(
        not(feature = "search"),
        expect(unused_mut, reason = "nothing to share")
    )]
    pub(crate) fn open(&mut self, runtime: Handle, mut config: SessionConfig) {
        // File completions share the search engine of the session.
        let search = SharedEngine::default();
        #[cfg(feature = "search")]
        {
            config.search = Some(search.clone());
        }
        let places = config.environment.settings_places(&config.cwd);
        let keeper = PersistThread::start(places.user, config.cwd.clone(), self.sender.clone());
        let settings = CompletionSettings::from_settings(&self.app.settings);
        let home = config.environment.home();
        let completer = Completer::new(config.cwd.clone(), home, settings, search);
        let (trust, _) = channel();
        self.background = Some(UiBackground {
            runtime,
            config,
            persist_thread: keeper,
            completer,
            status_line: None,
            number: 0,
            trust,
        });
        self.open_session();
    }

    fn open_session(&mut self) {
        let Some(background) = &mut self.background else {
            return;
        };
        let (trust, answers) = channel();
        background.trust = trust;
        background.number += 1;
        let driver = SessionDriver {
            config: background.config.clone(),
            ui: self.sender.clone(),
            trust: answers,
            number: background.number,
        };
        driver.start(&background.runtime);
    }

    /// Runs until the user exits, the terminal is closed or a signal arrives.
    pub(crate) fn run(&mut self, receiver: &Receiver<UiEvent>) -> UiEnd {
        let exit = loop {
            let now = Instant::now();
            // The due time is computed before the wait and checked after it, regardless of the event that ends
            // the wait.
            let tick = self.app.due(now);
            let due = [self.pace.due(), self.parser.due(), tick];
            let due = due.into_iter().flatten().min();
            let event = match due {
                Some(due) => receiver.recv_timeout(due.saturating_duration_since(now)),
                None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if let Some(exit) = self.take(event) {
                break exit;
            }
            self.time_passed(tick);
            // Events that are already queued belong to the same frame. The time limit ensures that
            // a flood of events does not prevent drawing.
            let until = Instant::now() + Duration::from_millis(8);
            let mut exit = None;
            while exit.is_none() && Instant::now() < until {
                match receiver.try_recv() {
                    Ok(event) => exit = self.take(Ok(event)),
                    Err(_) => break,
                }
            }
            if let Some(exit) = exit {
                break exit;
            }
            if self.is_leaving {
                break Exit::Success;
            }
            if self.pace.due().is_some_and(|due| due <= Instant::now()) {
                self.draw();
            }
        };
        self.end(exit, receiver)
    }

    /// Handles an event. Returns the exit code if the user interface must end.
    fn take(&mut self, event: Result<UiEvent, RecvTimeoutError>) -> Option<Exit> {
        let now = Instant::now();
        match event {
            Ok(UiEvent::Chunk(chunk)) if chunk.bytes.is_empty() => return Some(Exit::Terminated),
            Ok(UiEvent::Chunk(chunk)) => {
                let events = self.parser.read(&chunk.bytes, chunk.read_at);
                self.input(events, chunk.read_at);
            }
            Ok(UiEvent::Writer(WriterEvent::Written { stamp, at })) => {
                self.app_update(AppInput::Written { stamp, at }, now);
            }
            Ok(UiEvent::Writer(WriterEvent::Failed(_))) => return Some(Exit::Terminated),
            Ok(UiEvent::App(input)) => {
                self.app_update(input, now);
                self.pace.change(now);
            }
            Ok(UiEvent::FromSession { number, input }) => {
                if self.is_newest(number) {
                    self.app_update(input, now);
                    self.pace.change(now);
                }
            }
            Ok(UiEvent::Opened {
                number,
                session,
                opened,
            }) => {
                if self.is_newest(number) {
                    self.has_session(session, opened);
                    self.pace.change(now);
                }
            }
            Ok(UiEvent::Resized) => {
                let size = terminal_size(&self.terminal);
                self.writer.resize(size);
                self.app_update(AppInput::Resized(size), now);
                self.pace.resize(now);
            }
            Ok(UiEvent::Stop(kind)) => {
                if let Some(session) = &self.session {
                    session.stop(kind);
                }
                return Some(kind.into());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Some(Exit::Terminated),
        }
        None
    }

    /// Handles the passing of time: expires incomplete key sequences and sends ticks.
    fn time_passed(&mut self, tick: Option<Instant>) {
        let now = Instant::now();
        let events = self.parser.expire(now);
        if !events.is_empty() {
            self.input(events, now);
        }
        if tick.is_some_and(|due| due <= now) {
            self.app_update(AppInput::Tick, now);
            self.pace.change(now);
        }
    }

    fn input(&mut self, events: Vec<InputEvent>, read_at: Instant) {
        let is_key = |event: &&InputEvent| matches!(event, InputEvent::Key(_));
        let in_read = events.iter().filter(is_key).count();
        for event in events {
            let now = Instant::now();
            let input = match event {
                InputEvent::Key(key) => {
                    self.pace.key(now);
                    AppInput::Key {
                        key,
                        read_at,
                        in_read,
                    }
                }
                InputEvent::Paste(paste) => {
                    self.pace.key(now);
                    AppInput::Paste(paste)
                }
                InputEvent::Focus(is_focused) => {
                    self.pace.change(now);
                    AppInput::Focus(is_focused)
                }
                InputEvent::Reply(reply) => {
                    self.pace.change(now);
                    if let (TerminalReply::Attributes(_), Some(at)) = (&reply, self.queried_at) {
                        self.queried_at = None;
                        self.restore
                            .set_answered_after(read_at.saturating_duration_since(at));
                    }
                    AppInput::Reply(reply)
                }
            };
            self.app_update(input, now);
        }
        let capabilities = &self.app.capabilities;
        self.writer.set_reflows(capabilities.reflows);
        #[cfg(debug_assertions)]
        self.panic_if_asked();
    }

    /// Panics if the draft has the text in `HAFT_TEST_PANIC`. Tests use this to check that the
    /// terminal is restored.
    #[cfg(debug_assertions)]
    fn panic_if_asked(&self) {
        let asked = std::env::var("HAFT_TEST_PANIC");
        let is_asked = asked.is_ok_and(|text| self.app.editor.text() == text);
        assert!(!is_asked, "as HAFT_TEST_PANIC asks");
    }

    fn app_update(&mut self, input: AppInput, now: Instant) {
        for effect in self.app.update(input, now) {
            self.perform(effect);
        }
    }

    fn is_newest(&self, number: u64) -> bool {
        let newest = self.background.as_ref().map(|background| background.number);
        newest == Some(number)
    }

    fn has_session(&mut self, session: SessionInput, opened: Box<OpenedSession>) {
        if let Some(background) = &self.background {
            let completer = background.completer.clone();
            let session = session.clone();
            background.runtime.spawn_blocking(move || {
                let mut entries = commands::entries();
                for command in session.commands() {
                    if !entries.iter().any(|entry| entry.name == command.name) {
                        entries.push(CompletableCommand {
                            name: command.name,
                            hint: command.argument_hint,
                            description: command.description,
                        });
                    }
                }
                completer.set_commands(entries);
            });
        }
        self.session = Some(session);
        self.app_update(AppInput::Opened(opened), Instant::now());
    }

    fn draw(&mut self) {
        let now = Instant::now();
        self.pace.drawn(now);
        if let Some(rows) = self.app.overlay_rows() {
            if !self.in_view {
                self.in_view = true;
                self.notify_guard(GuardMessage::EnterView);
            }
            let history = self.app.take_history();
            self.writer.print(history);
            self.writer.show_view(rows);
            return;
        }
        if self.in_view {
            self.in_view = false;
            self.writer.leave_view();
            self.notify_guard(GuardMessage::LeaveView);
        }
        let region = self.app.region(now);
        self.writer.print_and_show(self.app.take_history(), region);
    }

    fn notify_guard(&mut self, message: GuardMessage) {
        if let Some(guard) = &mut self.guard {
            guard.send(message);
        }
    }

    /// Suspends the process (Ctrl-Z): restores the terminal and stops the process group. After
    /// `fg`, continues.
    fn suspend(&mut self) {
        if is_orphaned() {
            self.app
                .warn("! no shell waits for this program: Ctrl-Z does nothing here");
            return;
        }
        self.release_terminal();
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        // Execution continues here after `fg`.
        self.reclaim_terminal();
    }

    /// Hands the terminal over to another program.
    fn release_terminal(&mut self) {
        self.writer.leave_view();
        self.writer.show(LiveRegion::default());
        self.writer.send([TerminalControl::LeaveModes]);
        self.writer.flush(LAST_FRAME);
        if let Some(reader) = &self.reader {
            reader.pause();
        }
        self.restore.discard_answers(&self.terminal);
        let _ = self.raw.suspend();
    }

    /// Takes the terminal back.
    fn reclaim_terminal(&mut self) {
        let _ = self.raw.resume();
        let size = terminal_size(&self.terminal);
        self.writer.resize(size);
        self.app_update(AppInput::Resized(size), Instant::now());
        if let Some(reader) = &self.reader {
            reader.resume();
        }
        self.writer.send([TerminalControl::EnterModes]);
        self.writer.redraw();
        self.pace.key(Instant::now());
    }

    /// Ends the session and restores the terminal.
    fn end(&mut self, exit: Exit, receiver: &Receiver<UiEvent>) -> UiEnd {
        // Dropping the background removes the draft and stops the status line command.
        let background = self.background.take();
        let number = background.as_ref().map(|background| background.number);
        drop(background);
        if let Some(session) = &self.session {
            session.close();
            session.detach();
        }
        self.writer.leave_view();
        let history = self.app.take_all_history();
        self.writer.print_and_show(history, LiveRegion::default());
        self.writer.flush(LAST_FRAME);
        self.reader = None;
        let _ = self.restore.restore(&self.terminal, self.raw.saved());
        if let Some(guard) = &mut self.guard {
            guard.end_guard();
        }
        // The session's output is no longer shown, but its hooks and files are completed.
        let until = Instant::now() + FAREWELL;
        while self.session.is_some() {
            let left = until.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(left) {
                Ok(UiEvent::FromSession {
                    number: ended,
                    input: AppInput::Ended(_),
                }) if Some(ended) == number => break,
                Err(_) => break,
                Ok(UiEvent::Stop(_)) => break,
                Ok(_) => {}
            }
        }
        UiEnd {
            exit,
            session: self.session.take(),
        }
    }
}

impl Ui {
    /// Returns the summary that is printed on exit.
    pub(crate) fn exit_summary(&self, session: Option<&SessionInput>) -> ExitSummary {
        let changed = session.and_then(|session| session.changed_files().ok());
        let changed = changed.unwrap_or_default().into_iter();
        let name = |path: PathBuf| show::from_here(&path.display().to_string(), &self.app.cwd);
        let mut changed: Vec<String> = changed.map(name).collect();
        changed.sort_unstable();
        ExitSummary {
            session: self.app.status.session.clone(),
            cost: self.app.status.cost,
            changed,
        }
    }
}

/// Returns whether the process group is orphaned, so that no shell could continue it after a stop.
fn is_orphaned() -> bool {
    use rustix::process::{getpgid, getpgrp, getppid, getsid};
    let Some(parent) = getppid() else {
        return true;
    };
    let same_session = getsid(Some(parent)).ok() == getsid(None).ok();
    let other_group = getpgid(Some(parent)).is_ok_and(|group| group != getpgrp());
    !(same_session && other_group)
}
