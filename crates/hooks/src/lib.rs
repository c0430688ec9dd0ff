//! Hooks: programs of the user's that run at certain moments of a session and may decide about calls.
//!
//! All handlers that fit run side by side; an identical one from two files runs once. What they say
//! is taken together: deny before defer before ask before allow. A handler that fails says nothing,
//! unless it is a guard: then its failure holds the event up. A rewritten input is bound and judged again, but not
//! claimed anew by the scheduler: two calls that hooks redirect to one file are kept apart by the journal's locks.
//! Servers and models are reached through the contract's `HttpClient` and [`AskModel`]: no client of our own.
//!
//! # Layout
//! - `event`, `matcher`, `condition`: when a handler runs; `config`: how it is written
//! - `job`: one run of one; `run` is a program, `http` a server, `ask` a model; `reaper`: what ends it if we cannot
//! - `file_watch`: files that hooks want to know of
//! - `output`: what it said; `async_hooks`: what is said later; `hook_events`: what is reported of it meanwhile

#![warn(missing_docs)]

mod ask;
mod async_hooks;
mod condition;
mod config;
mod event;
mod file_watch;
mod form_answer;
mod hook_events;
mod http;
mod job;
mod matcher;
pub mod output;
#[cfg(test)]
mod page_tests;
mod reaper;
pub mod reference;
mod run;
mod server_tool;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use haft_contract::{BoxFuture, HookVerdict, HttpClient, ResolveHosts, SessionId};
pub use haft_settings::HttpLimits;
use serde_json::{Map, Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

pub use ask::{AskModel, ModelQuestion};
use async_hooks::Beside;
pub use async_hooks::Late;
pub use condition::{CheckCondition, Condition, JudgeCondition};
pub use config::{Action, Asked, Callback, Handler, HookOrigin, HookPlugin, Post, read};
pub use event::{HookMoment, Objection};
use file_watch::FileWatch;
pub use file_watch::WatchedChange;
pub use form_answer::{HookFormAction, HookFormAnswer};
pub use hook_events::{HearHooks, HookNews, HookOutcome, HookStage};
pub use job::KeepText;
use job::{Job, Means};
pub use matcher::Matcher;
pub use output::{HookDecision, HookOutput};
pub use server_tool::CallServers;

/// All handlers of SessionEnd together may take this long, unless one of them says more…
const END: Duration = Duration::from_millis(1500);
/// …but not more than this.
const LONGEST_END: Duration = Duration::from_secs(60);

/// Between two looks at watched files.
const BETWEEN_CHANGES: Duration = Duration::from_millis(400);

/// The handlers of a session. Cheap to clone; clones share what changes while it runs.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    handlers: Vec<Arc<Handler>>,
    means: Means,
    live: Arc<Live>,
}

/// What changes while a session runs.
#[derive(Debug, Default)]
struct Live {
    state: Mutex<HookState>,
    beside: Beside,
    /// What is to be watched may be something else now.
    watch_changed: Notify,
    /// Skills are to be looked for again.
    reload: AtomicBool,
}

#[derive(Debug, Default)]
struct HookState {
    /// Handlers that came while it ran.
    added: Vec<Arc<Handler>>,
    /// Those of plugins, where they are not those of the start any more.
    of_plugins: Option<Vec<Arc<Handler>>>,
    /// Handlers that run once, and did.
    spent: HashSet<String>,
    situation: Situation,
    /// Paths that handlers want watched, beside those that matchers name.
    watched: Vec<PathBuf>,
}

/// What handlers receive about the session beyond the event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Situation {
    /// The message that is being answered.
    pub prompt_id: Option<String>,
    /// How much work the model puts in.
    pub effort: Option<String>,
}

/// One occasion of an event.
pub struct Occasion<'a> {
    /// Which event.
    pub event: HookMoment,
    /// What matchers look at: the tool's name and its aliases, or another value.
    pub names: &'a [&'a str],
    /// What handlers receive, beside what every event has.
    pub fields: Map<String, Value>,
    /// Of the call it is about: does an `if` hold for it? `None`: it is about none.
    pub call: Option<&'a JudgeCondition<'a>>,
    /// Where the session is.
    pub cwd: &'a Path,
}

/// What every event tells.
#[derive(Debug, Clone)]
pub struct Common {
    /// The session.
    pub session_id: String,
    /// Its transcript.
    pub transcript_path: PathBuf,
    /// The permission mode, where the event tells it.
    pub permission_mode: Option<&'static str>,
    /// Whose doing it is.
    pub agent: Identity,
}

/// Who acts in a session: the main agent, of some kind or none, or a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The id of a subagent.
    pub id: Option<String>,
    /// The kind.
    pub kind: Option<String>,
}

/// What one handler said, and which it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The handler, as a person knows it.
    pub label: String,
    /// Whose it is, in a word.
    pub owner: &'static str,
    /// What it said.
    pub said: HookOutput,
}

impl Hooks {
    /// The handlers of a session whose project lies here.
    pub fn new(handlers: Vec<Handler>, project: &Path) -> Self {
        Self {
            handlers: handlers.into_iter().map(Arc::new).collect(),
            means: Means {
                project: project.to_path_buf(),
                ..Means::default()
            },
            live: Arc::default(),
        }
    }

    /// The same with variables for the handlers; an empty one takes away what is inherited.
    #[must_use]
    pub fn with_env(mut self, env: BTreeMap<String, String>) -> Self {
        self.means.env = Arc::new(env);
        self
    }

    /// The same with further handlers.
    #[must_use]
    pub fn with_handlers(mut self, handlers: Vec<Handler>) -> Self {
        self.handlers.extend(handlers.into_iter().map(Arc::new));
        self
    }

    /// The same with a way to servers, where the settings let it.
    #[must_use]
    pub fn with_http(mut self, client: Arc<dyn HttpClient>, limits: HttpLimits) -> Self {
        self.means.http = Some(client);
        self.means.limits = Arc::new(limits);
        self
    }

    /// The same, and servers are posted to only where this finds them.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Arc<dyn ResolveHosts>) -> Self {
        self.means.hosts = Some(hosts);
        self
    }

    /// The same with a model that can be asked.
    #[must_use]
    pub fn with_model(mut self, model: Arc<dyn AskModel>) -> Self {
        self.means.model = Some(model);
        self
    }

    /// The same with MCP servers whose tools can be called.
    #[must_use]
    pub fn with_servers(mut self, servers: Arc<dyn CallServers>) -> Self {
        self.means.servers = Some(servers);
        self
    }

    /// The same, and this observes handlers as they start, print and end.
    #[must_use]
    pub fn heard_by(mut self, ear: Arc<dyn HearHooks>) -> Self {
        self.means.ear = Some(ear);
        self
    }

    /// The same with a place for long texts, and one for variables of later commands.
    #[must_use]
    pub fn kept_in(mut self, results: Arc<dyn KeepText>, env_file: PathBuf) -> Self {
        self.means.results = Some(results);
        self.means.env_file = Some(env_file);
        self
    }

    /// Adds handlers to a session that runs, as a skill brings them.
    pub fn add(&self, handlers: Vec<Handler>) {
        let handlers = handlers.into_iter().map(Arc::new);
        self.state().added.extend(handlers);
        self.live.watch_changed.notify_one();
    }

    /// Puts these handlers of plugins in the place of those that plugins had.
    pub fn set_of_plugins(&self, handlers: Vec<Handler>) {
        let handlers = handlers.into_iter().map(Arc::new).collect();
        self.state().of_plugins = Some(handlers);
    }

    /// All that hold now, in the order they are written.
    fn current(&self) -> Vec<Arc<Handler>> {
        let state = self.state();
        let is_past = |handler: &&Arc<Handler>| {
            state.of_plugins.is_some() && matches!(handler.origin, HookOrigin::Plugin(_))
        };
        let first = self.handlers.iter().filter(|handler| !is_past(handler));
        let of_plugins = state.of_plugins.iter().flatten();
        first
            .chain(of_plugins)
            .chain(&state.added)
            .cloned()
            .collect()
    }

    /// Changes what handlers receive about the session.
    pub fn set_situation(&self, change: impl FnOnce(&mut Situation)) {
        change(&mut self.state().situation);
    }

    /// What handlers receive about the session.
    pub fn situation(&self) -> Situation {
        self.state().situation.clone()
    }

    /// The file of variables for later commands, if any handler may have written to it.
    pub fn env_file(&self) -> Option<&Path> {
        let sets = |handler: &Arc<Handler>| handler.event.sets_variables();
        let any = self.handlers.iter().any(sets) || self.current().iter().any(sets);
        self.means.env_file.as_deref().filter(|_| any)
    }

    /// There is none for this event, so that nothing need be gathered for it.
    pub fn is_silent(&self, event: HookMoment) -> bool {
        !self.current().iter().any(|handler| handler.event == event)
    }

    /// Takes what handlers that run beside the session have said since the last time.
    pub fn take_late(&self) -> Vec<Late> {
        self.live.beside.take()
    }

    /// Has one of them said something that the model should read now?
    pub fn has_waker(&self) -> bool {
        self.live.beside.has_waker()
    }

    /// Returns when one of them says something that the model should read now.
    pub async fn woken(&self) {
        self.live.beside.woken().await;
    }

    /// Kills handlers that still run beside the session, and waits until they are gone.
    pub async fn end(&self) {
        self.live.beside.end().await;
    }

    /// Runs every handler that fits, side by side, and takes what all of them say, in the order they are
    /// written.
    ///
    /// Boxed, so that its code is made once, here, and not in each crate that awaits it.
    pub fn fire<'a>(
        &'a self,
        occasion: &'a Occasion<'a>,
        common: &'a Common,
    ) -> BoxFuture<'a, Vec<Heard>> {
        Box::pin(self.run_fitting(occasion, common))
    }

    async fn run_fitting(&self, occasion: &Occasion<'_>, common: &Common) -> Vec<Heard> {
        let jobs = self.jobs(occasion, common);
        let (beside, waited_for): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| job.handler.in_background);
        for job in beside {
            self.live.beside.start(job).await;
        }
        let heard = waited_for.into_iter().map(|job| async move {
            let (label, owner) = (job.handler.label(), job.handler.owner());
            let said = job.run().await.said;
            Heard { label, owner, said }
        });
        let heard = join_all(heard).await;
        for one in &heard {
            self.take_wishes(&one.said);
        }
        heard
    }

    /// What a handler wants of the session itself.
    fn take_wishes(&self, said: &HookOutput) {
        if let Some(paths) = &said.watch_paths {
            self.state().watched.clone_from(paths);
            self.live.watch_changed.notify_one();
        }
        if said.reload_skills {
            self.live.reload.store(true, Ordering::Relaxed);
        }
    }

    /// Does a handler want skills looked for again? Once.
    pub fn take_reload(&self) -> bool {
        self.live.reload.swap(false, Ordering::Relaxed)
    }

    /// Relative paths start elsewhere: what is watched there is something else.
    pub fn moved(&self) {
        self.live.watch_changed.notify_one();
    }

    /// Watches what handlers of FileChanged are for, and what handlers want watched, until it is dropped:
    /// `cwd` says where the session is, and `tell` has each change, one after the other.
    pub async fn watch_files(
        &self,
        cwd: impl Fn() -> PathBuf,
        tell: impl Fn(WatchedChange) -> BoxFuture<'static, ()>,
    ) {
        let mut watch = FileWatch::new();
        let mut pause_ends = Instant::now();
        // What is watched changes at once, also while a handler runs: what happens next there counts.
        loop {
            watch.set(self.watch_list(&cwd()));
            let changes = tokio::select! {
                changes = async {
                    sleep_until(pause_ends).await;
                    watch.changes().await
                } => changes,
                () = self.live.watch_changed.notified() => continue,
            };
            for change in changes {
                let mut telling = tell(change);
                loop {
                    tokio::select! {
                        () = &mut telling => break,
                        () = self.live.watch_changed.notified() => {
                            watch.set(self.watch_list(&cwd()));
                        }
                    }
                }
            }
            // A handler that changes what it watches does not keep the machine busy.
            pause_ends = Instant::now() + BETWEEN_CHANGES;
        }
    }

    fn watch_list(&self, cwd: &Path) -> Vec<PathBuf> {
        if self.is_silent(HookMoment::FILE_CHANGED) {
            return Vec::new();
        }
        let current = self.current();
        let of_event = current
            .iter()
            .filter(|handler| handler.event == HookMoment::FILE_CHANGED);
        let names = of_event.flat_map(|handler| handler.matcher.written_names());
        let plain = |name: &String| !name.is_empty() && !name.contains('/') && !name.contains("..");
        let mut paths: Vec<PathBuf> = names.filter(plain).map(|name| cwd.join(name)).collect();
        paths.extend(self.state().watched.iter().cloned());
        paths
    }

    /// Starts every handler that fits, and waits for none: what they say is not used.
    pub async fn tell(&self, occasion: &Occasion<'_>, common: &Common) {
        for job in self.jobs(occasion, common) {
            self.live.beside.start(job).await;
        }
    }

    fn jobs(&self, occasion: &Occasion<'_>, common: &Common) -> Vec<Job> {
        let fitting = self.fitting(occasion);
        if fitting.is_empty() {
            return Vec::new();
        }
        let situation = self.state().situation.clone();
        let input: Arc<str> = message(occasion, common, &situation).into();
        let event = occasion.event.name();
        let name = match occasion.names.first() {
            Some(matched) if !matched.is_empty() => format!("{event}:{matched}"),
            _ => event.to_owned(),
        };
        let jobs = fitting.into_iter().map(|handler| Job {
            input: Arc::clone(&input),
            name: name.clone(),
            cwd: occasion.cwd.to_path_buf(),
            limit: self.limit(&handler),
            effort: situation.effort.clone(),
            means: self.means.clone(),
            handler,
        });
        jobs.collect()
    }

    fn fitting(&self, occasion: &Occasion<'_>) -> Vec<Arc<Handler>> {
        // Conditions may take a while: no one waits for them.
        let current = self.current();
        let mut seen = HashSet::new();
        let fitting = current
            .iter()
            .filter(|handler| handler.event == occasion.event)
            .filter(|handler| handler.matcher.fits(occasion.names))
            .filter(|handler| match (&handler.condition, occasion.call) {
                (None, _) => true,
                (Some(condition), Some(holds)) => holds(condition),
                (Some(_), None) => false,
            })
            .filter(|handler| seen.insert(handler.key()));
        let mut fitting: Vec<Arc<Handler>> = fitting.cloned().collect();
        let mut state = self.state();
        fitting.retain(|handler| !handler.once || state.spent.insert(handler.key()));
        fitting
    }

    /// How long a handler may take. Those of the session's end share what there is.
    fn limit(&self, handler: &Handler) -> Duration {
        if handler.event != HookMoment::SESSION_END {
            return handler.timeout;
        }
        let by_variable = self
            .means
            .variable("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS")
            .and_then(|value| value.trim().parse().ok());
        let all = by_variable.map_or_else(|| self.raised_end(), Duration::from_millis);
        handler.timeout.min(all)
    }

    fn raised_end(&self) -> Duration {
        let raises = |handler: &&Arc<Handler>| {
            handler.event == HookMoment::SESSION_END
                && handler.says_timeout
                && matches!(handler.origin, HookOrigin::Settings)
        };
        let said = self.handlers.iter().filter(raises);
        let most = said.map(|handler| handler.timeout).max();
        most.map_or(END, |most| most.clamp(END, LONGEST_END))
    }

    fn state(&self) -> MutexGuard<'_, HookState> {
        self.live
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Common {
    /// What every event of a session tells that keeps its state in this folder.
    pub fn of(session: SessionId, folder: &Path) -> Self {
        Self {
            session_id: session.to_string(),
            transcript_path: folder.with_extension("jsonl"),
            permission_mode: None,
            agent: Identity::default(),
        }
    }
}

/// What several handlers said, taken together.
pub fn together(heard: Vec<Heard>) -> HookVerdict {
    let mut verdict = HookVerdict::default();
    for Heard { label, said, .. } in heard {
        verdict.context.extend(said.context);
        verdict.messages.extend(said.message);
        let failure = said.failure;
        let failure = failure.map(|failure| format!("{label} hook error: {failure}"));
        verdict.messages.extend(failure);
        verdict.block = verdict.block.or(said.block);
        verdict.stop = verdict.stop.or(said.stop);
        verdict.worktree = verdict.worktree.or(said.worktree);
    }
    verdict
}

/// What handlers read on their stdin.
fn message(occasion: &Occasion<'_>, common: &Common, situation: &Situation) -> String {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| {
        object.insert(name.to_owned(), value);
    };
    put("session_id", common.session_id.clone().into());
    put(
        "transcript_path",
        common.transcript_path.to_string_lossy().into(),
    );
    put("cwd", occasion.cwd.to_string_lossy().into());
    if let Some(id) = &situation.prompt_id {
        put("prompt_id", id.clone().into());
    }
    if let Some(mode) = common.permission_mode {
        put("permission_mode", mode.into());
    }
    if let Some(level) = situation
        .effort
        .as_ref()
        .filter(|_| occasion.call.is_some())
    {
        put("effort", json!({ "level": level }));
    }
    put("hook_event_name", occasion.event.name().into());
    let Identity { id, kind } = &common.agent;
    for (name, value) in [("agent_id", id), ("agent_type", kind)] {
        if let Some(value) = value {
            put(name, value.as_str().into());
        }
    }
    for (name, value) in &occasion.fields {
        put(name, value.clone());
    }
    Value::Object(object).to_string()
}
