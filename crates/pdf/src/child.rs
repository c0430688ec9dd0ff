//! The child process: [`main`] runs in it, [`read_in_child`] and [`draw_in_child`] start it.
//!
//! The parent sends a line of JSON with the task and then the bytes of the PDF on the child's
//! stdin. To read, the child answers as [`crate::child_answer`] describes. To draw a page, the child
//! executes the drawing program, which then runs under the same limits.

use std::{
    io::{self, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio, exit},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use memchr::memmem;
use rustix::{
    io::Errno,
    process::{
        Pid, Resource, Rlimit, Signal, kill_process_group, set_parent_process_death_signal,
        setrlimit,
    },
    stdio,
};
use serde::{Deserialize, Serialize};

use crate::{
    PdfReading, PdfRequest,
    child_answer::{self, PdfAnswer, UnreadableReason},
    read,
};

/// The first command-line argument that turns this program into a PDF reader.
pub const ARGUMENT: &str = "__pdf";
/// The maximum length of the line with the task in bytes.
const TASK_LIMIT: usize = 64 << 10;
/// The interval at which the parent checks for cancellation and the deadline.
const TICK: Duration = Duration::from_millis(20);
const STACK: usize = 64 << 20;

/// The resource limits of a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfLimits {
    /// The wall-clock time.
    pub time: Duration,
    /// The CPU time in seconds.
    pub cpu_seconds: u64,
    /// The address space in bytes, in addition to the needs of the file itself.
    pub memory: u64,
    /// The maximum length of the output in bytes.
    pub output: usize,
}

impl Default for PdfLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            cpu_seconds: 20,
            memory: 1 << 30,
            output: 16 << 20,
        }
    }
}

/// The reason why reading or drawing failed. Worded to follow the name of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PdfReadError {
    /// The document cannot be read.
    #[error("{0}")]
    Refused(UnreadableReason),
    /// The time limit was exceeded.
    #[error("took longer than {} s, so it was stopped", .0.as_secs())]
    TimedOut(Duration),
    /// The child ended without a valid answer.
    #[error(
        "made its reader fail ({0}): it is damaged, or it needs more memory or time than is allowed"
    )]
    Crashed(String),
    /// The output is too long.
    #[error("produced more than {0} bytes of output, so it was stopped")]
    TooMuch(usize),
    /// The caller cancelled.
    #[error("was not read: cancelled")]
    Cancelled,
    /// The program is not a PDF reader.
    #[error("was not read: {} is not a PDF reader", .0.display())]
    NotAReader(PathBuf),
    /// The operating system reported an error.
    #[error("was not read: {0}")]
    Io(#[from] io::Error),
}

#[derive(Serialize, Deserialize)]
struct ChildTask {
    limits: PdfLimits,
    size: u64,
    work: ChildWork,
}

#[derive(Serialize, Deserialize)]
enum ChildWork {
    Read(PdfRequest),
    /// Execute this program.
    Become {
        program: PathBuf,
        arguments: Vec<String>,
    },
}

/// Reads a PDF in a child process, which is `program` with [`ARGUMENT`]. Returns within the time
/// limit. `is_cancelled` is polled.
pub fn read_in_child(
    program: &Path,
    pdf: &[u8],
    request: &PdfRequest,
    limits: &PdfLimits,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<PdfReading, PdfReadError> {
    let work = ChildWork::Read(request.clone());
    let (status, output) = run(program, pdf, work, limits, is_cancelled)?;
    match child_answer::parse_answer(&output, request) {
        PdfAnswer::Answer(answer) => answer.map_err(PdfReadError::Refused),
        PdfAnswer::Missing if status.success() => {
            Err(PdfReadError::NotAReader(program.to_path_buf()))
        }
        PdfAnswer::Invalid if status.success() => {
            Err(PdfReadError::Crashed("its answer is invalid".to_owned()))
        }
        PdfAnswer::Missing | PdfAnswer::Invalid => Err(PdfReadError::Crashed(end_of(status))),
    }
}

/// Draws one page (from 1) as a PNG whose longer side has at most `pixels`, with poppler's
/// `pdftoppm`. The child `program` executes it under the same limits as a reader.
pub fn draw_in_child(
    program: &Path,
    drawer: &Path,
    pdf: &[u8],
    page: u32,
    pixels: u32,
    limits: &PdfLimits,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Vec<u8>, PdfReadError> {
    let (page, pixels) = (page.to_string(), pixels.to_string());
    let arguments = ["-png", "-f", &page, "-l", &page, "-scale-to", &pixels, "-"];
    let work = ChildWork::Become {
        program: drawer.to_path_buf(),
        arguments: arguments.map(str::to_owned).to_vec(),
    };
    let (status, output) = run(program, pdf, work, limits, is_cancelled)?;
    match memmem::find(&output, b"\x89PNG\r\n\x1a\n") {
        Some(start) if status.success() => Ok(output[start..].to_vec()),
        _ => Err(PdfReadError::Crashed(end_of(status))),
    }
}

/// Starts the child, sends its input, and waits for its end. Kills it at the deadline or on
/// cancellation.
fn run(
    program: &Path,
    pdf: &[u8],
    work: ChildWork,
    limits: &PdfLimits,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<(ExitStatus, Vec<u8>), PdfReadError> {
    let task = ChildTask {
        limits: limits.clone(),
        size: pdf.len() as u64,
        work,
    };
    let mut task = serde_json::to_vec(&task).map_err(io::Error::from)?;
    task.push(b'\n');
    let limit = limits.output as u64 + 1;
    thread::scope(|scope| {
        // The child is owned inside the scope: on return it is killed first, which closes both
        // pipes, so that the threads end as well.
        let mut child = ChildProcess::start(program)?;
        let (mut input, output) = (child.child.stdin.take(), child.child.stdout.take());
        let task = &task;
        scope.spawn(move || {
            if let Some(input) = &mut input {
                // A child that stops reading has failed or already answered; its output shows
                // which.
                let _ = input.write_all(task).and_then(|()| input.write_all(pdf));
            }
        });
        let (done, all) = mpsc::channel();
        scope.spawn(move || {
            let mut bytes = Vec::new();
            if let Some(output) = output {
                let _ = output.take(limit).read_to_end(&mut bytes);
            }
            let _ = done.send(bytes);
        });
        let deadline = Instant::now() + limits.time;
        let mut bytes = None;
        loop {
            if bytes.is_none() {
                bytes = all.recv_timeout(TICK).ok();
            } else {
                thread::sleep(TICK / 10);
            }
            if bytes
                .as_ref()
                .is_some_and(|bytes| bytes.len() as u64 == limit)
            {
                return Err(PdfReadError::TooMuch(limits.output));
            }
            if is_cancelled() {
                return Err(PdfReadError::Cancelled);
            }
            if Instant::now() > deadline {
                return Err(PdfReadError::TimedOut(limits.time));
            }
            if let (true, Some(status)) = (bytes.is_some(), child.poll()?) {
                return Ok((status, bytes.unwrap_or_default()));
            }
        }
    })
}

/// A child process that is killed when this is dropped.
struct ChildProcess {
    child: Child,
    ended: Option<ExitStatus>,
}

impl ChildProcess {
    fn start(program: &Path) -> io::Result<Self> {
        let child = Command::new(program)
            .arg(ARGUMENT)
            // A PDF reader needs no environment variables.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { child, ended: None })
    }

    fn poll(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // After the child was waited for, its PID may belong to another process.
        if self.ended.is_none() {
            if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn end_of(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match Signal::from_named_raw(signal) {
            Some(Signal::XCPU) => "too much computing time".to_owned(),
            Some(Signal::ABORT) => "aborted: out of memory, or nested too deeply".to_owned(),
            Some(Signal::SEGV) => "memory fault".to_owned(),
            _ => format!("signal {signal}"),
        },
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "no exit code".to_owned(),
    }
}

/// Runs the child: performs the task on stdin, then exits.
pub fn main() -> ! {
    // The panic message is not needed: the output shows whether the child succeeded.
    std::panic::set_hook(Box::new(|_| {}));
    let worker = thread::Builder::new().stack_size(STACK).spawn(serve);
    let served = worker.map(|worker| worker.join());
    exit(match served {
        Ok(Ok(Ok(()))) => 0,
        _ => 1,
    })
}

fn serve() -> io::Result<()> {
    let task: ChildTask = serde_json::from_slice(&first_line()?)?;
    confine(&task)?;
    let request = match task.work {
        ChildWork::Read(request) => request,
        ChildWork::Become { program, arguments } => {
            return Err(Command::new(program).args(arguments).exec());
        }
    };
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    child_answer::write_answer(&read(bytes, &request), io::stdout().lock())
}

/// Reads the first line byte by byte, because the bytes after it belong to the next reader.
fn first_line() -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match rustix::io::read(stdio::stdin(), &mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte[0] == b'\n' => return Ok(line),
            Ok(_) if line.len() >= TASK_LIMIT => return Err(io::ErrorKind::InvalidData.into()),
            Ok(_) => line.push(byte[0]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Limits the resources of this process, prevents writing files, and kills it when its parent dies.
fn confine(task: &ChildTask) -> io::Result<()> {
    let limit = |resource, soft: u64, hard: u64| {
        let limit = Rlimit {
            current: Some(soft),
            maximum: Some(hard),
        };
        setrlimit(resource, limit)
    };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The file is in memory more than once, and its streams are decoded.
    let memory = task.limits.memory + 4 * task.size;
    limit(Resource::As, memory, memory)?;
    // The soft limit ends the process with a signal that names the cause, the hard limit with
    // SIGKILL.
    let seconds = task.limits.cpu_seconds;
    limit(Resource::Cpu, seconds, seconds + 1)?;
    limit(Resource::Fsize, 0, 0)?;
    limit(Resource::Core, 0, 0)?;
    Ok(())
}
