//! A small front end: an editor, a streamed reply, a question, a view. It needs no model: it
//! echoes.
//!
//! `cargo run -p haft-terminal --example echo`, then type. `ask` asks a question, `panic` panics,
//! Ctrl-O shows the whole conversation, Ctrl-Z suspends, Ctrl-D exits. `--vi`: vi keys; `--slow`: a
//! slower reply.

#![forbid(unsafe_code)]

use std::{
    env,
    error::Error,
    fs::{File, OpenOptions},
    io::Write,
    os::fd::AsFd,
    panic,
    process::{Command, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use haft_terminal::{
    Capabilities, Caret, DraftChip, EditOutcome, Editor, FrameWriter, GuardMessage, HistoryItem,
    InputEvent, InputParser, Key, KeyCode, LiveRegion, MarkdownCommitter, MarkdownLook,
    RestoreState, Screen, Scroller, TerminalEnvironment, TextLine, TextStyle, Theme,
    input::{
        AnswerGate, InputChunk, InputReader, PasteResult, RawMode, SavedModes, split_line_ends,
        terminal_size,
    },
    paint::{PromptMark, TerminalControl},
    restore_guard,
    screen::{FramePace, ScrollCommand, WriterEvent},
    style::ThemeName,
};

const REPLY: &str = "You said **{}**, and *this* is an answer of several words that is long enough to be wrapped at the \
edge of the terminal, so that you can see how a paragraph behaves.\n\n- a list entry with `code`\n- and [a link](https://example.com/a)\n\n\
```rust\nfn main() {\n    println!(\"a line of code that is longer than most terminals are wide, so that the terminal has to wrap it by itself\");\n}\n```\n\n\
| part | what it does |\n|------|--------------|\n| editor | takes keys |\n| screen | draws rows |\n\nThat is all.\n";

enum EchoEvent {
    Input(InputChunk),
    Writer(WriterEvent),
    Reply(String),
    ReplyOver,
    Resized,
    Ended,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, modes] = arguments.as_slice()
        && first == "--guard"
    {
        return run_guard(modes);
    }
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let raw = RawMode::enter(&terminal)?;
    let restore = Arc::new(RestoreState::new());
    restore_on_panic(&terminal, &restore, raw.saved().clone())?;
    let (sender, receiver) = channel();
    let mut front_end = EchoFrontEnd::new(&terminal, Arc::clone(&restore), sender, &arguments)?;
    front_end.start(&terminal, raw.saved())?;
    let outcome = front_end.run(&receiver, &raw, &terminal);
    front_end.end();
    restore.restore(&terminal, raw.saved())?;
    outcome
}

/// Runs the guard process. It needs only its stdin (the pipe), its stdout (the terminal) and the
/// modes.
fn run_guard(modes: &str) -> Result<(), Box<dyn Error>> {
    rustix::process::setsid()?;
    let (pipe, terminal) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let modes = SavedModes::decode(modes, terminal)?;
    let output = File::from(terminal.try_clone_to_owned()?);
    restore_guard::watch(
        File::from(pipe.try_clone_to_owned()?),
        output,
        terminal,
        &modes,
    )?;
    Ok(())
}

fn restore_on_panic(
    terminal: &File,
    restore: &Arc<RestoreState>,
    modes: SavedModes,
) -> std::io::Result<()> {
    let (terminal, restore, usual) = (
        terminal.try_clone()?,
        Arc::clone(restore),
        panic::take_hook(),
    );
    panic::set_hook(Box::new(move |info| {
        // First restore the terminal, then print the text.
        let _ = restore.restore(&terminal, &modes);
        usual(info);
    }));
    Ok(())
}

/// A question, and the stamp of the regions that show it.
struct ShownQuestion {
    stamp: u64,
    gate: AnswerGate,
}

struct EchoFrontEnd {
    editor: Editor,
    parser: InputParser,
    writer: FrameWriter,
    reader: Option<InputReader>,
    guard: Option<std::process::ChildStdin>,
    pace: FramePace,
    capabilities: Capabilities,
    theme: Theme,
    committer: MarkdownCommitter,
    sender: Sender<EchoEvent>,
    size: haft_terminal::ScreenSize,
    history: Vec<HistoryItem>,
    said: Vec<TextLine>,
    view: Option<Scroller>,
    question: Option<ShownQuestion>,
    is_working: bool,
    is_slow: bool,
    pastes: usize,
    stamp: u64,
    last_key: Option<Instant>,
    escape_due: Option<Instant>,
}

impl EchoFrontEnd {
    fn new(
        terminal: &File,
        restore: Arc<RestoreState>,
        sender: Sender<EchoEvent>,
        arguments: &[String],
    ) -> Result<Self, Box<dyn Error>> {
        let variable = |name: &str| env::var(name).ok();
        let capabilities = Capabilities::from_environment(&TerminalEnvironment::new(&variable));
        let size = terminal_size(terminal);
        let mut screen = Screen::new(size, capabilities.level);
        screen.set_reflows(capabilities.reflows);
        let events = sender.clone();
        let on_event = move |event| drop(events.send(EchoEvent::Writer(event)));
        let writer = FrameWriter::start(screen, terminal.try_clone()?, restore, on_event)?;
        let theme = Theme::new(ThemeName::Auto, capabilities.background, capabilities.level);
        let mut editor = Editor::new();
        editor.set_vi(arguments.iter().any(|argument| argument == "--vi"), &["jj"]);
        let mut front_end = Self {
            editor,
            parser: InputParser::new(),
            writer,
            reader: None,
            guard: None,
            pace: FramePace::new(),
            committer: MarkdownCommitter::new(MarkdownLook::default()),
            capabilities,
            theme,
            sender,
            size,
            history: Vec::new(),
            said: Vec::new(),
            view: None,
            question: None,
            is_working: false,
            is_slow: arguments.iter().any(|argument| argument == "--slow"),
            pastes: 0,
            stamp: 0,
            last_key: None,
            escape_due: None,
        };
        front_end.apply_theme();
        Ok(front_end)
    }

    /// Sends the first frame, then modes and queries, then starts the guard. Nothing waits for a
    /// reply.
    fn start(&mut self, terminal: &File, modes: &SavedModes) -> Result<(), Box<dyn Error>> {
        self.draw();
        self.writer
            .send([TerminalControl::EnterModes, TerminalControl::Queries]);
        let events = self.sender.clone();
        self.reader = Some(InputReader::start(terminal.as_fd(), move |chunk| {
            drop(events.send(EchoEvent::Input(chunk)));
        })?);
        let mut child = Command::new(env::current_exe()?)
            .args(["--guard", &modes.encode()])
            .stdin(Stdio::piped())
            .stdout(terminal.try_clone()?)
            .spawn()?;
        self.guard = child.stdin.take();
        listen_to_signals(self.sender.clone());
        Ok(())
    }

    fn end(&mut self) {
        self.writer.leave_view();
        self.writer.show(LiveRegion::default());
        self.writer.flush(Duration::from_secs(1));
        self.reader = None;
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.write_all(&[GuardMessage::Goodbye.encode()]);
        }
    }

    fn apply_theme(&mut self) {
        self.theme = Theme::new(
            ThemeName::Auto,
            self.capabilities.background,
            self.capabilities.level,
        );
        self.committer.set_look(MarkdownLook {
            theme: self.theme.clone(),
            hyperlinks: self.capabilities.hyperlinks,
            unicode: self.capabilities.unicode,
            columns: usize::from(self.size.columns),
        });
        // The prompt takes two cells, and a row has one cell less than the terminal.
        self.editor
            .set_width(self.size.row_width().saturating_sub(2));
    }

    fn run(
        &mut self,
        receiver: &Receiver<EchoEvent>,
        raw: &RawMode,
        terminal: &File,
    ) -> Result<(), Box<dyn Error>> {
        loop {
            let due = [self.pace.due(), self.escape_due]
                .into_iter()
                .flatten()
                .min();
            let event = match due {
                Some(due) => receiver.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let now = Instant::now();
            match event {
                Ok(EchoEvent::Input(chunk)) if chunk.bytes.is_empty() => return Ok(()),
                Ok(EchoEvent::Input(chunk)) => {
                    let now = chunk.read_at;
                    let mut events = self.parser.feed(&chunk.bytes);
                    split_line_ends(&mut events);
                    let wait = self.parser.wait();
                    self.escape_due =
                        wait.map(|wait| now + wait.timeout(self.capabilities.is_remote));
                    if !self.events(events, now, raw) {
                        return Ok(());
                    }
                }
                Ok(EchoEvent::Writer(WriterEvent::Written { stamp, at })) => {
                    if let Some(asked) = self.question.as_mut().filter(|asked| asked.stamp == stamp)
                    {
                        asked.gate.written(at);
                    }
                }
                Ok(EchoEvent::Writer(WriterEvent::Failed(error))) => return Err(error.into()),
                Ok(EchoEvent::Reply(text)) => {
                    let done = self.committer.push(&text);
                    self.print(done);
                }
                Ok(EchoEvent::ReplyOver) => {
                    let done = self.committer.finish();
                    self.print(done);
                    self.is_working = false;
                }
                Ok(EchoEvent::Resized) => {
                    self.size = terminal_size(terminal);
                    self.writer.resize(self.size);
                    self.apply_theme();
                    self.pace.resize(now);
                }
                Ok(EchoEvent::Ended) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    if self.escape_due.is_some_and(|due| due <= now) {
                        self.escape_due = None;
                        let events = self.parser.expire();
                        if !self.events(events, now, raw) {
                            return Ok(());
                        }
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.pace.due().is_some_and(|due| due <= Instant::now()) {
                self.draw();
            }
        }
    }

    fn print(&mut self, items: Vec<HistoryItem>) {
        for item in &items {
            if let HistoryItem::Verbatim(line) | HistoryItem::Prose { line, .. } = item {
                self.said.push(line.clone());
            }
        }
        self.history.extend(items);
        self.pace.change(Instant::now());
    }

    /// Returns `false` to exit.
    fn events(&mut self, events: Vec<InputEvent>, read_at: Instant, raw: &RawMode) -> bool {
        let is_key = |event: &&InputEvent| matches!(event, InputEvent::Key(_));
        let keys = events.iter().filter(is_key).count();
        for event in events {
            match event {
                InputEvent::Key(key) => {
                    self.pace.key(Instant::now());
                    let is_answer = self.is_answer(key, read_at, keys);
                    self.last_key = Some(read_at);
                    if !is_answer && !self.key(key, raw) {
                        return false;
                    }
                }
                InputEvent::Paste(PasteResult::Text(text)) => {
                    self.pace.key(Instant::now());
                    if DraftChip::is_needed_for(&text) {
                        self.pastes += 1;
                        self.editor
                            .insert_chip(DraftChip::pasted(self.pastes, text));
                    } else {
                        self.editor.insert(&text);
                    }
                }
                InputEvent::Paste(PasteResult::TooLong { bytes }) => {
                    let text = format!("! a paste of {bytes} bytes is too long");
                    self.print(vec![HistoryItem::Verbatim(TextLine::styled(
                        &text,
                        self.theme.warning,
                    ))]);
                }
                InputEvent::Reply(reply) => {
                    if self.capabilities.update_from_reply(&reply) {
                        self.writer.set_reflows(self.capabilities.reflows);
                        self.apply_theme();
                        self.pace.change(Instant::now());
                    }
                }
                InputEvent::Focus(_) => {}
            }
        }
        true
    }

    fn key(&mut self, key: Key, raw: &RawMode) -> bool {
        if self.view.is_some() {
            self.view_key(key);
            return true;
        }
        if key == Key::control('d') && self.editor.is_empty() {
            return false;
        }
        if key == Key::control('z') {
            self.stop(raw);
            return true;
        }
        if key == Key::control('l') {
            self.writer.scroll_away();
            return true;
        }
        if key == Key::control('o') {
            let size = self.size;
            self.view = Some(Scroller::new(
                size.row_width(),
                usize::from(size.rows).saturating_sub(1),
            ));
            self.send_to_guard(GuardMessage::EnterView);
            return true;
        }
        if key == Key::plain(KeyCode::Tab) {
            self.editor.unfold();
        }
        if self.editor.key(key) == EditOutcome::Submit {
            self.submit();
        }
        true
    }

    /// Answers the question, if the key was meant as an answer.
    fn is_answer(&mut self, key: Key, read_at: Instant, keys: usize) -> bool {
        let Some(asked) = &mut self.question else {
            return false;
        };
        let takes = asked.gate.accepts_key(read_at, keys) && self.editor.is_empty();
        let Some(letter @ ('y' | 'n')) = key.typed().filter(|_| takes) else {
            return false;
        };
        self.question = None;
        let text = format!("- answered {letter}");
        self.print(vec![HistoryItem::Verbatim(TextLine::plain(&text))]);
        true
    }

    fn submit(&mut self) {
        let text = self.editor.text();
        self.editor.take();
        match text.as_str() {
            "" => return,
            "panic" => panic!("this was asked for"),
            "ask" => {
                self.stamp += 1;
                let mut gate = AnswerGate::new(self.last_key);
                // The draft has just been sent, so the question may take the focus.
                gate.focus();
                self.question = Some(ShownQuestion {
                    stamp: self.stamp,
                    gate,
                });
            }
            _ => {}
        }
        let mut items = vec![HistoryItem::Mark(PromptMark::Start)];
        for (number, line) in text.lines().enumerate() {
            let mark = if number == 0 { "> " } else { "  " };
            items.push(HistoryItem::Prose {
                line: TextLine::styled(&format!("{mark}{line}"), self.theme.accent),
                indent: 2,
            });
        }
        items.push(HistoryItem::Mark(PromptMark::Output));
        self.print(items);
        if text != "ask" {
            self.reply(&text);
        }
    }

    fn reply(&mut self, text: &str) {
        self.is_working = true;
        let pause = Duration::from_millis(if self.is_slow { 20 } else { 2 });
        let (sender, reply) = (
            self.sender.clone(),
            REPLY.replace("{}", text.lines().next().unwrap_or_default()),
        );
        thread::spawn(move || {
            for piece in reply.split_inclusive([' ', '\n']) {
                thread::sleep(pause);
                if sender.send(EchoEvent::Reply(piece.to_owned())).is_err() {
                    return;
                }
            }
            let _ = sender.send(EchoEvent::ReplyOver);
        });
    }

    fn view_key(&mut self, key: Key) {
        let Some(view) = &mut self.view else { return };
        match ScrollCommand::from_key(key) {
            Some(command) => {
                view.scroll(command, &self.said);
            }
            None if key == Key::char('q') || key == Key::ESCAPE => {
                self.view = None;
                self.writer.leave_view();
                self.send_to_guard(GuardMessage::LeaveView);
            }
            None => {}
        }
    }

    fn send_to_guard(&mut self, message: GuardMessage) {
        if let Some(guard) = &mut self.guard {
            let _ = guard.write_all(&[message.encode()]);
        }
    }

    /// Handles Ctrl-Z: restores the terminal, then stops this process group; `fg` continues it.
    fn stop(&mut self, raw: &RawMode) {
        self.writer.show(LiveRegion::default());
        self.writer.send([TerminalControl::LeaveModes]);
        self.writer.flush(Duration::from_secs(1));
        if let Some(reader) = &self.reader {
            reader.pause();
        }
        let _ = raw.suspend();
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        // `fg` continues here.
        let _ = raw.resume();
        if let Some(reader) = &self.reader {
            reader.resume();
        }
        self.writer.send([TerminalControl::EnterModes]);
        self.writer.redraw();
    }

    fn draw(&mut self) {
        self.pace.drawn(Instant::now());
        if let Some(view) = &mut self.view {
            let mut rows = view.rows(&self.said);
            rows.resize(
                usize::from(self.size.rows).saturating_sub(1),
                TextLine::new(),
            );
            rows.push(TextLine::styled(" q leaves", TextStyle::new().reverse()));
            self.writer.show_view(rows);
            return;
        }
        let region = self.region();
        self.writer.print_and_show(self.history.drain(..), region);
    }

    fn region(&mut self) -> LiveRegion {
        let width = self.size.row_width();
        let room = self.size.region_rows(self.question.is_some());
        let view = self
            .editor
            .view((usize::from(self.size.rows) / 3).max(1), self.theme.accent);
        let mut below = Vec::new();
        if self.question.is_some() {
            below.push(TextLine::styled("? Shall it run?", self.theme.warning));
            below.push(TextLine::plain("  [y] once [n] no"));
        }
        if self.is_working {
            below.push(TextLine::styled("| Working", self.theme.faint));
        }
        let open_room = room.saturating_sub(below.len() + view.rows.len() + 1);
        let mut rows = self.committer.open_rows(width, open_room);
        rows.append(&mut below);
        let caret = Caret {
            row: rows.len() + view.caret.row,
            offset: view.caret.offset + 2,
        };
        for (number, row) in view.rows.iter().enumerate() {
            let mut line = TextLine::plain(if number == 0 { "> " } else { "  " });
            line.append(row);
            rows.push(line);
        }
        let mode = self
            .editor
            .vi_mode()
            .map_or(String::new(), |mode| format!(" . {mode:?}"));
        rows.push(TextLine::styled(&format!(" echo{mode}"), self.theme.faint));
        let stamp = self.question.as_ref().map_or(0, |asked| asked.stamp);
        LiveRegion {
            rows,
            caret: Some(caret),
            stamp,
        }
    }
}

fn listen_to_signals(sender: Sender<EchoEvent>) {
    use tokio::signal::unix::{SignalKind, signal};
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let (Ok(mut resized), Ok(mut ended), Ok(mut hung_up)) = (
                signal(SignalKind::window_change()),
                signal(SignalKind::terminate()),
                signal(SignalKind::hangup()),
            ) else {
                return;
            };
            loop {
                let happened = tokio::select! {
                    _ = resized.recv() => EchoEvent::Resized,
                    _ = ended.recv() => EchoEvent::Ended,
                    _ = hung_up.recv() => EchoEvent::Ended,
                };
                if sender.send(happened).is_err() {
                    return;
                }
            }
        });
    });
}
