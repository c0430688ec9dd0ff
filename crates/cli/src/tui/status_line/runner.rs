//! Runs the user's status line command after changes.

use std::{
    io::{Read, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use haft_terminal::{TextLine, style::parse_ansi};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{MAX_ROWS, StatusFacts, StatusLineConfig};

/// Changes within this time are combined.
const GATHERED: Duration = Duration::from_millis(300);

/// The timeout of a run.
const MAX_RUN: Duration = Duration::from_secs(5);

/// The time in which the command must exit after its output has ended.
const LEAVING: Duration = Duration::from_millis(200);

/// The maximum number of output bytes that are read.
const MAX_PRINTED: u64 = 64 << 10;

/// The command, run on a separate thread. Dropping this stops the thread and kills the command.
#[derive(Debug)]
pub(crate) struct StatusLine {
    sender: Sender<RunnerMessage>,
}

#[derive(Debug)]
enum RunnerMessage {
    Changed(Box<StatusFacts>),
    /// The output of a run has ended.
    Printed {
        run: u64,
        text: String,
    },
    Ended,
}

impl StatusLine {
    /// Starts the thread. After each run, it calls `show` with the output rows, or with no rows if
    /// the command failed.
    pub(crate) fn start(config: StatusLineConfig, show: Box<dyn Fn(Vec<TextLine>) + Send>) -> Self {
        let (sender, receiver) = channel();
        let runner = StatusLineRunner {
            config,
            show,
            sender: sender.clone(),
            facts: None,
            due: None,
            running: None,
            runs: 0,
        };
        thread::spawn(move || runner.run(&receiver));
        Self { sender }
    }

    /// Reports changed facts.
    pub(crate) fn update(&self, facts: StatusFacts) {
        let _ = self.sender.send(RunnerMessage::Changed(Box::new(facts)));
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        let _ = self.sender.send(RunnerMessage::Ended);
    }
}

struct StatusLineRunner {
    config: StatusLineConfig,
    show: Box<dyn Fn(Vec<TextLine>) + Send>,
    sender: Sender<RunnerMessage>,
    facts: Option<Box<StatusFacts>>,
    /// The time of the next run.
    due: Option<Instant>,
    running: Option<StatusRun>,
    runs: u64,
}

struct StatusRun {
    number: u64,
    child: Child,
    ends: Instant,
}

impl StatusLineRunner {
    fn run(mut self, receiver: &Receiver<RunnerMessage>) {
        loop {
            let ends = self.running.as_ref().map(|run| run.ends);
            let next = [self.due, ends].into_iter().flatten().min();
            let message = match next {
                None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(next) => receiver.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match message {
                Ok(RunnerMessage::Changed(facts)) => {
                    self.facts = Some(facts);
                    let now = Instant::now();
                    // Further changes while a run is due do not delay it.
                    let due = self.due.filter(|due| *due <= now + GATHERED);
                    self.due = Some(due.unwrap_or(now + GATHERED));
                }
                Ok(RunnerMessage::Printed { run, text }) => self.printed(run, &text),
                Ok(RunnerMessage::Ended) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if self.running.as_ref().is_some_and(|run| run.ends <= now) {
                self.end_run(Duration::ZERO);
                (self.show)(Vec::new());
            }
            if self.due.is_some_and(|due| due <= now) {
                self.due = self.config.refresh.map(|refresh| now + refresh);
                self.end_run(Duration::ZERO);
                self.start();
            }
        }
        self.end_run(Duration::ZERO);
    }

    fn start(&mut self) {
        let Some(facts) = &self.facts else {
            return;
        };
        let mut input = serde_json::to_vec(facts).unwrap_or_default();
        // For shell scripts that read the input line by line.
        input.push(b'\n');
        let (columns, rows) = facts.size;
        let child = Command::new("sh")
            .args(["-c", &self.config.command])
            .current_dir(&self.config.cwd)
            .env("COLUMNS", columns.to_string())
            .env("LINES", rows.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // The command gets its own process group, so that its children can be killed with it.
            .process_group(0)
            .spawn();
        let Ok(mut child) = child else {
            (self.show)(Vec::new());
            return;
        };
        self.runs += 1;
        let number = self.runs;
        if let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) {
            let sender = self.sender.clone();
            thread::spawn(move || {
                let _ = to.write_all(&input);
                drop(to);
                let mut text = Vec::new();
                let _ = from.take(MAX_PRINTED).read_to_end(&mut text);
                let text = String::from_utf8_lossy(&text).into_owned();
                let _ = sender.send(RunnerMessage::Printed { run: number, text });
            });
        }
        self.running = Some(StatusRun {
            number,
            child,
            ends: Instant::now() + MAX_RUN,
        });
    }

    /// Handles the output of a run. The output of older runs is ignored.
    fn printed(&mut self, run: u64, text: &str) {
        if self
            .running
            .as_ref()
            .is_none_or(|running| running.number != run)
        {
            return;
        }
        let has_succeeded = self.end_run(LEAVING);
        (self.show)(match has_succeeded {
            true => rows(text, self.config.padding),
            false => Vec::new(),
        });
    }

    /// Waits for the command to exit, kills it after the timeout, and returns whether it succeeded.
    fn end_run(&mut self, timeout: Duration) -> bool {
        let Some(mut run) = self.running.take() else {
            return false;
        };
        let until = Instant::now() + timeout;
        loop {
            match run.child.try_wait() {
                Ok(Some(status)) => return status.success(),
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
                _ => break,
            }
        }
        let id = i32::try_from(run.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = id {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = run.child.wait();
        false
    }
}

/// Parses the output of the command. Colours and links are kept; all other control sequences are
/// removed.
pub(super) fn rows(text: &str, padding: usize) -> Vec<TextLine> {
    let mut rows: Vec<TextLine> = parse_ansi(text).into_iter().take(MAX_ROWS).collect();
    while rows.last().is_some_and(|row| row.text().trim().is_empty()) {
        rows.pop();
    }
    let padded = rows.iter().map(|row| {
        let mut line = TextLine::new();
        line.push_blanks(padding);
        line.append(row);
        line
    });
    padded.collect()
}
