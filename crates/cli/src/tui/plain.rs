//! The interactive terminal for screen readers: plain lines only. The cursor never moves up,
//! nothing is redrawn and nothing is animated. The user types lines and answers questions by
//! numbers.
//!
//! - `lines`: session events as lines
//! - `question_channel`: questions of the session; `choices`: a question as numbered lines; `own_questions`:
//!   questions of the user interface itself
//! - `start_messages`: output before the first message; `typed_lines`: reads typed lines

mod choices;
mod lines;
mod own_questions;
mod question_channel;
mod start_messages;
mod typed_lines;

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use haft::Content;
use haft_agent::Prompt;
use haft_host::{
    AgentSession, CommandOutcome, Environment, PromptDelivery, SessionActivity, SessionConfig,
    SessionEvent, SessionInput, SessionParts, StopKind,
};
use haft_terminal::paint::{PromptMark, TerminalControl};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::timeout,
};

use self::{
    choices::AnswerStep,
    lines::PlainLines,
    own_questions::{OwnAnswer, OwnQuestion},
    question_channel::{AskedQuestion, PlainQuestions},
    typed_lines::{ask_about_sentences, ask_trust, typed_lines},
};
use super::settings::TuiSettings;
use crate::clock::session_clock;
use crate::{
    args::SessionArgs,
    exit::Exit,
    modes::headless::{self, flags::HeadlessFlags},
    show,
};

/// Lines within this time of each other were pasted: they form one message and do not answer a
/// question.
const TOGETHER: Duration = Duration::from_millis(50);

/// A line that arrives within this time after a question was shown is not accepted as its answer,
/// since the user cannot have read it yet.
const READING: Duration = Duration::from_millis(400);

/// A second Ctrl-C within this time exits.
const TWICE: Duration = Duration::from_secs(2);

/// The prompt of our own questions.
const OWN_PROMPT: &str = "question: number and Enter: ";

/// Runs that take longer than this ring the bell at their end.
const LONG_RUN: Duration = Duration::from_secs(10);

/// Returns whether this interface is requested instead of the full-screen one.
pub(crate) fn is_wanted(flag: bool, environment: &Environment, settings: &TuiSettings) -> bool {
    let says_yes = |name: &str| {
        let value = environment.variable(name);
        value.is_some_and(|value| !matches!(value.trim(), "" | "0" | "false"))
    };
    flag || says_yes("CLAUDE_AX_SCREEN_READER")
        || says_yes("ACCESSIBLE")
        || settings.ax_screen_reader
        || environment.variable("TERM").as_deref() == Some("dumb")
}

/// Like [`run`], but with the session configuration from the flags.
pub(crate) async fn run_flags(session: SessionArgs, flags: HeadlessFlags) -> anyhow::Result<Exit> {
    let config = headless::config::session_config(&session, &flags)?;
    run(config, flags.prompt).await
}

/// Runs a session in plain lines.
pub(crate) async fn run(mut config: SessionConfig, prompt: Option<String>) -> anyhow::Result<Exit> {
    // The user starts every run, and each message has its own result.
    (config.hooks_may_begin, config.one_result) = (false, false);
    config.saves_choices = true;
    let mut lines = typed_lines();
    show::line("haft: plain mode. Type a message and Enter; Ctrl-C stops a run, /exit exits.")?;
    ask_trust(&config, &mut lines).await?;
    ask_about_sentences(&config, &mut lines).await?;
    for line in start_messages::key_lines(&config) {
        show::line(&line)?;
    }
    for line in start_messages::earlier_lines(&config) {
        show::line(&line)?;
    }
    let cwd = config.cwd.clone();
    let (asks, mut asked) = mpsc::unbounded_channel();
    let (commands, mut answered) = mpsc::unbounded_channel();
    let (parts, mut events) = SessionParts::stream();
    let parts = parts
        .questions(PlainQuestions { asks })
        .clock(session_clock());
    let session = AgentSession::open(config, parts)?;
    let mut front_end = PlainUi::new(session.input(), commands, cwd);
    let running = tokio::spawn(session.run());
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    match prompt {
        Some(prompt) => front_end.send_message(&prompt),
        None => front_end.wait_for_input()?,
    }
    loop {
        tokio::select! {
            biased;
            _ = interrupts.recv() => front_end.interrupt()?,
            _ = terminated.recv() => front_end.input.stop(StopKind::Terminate),
            _ = hung_up.recv() => front_end.input.stop(StopKind::Terminate),
            // Events precede questions, so that everything that happened before a question is
            // printed before it.
            event = events.next() => match event {
                Some(event) => front_end.on_event(&event)?,
                None => break,
            },
            Some(question) = asked.recv() => front_end.ask(question)?,
            Some(outcome) = answered.recv() => front_end.on_outcome(outcome)?,
            line = lines.recv(), if !front_end.has_ended => {
                let Some(first) = line else {
                    front_end.end_input()?;
                    continue;
                };
                let (at, mut is_cut) = (first.read_at, first.is_cut);
                let mut typed = vec![first.text];
                while let Ok(Some(next)) = timeout(TOGETHER, lines.recv()).await {
                    is_cut |= next.is_cut;
                    typed.push(next.text);
                }
                match is_cut {
                    true => front_end.refuse_cut()?,
                    false => front_end.on_lines(&typed, at)?,
                }
            }
        }
    }
    let end = running.await??;
    front_end.print_exit_message()?;
    Ok(end.stopped.map_or(Exit::Success, Exit::from))
}

/// The outcome of a command or other input that was handled in the background.
enum PlainOutcome {
    /// The output of a command.
    Answered(Result<String, String>),
    /// The command was queued.
    Queued,
    /// The line is not a known command and is sent as a message.
    Message(String),
    /// A question must be asked first.
    Asks(OwnQuestion),
}

/// The state of the plain interface.
struct PlainUi {
    input: SessionInput,
    /// Sends the outcomes of commands, some of which take time.
    commands: mpsc::UnboundedSender<PlainOutcome>,
    lines: PlainLines,
    /// The open questions. The first one is shown.
    questions: VecDeque<AskedQuestion>,
    /// A question of our own. Questions of the session take precedence.
    own: Option<OwnQuestion>,
    /// The time at which the question was shown.
    shown_at: Instant,
    /// Whether the cursor is after a prompt.
    is_at_prompt: bool,
    is_working: bool,
    last_interrupt: Option<Instant>,
    /// The beginning of a message whose lines end in a backslash.
    begun: String,
    session: Option<String>,
    cost: f64,
    /// Whether the input has ended.
    has_ended: bool,
}

impl PlainUi {
    fn new(
        input: SessionInput,
        commands: mpsc::UnboundedSender<PlainOutcome>,
        cwd: PathBuf,
    ) -> Self {
        Self {
            input,
            commands,
            lines: PlainLines::new(cwd),
            questions: VecDeque::new(),
            own: None,
            shown_at: Instant::now(),
            is_at_prompt: false,
            is_working: false,
            last_interrupt: None,
            begun: String::new(),
            session: None,
            cost: 0.0,
            has_ended: false,
        }
    }

    /// Prints a line, after a line end if the cursor is at a prompt.
    fn print(&mut self, line: &str) -> io::Result<()> {
        if std::mem::take(&mut self.is_at_prompt) {
            show::line("")?;
        }
        show::line(line)
    }

    fn prompt(&mut self, text: &str) -> io::Result<()> {
        show::part(text)?;
        self.is_at_prompt = true;
        Ok(())
    }

    fn wait_for_input(&mut self) -> io::Result<()> {
        if self.is_at_prompt {
            return Ok(());
        }
        show::control(&TerminalControl::Mark(PromptMark::Start))?;
        self.prompt("you: ")
    }

    /// Prints the prompt again if output has followed it, so that a screen reader announces what
    /// input is expected.
    fn prompt_again(&mut self) -> io::Result<()> {
        if self.is_at_prompt {
            return Ok(());
        }
        match (self.questions.front(), &self.own) {
            (Some(first), _) => self.prompt(first.question.prompt()),
            (None, Some(_)) => self.prompt(OWN_PROMPT),
            (None, None) if self.is_working => Ok(()),
            (None, None) => self.wait_for_input(),
        }
    }

    fn send_message(&mut self, text: &str) {
        self.is_working = true;
        self.input.prompt(Prompt::typed(text));
    }

    fn leave(&mut self) {
        // Open questions get no answer.
        self.questions.clear();
        self.input.interrupt();
        self.input.close();
    }

    /// Handles the end of the input: the current run continues to its end, but questions get no
    /// answer.
    fn end_input(&mut self) -> io::Result<()> {
        self.has_ended = true;
        self.questions.clear();
        self.input.close();
        match self.is_working {
            true => self.print("haft: the input has ended; haft exits when this is answered"),
            false => Ok(()),
        }
    }

    fn on_event(&mut self, event: &SessionEvent) -> io::Result<()> {
        match event {
            SessionEvent::Ready(facts) => self.session = Some(facts.id.to_string()),
            SessionEvent::Reset(id) => self.session = Some(id.to_string()),
            SessionEvent::Activity(SessionActivity::Running) => self.is_working = true,
            _ => {}
        }
        let was_at_prompt = self.is_at_prompt;
        for line in self.lines.lines_for(event) {
            self.print(&line)?;
        }
        self.drop_abandoned()?;
        if was_at_prompt {
            self.prompt_again()?;
        }
        match event {
            SessionEvent::Notification { .. } => show::control(&TerminalControl::Bell),
            SessionEvent::Result(result) => {
                self.cost = result.run.ledger.total_cost();
                if result.run.duration >= LONG_RUN {
                    show::control(&TerminalControl::Bell)?;
                }
                Ok(())
            }
            SessionEvent::Activity(SessionActivity::Idle) => {
                self.is_working = false;
                match self.questions.is_empty() && !self.has_ended {
                    true => self.wait_for_input(),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Removes questions that the session has withdrawn.
    fn drop_abandoned(&mut self) -> io::Result<()> {
        let first_is_over = self
            .questions
            .front()
            .is_some_and(|question| question.answer.is_closed());
        self.questions
            .retain(|question| !question.answer.is_closed());
        if first_is_over {
            self.print("question: withdrawn")?;
            self.show_question()?;
        }
        Ok(())
    }

    fn ask(&mut self, question: AskedQuestion) -> io::Result<()> {
        // Dropping the question reports that no user can answer it.
        if self.has_ended {
            return Ok(());
        }
        self.questions.push_back(question);
        show::control(&TerminalControl::Bell)?;
        match self.questions.len() {
            1 => self.show_question(),
            _ => Ok(()),
        }
    }

    /// Shows the first open question, or its next part.
    fn show_question(&mut self) -> io::Result<()> {
        let (lines, prompt) = match (self.questions.front(), &self.own) {
            (Some(first), _) => (first.question.lines(), first.question.prompt()),
            (None, Some(own)) => (own.lines(), OWN_PROMPT),
            (None, None) => return Ok(()),
        };
        for line in lines {
            self.print(&format!("question: {line}"))?;
        }
        self.shown_at = Instant::now();
        self.prompt(prompt)
    }

    fn on_lines(&mut self, typed: &[String], at: Instant) -> io::Result<()> {
        // The Enter that ended the line moved the cursor to the next one.
        let was_at_prompt = std::mem::take(&mut self.is_at_prompt);
        self.drop_abandoned()?;
        if !self.questions.is_empty() || self.own.is_some() {
            return match typed {
                [line] if at >= self.shown_at + READING => self.answer(line),
                [_] => self.reject_answer("that was typed before you could read the question"),
                _ => self
                    .reject_answer("several lines arrived together, so none is used as the answer"),
            };
        }
        let mut text = std::mem::take(&mut self.begun) + &typed.join("\n");
        if text.ends_with('\\') {
            text.pop();
            text.push('\n');
            self.begun = text;
            self.is_at_prompt = was_at_prompt;
            return Ok(());
        }
        let text = text.trim();
        match text {
            "" if self.is_working => Ok(()),
            "" => self.wait_for_input(),
            "/exit" | "/quit" => {
                self.leave();
                Ok(())
            }
            text => {
                show::control(&TerminalControl::Mark(PromptMark::Output))?;
                self.send(text)
            }
        }
    }

    /// Runs blocking work on another thread; its outcome arrives later.
    fn off_thread(&self, work: impl FnOnce(&SessionInput) -> PlainOutcome + Send + 'static) {
        let (input, commands) = (self.input.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || drop(commands.send(work(&input))));
    }

    /// Runs a slash command; its outcome arrives later.
    fn command(&self, line: &str) {
        let (input, line) = (self.input.clone(), line.to_owned());
        let commands = self.commands.clone();
        haft::spawn_boxed(async move {
            let outcome = match input.command(&line).await {
                CommandOutcome::Answered(answer) => PlainOutcome::Answered(answer),
                CommandOutcome::Queued(_) => PlainOutcome::Queued,
                _ => PlainOutcome::Message(line),
            };
            let _ = commands.send(outcome);
        });
    }

    /// Rejects a line that the terminal may have truncated.
    fn refuse_cut(&mut self) -> io::Result<()> {
        self.is_at_prompt = false;
        self.begun.clear();
        self.print(
            "haft: not sent: a line had 4,095 bytes, the terminal's maximum, so its end may be missing",
        )?;
        self.print("haft: put it into a file and name the file as @FILE, or end each line with a backslash")?;
        match self.questions.is_empty() && self.own.is_none() {
            true if self.is_working => Ok(()),
            true => self.wait_for_input(),
            false => self.reject_answer("the question is still open"),
        }
    }

    /// Handles a message, a command, a shell command line or a note.
    fn send(&mut self, text: &str) -> io::Result<()> {
        if let Some(directory) = text.strip_prefix("/add-dir ") {
            let directory = directory.to_owned();
            self.off_thread(move |input| match input.directory(&directory) {
                Ok(facts) => PlainOutcome::Asks(OwnQuestion::Directory(facts)),
                Err(why) => PlainOutcome::Answered(Err(why)),
            });
            return Ok(());
        }
        if text.starts_with('/') {
            self.command(text);
            return Ok(());
        }
        if let Some(command) = text
            .strip_prefix('!')
            .filter(|line| !line.trim().is_empty())
        {
            self.is_working = true;
            self.input.run_shell(command.trim());
            return Ok(());
        }
        if let Some(note) = text
            .strip_prefix('#')
            .filter(|line| !line.trim().is_empty())
        {
            let text = note.trim().to_owned();
            self.off_thread(move |input| {
                let places = input.memory_files();
                PlainOutcome::Asks(OwnQuestion::Note { text, places })
            });
            return Ok(());
        }
        if self.is_working {
            self.input
                .submit(Prompt::typed(text), PromptDelivery::Steer);
            return self.print("you: (delivered after the current step)");
        }
        self.send_message(text);
        Ok(())
    }

    fn on_outcome(&mut self, outcome: PlainOutcome) -> io::Result<()> {
        match outcome {
            PlainOutcome::Answered(answer) => {
                let (beginning, text) = match &answer {
                    Ok(text) => ("agent:", text),
                    Err(why) => ("haft:", why),
                };
                for line in text.lines() {
                    self.print(format!("{beginning} {line}").trim_end())?;
                }
            }
            PlainOutcome::Queued => self.is_working = true,
            PlainOutcome::Asks(question) => {
                self.own = Some(question);
                // A question of the session takes precedence.
                return match self.questions.is_empty() {
                    true => self.show_question(),
                    false => Ok(()),
                };
            }
            PlainOutcome::Message(text) => self.send_message(&text),
        }
        match self.is_working || !self.questions.is_empty() || self.own.is_some() {
            true => Ok(()),
            false => self.wait_for_input(),
        }
    }

    /// Handles the answer to a question of our own.
    fn answer_own(&mut self, line: &str) -> io::Result<()> {
        let answer = self.own.as_ref().map(|own| own.answer(line));
        match answer.unwrap_or(OwnAnswer::Nothing) {
            OwnAnswer::Again(hint) => return self.reject_answer(&hint),
            OwnAnswer::Nothing => {}
            OwnAnswer::Command(line) => self.command(&line),
            OwnAnswer::Remember { text, scope } => self.off_thread(move |input| {
                let kept = input.append_memory(&text, scope);
                let kept = kept.map(|file| format!("saved in {}", file.display()));
                PlainOutcome::Answered(kept)
            }),
        }
        self.own = None;
        match self.is_working {
            true => Ok(()),
            false => self.wait_for_input(),
        }
    }

    fn answer(&mut self, line: &str) -> io::Result<()> {
        let Some(mut first) = self.questions.pop_front() else {
            return self.answer_own(line);
        };
        match first.question.answer(line) {
            AnswerStep::Done(answer) => {
                let _ = first.answer.send(answer);
                self.show_question()
            }
            AnswerStep::Next => {
                self.questions.push_front(first);
                self.show_question()
            }
            AnswerStep::Again(hint) => {
                self.questions.push_front(first);
                self.reject_answer(&hint)
            }
        }
    }

    /// Rejects an invalid answer. The question stays open.
    fn reject_answer(&mut self, hint: &str) -> io::Result<()> {
        self.print(&format!("question: {hint}"))?;
        let prompt = match self.questions.front() {
            Some(first) => Some(first.question.prompt()),
            None => self.own.as_ref().map(|_| OWN_PROMPT),
        };
        self.shown_at = Instant::now();
        match prompt {
            Some(prompt) => self.prompt(prompt),
            None => Ok(()),
        }
    }

    /// Handles Ctrl-C: stops the run. A second Ctrl-C within [`TWICE`] exits.
    fn interrupt(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let is_second = self
            .last_interrupt
            .is_some_and(|last| now.duration_since(last) < TWICE);
        self.last_interrupt = Some(now);
        if self.is_working && !is_second {
            // Queued messages are printed, so that they are not lost, and not sent.
            for message in self.input.interrupt_and_withdraw() {
                let text = message.prompt.content.iter().filter_map(Content::as_text);
                let text = text.collect::<Vec<_>>().join(" ");
                self.print(&format!("you: (not sent: {text})"))?;
            }
            return Ok(());
        }
        if is_second {
            self.leave();
            return Ok(());
        }
        self.begun.clear();
        self.print("haft: Ctrl-C again exits")?;
        self.wait_for_input()
    }

    fn print_exit_message(&mut self) -> io::Result<()> {
        if let Some(session) = self.session.take() {
            let cost = self.cost;
            self.print(&format!(
                "haft: to continue: haft -r {session} (${cost:.2})"
            ))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "plain/plain_tests.rs"]
mod tests;
