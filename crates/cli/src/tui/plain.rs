//! The interactive terminal for those who listen to it: lines and nothing else. No cursor moves, nothing is
//! redrawn, nothing happens by itself; a person types lines, and questions are answered by numbers.
//!
//! - `lines`: what happens, as lines
//! - `asked`: questions of the session; `choices`: one of them, as numbered lines; `own_questions`: those of our own
//! - `first_words`: what is said before the first message; `typed`: what is typed

mod asked;
mod choices;
mod first_words;
mod lines;
mod own_questions;
mod typed;

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use haft::Content;
use haft_agent::Prompt;
use haft_host::{
    AgentSession, CommandOutcome, Delivery, Environment, SessionActivity, SessionConfig,
    SessionEvent, SessionInput, SessionParts, StopKind,
};
use haft_terminal::paint::{PromptMark, TerminalControl};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::timeout,
};

use self::{
    asked::{AskedQuestion, PlainQuestions},
    choices::AnswerStep,
    lines::PlainLines,
    own_questions::{OwnAnswer, OwnQuestion},
    typed::{ask_trust, typed_lines},
};
use super::settings::TuiSettings;
use crate::clock::session_clock;
use crate::{
    args::SessionArgs,
    exit::Exit,
    modes::headless::{self, flags::Headless},
    show,
};

/// Lines that come this soon one after the other were pasted: they are one message, and answer nothing.
const TOGETHER: Duration = Duration::from_millis(50);

/// What was typed before a person can have read the question is no answer to it.
const READING: Duration = Duration::from_millis(400);

/// Ctrl-C again within this leaves.
const TWICE: Duration = Duration::from_secs(2);

/// What stands behind a question of our own.
const OWN_PROMPT: &str = "question: number and Enter: ";

/// The end of a run that took longer than this is announced by the bell.
const LONG_RUN: Duration = Duration::from_secs(10);

/// Is this face wanted, and not the one that draws?
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

/// The same as the flags describe it.
pub(crate) async fn run_flags(session: SessionArgs, flags: Headless) -> anyhow::Result<Exit> {
    let config = headless::config::of(&session, &flags)?;
    run(config, flags.prompt).await
}

/// A session for a person who types lines and reads lines.
pub(crate) async fn run(mut config: SessionConfig, prompt: Option<String>) -> anyhow::Result<Exit> {
    // A person begins it, and each of their messages has an answer of its own.
    (config.hooks_may_begin, config.one_result) = (false, false);
    config.saves_choices = true;
    let mut lines = typed_lines();
    show::line("haft: plain mode. Type a message and Enter; Ctrl-C stops a run, /exit leaves.")?;
    ask_trust(&config, &mut lines).await?;
    for line in first_words::key_lines(&config) {
        show::line(&line)?;
    }
    for line in first_words::earlier_lines(&config) {
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
    let mut face = PlainFace::new(session.input(), commands, cwd);
    let running = tokio::spawn(session.run());
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    match prompt {
        Some(prompt) => face.say(&prompt),
        None => face.wait_for_input()?,
    }
    loop {
        tokio::select! {
            biased;
            _ = interrupts.recv() => face.interrupt()?,
            _ = terminated.recv() => face.input.stop(StopKind::Terminate),
            _ = hung_up.recv() => face.input.stop(StopKind::Terminate),
            // Before questions: what happened before one is read before it.
            event = events.next() => match event {
                Some(event) => face.on_event(&event)?,
                None => break,
            },
            Some(question) = asked.recv() => face.ask(question)?,
            Some(outcome) = answered.recv() => face.on_outcome(outcome)?,
            line = lines.recv(), if !face.has_ended => {
                let Some(first) = line else {
                    face.end_input()?;
                    continue;
                };
                let (at, mut is_cut) = (first.at, first.is_cut);
                let mut typed = vec![first.text];
                while let Ok(Some(next)) = timeout(TOGETHER, lines.recv()).await {
                    is_cut |= next.is_cut;
                    typed.push(next.text);
                }
                match is_cut {
                    true => face.refuse_cut()?,
                    false => face.on_lines(&typed, at)?,
                }
            }
        }
    }
    let end = running.await??;
    face.say_goodbye()?;
    Ok(end.stopped.map_or(Exit::Success, Exit::from))
}

/// What came of something that a person typed and that is no message.
enum PlainOutcome {
    /// It was answered.
    Answered(Result<String, String>),
    /// It waits for its turn.
    Queued,
    /// It is a message after all.
    Message(String),
    /// First something is to be asked.
    Asks(OwnQuestion),
}

/// What the person sees and does.
struct PlainFace {
    input: SessionInput,
    /// Where answers to commands go: some of them take their time.
    commands: mpsc::UnboundedSender<PlainOutcome>,
    lines: PlainLines,
    /// The first is shown, the others wait.
    questions: VecDeque<AskedQuestion>,
    /// One of our own; those of the session come first.
    own: Option<OwnQuestion>,
    /// When it was shown.
    shown_at: Instant,
    /// The cursor stands behind a prompt.
    is_at_prompt: bool,
    is_working: bool,
    last_interrupt: Option<Instant>,
    /// The beginning of a message whose lines end in a backslash.
    begun: String,
    session: Option<String>,
    cost: f64,
    /// Nothing more is typed.
    has_ended: bool,
}

impl PlainFace {
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

    /// A line of its own, wherever the cursor is.
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

    /// Something was printed behind a prompt: one who listens learns again that something is waited for.
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

    fn say(&mut self, text: &str) {
        self.is_working = true;
        self.input.prompt(Prompt::typed(text));
    }

    fn leave(&mut self) {
        // What waits for an answer gets none.
        self.questions.clear();
        self.input.interrupt();
        self.input.close();
    }

    /// The end of the input: what runs is answered to its end, and no question any longer.
    fn end_input(&mut self) -> io::Result<()> {
        self.has_ended = true;
        self.questions.clear();
        self.input.close();
        match self.is_working {
            true => self.print("haft: the input has ended; leaving when this is answered"),
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
        for line in self.lines.of(event) {
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

    /// Questions that no one waits for any longer go.
    fn drop_abandoned(&mut self) -> io::Result<()> {
        let first_is_over = self
            .questions
            .front()
            .is_some_and(|question| question.answer.is_closed());
        self.questions
            .retain(|question| !question.answer.is_closed());
        if first_is_over {
            self.print("question: not asked any longer")?;
            self.show_question()?;
        }
        Ok(())
    }

    fn ask(&mut self, question: AskedQuestion) -> io::Result<()> {
        // Dropped without an answer, it is one that no one can be asked.
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

    /// Shows the first of the open questions, or the part of it that comes next.
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
        // The Enter that ended the line moved the cursor to the next.
        let was_at_prompt = std::mem::take(&mut self.is_at_prompt);
        self.drop_abandoned()?;
        if !self.questions.is_empty() || self.own.is_some() {
            return match typed {
                [line] if at >= self.shown_at + READING => self.answer(line),
                [_] => self.again("that came before you can have read it"),
                _ => self.again("several lines came at once, so none is taken as the answer"),
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

    /// What waits for the disk; what came of it follows.
    fn off_thread(&self, work: impl FnOnce(&SessionInput) -> PlainOutcome + Send + 'static) {
        let (input, commands) = (self.input.clone(), self.commands.clone());
        tokio::task::spawn_blocking(move || drop(commands.send(work(&input))));
    }

    /// A line that begins with a slash; what came of it follows.
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

    /// A line that a terminal may have cut off is not taken.
    fn refuse_cut(&mut self) -> io::Result<()> {
        self.is_at_prompt = false;
        self.begun.clear();
        self.print(
            "haft: not taken: a line was 4,095 bytes, the most that a terminal passes on, and its end may be missing",
        )?;
        self.print("haft: put it into a file and name the file as @FILE, or end each line with a backslash")?;
        match self.questions.is_empty() && self.own.is_none() {
            true if self.is_working => Ok(()),
            true => self.wait_for_input(),
            false => self.again("nothing was answered"),
        }
    }

    /// A message, a command, a line for the shell, or a note.
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
            self.input.say(Prompt::typed(text), Delivery::Steer);
            return self.print("you: (delivered after the current step)");
        }
        self.say(text);
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
                // Where the session asks, too, it comes first.
                return match self.questions.is_empty() {
                    true => self.show_question(),
                    false => Ok(()),
                };
            }
            PlainOutcome::Message(text) => self.say(&text),
        }
        match self.is_working || !self.questions.is_empty() || self.own.is_some() {
            true => Ok(()),
            false => self.wait_for_input(),
        }
    }

    /// An answer to a question of our own.
    fn answer_own(&mut self, line: &str) -> io::Result<()> {
        let answer = self.own.as_ref().map(|own| own.answer(line));
        match answer.unwrap_or(OwnAnswer::Nothing) {
            OwnAnswer::Again(hint) => return self.again(&hint),
            OwnAnswer::Nothing => {}
            OwnAnswer::Command(line) => self.command(&line),
            OwnAnswer::Remember { text, scope } => self.off_thread(move |input| {
                let kept = input.remember(&text, scope);
                let kept = kept.map(|file| format!("remembered in {}", file.display()));
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
                self.again(&hint)
            }
        }
    }

    /// What was typed is no answer; the question stays open.
    fn again(&mut self, hint: &str) -> io::Result<()> {
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

    /// Ctrl-C: stops a run; without one, twice leaves.
    fn interrupt(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let is_second = self
            .last_interrupt
            .is_some_and(|last| now.duration_since(last) < TWICE);
        self.last_interrupt = Some(now);
        if self.is_working && !is_second {
            // Nothing is lost, and nothing is sent by itself.
            for message in self.input.interrupt_and_take_back() {
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
        self.print("haft: Ctrl-C again leaves")?;
        self.wait_for_input()
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        if let Some(session) = self.session.take() {
            let cost = self.cost;
            self.print(&format!("haft: to go on: haft -r {session} (${cost:.2})"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "plain/plain_tests.rs"]
mod tests;
