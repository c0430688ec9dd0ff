//! `haft -p`: a headless front end. It contains no session logic.
//!
//! - `flags`: the command-line flags; `config`: the session configuration built from them
//! - `stderr_reporter`: the progress display on stderr while stdout waits for the answer
//! - `session_sink`, `output`: turn session events into output; `messages`, `stream_events`, `tasks`,
//!   `status` and `line_limit` build the messages
//! - `input`, `requests`, `channel`, `callbacks`: the protocol with the SDK client (`--input-format
//!   stream-json`); `permission`, `elicitation`: questions to the client

mod callbacks;
mod channel;
pub(crate) mod config;
mod elicitation;
pub(crate) mod flags;
mod input;
mod line_limit;
mod messages;
mod output;
mod permission;
mod requests;
mod session_sink;
mod status;
mod stderr_reporter;
mod stream_events;
mod tasks;

use std::{
    fs,
    io::{self, IsTerminal, Read},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use haft::Content;
use haft_agent::{Prompt, mentioned};
use haft_host::{
    AgentSession, Environment, SessionEnd, SessionParts, StopKind, error_chain, image_content,
};

use self::{
    channel::ControlChannel,
    elicitation::ProgramElicitations,
    flags::{HeadlessFlags, InputFormat, OutputFormat},
    input::ControlReader,
    output::HeadlessOutput,
    permission::{ControlApprover, PromptTool},
    session_sink::ProgramServers,
    stderr_reporter::StderrReporter,
};
use crate::{
    args::SessionArgs,
    clock::session_clock,
    exit::Exit,
    line_input::{self, InputWait},
    modes::doctor,
    show,
    signals::StopSignals,
    terminal_approver::TerminalApprover,
    tui::InteractiveStart,
};

const NO_PROMPT: &str =
    "no prompt was given: pass one as an argument or on stdin; see `haft -p --help`";

/// Returns the error for a missing prompt. If an option that accepts several values may have
/// consumed the prompt, the error says so.
fn no_prompt(session: &SessionArgs, flags: &HeadlessFlags) -> String {
    let is_prose = |value: &&String| {
        let before = value.split('(').next().unwrap_or_default();
        before.trim().contains(char::is_whitespace)
    };
    let rules = [
        ("--allowed-tools", &session.allowed_tools),
        ("--disallowed-tools", &session.disallowed_tools),
        ("--mcp-config", &flags.mcp_config),
    ];
    let mut taken = rules
        .into_iter()
        .filter(|(_, values)| values.len() > 1 || values.last().as_ref().is_some_and(is_prose))
        .filter_map(|(name, values)| Some((name, values.last()?.clone())))
        .filter(|(name, value)| *name != "--mcp-config" || !std::path::Path::new(value).exists());
    let folder = session.add_dir.last().filter(|folder| !folder.is_dir());
    let folder = folder.map(|folder| ("--add-dir", folder.display().to_string()));
    match taken.next().or(folder) {
        Some((option, value)) => format!(
            "no prompt was given: {option} takes all words after it, and took {value:?}; put the prompt \
             before {option}, or `--` before the prompt"
        ),
        None => NO_PROMPT.to_owned(),
    }
}

/// The time to wait for data on a silent stdin.
const SILENCE: Duration = Duration::from_secs(3);

/// The maximum size of a prompt on stdin in bytes.
const MAX_PROMPT: u64 = 10 << 20;

/// Builds the configuration of an interactive session from the flags of `haft -p`.
pub(crate) fn interactive(
    session: SessionArgs,
    mut flags: HeadlessFlags,
) -> anyhow::Result<InteractiveStart> {
    check(&flags)?;
    let picks_session = flags.session.resume.as_deref() == Some("");
    if picks_session {
        flags.session.resume = None;
    }
    let mut config = config::session_config(&session, &flags)?;
    config.one_result = false;
    config.hooks_may_begin = false;
    config.saves_choices = true;
    Ok(InteractiveStart {
        config,
        prompt: flags.prompt.filter(|text| !text.trim().is_empty()),
        is_still: flags.screen.still,
        picks_session,
    })
}

pub(crate) async fn run(session: SessionArgs, flags: HeadlessFlags) -> anyhow::Result<Exit> {
    let output = Arc::new(HeadlessOutput::new(&flags, &Environment::from_process()));
    let ended = run_session(&session, &flags, &output).await;
    if let Err(error) = &ended {
        output.put_failure(&error_chain(error));
    }
    output.end()?;
    ended
}

async fn run_session(
    session: &SessionArgs,
    flags: &HeadlessFlags,
    output: &Arc<HeadlessOutput>,
) -> anyhow::Result<Exit> {
    check(flags)?;
    let signals = StopSignals::listen()?;
    let channel = Arc::new(ControlChannel::new(Arc::clone(output)));
    let config = config::session_config(session, flags)?;
    if flags.is_text_only() {
        output.set_reporter(StderrReporter::new(&config.cwd));
    }
    let looked_at = config.clone();
    let silence = no_prompt(session, flags);
    let parts =
        parts(flags, output, &channel).doctor(move || Box::pin(doctor::report(looked_at.clone())));
    let session = AgentSession::open(config, parts)?;
    let input = session.input();
    output.set_session(input.clone());
    signals.end(&input);
    let prompt = prompt(flags, session.can_start_without_message(), &silence);
    let prompt = signals
        .run_until_signalled(prompt)
        .await
        .transpose()?
        .flatten();
    if let Some(prompt) = prompt {
        input.prompt(prompt);
    }
    if flags.input_format == InputFormat::StreamJson {
        let reader = ControlReader {
            session: input,
            channel,
            replay: flags.replay_user_messages,
        };
        haft::spawn_boxed(reader.run());
    } else {
        input.close();
    }
    let end = session.run().await?;
    if end.stopped == Some(StopKind::Interrupt) {
        output.put_resume_hint(flags);
    }
    exit(end, flags, silence)
}

/// Connects the session to the output and to the handler of questions.
fn parts(
    flags: &HeadlessFlags,
    output: &Arc<HeadlessOutput>,
    channel: &Arc<ControlChannel>,
) -> SessionParts {
    let mut parts = SessionParts::shared(Arc::clone(output) as _).clock(session_clock());
    if flags.input_format == InputFormat::StreamJson {
        parts = parts
            .servers(Arc::new(ProgramServers(Arc::clone(channel))))
            .elicitations(Arc::new(ProgramElicitations::new(Arc::clone(channel))));
    }
    match flags.permission_prompt_tool.as_deref() {
        None => match TerminalApprover::from_stdio_or_tty().filter(|_| flags.is_text_only()) {
            Some(terminal) => parts.questions(terminal),
            None => parts,
        },
        Some("stdio") => parts.questions(ControlApprover {
            channel: Arc::clone(channel),
        }),
        Some(tool) => parts.questions(PromptTool {
            tool: tool.to_owned(),
            output: Arc::clone(output),
        }),
    }
}

fn exit(end: SessionEnd, flags: &HeadlessFlags, silence: String) -> anyhow::Result<Exit> {
    if let Some(stopped) = end.stopped {
        return Ok(stopped.into());
    }
    anyhow::ensure!(!end.had_no_prompt || flags.init_only, silence);
    Ok(match end.has_failed {
        true => Exit::Usage,
        false if end.has_denials && flags.fail_on_deny => Exit::CallFailed,
        false => Exit::Success,
    })
}

/// Checks that the flags can be combined.
fn check(flags: &HeadlessFlags) -> anyhow::Result<()> {
    let streams = flags.input_format == InputFormat::StreamJson;
    anyhow::ensure!(
        !streams || flags.output_format == OutputFormat::StreamJson,
        "--input-format stream-json needs --output-format stream-json"
    );
    match flags.permission_prompt_tool.as_deref() {
        Some("stdio") => anyhow::ensure!(
            streams,
            "--permission-prompt-tool stdio needs --input-format stream-json"
        ),
        Some(other) => anyhow::ensure!(
            other.starts_with("mcp__"),
            "--permission-prompt-tool {other}: expected `stdio` or mcp__SERVER__TOOL"
        ),
        None => {}
    }
    Ok(())
}

/// Returns the prompt from the command line, followed by the contents of stdin. Without any prompt,
/// returns `None` if the input is a message stream or `may_be` allows it, and fails otherwise.
async fn prompt(
    flags: &HeadlessFlags,
    may_be: bool,
    silence: &str,
) -> anyhow::Result<Option<Prompt>> {
    let given = flags.prompt.clone();
    let given = given.filter(|text| !text.trim().is_empty());
    let mut images = Vec::new();
    for file in &flags.image {
        let bytes = fs::read(file).with_context(|| format!("--image {}", file.display()))?;
        images.push(image(&bytes).with_context(|| format!("--image {}", file.display()))?);
    }
    if flags.input_format == InputFormat::StreamJson {
        return Ok(given.map(|text| composed(Some(text), "", images)));
    }
    let mut piped = if io::stdin().is_terminal() {
        Vec::new()
    } else {
        let can_wait = given.is_none();
        tokio::task::spawn_blocking(move || piped(can_wait)).await??
    };
    if is_picture(&piped) {
        images.push(image(&piped).context("the image on stdin")?);
        piped.clear();
    }
    let piped = String::from_utf8_lossy(&piped);
    let is_silent = given.is_none() && piped.trim().is_empty() && images.is_empty();
    match is_silent {
        false => Ok(Some(composed(given, &piped, images))),
        true if may_be => Ok(None),
        true => anyhow::bail!(silence.to_owned()),
    }
}

/// Builds the prompt. File mentions in the command-line prompt attach files; those in piped text do
/// not.
fn composed(given: Option<String>, piped: &str, images: Vec<Content>) -> Prompt {
    let piped = Some(piped).filter(|piped| !piped.trim().is_empty());
    let mentions = given.as_deref().map(mentioned).unwrap_or_default();
    let texts: Vec<&str> = given.as_deref().into_iter().chain(piped).collect();
    let text = Some(texts.join("\n\n")).filter(|text| !text.is_empty());
    let mut content: Vec<Content> = text.into_iter().map(Content::text).collect();
    content.extend(images);
    Prompt {
        mentions,
        ..content.into()
    }
}

fn image(bytes: &[u8]) -> anyhow::Result<Content> {
    image_content(bytes).map_err(anyhow::Error::msg)
}

/// Returns whether the bytes begin with the signature of a supported image format.
fn is_picture(bytes: &[u8]) -> bool {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let beginnings: [&[u8]; 3] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8"];
    is_webp
        || beginnings
            .iter()
            .any(|beginning| bytes.starts_with(beginning))
}

/// Reads stdin. If there is already a prompt (`!can_wait`), stops waiting after [`SILENCE`]: many
/// programs start others with an open stdin that they never write to.
fn piped(can_wait: bool) -> anyhow::Result<Vec<u8>> {
    if !can_wait && line_input::wait(&io::stdin(), Some(SILENCE)) == InputWait::Nothing {
        show::warn(&format!(
            "haft: no data on stdin for {} s; continuing without it (close it with < /dev/null)",
            SILENCE.as_secs()
        ));
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    let mut input = io::stdin().lock().take(MAX_PROMPT + 1);
    input
        .read_to_end(&mut bytes)
        .context("stdin cannot be read")?;
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_PROMPT,
        "more than 10 MB on stdin; put it into a file and name the file in the prompt"
    );
    Ok(bytes)
}
