//! A run of one handler of any type: program, HTTP server, model, MCP tool or callback.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_contract::{HostResolver, HttpClient, secrets};
use haft_settings::HttpHookLimits;
use tokio::time::timeout;

use super::{
    config::{Callback, HookAction, HookHandler},
    hook_events::{HookEventSink, HookOutcome, HookReporter, HookStage},
    http_hook,
    model_hook::HookModelProvider,
    output::{HookExit, HookOutput},
    process_hook::{self, ProcessContext, RunError},
    reaper::ProcessReaper,
    server_tool::McpToolCaller,
};

/// Longer texts of a handler are stored in a file, and only a part of them is used.
const MAX_LENGTH: usize = 10_000;

/// Stores long texts.
pub trait LongTextStore: Send + Sync {
    /// Stores a text that is longer than `longest` characters; returns the text to use instead.
    fn store(&self, text: &str, longest: usize) -> Option<String>;
}

/// The resources of handlers. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct HookResources {
    /// The project's root when the session started.
    pub(super) project: PathBuf,
    /// Environment variables from the settings.
    pub(super) env: Arc<BTreeMap<String, String>>,
    pub(super) http: Option<Arc<dyn HttpClient>>,
    pub(super) limits: Arc<HttpHookLimits>,
    pub(super) hosts: Option<Arc<dyn HostResolver>>,
    pub(super) model: Option<Arc<dyn HookModelProvider>>,
    pub(super) servers: Option<Arc<dyn McpToolCaller>>,
    pub(super) event_sink: Option<Arc<dyn HookEventSink>>,
    /// The store for long texts.
    pub(super) results: Option<Arc<dyn LongTextStore>>,
    /// The file for environment variables of later commands.
    pub(super) env_file: Option<PathBuf>,
    /// Kills handlers if our process dies.
    pub(super) reaper: Arc<ProcessReaper>,
}

impl fmt::Debug for HookResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookResources")
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

impl HookResources {
    /// Returns a variable from the settings, otherwise from our environment.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let set = self.env.get(name).cloned();
        set.or_else(|| secrets::variable(name))
            .filter(|value| !value.trim().is_empty())
    }

    /// Creates the file for environment variables. It first sources the user's own file for all
    /// sessions, if any.
    fn make_env_file(&self) -> Option<&Path> {
        let path = self.env_file.as_deref()?;
        let make = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(folder)?;
            }
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            match self.variable("CLAUDE_ENV_FILE") {
                Some(users) => {
                    let users = users.replace('\'', r"'\''");
                    writeln!(file, "[ -f '{users}' ] && . '{users}'")
                }
                None => Ok(()),
            }
        };
        match make() {
            Ok(()) => Some(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(path),
            Err(error) => {
                tracing::warn!(%error, "hooks cannot set variables: no file for them");
                None
            }
        }
    }

    /// Shortens texts that exceed the limit.
    fn shorten(&self, said: &mut HookOutput) {
        for text in said.texts() {
            if let Some(results) = &self.results
                && let Some(shown) = results.store(text, MAX_LENGTH)
            {
                *text = shown;
            }
            cut(text);
        }
    }
}

/// Cuts a text that could not be stored in a file.
pub(super) fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(MAX_LENGTH) {
        let left_out = text.len() - at;
        text.truncate(at);
        *text += &format!("\n[{left_out} further bytes are left out]");
    }
}

/// A run of one handler.
pub(super) struct HookJob {
    pub(super) handler: Arc<HookHandler>,
    /// The event as JSON, for stdin.
    pub(super) input: Arc<str>,
    /// The event and the matched value.
    pub(super) name: String,
    pub(super) cwd: PathBuf,
    pub(super) timeout: Duration,
    pub(super) effort: Option<String>,
    pub(super) resources: HookResources,
}

/// The result of a run.
pub(super) struct HookJobResult {
    pub(super) output: HookOutput,
    /// The exit of a program, if the handler is one.
    pub(super) exit: Option<HookExit>,
}

/// The raw answer of a handler.
enum HandlerAnswer {
    Ended(HookExit),
    Model { text: String, said: Box<HookOutput> },
}

impl HookJob {
    /// Runs the handler until it ends or times out.
    pub(super) async fn run(self) -> HookJobResult {
        let handler = &self.handler;
        // The connected program knows what it runs itself.
        let is_callback = matches!(handler.action, HookAction::Callback(_));
        let ear = self.resources.event_sink.clone().filter(|_| !is_callback);
        let status = handler.status.as_deref();
        let teller = HookReporter::start(ear, handler.event, &self.name, status);
        let answer = self.answer(&teller).await;
        let (mut said, stage) = match &answer {
            Ok(HandlerAnswer::Ended(ended)) => {
                let said = HookOutput::read(handler.event, ended);
                let is_program = matches!(
                    handler.action,
                    HookAction::Shell(_) | HookAction::Program(..)
                );
                let well = ended.code == Some(0) && said.failure.is_none();
                let stage = HookStage::Ended {
                    stdout: ended.stdout.clone(),
                    stderr: ended.stderr.clone(),
                    code: ended.code.filter(|_| is_program),
                    outcome: if well {
                        HookOutcome::Success
                    } else {
                        HookOutcome::Error
                    },
                };
                (said, stage)
            }
            Ok(HandlerAnswer::Model { text, said }) => {
                let stage = HookStage::Ended {
                    stdout: text.clone(),
                    stderr: String::new(),
                    code: None,
                    outcome: HookOutcome::Success,
                };
                (HookOutput::clone(said), stage)
            }
            Err(error) => {
                let stage = HookStage::Ended {
                    stdout: String::new(),
                    stderr: error.to_string(),
                    code: None,
                    outcome: match error {
                        RunError::TimedOut(_) => HookOutcome::Cancelled,
                        _ => HookOutcome::Error,
                    },
                };
                (HookOutput::failed(error.to_string()), stage)
            }
        };
        teller.finish(stage);
        if let Some(why) = said.failure.take_if(|_| handler.fails_closed) {
            let label = handler.label();
            said.block = Some(format!("the guard hook {label} did not answer: {why}"));
        }
        let mut said = said.restrict_to_event(handler.event);
        self.resources.shorten(&mut said);
        tracing::debug!(event = handler.event.name(), ?said, "hook");
        HookJobResult {
            output: said,
            exit: match answer {
                Ok(HandlerAnswer::Ended(ended)) => Some(ended),
                _ => None,
            },
        }
    }

    async fn answer(&self, teller: &HookReporter) -> Result<HandlerAnswer, RunError> {
        let means = &self.resources;
        let unavailable = |what: &str| RunError::Unavailable(what.to_owned());
        let in_time = |late| move |_| RunError::TimedOut(late);
        match &self.handler.action {
            HookAction::Callback(callback) => {
                let ended = ask(callback, &self.input, self.timeout).await?;
                Ok(HandlerAnswer::Ended(ended))
            }
            HookAction::Http(post) => {
                let client = means.http.as_deref();
                let client = client.ok_or_else(|| unavailable("nothing here can send HTTP"))?;
                let way = (client, means.hosts.as_deref());
                let sent = http_hook::post(post, &self.input, way, &means.limits, &means.env);
                let sent = timeout(self.timeout, sent).await;
                Ok(HandlerAnswer::Ended(sent.map_err(in_time(self.timeout))??))
            }
            HookAction::Server(tool) => {
                let servers = means.servers.as_deref();
                let servers =
                    servers.ok_or_else(|| unavailable("no MCP servers are available here"))?;
                let event = serde_json::from_str(&self.input).unwrap_or_default();
                let calling = servers.call(&tool.server, &tool.tool, tool.input_at(&event));
                let called = timeout(self.timeout, calling).await;
                let text = called
                    .map_err(in_time(self.timeout))?
                    .map_err(RunError::Unavailable)?;
                Ok(HandlerAnswer::Ended(HookExit {
                    code: Some(0),
                    stdout: text,
                    stderr: String::new(),
                }))
            }
            HookAction::Model(asked) => {
                let model = means.model.as_deref();
                let model = model.ok_or_else(|| unavailable("no model is available here"))?;
                let question = asked.question(&self.input, self.cwd.clone());
                let answer = timeout(self.timeout, model.ask(question)).await;
                let text = answer
                    .map_err(in_time(self.timeout))?
                    .map_err(RunError::Unavailable)?;
                let said = HookOutput::parse_model_answer(self.handler.event, &text, asked);
                let said = Box::new(said.map_err(RunError::Unavailable)?);
                Ok(HandlerAnswer::Model { text, said })
            }
            HookAction::Shell(_) | HookAction::Program(..) | HookAction::Unavailable(_) => {
                let sets = self.handler.event.sets_variables();
                let surroundings = ProcessContext {
                    cwd: &self.cwd,
                    project: &means.project,
                    env: &means.env,
                    env_file: sets.then(|| means.make_env_file()).flatten(),
                    effort: self.effort.as_deref(),
                    reaper: &means.reaper,
                };
                let ran = process_hook::run(
                    &self.handler,
                    &self.input,
                    self.timeout,
                    surroundings,
                    teller,
                );
                Ok(HandlerAnswer::Ended(ran.await?))
            }
        }
    }
}

/// Calls a connected program.
async fn ask(callback: &Callback, input: &str, limit: Duration) -> Result<HookExit, RunError> {
    let input = serde_json::from_str(input)
        .map_err(|error| RunError::Unavailable(format!("the event cannot be sent: {error}")))?;
    match timeout(limit, (callback.0)(input)).await {
        Err(_) => Err(RunError::TimedOut(limit)),
        Ok(Err(why)) => Err(RunError::Unavailable(why)),
        Ok(Ok(answer)) => Ok(HookExit {
            code: Some(0),
            stdout: answer.to_string(),
            stderr: String::new(),
        }),
    }
}
